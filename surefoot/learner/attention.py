"""Attention over a pack: every prompt is computed once, and each sample attends to it and to its own past.

A sample's attention is the merge of two parts, weighted by their sums of exponentials (log-sum-exp): all samples of a
group against the shared prompt in one dense call, and each sample against its own past in causal calls batched over
samples of like length. No score matrix spans more than one prompt or one sample, and on CPU none is kept at all.

The backward pass needs no merging: given the merged output and log-sum-exp, the flash-attention backward of each part
yields its exact share of the gradients (as in ring attention, arXiv 2310.01889), which add up, also in the prompt's
keys and values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from surefoot.learner.packing import Pack, Span
from surefoot.learner.tiles import attend_tile, attend_tile_backward


class PrefixAttention:
    """The decoder's `Attention` for one pack."""

    def __init__(self, pack: Pack) -> None:
        self.plan = _Plan(pack.spans, pack.tokens.device)

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        mixed: Tensor = _SharedPrefix.apply(q, k, v, self.plan)  # type: ignore[no-untyped-call]
        return mixed


class _Bucket:
    """Suffixes of like length as a padded batch [B, L]: gathered from the flat tokens and scattered back."""

    def __init__(self, ranges: Sequence[tuple[int, int]], device: torch.device) -> None:
        longest = max(length for _, length in ranges)
        steps = torch.arange(longest)
        starts = torch.tensor([start for start, _ in ranges])[:, None]
        lengths = torch.tensor([length for _, length in ranges])[:, None]
        # Padding repeats the last token: finite scores, never seen by a real query, and given no gradient.
        self.index = (starts + torch.minimum(steps, lengths - 1)).to(device)  # [B, L]
        self.real = (steps < lengths).to(device)  # [B, L]
        self.rows = self.index[self.real]  # [M]
        self.full = bool(self.real.all())

    def gather(self, flat: Tensor) -> Tensor:
        """[N, ...] -> [B, L, ...]."""
        return flat[self.index]

    def flat(self, padded: Tensor) -> Tensor:
        """[B, L, ...] -> the real tokens [M, ...], in the order of `rows`."""
        return padded.flatten(0, 1) if self.full else padded[self.real]


class _Plan:
    """Which rows attend to which, worked out once a pack and used by every layer."""

    def __init__(self, spans: Sequence[Span], device: torch.device) -> None:
        self.spans = spans
        ranges = [part for span in spans for part in _suffix_ranges(span)]
        self.buckets = [_Bucket(alike, device) for alike in _by_length(ranges)]


def _suffix_ranges(span: Span) -> list[tuple[int, int]]:
    ranges, at = [], span.start + span.prompt
    for length in span.suffixes:
        if length:
            ranges.append((at, length))
        at += length
    return ranges


def _by_length(ranges: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Buckets in which no length is less than about 3/4 of the longest, so that little is padded."""
    buckets: list[list[tuple[int, int]]] = []
    for part in sorted(ranges, key=lambda r: -r[1]):
        if buckets and part[1] >= 0.75 * buckets[-1][0][1] - 8:
            buckets[-1].append(part)
        else:
            buckets.append([part])
    return buckets


class _SharedPrefix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, plan: _Plan) -> Tensor:
        """q [N, heads, D], k and v [N, kv_heads, D] -> [N, heads, D]."""
        out = torch.empty_like(q, memory_format=torch.contiguous_format)  # [N, heads, D]
        wide = torch.promote_types(q.dtype, torch.float32)
        weight = torch.empty(q.shape[:2], dtype=wide, device=q.device)  # [N, heads], log-sum-exp of the scores
        for span in plan.spans:
            prompt, suffixes = _slices(span)
            out[prompt], weight[prompt] = _tile(q[prompt], k[prompt], v[prompt], causal=True)
            if span.end > suffixes.start:
                out[suffixes], weight[suffixes] = _tile(q[suffixes], k[prompt], v[prompt], causal=False)
        for bucket in plan.buckets:
            own, own_weight = attend_tile(bucket.gather(q), bucket.gather(k), bucket.gather(v), causal=True)
            _merge(out, weight, bucket.rows, bucket.flat(own), bucket.flat(own_weight))
        ctx.save_for_backward(q, k, v, out, weight)
        ctx.plan = plan
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        q, k, v, out, weight = ctx.saved_tensors
        plan: _Plan = ctx.plan
        grad = grad.contiguous()  # [N, heads, D]
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        for span in plan.spans:
            prompt, suffixes = _slices(span)
            known = (out[prompt], weight[prompt])
            dq[prompt], dk[prompt], dv[prompt] = _tile_backward(
                grad[prompt], q[prompt], k[prompt], v[prompt], *known, causal=True
            )
            if span.end > suffixes.start:
                known = (out[suffixes], weight[suffixes])
                dq[suffixes], more_k, more_v = _tile_backward(
                    grad[suffixes], q[suffixes], k[prompt], v[prompt], *known, causal=False
                )
                dk[prompt] += more_k
                dv[prompt] += more_v
        for bucket in plan.buckets:
            arrays = [bucket.gather(flat) for flat in (grad, q, k, v, out, weight)]
            if not bucket.full:
                arrays[0].masked_fill_(~bucket.real[..., None, None], 0)
            own_q, own_k, own_v = (bucket.flat(g) for g in attend_tile_backward(*arrays, causal=True))
            dq[bucket.rows] += own_q
            dk[bucket.rows] = own_k
            dv[bucket.rows] = own_v
        return dq, dk, dv, None


def _slices(span: Span) -> tuple[slice, slice]:
    middle = span.start + span.prompt
    return slice(span.start, middle), slice(middle, span.end)


def _tile(q: Tensor, k: Tensor, v: Tensor, *, causal: bool) -> tuple[Tensor, Tensor]:
    out, weight = attend_tile(q[None], k[None], v[None], causal=causal)
    return out[0], weight[0]


def _tile_backward(*arrays: Tensor, causal: bool) -> tuple[Tensor, Tensor, Tensor]:
    dq, dk, dv = attend_tile_backward(*(array[None] for array in arrays), causal=causal)
    return dq[0], dk[0], dv[0]


def _merge(out: Tensor, weight: Tensor, rows: Tensor, own: Tensor, own_weight: Tensor) -> None:
    """Fold a second part of the attention of `rows` [M] into `out` [N, heads, D] and `weight` [N, heads]."""
    first, first_weight = out[rows], weight[rows]  # [M, heads, D], [M, heads]
    total = torch.logaddexp(first_weight, own_weight)  # [M, heads]
    share = torch.exp(first_weight - total)[..., None]  # [M, heads, 1]
    out[rows] = torch.lerp(own.to(share.dtype), first.to(share.dtype), share).to(out.dtype)
    weight[rows] = total
