"""Whether the samples of a task agree with each other: in their answers and in their grades.

The answers of a task are a sequence of strings, one per graded sample, None where no answer could be extracted. For
entropy and agreement "no answer" counts as one answer more (failing always in the same way is consistent, too); in a
vote it abstains.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from surefoot.evaluate.passk import Floats

Answers = Sequence[str | None]


def answer_entropy(answers: Sequence[Answers]) -> Floats:
    """Shannon entropy of the answers of each task in bits, `-sum_a p_a log2 p_a`: 0 if all agree, log2 n if none do.

    It is the plug-in estimate, too low by about (distinct answers - 1) / (2 n ln 2) bits: compare only evaluations with
    equally many samples. NaN for a task without samples.
    """
    return np.array([_entropy(row) for row in answers], dtype=np.float64)


def _entropy(answers: Answers) -> float:
    n = len(answers)
    if not n:
        return math.nan
    return abs(sum(count / n * math.log2(n / count) for count in Counter(answers).values()))


def answer_agreement(answers: Sequence[Answers]) -> Floats:
    """Probability that two different samples of a task give the same answer: `sum_a m_a (m_a - 1) / (n (n - 1))`.

    m_a is the number of samples that gave answer a. Unbiased (Simpson 1949, "Measurement of Diversity", Nature 163).
    NaN for a task with fewer than two samples.
    """
    return np.array([_agreement(row) for row in answers], dtype=np.float64)


def _agreement(answers: Answers) -> float:
    n = len(answers)
    if n < 2:
        return math.nan
    return sum(m * (m - 1) for m in Counter(answers).values()) / (n * (n - 1))


def flip_rate(right: npt.ArrayLike, graded: npt.ArrayLike) -> Floats:
    """Probability that two different samples of a task get different grades: `2 c (n - c) / (n (n - 1))`.

    Unbiased for `2 p (1 - p)`. It is what a user sees who asks again. NaN below two graded samples.
    """
    c, n = np.asarray(right, dtype=np.float64), np.asarray(graded, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(n >= 2, 2 * c * (n - c) / (n * (n - 1)), np.nan)


def flip_rate_between(
    right_a: npt.ArrayLike, graded_a: npt.ArrayLike, right_b: npt.ArrayLike, graded_b: npt.ArrayLike
) -> Floats:
    """Probability that a sample of form a of a task and one of form b get different grades: `x (1-y) + y (1-x)`.

    x and y are the shares of right samples. The two forms may be two seeds, two models, or the prompt and a harmless
    paraphrase of it; in the last case what exceeds the `flip_rate` of each form alone is due to the wording.
    """
    a, b = np.asarray(right_a, dtype=np.float64), np.asarray(right_b, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        x, y = a / np.asarray(graded_a, dtype=np.float64), b / np.asarray(graded_b, dtype=np.float64)
    return np.asarray(x * (1 - y) + y * (1 - x), dtype=np.float64)


def maj_at_k(answers: Sequence[Answers], right: Sequence[Sequence[bool]], k: int) -> Floats:
    """Probability that the most frequent answer among k samples of a task is right, maj@k.

    The k are drawn without replacement from the n graded samples, and ties are broken evenly at random, so the score
    is unbiased; it is computed exactly, not by resampling. An answer that was graded now right, now wrong counts with
    its share of right grades. If no sample has an answer, the vote is lost. With k = 1 this is the share of samples
    that have an answer and are right. NaN for a task with fewer than k samples.

    Source: Wang et al. 2022, "Self-Consistency Improves Chain of Thought Reasoning" (arXiv 2203.11171); the name from
    Lewkowycz et al. 2022, "Minerva" (arXiv 2206.14858).
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    return np.array([_majority(a, r, k) for a, r in zip(answers, right, strict=True)], dtype=np.float64)


def _majority(answers: Answers, right: Sequence[bool], k: int) -> float:
    n = len(answers)
    if n < k:
        return math.nan
    counts = Counter(answer for answer in answers if answer is not None)
    share_right = Counter(answer for answer, ok in zip(answers, right, strict=True) if ok and answer is not None)
    silent = n - counts.total()
    won = 0.0
    for answer, hits in share_right.items():
        others = [count for other, count in counts.items() if other != answer]
        won += hits / counts[answer] * _winning_subsets(counts[answer], others, silent, k)
    return won / math.comb(n, k)


def _winning_subsets(own: int, others: Sequence[int], silent: int, k: int) -> float:
    """Number of k-subsets in which a candidate with `own` votes has the most, a tie among t candidates counting 1/t."""
    total = 0.0
    for votes in range(1, min(own, k) + 1):
        # ways[ties][used]: subsets of the other samples with `used` members, `ties` of the rivals reaching `votes`.
        ways = {(0, used): math.comb(silent, used) for used in range(min(silent, k - votes) + 1)}
        for count in others:
            ways = _add_rival(ways, count, votes, k - votes)
        fair = sum(number / (ties + 1) for (ties, used), number in ways.items() if used == k - votes)
        total += math.comb(own, votes) * fair
    return total


def _add_rival(ways: dict[tuple[int, int], int], count: int, votes: int, room: int) -> dict[tuple[int, int], int]:
    extended: dict[tuple[int, int], int] = {}
    for (ties, used), number in ways.items():
        for taken in range(min(count, votes, room - used) + 1):
            key = (ties + (taken == votes), used + taken)
            extended[key] = extended.get(key, 0) + number * math.comb(count, taken)
    return extended
