"""One dense or causal block of attention with its log-sum-exp, forward and backward.

On CPU these are torch's flash kernels, called directly because the public function hides the log-sum-exp that merging
needs. Elsewhere, and for backward passes over few keys, where the flash kernel is four times slower, plain products
over slices of the queries: scores in float32, the other products in the inputs' dtype.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

FLASH_DEVICES: tuple[str, ...] = ("cpu",)
FLASH_BACKWARD_KEYS = 256
"""From so many keys on, the CPU's flash backward is as fast as plain products, and keeps no scores."""
SCORES_AT_ONCE = 1 << 19
"""Of the plain form: numbers in a slice's score matrix (2 MB in float32), few enough for the cache of one core."""


def attend_tile(q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> tuple[Tensor, Tensor]:
    """q [B, S, heads, D], k and v [B, T, kv_heads, D] -> output [B, S, heads, D] and log-sum-exp [B, S, heads].

    `causal` needs S = T.
    """
    if q.device.type in FLASH_DEVICES:
        out, weight = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), 0.0, causal
        )
        return out.transpose(1, 2), weight.transpose(1, 2)
    return _plain(q, k, v, causal)


def attend_tile_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, weight: Tensor, *, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k, v in their shapes. `out` and `weight` may come from a wider attention than this block's."""
    if q.device.type in FLASH_DEVICES and k.shape[1] >= FLASH_BACKWARD_KEYS:
        turned = (array.transpose(1, 2) for array in (grad, q, k, v, out, weight))
        dq, dk, dv = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(*turned, 0.0, causal)
        return dq.transpose(1, 2), dk.transpose(1, 2), dv.transpose(1, 2)
    return _plain_backward(grad, q, k, v, out, weight, causal)


# ------------------------------------------------------------------------------------------------ the plain products


class _Slice(NamedTuple):
    """Some queries, and the keys that any of them sees."""

    rows: slice
    keys: int
    diagonal: int | None
    """First key that is hidden from the first of these queries, less one; None if nothing is hidden."""


def _slices(q: Tensor, k: Tensor, causal: bool) -> Iterator[_Slice]:
    batch, length, heads, _ = q.shape
    step = max(16, SCORES_AT_ONCE // max(1, batch * heads * k.shape[1]))
    for start in range(0, length, step):
        stop = min(start + step, length)
        yield _Slice(slice(start, stop), stop if causal else k.shape[1], start if causal else None)


def _stack(x: Tensor, kv_heads: int) -> Tensor:
    """[B, S, heads, D] -> [B kv_heads, r S, D] with r = heads / kv_heads: queries that share keys in one matrix."""
    batch, length, heads, dim = x.shape
    apart = x.reshape(batch, length, kv_heads, heads // kv_heads, dim)
    return apart.permute(0, 2, 3, 1, 4).reshape(batch * kv_heads, -1, dim)


def _unstack(x: Tensor, like: Tensor) -> Tensor:
    """The inverse of `_stack`: [B kv_heads, r S, D] -> [B, S, heads, D], the shape of `like` but for the last axis."""
    batch, length, heads, _ = like.shape
    kv_heads = len(x) // batch
    apart = x.view(batch, kv_heads, heads // kv_heads, length, -1)
    return apart.permute(0, 3, 1, 2, 4).reshape(batch, length, heads, -1)


def _hide(scores: Tensor, part: _Slice, value: float) -> None:
    """Overwrite the scores [B kv_heads, r S, keys] of keys ahead of their query."""
    if part.diagonal is not None:
        length = part.rows.stop - part.rows.start
        ahead = torch.ones(length, length, dtype=torch.bool, device=scores.device).triu(1)
        scores.view(len(scores), -1, length, part.keys)[..., part.diagonal :].masked_fill_(ahead, value)


def _plain(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    wide = torch.promote_types(q.dtype, torch.float32)
    kv = k.shape[2]
    keys, values = _stack(k, kv), _stack(v, kv)  # [B kv, T, D]
    outs, weights = [], []
    for part in _slices(q, k, causal):
        piece = q[:, part.rows]
        scores = _stack(piece, kv).to(wide) @ keys[:, : part.keys].to(wide).mT * q.shape[-1] ** -0.5  # [B kv, r S, T]
        _hide(scores, part, float("-inf"))
        weight = scores.logsumexp(-1, keepdim=True)  # [B kv, r S, 1]
        mixed = torch.exp(scores - weight).to(v.dtype) @ values[:, : part.keys]  # [B kv, r S, D]
        outs.append(_unstack(mixed, piece))
        weights.append(_unstack(weight, piece)[..., 0])
    return torch.cat(outs, dim=1), torch.cat(weights, dim=1)


def _plain_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, weight: Tensor, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    wide = torch.promote_types(q.dtype, torch.float32)
    batch, _, kv, _ = k.shape
    scale = q.shape[-1] ** -0.5
    keys, values = _stack(k, kv), _stack(v, kv)  # [B kv, T, D]
    wide_keys = keys.to(wide)
    dq = torch.empty_like(q)
    dk, dv = torch.zeros_like(wide_keys), torch.zeros_like(wide_keys)
    for part in _slices(q, k, causal):
        rows, seen = part.rows, slice(0, part.keys)
        dots = grad[:, rows].to(wide).mul(out[:, rows]).sum(-1, keepdim=True)  # [B, S, heads, 1]
        delta, lse = _stack(dots, kv), _stack(weight[:, rows, :, None], kv)  # [B kv, r S, 1]
        queries, g = _stack(q[:, rows], kv), _stack(grad[:, rows], kv)  # [B kv, r S, D]
        chance = torch.baddbmm(lse, queries.to(wide), wide_keys[:, seen].mT, beta=-1, alpha=scale).exp_()
        _hide(chance, part, 0.0)  # chance [B kv, r S, keys]
        dv[:, seen] += chance.to(v.dtype).mT @ g
        slope = (g @ values[:, seen].mT).to(wide).sub_(delta).mul_(chance).to(q.dtype)  # [B kv, r S, keys]
        dq[:, rows] = _unstack((slope @ keys[:, seen]).mul_(scale), q[:, rows])
        dk[:, seen] += slope.mT @ queries
    turned = (x.view(batch, kv, -1, x.shape[-1]).transpose(1, 2).to(k.dtype) for x in (dk.mul_(scale), dv))
    dk, dv = turned
    return dq, dk, dv
