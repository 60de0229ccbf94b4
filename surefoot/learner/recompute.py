"""A layer that keeps its input alone (activation checkpointing), and an MLP that is never whole.

The widest arrays of a layer are the MLP's, five to eight times the width of its input. Both passes take `MLP_CHUNK`
tokens at a time, so what exists at once of them does not grow with the sequence. The backward pass computes the
attention half again, but the MLP only once more, chunk by chunk, with its gradients: its output is never wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

MLP_CHUNK = 4096
"""Tokens whose MLP activations exist at the same time: 75 MB in float32 for a layer of width 576."""

Half = Callable[[Tensor], Tensor]
"""One half of a layer, residual included: [N, width] -> [N, width]."""


def in_chunks(mlp: Half, x: Tensor) -> Tensor:
    """`mlp(x)` without gradient, a chunk of tokens at a time."""
    if len(x) <= MLP_CHUNK:
        return mlp(x)
    out = torch.empty_like(x)  # [N, width]
    for rows in _chunks(len(x)):
        out[rows] = mlp(x[rows])
    return out


def recomputed(x: Tensor, mix: Half, mlp: Half, *, offload: bool) -> Tensor:
    """`mlp(mix(x))`, of which only x is kept for the backward pass: in the CPU's memory if `offload`.

    Gradients of parameters that the halves use are accumulated while the backward pass is at this layer.
    """
    # Without an input that wants a gradient autograd would never come to layers above a frozen embedding.
    anchor = torch.empty(0, requires_grad=torch.is_grad_enabled())
    out: Tensor = _Recomputed.apply(x, anchor, mix, mlp, offload)  # type: ignore[no-untyped-call]
    return out


class _Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, anchor: Tensor, mix: Half, mlp: Half, offload: bool) -> Tensor:
        ctx.mix, ctx.mlp, ctx.device = mix, mlp, x.device
        ctx.save_for_backward(to_host(x) if offload else x)
        return in_chunks(mlp, mix(x))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        (kept,) = ctx.saved_tensors
        x = kept.to(ctx.device, non_blocking=True).detach().requires_grad_()  # [N, width]
        with torch.enable_grad():
            middle = ctx.mix(x)  # [N, width]
        slope = torch.empty_like(x)  # [N, width]
        for rows in _chunks(len(x)):
            with torch.enable_grad():
                piece = middle.detach()[rows].requires_grad_()
                out = ctx.mlp(piece)
            torch.autograd.backward(out, grad[rows])
            assert piece.grad is not None
            slope[rows] = piece.grad
        torch.autograd.backward(middle, slope)
        assert x.grad is not None
        return x.grad, None, None, None, None


def to_host(x: Tensor) -> Tensor:
    """A copy in the CPU's memory, page-locked where x is on a GPU; on a CPU x itself."""
    if x.device.type == "cpu":
        return x
    host = torch.empty(x.shape, dtype=x.dtype, pin_memory=x.device.type == "cuda")
    return host.copy_(x, non_blocking=True)


def _chunks(length: int) -> Iterator[slice]:
    return (slice(i, min(i + MLP_CHUNK, length)) for i in range(0, length, MLP_CHUNK))
