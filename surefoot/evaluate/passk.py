"""How often k samples of a task hold at least one, all, or a given share of right ones.

Every metric here is the mean over tasks of a per-task score, and every score is unbiased for what fresh samples would
give. With n graded samples of a task, of which c are right, a subset of k is drawn without replacement, so the number
of right ones in it is hypergeometric. Sampling *with* replacement, or `1 - (1 - c/n)^k`, would be biased.

Shapes: `right` and `graded` are integer arrays `[tasks]`; scores are float arrays `[tasks]`, NaN for a task with fewer
than k graded samples (no unbiased estimate exists there; callers leave such tasks out and count them).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def pass_at_1(right: npt.ArrayLike, graded: npt.ArrayLike) -> Floats:
    """Share of right samples, `c / n`."""
    return pass_at_k(right, graded, 1)


def pass_at_k(right: npt.ArrayLike, graded: npt.ArrayLike, k: int) -> Floats:
    """Probability that at least one of k samples is right: `1 - C(n-c, k) / C(n, k)`.

    Source: Chen et al. 2021, "Evaluating Large Language Models Trained on Code" (arXiv 2107.03374), section 2.1.
    """
    return _score(right, graded, k, 1)


def pass_hat_k(right: npt.ArrayLike, graded: npt.ArrayLike, k: int) -> Floats:
    """Probability that all of k samples are right, pass^k: `C(c, k) / C(n, k)`.

    Source: Yao et al. 2024, "tau-bench" (arXiv 2406.12045).
    """
    return _score(right, graded, k, k)


def g_pass_at_k(right: npt.ArrayLike, graded: npt.ArrayLike, k: int, tau: float) -> Floats:
    """Probability that at least a share tau of k samples is right, G-Pass@k(tau).

    `sum_{j=ceil(tau k)}^{k} C(c, j) C(n-c, k-j) / C(n, k)`, for tau in (0, 1]. It is pass^k at tau = 1 and pass@k for
    tau <= 1/k. Source: Liu et al. 2024, "Are Your LLMs Capable of Stable Reasoning?" (arXiv 2412.13147).
    """
    if not 0 < tau <= 1:
        raise ValueError(f"tau must be in (0, 1], not {tau}")
    return _score(right, graded, k, max(1, math.ceil(tau * k - 1e-9)))


def mg_pass_at_k(right: npt.ArrayLike, graded: npt.ArrayLike, k: int) -> Floats:
    """Area under G-Pass@k(tau) over the upper half of tau, mG-Pass@k.

    `2 * integral_{1/2}^{1} G-Pass@k(tau) dtau`, which the paper evaluates as
    `2/k * sum_{i=ceil(k/2)+1}^{k} G-Pass@k(i/k)`. For odd k the paper's sum leaves out the half step next to
    tau = 1/2, so that even k are the better choice; k = 1 has no term at all and is refused.
    Source: Liu et al. 2024 (arXiv 2412.13147).
    """
    if k < 2:
        raise ValueError("mG-Pass@k needs k >= 2")
    steps = [_score(right, graded, k, i) for i in range(math.ceil(k / 2) + 1, k + 1)]
    return np.asarray(2 / k * np.sum(steps, axis=0), dtype=np.float64)


def worst_of_k(scores: Sequence[Sequence[float]], k: int) -> Floats:
    """Expected lowest score among k samples of a task, for graded scores in [0, 1] (partial credit).

    With the n scores of a task sorted upwards, s_(1) is the lowest of C(n-1, k-1) of the C(n, k) subsets, s_(2) of
    C(n-2, k-1), ...: `sum_i s_(i) C(n-i, k-1) / C(n, k)`. With scores of 0 and 1 this is pass^k; with k = n it is the
    plain minimum.

    Args:
        scores: For each task the scores of its graded samples; lengths may differ.
    """
    _check_k(k)
    return np.array([_worst(tuple(sorted(row)), k) for row in scores], dtype=np.float64)


def _worst(ascending: tuple[float, ...], k: int) -> float:
    n = len(ascending)
    if n < k:
        return math.nan
    subsets = math.comb(n, k)
    return sum(score * (math.comb(n - i, k - 1) / subsets) for i, score in enumerate(ascending, start=1))


def _score(right: npt.ArrayLike, graded: npt.ArrayLike, k: int, least: int) -> Floats:
    """Per task the probability of at least `least` right ones among k."""
    _check_k(k)
    c, n = np.asarray(right, dtype=np.int64), np.asarray(graded, dtype=np.int64)
    if c.shape != n.shape or np.any(c < 0) or np.any(c > n):
        raise ValueError("right and graded must have one shape, with 0 <= right <= graded")
    pairs = zip(c.tolist(), n.tolist(), strict=True)
    return np.array([_tail(ci, ni, k, least) for ci, ni in pairs], dtype=np.float64)


@cache
def _tail(c: int, n: int, k: int, least: int) -> float:
    """P(at least `least` right among k of n without replacement, c of the n being right), in exact integers."""
    if n < k:
        return math.nan
    ways = sum(math.comb(c, j) * math.comb(n - c, k - j) for j in range(least, min(c, k) + 1))
    return ways / math.comb(n, k)


def _check_k(k: int) -> None:
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
