"""Attention of one new token a sample over its group's shared prefix and its own suffix, in plain torch operations.

All samples of a group read the prefix in one product. The two kinds of scores meet in a single softmax, so nothing has
to be merged afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from surefoot.rollout.cache import Prefix, Slots


class SharedPrefixes:
    """The prefixes of the present groups, padded into one batch; made anew only when the set of groups changes."""

    def __init__(self, prefixes: Sequence[Prefix]) -> None:
        self.prefixes = list(prefixes)
        longest = max(p.length for p in prefixes)
        first = prefixes[0].kv
        layers, two, heads, _, width = first.shape
        self.kv = first.new_zeros(layers, two, len(prefixes), heads, longest, width)
        for i, prefix in enumerate(prefixes):
            self.kv[:, :, i, :, : prefix.length] = prefix.kv
        lengths = torch.tensor([p.length for p in prefixes], device=first.device)  # [groups]
        beyond = torch.arange(longest, device=first.device) >= lengths[:, None]  # [groups, P]
        self.bias = torch.zeros_like(beyond, dtype=torch.float32).masked_fill_(beyond, -torch.inf)  # [groups, P]


class DecodeAttention:
    """The decoder's `Attention` for one step: row r is the next token of the sample in slot r."""

    def __init__(self, shared: SharedPrefixes, slots: Slots, group: Tensor, written: Tensor) -> None:
        """`group` [n]: which of the shared prefixes each row continues; `written` [n]: tokens already in its slot."""
        n, device = len(group), slots.kv.device
        self.shared, self.slots = shared, slots
        self.rows, self.written = torch.arange(n, device=device), written.to(device)
        self.longest = int(written.max()) + 1
        slots.clean(self.longest)  # a weight of zero does not hide a NaN
        beyond = torch.arange(self.longest, device=device) > self.written[:, None]  # [n, L]
        self.bias = torch.zeros_like(beyond, dtype=torch.float32).masked_fill_(beyond, -torch.inf)  # [n, L]
        # Rows laid out as a grid [groups, m], one line a group; unused places repeat row 0 and are never read back.
        counts = torch.bincount(group, minlength=len(shared.prefixes))  # [groups]
        by_group = group.argsort(stable=True)  # [n]
        place = torch.empty_like(group)
        place[by_group] = torch.arange(n) - (counts.cumsum(0) - counts)[group[by_group]]
        width = int(counts.max())
        grid = torch.zeros(len(counts), width, dtype=torch.int64)
        grid[group, place] = torch.arange(n)
        self.grid, self.cell = grid.to(device), (group * width + place).to(device)  # [groups, m], [n]

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        n, kv_heads, width = k.shape
        share = q.shape[1] // kv_heads  # query heads that read one key head
        own = self.slots.kv[layer]  # [2, slots, kv_heads, room, D]
        own[0, self.rows, :, self.written], own[1, self.rows, :, self.written] = k, v
        own_k, own_v = own[:, :n, :, : self.longest]  # [n, kv_heads, L, D] each
        prefix_k, prefix_v = self.shared.kv[layer]  # [groups, kv_heads, P, D] each
        by_head = q.reshape(n, kv_heads, share, width) * width**-0.5  # [n, kv_heads, share, D]

        scores = self._to_rows(self._to_grid(by_head) @ prefix_k.transpose(-1, -2), share)
        scores = scores.float() + self.shared.bias[self.cell // self.grid.shape[1], None, None]
        own_scores = (by_head @ own_k.transpose(-1, -2)).float() + self.bias[:, None, None]  # [n, kv_heads, share, L]
        weight = torch.cat((scores, own_scores), dim=-1).softmax(-1).to(v.dtype)  # [n, kv_heads, share, P + L]
        on_prefix, on_own = torch.split(weight, [scores.shape[-1], own_scores.shape[-1]], dim=-1)
        mixed = self._to_rows(self._to_grid(on_prefix) @ prefix_v, share) + on_own @ own_v
        out: Tensor = mixed.reshape(n, kv_heads * share, width)
        return out

    def _to_grid(self, x: Tensor) -> Tensor:
        """[n, kv_heads, share, X] -> [groups, kv_heads, m * share, X]."""
        grid = x[self.grid].transpose(1, 2)  # [groups, kv_heads, m, share, X]
        return grid.flatten(2, 3)

    def _to_rows(self, x: Tensor, share: int) -> Tensor:
        """[groups, kv_heads, m * share, X] -> [n, kv_heads, share, X]."""
        groups, kv_heads, cells, last = x.shape
        grid = x.view(groups, kv_heads, cells // share, share, last).transpose(1, 2)  # [groups, m, kv_heads, share, X]
        rows: Tensor = grid.flatten(0, 1)[self.cell]
        return rows
