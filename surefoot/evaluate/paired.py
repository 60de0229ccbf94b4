"""Before and after on the same tasks: tests and intervals of the difference, paired by task.

Pairing removes the spread between easy and hard tasks, usually the larger part of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy import stats

from surefoot.evaluate.intervals import UNKNOWN, Estimate, bootstrap_interval, mean_interval
from surefoot.evaluate.passk import Floats

EXACT_WORK = 20_000_000
"""Largest number of additions for which the exact distribution of `sign_flip_test` is built."""


def sign_flip_test(differences: npt.ArrayLike, *, resamples: int = 100_000, seed: int = 0) -> float:
    """Two-sided permutation p-value of "the sign of each task's difference is a coin flip".

    Under the hypothesis that before and after are exchangeable for every task, each difference d_i = after - before
    is as likely to be -d_i. p is the share of the 2^m sign patterns whose |sum| is at least the observed one
    (Fisher 1935, "The Design of Experiments", section 21). No distribution is assumed, and all samples of a task flip
    together.

    Differences of shares are fractions with a small common denominator, so the distribution of the sum is built
    exactly, by adding one task at a time to a table of subset sums. Where that table would be too large, `resamples`
    random patterns are drawn instead and p is `(hits + 1) / (resamples + 1)` (Phipson & Smyth 2010).

    Args:
        differences: `[tasks]`; NaN (unpaired) and zero do not matter.
    """
    d = np.asarray(differences, dtype=np.float64)
    d = d[~np.isnan(d) & (d != 0)]
    if not len(d):
        return 1.0
    steps = _whole_numbers(d)
    if steps is not None and int(np.abs(steps).sum()) * len(steps) <= EXACT_WORK:
        return _exact(steps)
    return _monte_carlo(d, resamples, seed)


def _whole_numbers(d: Floats) -> npt.NDArray[np.int64] | None:
    """The differences as multiples of their common denominator; None if there is no small one."""
    fractions = [Fraction(float(x)).limit_denominator(100_000) for x in d]
    common = math.lcm(*(f.denominator for f in fractions))
    if common > 10_000_000 or any(abs(float(f) - x) > 1e-12 for f, x in zip(fractions, d, strict=True)):
        return None
    whole = [int(f * common) for f in fractions]
    divisor = math.gcd(*whole)
    return np.array([w // divisor for w in whole], dtype=np.int64)


def _exact(steps: npt.NDArray[np.int64]) -> float:
    sizes = np.abs(steps)
    total = int(sizes.sum())
    chance = np.zeros(total + 1)  # chance[s]: that the positive ones sum to s; the signed sum is then 2 s - total
    chance[0] = 1.0
    reach = 0
    for size in sizes.tolist():
        chance[size : reach + size + 1] += chance[: reach + 1].copy()
        reach += size
        chance[: reach + 1] /= 2
    signed = 2 * np.arange(total + 1) - total
    return min(1.0, float(chance[np.abs(signed) >= abs(int(steps.sum()))].sum()))


def _monte_carlo(d: Floats, resamples: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    observed, hits, left = abs(float(d.sum())) - 1e-12, 0, resamples
    while left:
        batch = min(left, max(1, 4_000_000 // len(d)))
        signs = rng.integers(0, 2, (batch, len(d)), dtype=np.int8) * 2 - 1
        hits += int((np.abs(signs @ d) >= observed).sum())
        left -= batch
    return (hits + 1) / (resamples + 1)


def mcnemar_test(before: Sequence[bool], after: Sequence[bool]) -> float:
    """Exact two-sided McNemar p-value, for one sample a task.

    Only tasks that changed count: of b that were lost and c that were won, c is Binomial(b + c, 1/2) if nothing
    changed. McNemar 1947, Psychometrika 12. It equals `sign_flip_test` on differences of -1, 0 and 1.
    """
    won = sum(a and not b for b, a in zip(before, after, strict=True))
    lost = sum(b and not a for b, a in zip(before, after, strict=True))
    return float(stats.binomtest(won, won + lost, 0.5).pvalue) if won + lost else 1.0


def paired_interval(
    before: npt.ArrayLike, after: npt.ArrayLike, *, floor: float = 1.0, level: float = 0.95
) -> Estimate:
    """Mean difference after - before over tasks, with an interval that also holds near 0 and 1.

    On each side the farther of two bounds:

    * `d -+ t s / sqrt(m)` with s the standard deviation of the tasks' differences: good in the middle, but of width
      zero where no task changed;
    * the intervals of the two means, combined with the correlation r of the tasks' scores (Newcombe 1998, method 10;
      Zou & Donner 2008): with distances a = after - low_after and b = high_before - before, the lower bound is
      `d - sqrt(a^2 + b^2 - 2 r a b)`, and so for the upper one.

    Tasks that either side lacks (NaN) are left out.
    """
    x, y = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    both = ~(np.isnan(x) | np.isnan(y))
    left_out = int((~both).sum())
    x, y, m = x[both], y[both], int(both.sum())
    if not m:
        return UNKNOWN
    p, q = (mean_interval(scores, floor=floor, level=level) for scores in (x, y))
    r = float(np.corrcoef(x, y)[0, 1]) if m > 1 and x.std() > 0 and y.std() > 0 else 0.0
    d = q.value - p.value
    half = float(stats.t.ppf((1 + level) / 2, m - 1) * (y - x).std(ddof=1) / math.sqrt(m)) if m > 1 else 0.0
    low = d - max(half, _combine(q.value - q.low, p.high - p.value, r))
    high = d + max(half, _combine(q.high - q.value, p.value - p.low, r))
    return Estimate(d, max(low, -1.0), min(high, 1.0), m, left_out)


def _combine(a: float, b: float, r: float) -> float:
    return math.sqrt(max(a * a + b * b - 2 * r * a * b, 0.0))


def paired_bootstrap(
    before: npt.ArrayLike, after: npt.ArrayLike, *, resamples: int = 4000, seed: int = 0, level: float = 0.95
) -> Estimate:
    """Mean difference with the percentile bootstrap over tasks: for some thirty tasks or more."""
    d = np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)
    known = d[~np.isnan(d)]
    if not len(known):
        return UNKNOWN
    low, high = bootstrap_interval(known, lambda rows: rows.mean(axis=-1), resamples=resamples, seed=seed, level=level)
    return Estimate(float(known.mean()), low, high, len(known), len(d) - len(known))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: below alpha, at most alpha of a family has even one false discovery.

    Sorted upwards, `max_{j<=i} (m - j + 1) p_(j)`, at most 1. Valid under any dependence. Holm 1979, Scand. J. Stat. 6.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in adjusted]


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Benjamini-Hochberg adjusted p-values: among those below q, on average at most a share q is false.

    Sorted upwards, `min_{j>=i} m p_(j) / j`. Valid for independent or positively dependent tests.
    Benjamini & Hochberg 1995, J. R. Stat. Soc. B 57.
    """
    p = np.asarray(p_values, dtype=np.float64)
    m = len(p)
    order = np.argsort(p, kind="stable")
    stepped = np.minimum.accumulate((m * p[order] / np.arange(1, m + 1))[::-1])[::-1]
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in adjusted]
