"""Confidence intervals for a mean over tasks, with the samples of a task counted as the cluster they are.

Eight samples of one task are not eight independent observations: a task that is easy is easy eight times. Everything
here therefore works on one score per task, in [0, 1], and its spread *between* tasks.

Why not mean +- t * standard error? Because with a few tasks and a pass rate near 0 or 1 it is far too short (and of
width zero when all tasks agree, as they often do there). `benchmarks/intervals.py` measures both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from surefoot.evaluate.passk import Floats

PRIOR_OBSERVATIONS = 0.6
"""Weight of the assumed spread against the measured one, in tasks of the rarer outcome; see `mean_bounds`."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its confidence interval."""

    value: float
    """NaN if nothing could be measured."""
    low: float
    high: float
    tasks: int
    """Number of tasks that it rests on."""
    left_out: int = 0
    """Number of tasks on which the metric is undefined (too few graded samples)."""

    @property
    def known(self) -> bool:
        return not math.isnan(self.value)


UNKNOWN = Estimate(math.nan, math.nan, math.nan, 0)


def mean_interval(scores: npt.ArrayLike, *, floor: float = 1.0, level: float = 0.95) -> Estimate:
    """Mean of the tasks' scores with the default interval, `mean_bounds`. NaN scores are left out and counted.

    Args:
        scores: `[tasks]`, each in [0, 1].
        floor: Smallest spread of a score, see `mean_bounds`: k/n for a metric on k of n samples.
    """
    every = np.asarray(scores, dtype=np.float64)
    known = every[~np.isnan(every)]
    left_out = len(every) - len(known)
    if not len(known):
        return Estimate(math.nan, math.nan, math.nan, 0, left_out)
    low, high = mean_bounds(known, floor=floor, level=level)
    return Estimate(float(known.mean()), float(low), float(high), len(known), left_out)


def mean_bounds(scores: npt.ArrayLike, *, floor: float = 1.0, level: float = 0.95) -> tuple[Floats, Floats]:
    """Wilson's interval at the effective sample size of clustered scores. Vectorised: `[..., tasks]` -> two `[...]`.

    A score x in [0, 1] with mean p has variance v p (1-p) with a *spread* v in (0, 1]: 1 where tasks are always right
    or always wrong (or have one sample), 1/n where n samples of equally hard tasks are averaged. m tasks are worth
    `m / v` independent coin flips, and Wilson's score interval (1927) at that size never collapses:

        (p + t^2/2N +- t sqrt(p(1-p)/N + t^2/4N^2)) / (1 + t^2/N),   N = m / v

    Two refinements, for few tasks:

    * Where nearly all scores agree, they say little about v. The measured `sum (x-p)^2 / (m p(1-p))` is weighted by
      the number of observations of the rarer outcome, `m min(p, 1-p)`, against `PRIOR_OBSERVATIONS` of the middle
      between `floor` and 1. So at p = 0 and 1 the interval is that of the assumed spread alone.
    * t is Student's quantile at the degrees of freedom with which v is known (Satterthwaite 1946), from the
      linearisation `psi = ((x-p)^2 - v p(1-p) - v (1-2p)(x-p)) / (p(1-p))`, namely `2 m v^2 / mean(psi^2)`, at least
      m - 1. For scores of only 0 and 1, psi = 0: v is 1 and no t is needed, the plain Wilson interval results.

    Related: Korn & Graubard 1998 (effective sample size for proportions in surveys); Dean & Pagano 2015 (clustered
    Wilson intervals).

    Args:
        scores: At least one task; no NaN.
        floor: The smallest v that can be: k/n for a metric on k of a task's n samples (Hoeffding 1948: a U-statistic
            has at most k/n of the variance of one subset; taking it as the least is on the safe side).
    """
    x = np.clip(np.asarray(scores, dtype=np.float64), 0.0, 1.0)
    m = x.shape[-1]
    if m == 0:
        raise ValueError("an interval needs at least one task")
    floor = min(max(floor, 1e-6), 1.0)
    p = x.mean(axis=-1)
    v, df = _spread(x, p, floor)
    z = float(stats.norm.ppf((1 + level) / 2))
    t = np.full_like(p, z) if floor == 1 or m == 1 else np.maximum(stats.t.ppf((1 + level) / 2, df), z)
    return wilson(p, m / v, t)


def _spread(x: Floats, p: Floats, floor: float) -> tuple[Floats, Floats]:
    """Spread v of the scores (regularised) and the degrees of freedom with which it is known."""
    m = x.shape[-1]
    if m == 1 or floor == 1:
        return np.ones_like(p), np.full_like(p, np.inf)
    pq = np.maximum(p * (1 - p), 1e-12)
    off = x - p[..., None]
    measured = np.minimum((off**2).mean(axis=-1) / pq, 1.0)
    weight = np.minimum(m * np.minimum(p, 1 - p), m - 1)
    v = (weight * measured + PRIOR_OBSERVATIONS * (1 + floor) / 2) / (weight + PRIOR_OBSERVATIONS)
    v = np.clip(v, floor, 1.0)
    psi = (off**2 - (measured * pq)[..., None] - (measured * (1 - 2 * p))[..., None] * off) / pq[..., None]
    df = 2 * m * v**2 / np.maximum((psi**2).mean(axis=-1), 1e-9)
    return v, np.clip(df, m - 1, 1e6)


