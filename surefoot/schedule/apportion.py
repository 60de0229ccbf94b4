"""From shares to whole groups: caps and floors that hold, and a round-robin that keeps ratios without luck."""

from __future__ import annotations

import numpy as np

from surefoot.schedule.rule import Flags, Floats, Ints


def shares_within(weights: Floats, floors: Floats, caps: Floats) -> Floats:
    """Shares `[D]` in proportion to `weights`, summing to 1, each within [floor, cap].

    What a cap cuts off goes to the others. A domain of weight 0 gets nothing, whatever its floor. Floors that sum to
    more than 1 are scaled down; caps that sum to less than 1 are scaled up.
    """
    alive = weights > 0
    if not alive.any():
        return np.zeros_like(weights)
    low, high = np.where(alive, floors, 0.0), np.where(alive, np.maximum(caps, floors), 0.0)
    low = low / max(1.0, float(low.sum()))
    high = high * max(1.0, 1.0 / float(high.sum()))
    edges = np.concatenate([low[alive] / weights[alive], high[alive] / weights[alive]])
    order = np.argsort(edges, kind="stable")
    # As the scale grows, a share leaves its floor at the first of its edges and stops at its cap at the second.
    slope = np.cumsum(np.concatenate([weights[alive], -weights[alive]])[order])
    reached = float(low.sum()) + np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(edges[order]))])
    at = min(int(np.searchsorted(reached, 1.0, side="right")) - 1, len(edges) - 1)
    rest = max(0.0, 1.0 - float(reached[at]))
    scale = float(edges[order][at]) + (rest / float(slope[at]) if slope[at] > 1e-12 and rest > 0 else 0.0)
    shares = np.where(alive, np.clip(weights * scale, low, high), 0.0)
    total = float(shares.sum())
    return np.asarray(shares / total if total > 0 else shares)


def pay_out(credit: Floats, eligible: Flags, groups: int) -> Ints:
    """Whole groups a domain `[D]`, summing to `groups`: the richest are served first, and owe one credit each.

    Deficit round-robin (Shreedhar & Varghese 1995): where credit is carried from step to step, every domain gets its
    share to within one group over any stretch. Ties go to the first. Nothing is paid where nobody is eligible.
    """
    counts = np.where(eligible, np.floor(np.maximum(credit, 0.0)), 0.0).astype(np.int64)
    rows = np.flatnonzero(eligible)
    missing = groups - int(counts.sum())
    while missing < 0:  # more is owed than can be paid: the rest stays owed
        richest = rows[counts[rows] > 0]
        poorest = richest[np.argsort((credit - counts)[richest], kind="stable")[:-missing]]
        counts[poorest] -= 1
        missing += len(poorest)
    while missing > 0 and len(rows):
        served = rows[np.argsort(-(credit - counts)[rows], kind="stable")[:missing]]
        counts[served] += 1
        missing -= len(served)
    return counts
