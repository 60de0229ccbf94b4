"""Time to correct: how many samples, and how many tokens, it takes until the first right answer.

n samples of a task could be graded, c of them are right. Samples are taken one after the other, without replacement,
until one is right or K were taken; the mean over all orders is computed exactly. Shapes: one entry a task; float arrays
`[tasks]` come back, NaN for a task with fewer than K graded samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from surefoot.evaluate.passk import Floats


def tries_at_k(right: npt.ArrayLike, graded: npt.ArrayLike, k: int) -> Floats:
    """Mean number of samples until the first right one, at most k: `sum_{j=0}^{k-1} C(n-c, j) / C(n, j)`.

    Each term is the unbiased estimate of (1-p)^j, so the sum is unbiased for E[min(T, k)] = (1 - (1-p)^k) / p, with T
    geometric: the restricted mean time to an event (Royston & Parmar 2013, BMC Med. Res. Methodol. 13:152) over the
    subsets of Chen et al. 2021 (arXiv 2107.03374). It is 1 where all samples are right, and k where none is.
    """
    c, n = np.atleast_1d(np.asarray(right)), np.atleast_1d(np.asarray(graded))
    return np.array([_tries(int(a), int(b), k) for a, b in zip(c, n, strict=True)], dtype=np.float64)


def _tries(right: int, graded: int, k: int) -> float:
    if graded < k:
        return math.nan
    return sum(_none_right(graded - right, graded, j) for j in range(k))


def spent_at_k(tokens: Sequence[Sequence[int]], right: Sequence[Sequence[bool]], k: int) -> Floats:
    """Mean number of tokens written until the first right sample is finished, at most k samples.

    With w wrong samples of W tokens together, and S tokens in all, the j-th sample is taken if the j-1 before it are
    wrong, and is then any of the n-j+1 others:
    `sum_{j=1}^{k} C(w, j-1) / C(n, j-1) (S - (j-1) W / w) / (n - j + 1)`.

    Args:
        tokens: Length of each graded sample, by task.
        right: Whether it is right, by task.
    """
    return np.array([_spent(t, r, k) for t, r in zip(tokens, right, strict=True)], dtype=np.float64)


def _spent(tokens: Sequence[int], right: Sequence[bool], k: int) -> float:
    n = len(tokens)
    if n < k:
        return math.nan
    lengths = [length for length, ok in zip(tokens, right, strict=True) if not ok]
    mean_wrong = sum(lengths) / max(1, len(lengths))
    return sum(
        _none_right(len(lengths), n, j) * (sum(tokens) - j * mean_wrong) / (n - j)
        for j in range(min(k, len(lengths) + 1))
    )


def _none_right(wrong: int, graded: int, taken: int) -> float:
    """Chance that `taken` samples, drawn without replacement, are all wrong."""
    return math.comb(wrong, taken) / math.comb(graded, taken)
