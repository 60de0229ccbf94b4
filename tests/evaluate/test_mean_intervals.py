"""Intervals: closed forms, behaviour at the edges, and coverage by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.evaluate.intervals import (
    Estimate,
    bootstrap_interval,
    mean_bounds,
    mean_interval,
    mean_of,
    ratio_interval,
    student_interval,
)


def test_single_samples_give_the_plain_wilson_interval() -> None:
    got = mean_interval([1.0] * 8 + [0.0] * 2, floor=1.0)
    assert (got.low, got.high) == pytest.approx((0.4902, 0.9433), abs=1e-4)  # textbook value for 8 of 10


def test_the_floor_of_the_spread_is_reached_by_equal_tasks() -> None:
    wide = mean_interval([0.5] * 16, floor=1.0)
    narrow = mean_interval([0.5] * 16, floor=1 / 8)
    assert narrow.high - narrow.low < 0.6 * (wide.high - wide.low)


@pytest.mark.parametrize("p", [0.0, 1.0])
@pytest.mark.parametrize("tasks", [1, 2, 16, 64])
def test_agreement_of_all_tasks_never_means_certainty(p: float, tasks: int) -> None:
    got = mean_interval([p] * tasks, floor=1 / 8)
    assert got.value == p and got.low <= p <= got.high
    assert (
        got.high - got.low > 1.5 / tasks / 8
    )  # more doubt than even independent samples would leave ("rule of three")


@settings(deadline=None)
@given(st.lists(st.integers(0, 8), min_size=1, max_size=40))
def test_interval_holds_its_value_and_is_symmetric(right: list[int]) -> None:
    x = np.array(right) / 8
    a, b = mean_interval(x, floor=1 / 8), mean_interval(1 - x, floor=1 / 8)
    assert 0 <= a.low <= a.value <= a.high <= 1
    assert (a.low, a.high) == pytest.approx((1 - b.high, 1 - b.low), abs=1e-9)


def test_undefined_scores_are_left_out_and_counted() -> None:
    got = mean_interval([math.nan, 1.0, 0.0])
    assert (got.value, got.tasks, got.left_out) == (0.5, 2, 1)
    assert not mean_interval([math.nan]).known and not mean_interval([]).known


def _coverage(tasks: int, samples: int, p: float, rho: float, runs: int = 4000) -> float:
    rng = np.random.default_rng(7)
    odds = (1 - rho) / rho
    rates = rng.beta(p * odds, (1 - p) * odds, (runs, tasks))
    low, high = mean_bounds(rng.binomial(samples, rates) / samples, floor=1 / samples)
    return float(((low <= p) & (p <= high)).mean())


@pytest.mark.parametrize(
    ("tasks", "samples", "p", "rho"), [(32, 8, 0.15, 0.3), (32, 4, 0.5, 0.5), (64, 8, 0.9, 0.7), (128, 4, 0.3, 0.2)]
)
def test_default_interval_covers(tasks: int, samples: int, p: float, rho: float) -> None:
    assert 0.93 <= _coverage(tasks, samples, p, rho) <= 0.97


def test_student_interval_closed_form() -> None:
    got = student_interval([1.0, 2.0, 3.0, math.nan])
    assert got.value == 2 and got.left_out == 1
    assert got.high - got.value == pytest.approx(4.302653 / math.sqrt(3), rel=1e-6)
    assert math.isnan(student_interval([1.0]).low) and not student_interval([]).known


def test_bootstrap_agrees_with_student_for_many_tasks() -> None:
    x = np.random.default_rng(1).normal(0.4, 0.1, 400)
    low, high = bootstrap_interval(x, lambda rows: rows.mean(axis=-1))
    want = student_interval(x)
    assert (low, high) == pytest.approx((want.low, want.high), abs=2e-3)
    assert bootstrap_interval(x, lambda rows: rows.mean(axis=-1)) == (low, high)


def test_ratio_interval() -> None:
    got = ratio_interval([0.5, 0.25, 0.0, math.nan], [1.0, 1.0, 0.0, 1.0], floor=1 / 8)
    assert got.value == 0.375 and got.low < 0.375 < got.high and (got.tasks, got.left_out) == (3, 1)
    assert not ratio_interval([0.0], [0.0]).known
    assert ratio_interval([1.0, 0.0], [1.0, 0.0], floor=1 / 8).low < 1.0


def test_ratio_interval_covers() -> None:
    rng, k, truth = np.random.default_rng(3), 8, []
    rates = rng.beta(0.8, 1.2, (400_000,))
    want = rates.mean() / (1 - (1 - rates) ** k).mean()
    for _ in range(1500):
        right = rng.binomial(k, rng.beta(0.8, 1.2, 48))
        got = ratio_interval(right / k, right > 0, floor=1 / k)
        truth.append(got.low <= want <= got.high)
    assert 0.925 <= np.mean(truth) <= 0.975


def test_mean_of_domains() -> None:
    parts = [Estimate(0.2, 0.1, 0.4, 10), Estimate(0.6, 0.5, 0.8, 10, 1), Estimate(math.nan, math.nan, math.nan, 0, 4)]
    got = mean_of(parts)
    assert got.value == pytest.approx(0.4) and (got.tasks, got.left_out) == (20, 1)
    assert got.low == pytest.approx(0.4 - math.hypot(0.1, 0.1) / 2)
    assert got.high == pytest.approx(0.4 + math.hypot(0.2, 0.2) / 2)
    assert not mean_of([]).known
