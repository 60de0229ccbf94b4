"""Metrics of stability: closed forms, brute force over all subsets, and properties that must hold for any outcome."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.evaluate import agreement, passk

outcomes = st.lists(st.booleans(), min_size=1, max_size=9)


def subsets(items: list[bool], k: int) -> list[tuple[bool, ...]]:
    return list(combinations(items, k))


@settings(deadline=None, max_examples=60)
@given(outcomes, st.integers(1, 9), st.integers(1, 10))
def test_pass_metrics_equal_enumeration(sample: list[bool], k: int, tenths: int) -> None:
    c, n, tau = [sum(sample)], [len(sample)], tenths / 10
    if k > len(sample):
        assert math.isnan(passk.pass_at_k(c, n, k)[0]) and math.isnan(passk.pass_hat_k(c, n, k)[0])
        return
    drawn = subsets(sample, k)
    assert passk.pass_at_k(c, n, k)[0] == pytest.approx(np.mean([any(s) for s in drawn]))
    assert passk.pass_hat_k(c, n, k)[0] == pytest.approx(np.mean([all(s) for s in drawn]))
    enough = math.ceil(round(tau * k, 6))
    assert passk.g_pass_at_k(c, n, k, tau)[0] == pytest.approx(np.mean([sum(s) >= enough for s in drawn]))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.integers(1, 8))
def test_worst_of_k_equals_enumeration(scores: list[float], k: int) -> None:
    worst = passk.worst_of_k([scores], k)[0]
    if k > len(scores):
        assert math.isnan(worst)
    else:
        assert worst == pytest.approx(np.mean([min(s) for s in combinations(scores, k)]))


@given(outcomes, st.integers(1, 9))
def test_worst_of_k_on_grades_is_pass_hat_k(sample: list[bool], k: int) -> None:
    worst = passk.worst_of_k([[float(s) for s in sample]], k)
    assert worst == pytest.approx(passk.pass_hat_k([sum(sample)], [len(sample)], k), nan_ok=True)


@given(st.integers(1, 40), st.data())
def test_metrics_are_ordered(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    hat, one, at = (
        f([c], [n], k)[0] for f in (passk.pass_hat_k, lambda c, n, _: passk.pass_at_1(c, n), passk.pass_at_k)
    )
    assert 0 <= hat <= one <= at <= 1
    assert one == c / n
    gs = [passk.g_pass_at_k([c], [n], k, i / k)[0] for i in range(1, k + 1)]
    assert gs == sorted(gs, reverse=True) and gs[0] == at and gs[-1] == hat


@pytest.mark.parametrize("k", [2, 4, 8])
def test_mg_pass_is_the_integral_for_even_k(k: int) -> None:
    c, n = [0, 3, 7, 16], [16] * 4
    middles = np.linspace(0.5, 1, 4001)[:-1] + 0.25 / 4000
    area = 2 * np.mean([passk.g_pass_at_k(c, n, k, tau) for tau in middles], axis=0) * 0.5
    assert passk.mg_pass_at_k(c, n, k) == pytest.approx(area, abs=1e-3)


def test_pass_at_k_matches_chen_and_stays_exact_for_many_samples() -> None:
    def chen(n: int, c: int, k: int) -> float:
        return 1.0 if n - c < k else float(1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1)))

    for n, c, k in [(200, 3, 100), (200, 0, 10), (200, 199, 1), (10, 5, 3)]:
        assert passk.pass_at_k([c], [n], k)[0] == pytest.approx(chen(n, c, k), abs=1e-12)
    assert passk.pass_hat_k([5000], [5000], 2500)[0] == 1.0


def test_estimates_are_unbiased() -> None:
    p, n, k = 0.3, 6, 3
    chance = [math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
    every, graded = list(range(n + 1)), [n] * (n + 1)
    assert np.dot(chance, passk.pass_hat_k(every, graded, k)) == pytest.approx(p**k)
    assert np.dot(chance, passk.pass_at_k(every, graded, k)) == pytest.approx(1 - (1 - p) ** k)
    assert np.dot(chance, agreement.flip_rate(every, graded)) == pytest.approx(2 * p * (1 - p))


@pytest.mark.parametrize("bad", [0, -1])
def test_senseless_arguments_are_refused(bad: int) -> None:
    with pytest.raises(ValueError, match="k must be"):
        passk.pass_at_k([1], [2], bad)
    with pytest.raises(ValueError, match="tau"):
        passk.g_pass_at_k([1], [2], 2, bad)
    with pytest.raises(ValueError, match="right"):
        passk.pass_at_k([3], [2], 1)
    with pytest.raises(ValueError, match="k >= 2"):
        passk.mg_pass_at_k([1], [2], 1)


graded_answers = st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d", None]), st.booleans()), min_size=1, max_size=8)


@settings(deadline=None, max_examples=150)
@given(graded_answers, st.integers(1, 8))
def test_majority_equals_enumeration(samples: list[tuple[str | None, bool]], k: int) -> None:
    answers, right = [a for a, _ in samples], [ok for _, ok in samples]
    got = agreement.maj_at_k([answers], [right], k)[0]
    if k > len(samples):
        assert math.isnan(got)
        return
    share = {a: np.mean([ok for b, ok in samples if b == a]) for a in set(answers)}
    won = []
    for drawn in combinations(answers, k):
        votes = Counter(a for a in drawn if a is not None)
        winners = [a for a in votes if votes[a] == max(votes.values())]
        won.append(np.mean([share[a] for a in winners]) if winners else 0.0)
    assert got == pytest.approx(np.mean(won))


def test_majority_closed_forms() -> None:
    assert agreement.maj_at_k([["7", "7", "8"]], [[True, True, False]], 3)[0] == 1.0
    assert agreement.maj_at_k([["7", "8"]], [[True, False]], 2)[0] == 0.5
    assert agreement.maj_at_k([[None, None]], [[False, False]], 2)[0] == 0.0
    assert agreement.maj_at_k([[str(i) for i in range(64)]], [[i == 0 for i in range(64)]], 32)[0] == pytest.approx(
        1 / 64
    )


def test_entropy_and_agreement_closed_forms() -> None:
    rows = [["x"] * 4, ["a", "b", "c", "d"], ["a", "a", "b", "b"], [None, None], []]
    assert agreement.answer_entropy(rows) == pytest.approx([0, 2, 1, 0, math.nan], nan_ok=True)
    assert agreement.answer_agreement(rows) == pytest.approx([1, 0, 1 / 3, 1, math.nan], nan_ok=True)


def test_flip_rates() -> None:
    assert agreement.flip_rate([0, 1, 2, 4], [4, 4, 4, 4]) == pytest.approx([0, 0.5, 2 / 3, 0])
    assert math.isnan(agreement.flip_rate([1], [1])[0])
    assert agreement.flip_rate_between([4, 2], [4, 4], [0, 2], [4, 4]) == pytest.approx([1, 0.5])
