"""Order and seeds that depend on nothing but their arguments."""

from __future__ import annotations

from surefoot.types import Split, stable_seed


def split_seed(name: str, split: Split, index: int) -> int:
    """A seed below 2**32 for one item. Those of the two splits are disjoint: the last bit is the split."""
    return (stable_seed(name, index, split) % 2**31) * 2 + (split == "heldout")


def permuted(index: int, size: int, seed: int) -> int:
    """Where `index` of `range(size)` goes in a pseudo-random permutation, without making a table of it.

    A Feistel network over the next power of four, walked until it falls inside the range.
    """
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    low = (1 << half) - 1
    value = index
    while True:
        left, right = value >> half, value & low
        for round_ in range(4):
            left, right = right, left ^ (stable_seed(seed, round_, right) & low)
        value = left << half | right
        if value < size:
            return value