def wilson(p: npt.ArrayLike, size: npt.ArrayLike, t: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Wilson's score interval of a share p among `size` observations (need not be whole), t standard errors wide."""
    p, n, t = (np.asarray(a, dtype=np.float64) for a in (p, size, t))
    shrink = 1 + t**2 / n
    centre = (p + t**2 / (2 * n)) / shrink
    half = t / shrink * np.sqrt(p * (1 - p) / n + t**2 / (4 * n**2))
    low, high = np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
    return np.where(p <= 0, 0.0, low), np.where(p >= 1, 1.0, high)


def student_interval(scores: npt.ArrayLike, *, level: float = 0.95) -> Estimate:
    """Mean +- Student's t times the cluster-robust standard error `sqrt(sum (x-mean)^2 / (m (m-1)))`, unclipped.

    For measures without bounds (tokens, bits, seconds) over some twenty tasks or more. For shares use `mean_interval`.
    Source: Miller 2024, "Adding Error Bars to Evals" (arXiv 2411.00640).
    """
    every = np.asarray(scores, dtype=np.float64)
    x = every[~np.isnan(every)]
    m, left_out = len(x), int(np.isnan(every).sum())
    if m < 2:
        value = float(x[0]) if m else math.nan
        return Estimate(value, math.nan, math.nan, m, left_out)
    half = float(stats.t.ppf((1 + level) / 2, m - 1)) * float(x.std(ddof=1)) / math.sqrt(m)
    return Estimate(float(x.mean()), float(x.mean()) - half, float(x.mean()) + half, m, left_out)


def bootstrap_interval(
    rows: npt.ArrayLike,
    statistic: Callable[[Floats], Floats],
    *,
    resamples: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> tuple[float, float]:
    """Percentile bootstrap over tasks (Efron 1979), for any statistic. Like every bootstrap it is too short for few
    tasks, and of width zero where all tasks agree.

    Args:
        rows: `[tasks]` or `[tasks, columns]`; a task is drawn with everything that belongs to it.
        statistic: From resampled rows `[resamples, tasks(, columns)]` to values `[resamples]`.
    """
    data = np.asarray(rows, dtype=np.float64)
    picks = np.random.default_rng(seed).integers(0, len(data), (resamples, len(data)))
    low, high = np.nanquantile(statistic(data[picks]), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def ratio_interval(
    numerator: npt.ArrayLike, denominator: npt.ArrayLike, *, floor: float = 1.0, level: float = 0.95
) -> Estimate:
    """The ratio R of two means over the same tasks, 0 <= numerator <= denominator <= 1, with a Wilson-type interval.

    Linearised (Cochran 1977, "Sampling Techniques", chapter 6): `e_i = x_i - R y_i` has mean 0 and takes the place
    of `x_i - p`, and the `sum y` solvable tasks that of m; then as in `mean_bounds`.
    """
    x, y = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    known = ~(np.isnan(x) | np.isnan(y))
    x, y, left_out = x[known], y[known], int((~known).sum())
    reach = float(y.sum())
    if reach <= 0:
        return Estimate(math.nan, math.nan, math.nan, len(x), left_out)
    ratio = min(float(x.sum()) / reach, 1.0)
    pq, weight = max(ratio * (1 - ratio), 1e-12), reach * min(ratio, 1 - ratio)
    measured = min(float(((x - ratio * y) ** 2).sum()) / reach / pq, 1.0)
    v = (weight * measured + PRIOR_OBSERVATIONS * (1 + floor) / 2) / (weight + PRIOR_OBSERVATIONS)
    t = float(stats.t.ppf((1 + level) / 2, max(reach - 1, 1)))
    low, high = wilson(ratio, reach / max(v, floor), t)
    return Estimate(ratio, float(low), float(high), len(x), left_out)


def mean_of(estimates: Sequence[Estimate]) -> Estimate:
    """Unweighted mean of independent estimates (of domains, say) with an interval for exactly these.

    The distances from value to bound add in squares on each side ("MOVER"; Zou & Donner 2008, Statistics in Medicine
    27), which keeps lopsided intervals lopsided: `mean - sqrt(sum (value_i - low_i)^2) / D`. Unknown ones are left out.
    """
    known = [e for e in estimates if e.known and not math.isnan(e.low)]
    if not known:
        return UNKNOWN
    d = len(known)
    value = sum(e.value for e in known) / d
    below = math.sqrt(sum((e.value - e.low) ** 2 for e in known)) / d
    above = math.sqrt(sum((e.high - e.value) ** 2 for e in known)) / d
    return Estimate(value, value - below, value + above, sum(e.tasks for e in known), sum(e.left_out for e in known))
