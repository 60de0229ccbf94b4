"""The decoder's layers as the learner runs them: the same parameters and numbers, less time and memory.

Autograd would keep about 40 kB a token and layer of the plain forms (float32 copies inside the norms, both halves of
every rotation, gate and up apart). These keep their inputs alone, about 17 kB, and work the rest out again in the
backward pass, in fewer passes over memory. The embedding's gradient touches only the rows of the pack's tokens, where
autograd would make a dense matrix of the vocabulary's size.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from surefoot.learner.recompute import in_chunks, recomputed
from surefoot.models import Attention, Decoder
from surefoot.models.decoder import Layer

Kept = Literal["none", "layer", "offload"]
"""What is kept for the backward pass; see `learner.checkpoint_activations`."""


def embed(decoder: Decoder, tokens: Tensor) -> Tensor:
    """Embeddings of tokens [N] -> [N, width], a leaf: its gradient, if there is one, goes to those rows."""
    trained = torch.is_grad_enabled() and decoder.embedding.requires_grad
    return decoder.embedding.detach()[tokens].requires_grad_(trained)


def hidden_states(decoder: Decoder, x: Tensor, positions: Tensor, attend: Attention, *, kept: Kept = "none") -> Tensor:
    """What `Decoder.forward` gives, from embeddings x [N, width] -> [N, width].

    `kept` says what the backward pass finds: all that it needs, or each layer's input, perhaps in the CPU's memory.
    """
    cos, sin = decoder.angles(positions, x.dtype)  # [N, 1, D] each
    for layer in cast(Iterable[Layer], decoder.layers):
        mix, mlp = partial(_mix, layer, cos=cos, sin=sin, attend=attend), partial(_mlp, layer)
        if not torch.is_grad_enabled():
            x = in_chunks(mlp, mix(x))
        elif kept == "none":
            x = mlp(mix(x))
        else:
            x = recomputed(x, mix, mlp, offload=kept == "offload")
    return _norm(x, decoder.norm, decoder.config.eps)


def _mix(layer: Layer, x: Tensor, *, cos: Tensor, sin: Tensor, attend: Attention) -> Tensor:
    """The first half of `Layer.forward`, step by step: attention."""
    c = layer.c
    qkv = F.linear(_norm(x, layer.attention_norm, c.eps), layer.qkv, layer.qkv_bias)
    by_head = qkv.view(-1, c.heads + 2 * c.kv_heads, c.head_dim)
    q, k, v = torch.split(by_head, [c.heads, c.kv_heads, c.kv_heads], dim=1)  # [N, heads or kv_heads, D]
    if layer.q_norm is not None and layer.k_norm is not None:
        q, k = _norm(q, layer.q_norm, c.eps), _norm(k, layer.k_norm, c.eps)
    mixed = attend(layer.index, _rotate(q, cos, sin), _rotate(k, cos, sin), v)  # [N, heads, D]
    return x + F.linear(mixed.reshape(-1, c.heads * c.head_dim), layer.out)


def _mlp(layer: Layer, x: Tensor) -> Tensor:
    """The second half of `Layer.forward`."""
    gate_up = F.linear(_norm(x, layer.mlp_norm, layer.c.eps), layer.gate_up)  # [N, 2 mlp]
    gated: Tensor = _SwiGlu.apply(gate_up)  # type: ignore[no-untyped-call]
    return x + F.linear(gated, layer.down)


def _norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    normed: Tensor = _RmsNorm.apply(x, weight, eps)  # type: ignore[no-untyped-call]
    return normed


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    rotated: Tensor = _Rotate.apply(x, cos, sin)  # type: ignore[no-untyped-call]
    return rotated


class _RmsNorm(torch.autograd.Function):
    """y = n w with n = x / rms(x); keeps x and 1 / rms alone."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """x [..., width], weight [width] -> [..., width]."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32), copy=True)
        inverse = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)  # [..., 1]
        ctx.save_for_backward(x, weight, inverse)
        return wide.mul_(inverse).to(x.dtype) * weight

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        """dx = (dn - n mean(dn n)) / rms with dn = dy w."""
        x, weight, inverse = ctx.saved_tensors
        normal = x.to(inverse.dtype, copy=True).mul_(inverse)  # [..., width]
        slope = grad.to(inverse.dtype, copy=True)  # [..., width]
        dweight = (slope * normal).flatten(0, -2).sum(0)  # [width]
        slope.mul_(weight)
        overlap = (slope * normal).mean(-1, keepdim=True)  # [..., 1]
        dx = slope.sub_(normal.mul_(overlap)).mul_(inverse)
        return dx.to(x.dtype), dweight.to(weight.dtype), None


class _Rotate(torch.autograd.Function):
    """Rotary embedding; keeps nothing but the angles, since its inverse turns the gradient back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """x [N, heads, D], cos and sin [N, 1, D] -> [N, heads, D]."""
        ctx.save_for_backward(cos, sin)
        left, right = x.chunk(2, dim=-1)
        return (x * cos).add_(torch.cat((-right, left), dim=-1).mul_(sin))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        left, right = grad.chunk(2, dim=-1)
        return (grad * cos).add_(torch.cat((right, -left), dim=-1).mul_(sin)), None, None


class _SwiGlu(torch.autograd.Function):
    """silu(gate) up; keeps the one product they came from."""

    @staticmethod
    def forward(ctx: Any, gate_up: Tensor) -> Tensor:
        """[N, 2 mlp] -> [N, mlp]."""
        ctx.save_for_backward(gate_up)
        gate, up = gate_up.chunk(2, dim=-1)
        return F.silu(gate).mul_(up)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (gate_up,) = ctx.saved_tensors
        gate, up = gate_up.chunk(2, dim=-1)
        total = torch.empty_like(gate_up)  # [N, 2 mlp]
        dgate, dup = total.chunk(2, dim=-1)
        torch.mul(grad, F.silu(gate), out=dup)
        torch.ops.aten.silu_backward(grad * up, gate, grad_input=dgate)
        return total
