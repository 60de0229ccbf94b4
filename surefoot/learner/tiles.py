"""One dense or causal block of attention with its log-sum-exp, forward and backward.

On CPU these are torch's flash kernels, called directly because the public function hides the log-sum-exp that merging
needs. Elsewhere, plain products over slices of the queries.
"""

from __future__ import annotations

import torch
from torch import Tensor

FLASH_DEVICES: tuple[str, ...] = ("cpu",)
QUERIES_AT_ONCE = 512
"""Of the plain form: bounds its score matrix to [heads, 512, keys]."""


def attend_tile(q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> tuple[Tensor, Tensor]:
    """q [B, S, heads, D], k and v [B, T, kv_heads, D] -> output [B, S, heads, D] and log-sum-exp [B, S, heads].

    `causal` needs S = T.
    """
    if q.device.type in FLASH_DEVICES:
        out, weight = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), 0.0, causal
        )
        return out.transpose(1, 2), weight.transpose(1, 2)
    parts = [_plain(q[:, rows], k, v, rows, causal) for rows in _slices(q.shape[1])]
    return torch.cat([p[0] for p in parts], dim=1), torch.cat([p[1] for p in parts], dim=1)


def attend_tile_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, weight: Tensor, *, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k, v in their shapes. `out` and `weight` may come from a wider attention than this block's."""
    if q.device.type in FLASH_DEVICES:
        turned = (array.transpose(1, 2) for array in (grad, q, k, v, out, weight))
        dq, dk, dv = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(*turned, 0.0, causal)
        return dq.transpose(1, 2), dk.transpose(1, 2), dv.transpose(1, 2)
    return _plain_backward(grad, q, k, v, out, weight, causal)


def _slices(length: int) -> list[slice]:
    return [slice(i, min(i + QUERIES_AT_ONCE, length)) for i in range(0, length, QUERIES_AT_ONCE)]


def _by_kv_head(x: Tensor, kv_heads: int) -> Tensor:
    """[B, S, heads, D] -> [B, kv_heads, heads / kv_heads, S, D]: the queries that share a key beside each other."""
    batch, length, heads, dim = x.shape
    return x.view(batch, length, kv_heads, heads // kv_heads, dim).permute(0, 2, 3, 1, 4)


def _scores(q: Tensor, k: Tensor, rows: slice, causal: bool) -> Tensor:
    """Scaled scores [B, kv_heads, r, S, T] in at least float32."""
    wide = torch.promote_types(q.dtype, torch.float32)
    grouped = _by_kv_head(q, k.shape[2])  # [B, kv, r, S, D]
    scores: Tensor = (grouped @ k.permute(0, 2, 3, 1)[:, :, None]).to(wide) * q.shape[-1] ** -0.5  # [B, kv, r, S, T]
    if causal:
        ahead = (
            torch.arange(k.shape[1], device=q.device) > torch.arange(rows.start, rows.stop, device=q.device)[:, None]
        )
        scores.masked_fill_(ahead, float("-inf"))
    return scores


def _ungroup(x: Tensor) -> Tensor:
    """[B, kv_heads, r, S, D] -> [B, S, heads, D]."""
    return x.permute(0, 3, 1, 2, 4).flatten(2, 3)


def _plain(q: Tensor, k: Tensor, v: Tensor, rows: slice, causal: bool) -> tuple[Tensor, Tensor]:
    scores = _scores(q, k, rows, causal)
    weight = scores.logsumexp(-1, keepdim=True)  # [B, kv, r, S, 1]
    chance = torch.exp(scores - weight).to(v.dtype)
    out = chance @ v.permute(0, 2, 1, 3)[:, :, None]  # [B, kv, r, S, D]
    return _ungroup(out), _ungroup(weight).squeeze(-1)


def _plain_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, weight: Tensor, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    kv, scale = k.shape[2], q.shape[-1] ** -0.5
    keys, values = (x.permute(0, 2, 1, 3)[:, :, None] for x in (k, v))  # [B, kv, 1, T, D]
    dq = torch.empty_like(q)
    wide = torch.promote_types(q.dtype, torch.float32)
    dk, dv = (torch.zeros(x.shape, dtype=wide, device=x.device) for x in (k, v))
    for rows in _slices(q.shape[1]):
        g, o, p = (_by_kv_head(x[:, rows], kv) for x in (grad, out, q))  # [B, kv, r, S, D]
        lse = _by_kv_head(weight[:, rows, :, None], kv)  # [B, kv, r, S, 1]
        chance = torch.exp(_scores(q[:, rows], k, rows, causal) - lse)  # [B, kv, r, S, T]
        delta = (g.to(wide) * o.to(wide)).sum(-1, keepdim=True)  # [B, kv, r, S, 1]
        slope = (chance * ((g @ values.mT).to(wide) - delta) * scale).to(q.dtype)  # [B, kv, r, S, T]
        dq[:, rows] = _ungroup(slope @ keys)
        dk += (slope.mT @ p).sum(2, dtype=wide).transpose(1, 2)
        dv += (chance.to(v.dtype).mT @ g).sum(2, dtype=wide).transpose(1, 2)
    return dq, dk.to(k.dtype), dv.to(v.dtype)
