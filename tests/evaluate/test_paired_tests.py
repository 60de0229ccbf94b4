"""Paired tests and intervals: brute force, agreement with each other and with scipy, error rates by simulation."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from surefoot.evaluate import paired


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-8, 8), min_size=1, max_size=9))
def test_sign_flip_equals_enumeration(eighths: list[int]) -> None:
    d = np.array(eighths) / 8
    sums = np.array([np.dot(signs, d) for signs in product([-1, 1], repeat=len(d))])
    want = np.mean(np.abs(sums) >= abs(d.sum()) - 1e-12)
    assert paired.sign_flip_test(d) == pytest.approx(want)


def test_sign_flip_exact_and_sampled_agree() -> None:
    rng = np.random.default_rng(0)
    d = rng.integers(-6, 9, 40) / 8
    assert paired.sign_flip_test(d) == pytest.approx(paired._monte_carlo(d, 100_000, 0), abs=0.005)
    irrational = d * math.pi
    assert paired.sign_flip_test(irrational) == pytest.approx(paired.sign_flip_test(d), abs=0.005)
    assert paired.sign_flip_test(irrational) == paired.sign_flip_test(irrational)


def test_sign_flip_edges() -> None:
    assert paired.sign_flip_test([]) == 1.0
    assert paired.sign_flip_test([0.0, math.nan]) == 1.0
    assert paired.sign_flip_test([0.25] * 10) == pytest.approx(2 / 2**10)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60))
def test_mcnemar_is_sign_flip_on_single_samples(pairs: list[tuple[bool, bool]]) -> None:
    before, after = [b for b, _ in pairs], [a for _, a in pairs]
    difference = [float(a) - float(b) for b, a in pairs]
    assert paired.mcnemar_test(before, after) == pytest.approx(paired.sign_flip_test(difference))


def _simulate(gain: float, tasks: int = 32, k: int = 8, runs: int = 600) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(11)
    pairs = []
    for _ in range(runs):
        rate = rng.beta(1, 2, tasks)
        pairs.append((rng.binomial(k, rate) / k, rng.binomial(k, rate + gain * (1 - rate)) / k))
    return pairs


def test_sign_flip_keeps_its_error_rate_and_has_power() -> None:
    assert np.mean([paired.sign_flip_test(b - a) < 0.05 for a, b in _simulate(0.0)]) <= 0.065
    assert np.mean([paired.sign_flip_test(b - a) < 0.05 for a, b in _simulate(0.2)]) > 0.8


def test_paired_interval_covers() -> None:
    gain = 0.2  # of 1 - rate, whose mean is 2/3
    got = [paired.paired_interval(a, b, floor=1 / 8) for a, b in _simulate(gain)]
    assert 0.93 <= np.mean([e.low <= gain * 2 / 3 <= e.high for e in got]) <= 0.975
    for estimate, (a, b) in list(zip(got, _simulate(gain), strict=True))[:20]:
        boot = paired.paired_bootstrap(a, b)
        assert boot.value == pytest.approx(estimate.value)
        assert (boot.low, boot.high) == pytest.approx((estimate.low, estimate.high), abs=0.06)


def test_paired_interval_edges() -> None:
    zero = paired.paired_interval([0.0] * 16, [0.0] * 16, floor=1 / 8)
    assert zero.value == 0 and zero.low < -0.01 and zero.high > 0.01
    gained = paired.paired_interval([0.0] * 16, [1.0] * 16, floor=1 / 8)
    assert gained.value == 1 and gained.low > 0.5 and gained.high == 1
    part = paired.paired_interval([0.5, math.nan, 0.5], [0.5, 1.0, math.nan])
    assert (part.tasks, part.left_out) == (1, 2)
    assert not paired.paired_interval([], []).known and not paired.paired_bootstrap([], []).known


@given(st.lists(st.floats(0, 1), max_size=20))
def test_adjusted_p_values(p: list[float]) -> None:
    strict, lenient = paired.holm(p), paired.benjamini_hochberg(p)
    assert all(a - 1e-12 <= b <= c + 1e-12 for a, b, c in zip(p, lenient, strict, strict=True))
    if p:
        assert lenient == pytest.approx(list(stats.false_discovery_control(p)))
        assert max(strict) <= 1 and min(strict) == pytest.approx(min(1.0, len(p) * min(p)))


def test_holm_textbook() -> None:
    assert paired.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
