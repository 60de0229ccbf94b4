"""Context parallelism: one sequence spread over the processes of a group, attention passed round in a ring.

Each process holds its share of a sequence: two chunks of it, one from the front and one from the back (rank r of n:
chunks r and 2n - 1 - r), so that causal attention costs all the same. Keys and values travel round the ring; each
process attends to the chunks that come by and merges by log-sum-exp (ring attention, arXiv 2310.01889). Backward, keys
and values travel once more and their gradients with them, and come home complete. No process ever holds more than its
own share and one that is passing.

`RingAttention` is an `Attention` like any other: the decoder knows nothing of processes. Losses and the gradients of
weights are of each process's own tokens; sum them over the group.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from surefoot.errors import ConfigError
from surefoot.learner.tiles import attend_tile, attend_tile_backward


def share(length: int, rank: int, ranks: int) -> Tensor:
    """Positions of a sequence of `length` tokens that process `rank` of `ranks` holds [length / ranks], in order.

    Raises ConfigError if the length is not a multiple of twice the number of processes: pad it.
    """
    if length % (2 * ranks):
        raise ConfigError(
            f"a sequence of {length} tokens cannot be spread over {ranks} processes",
            where="context parallelism",
            fix=f"pad it to {-(-length // (2 * ranks)) * 2 * ranks} tokens",
        )
    chunk = length // (2 * ranks)
    front, back = torch.arange(chunk) + rank * chunk, torch.arange(chunk) + (2 * ranks - 1 - rank) * chunk
    return torch.cat((front, back))


class RingAttention:
    """The decoder's `Attention` for one sequence of which this process holds `share(length, rank, ranks)`."""

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self.group = group

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        mixed: Tensor = _Ring.apply(q, k, v, self.group)  # type: ignore[no-untyped-call]
        return mixed


class _Ring(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, group: dist.ProcessGroup | None) -> Tensor:
        """q [M, heads, D], k and v [M, kv_heads, D], M tokens of this process -> [M, heads, D]."""
        rank, ranks = dist.get_rank(group), dist.get_world_size(group)
        out = torch.zeros_like(q, memory_format=torch.contiguous_format)  # [M, heads, D]
        wide = torch.promote_types(q.dtype, torch.float32)
        weight = torch.full(q.shape[:2], float("-inf"), dtype=wide, device=q.device)  # [M, heads], log-sum-exp
        keys, values = k.contiguous(), v.contiguous()
        for step in range(ranks):
            for rows, seen, causal in _blocks(rank, (rank - step) % ranks, len(q) // 2):
                part, part_weight = attend_tile(q[None, rows], keys[None, seen], values[None, seen], causal=causal)
                _merge(out[rows], weight[rows], part[0], part_weight[0])
            if step < ranks - 1:
                keys, values = _pass_on([keys, values], group)
        ctx.save_for_backward(q, k, v, out, weight)
        ctx.group = group
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        q, k, v, out, weight = ctx.saved_tensors
        group = ctx.group
        rank, ranks = dist.get_rank(group), dist.get_world_size(group)
        grad = grad.contiguous()
        dq = torch.zeros_like(q, memory_format=torch.contiguous_format)
        keys, values = k.contiguous(), v.contiguous()
        dk, dv = torch.zeros_like(keys), torch.zeros_like(values)  # they travel with the keys that they belong to
        for step in range(ranks):
            for rows, seen, causal in _blocks(rank, (rank - step) % ranks, len(q) // 2):
                arrays = (grad[rows], q[rows], keys[seen], values[seen], out[rows], weight[rows])
                more_q, more_k, more_v = attend_tile_backward(*(a[None] for a in arrays), causal=causal)
                dq[rows] += more_q[0]
                dk[seen] += more_k[0]
                dv[seen] += more_v[0]
            keys, values, dk, dv = _pass_on([keys, values, dk, dv], group)  # after the last step they are home
        return dq, dk, dv, None


def _blocks(rank: int, owner: int, chunk: int) -> list[tuple[slice, slice, bool]]:
    """Which of this process's rows see which of the owner's, and whether causally: (queries, keys, causal)."""
    front, back, both = slice(0, chunk), slice(chunk, 2 * chunk), slice(0, 2 * chunk)
    if owner == rank:
        return [(front, front, True), (back, front, False), (back, back, True)]
    if owner < rank:  # its front lies before both of ours, its back behind both
        return [(both, front, False)]
    return [(back, both, False)]


def _merge(out: Tensor, weight: Tensor, part: Tensor, part_weight: Tensor) -> None:
    """Fold a part [m, heads, D] with log-sum-exp [m, heads] into `out` and `weight`, in place."""
    total = torch.logaddexp(weight, part_weight)  # [m, heads]
    old, new = torch.exp(weight - total)[..., None], torch.exp(part_weight - total)[..., None]
    out.copy_((out.to(total.dtype) * old + part.to(total.dtype) * new).to(out.dtype))
    weight.copy_(total)


def _pass_on(tensors: list[Tensor], group: dist.ProcessGroup | None) -> list[Tensor]:
    """Send tensors to the next process of the ring and take those of the one before."""
    ranks = dist.get_world_size(group)
    if ranks == 1:
        return tensors
    rank = dist.get_rank(group)
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    if group is not None:
        after, before = dist.get_global_rank(group, after), dist.get_global_rank(group, before)
    arrived = [torch.empty_like(t) for t in tensors]
    sends = [dist.P2POp(dist.isend, t.contiguous(), after, group) for t in tensors]
    receives = [dist.P2POp(dist.irecv, t, before, group) for t in arrived]
    for work in dist.batch_isend_irecv([*sends, *receives]):
        work.wait()
    return arrived
