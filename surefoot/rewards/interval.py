"""Exact intervals for proportions."""

from __future__ import annotations


def clopper_pearson(hits: int, tries: int, level: float = 0.95) -> tuple[float, float]:
    """Interval that covers the true rate with probability of at least `level` (Clopper and Pearson, Biometrika 1934).

    (0, 1) where nothing was tried.
    """
    from scipy.stats import beta

    if tries == 0:
        return 0.0, 1.0
    tail = (1 - level) / 2
    low = float(beta.ppf(tail, hits, tries - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - tail, hits + 1, tries - hits)) if hits < tries else 1.0
    return low, high


def upper_bound(hits: int, tries: int, level: float = 0.95) -> float:
    """One-sided upper bound on the rate after Clopper and Pearson: the rate is below it with probability `level`."""
    return clopper_pearson(hits, tries, 2 * level - 1)[1]
