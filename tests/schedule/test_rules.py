"""Allocation rules: shares, floors and caps hold, state is exact, traps do not pay."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.schedule import (
    AdaptiveRule,
    Allocation,
    Arms,
    DumpRule,
    FilteringRule,
    FixedRule,
    Outcomes,
    Rule,
    SecRule,
)
from surefoot.schedule.apportion import pay_out, shares_within
from surefoot.schedule.posterior import mixed_probability, mixed_share

KINDS: list[Any] = [AdaptiveRule, FixedRule, FilteringRule, SecRule, DumpRule]
Grade = Callable[[np.random.Generator, Allocation], npt.NDArray[Any]]


def arms(domains: int = 6, levels: int = 4) -> Arms:
    names = [f"d{i}" for i in range(domains)]
    return Arms.of(dict.fromkeys(names, 1.0), dict.fromkeys(names, levels))


def chances(p: npt.NDArray[Any]) -> Grade:
    """Graders under which domain d passes with p[d] on average, less at higher levels; prompts differ."""

    def grade(rng: np.random.Generator, plan: Allocation) -> npt.NDArray[Any]:
        mean = p[plan.domain] * 0.7**plan.level
        reach = 0.8 * np.minimum(mean, 1 - mean)
        return rng.binomial(plan.samples, mean + np.where(rng.random(len(plan)) < 0.5, reach, -reach))

    return grade


def hear(rule: Rule, step: int, plan: Allocation, passes: npt.NDArray[Any], price: npt.NDArray[Any]) -> None:
    cost = price[plan.domain] * plan.samples
    rule.observe(step, Outcomes(plan.domain, plan.level, plan.samples, plan.samples, passes.astype(float), cost))


def play(rule: Any, grade: Grade, first: int, last: int, price: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
    """Steps `first`..`last` of 12 groups; returns how often each domain was drawn. Outcomes depend on the step only."""
    domains = len(rule.arms)
    counts = np.zeros(domains)
    for step in range(first, last + 1):
        plan = rule.allocate(step, 12, np.ones(domains))
        passes = grade(np.random.default_rng(step), plan)
        hear(rule, step, plan, passes, np.ones(domains) if price is None else price)
        np.add.at(counts, plan.domain, 1)
    return counts


@pytest.mark.parametrize("kind", KINDS)
def test_a_restored_rule_goes_on_bit_for_bit(kind: Any) -> None:
    grade = chances(np.linspace(0.05, 0.95, 6))
    whole, half, other = (kind(arms(), samples=8, seed=3) for _ in range(3))
    play(whole, grade, 1, 30)
    play(half, grade, 1, 17)
    other.restore(json.loads(json.dumps(half.state())))
    play(other, grade, 18, 30)
    assert json.dumps(other.state()) == json.dumps(whole.state())


@pytest.mark.parametrize("kind", KINDS)
def test_every_group_is_of_a_domain_and_level_that_exist(kind: Any) -> None:
    some = Arms.of({"a": 1, "b": 2, "never": 0}, {"a": 1, "b": 3, "never": 2})
    rule = kind(some, samples=4, seed=0)
    for step in range(1, 25):
        plan = rule.allocate(step, 7, np.ones(3))
        assert len(plan) >= 7
        assert (plan.domain != 2).all()
        assert (plan.level < some.levels[plan.domain]).all()
        hear(rule, step, plan, plan.samples, np.ones(3))


def test_mixed_probability_agrees_with_sampling() -> None:
    rng = np.random.default_rng(0)
    for a, b, n in [(0.5, 0.5, 8), (3.0, 1.0, 4), (0.7, 9.0, 16)]:
        k = rng.binomial(n, rng.beta(a, b, 200_000))
        estimate = float(mixed_probability(np.array(a), np.array(b), n))
        assert abs(estimate - np.mean((k > 0) & (k < n))) < 0.005
        assert abs(estimate - mixed_share(a, b, n)) < 1e-12


@settings(deadline=None)
@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=30), st.data())
def test_shares_keep_floors_and_caps(weights: list[float], data: st.DataObject) -> None:
    d = len(weights)
    floors = np.array(data.draw(st.lists(st.floats(0, 1 / d), min_size=d, max_size=d)))
    caps = np.array(data.draw(st.lists(st.floats(1 / d, 1), min_size=d, max_size=d)))
    shares = shares_within(np.array(weights), floors, caps)
    assert abs(shares.sum() - 1) < 1e-6
    assert (shares >= floors - 1e-6).all()
    assert (shares <= caps + 1e-6).all()


@given(st.lists(st.floats(-5, 20), min_size=1, max_size=20), st.integers(0, 50))
def test_exactly_as_many_groups_as_asked_are_paid_out(credit: list[float], groups: int) -> None:
    counts = pay_out(np.array(credit), np.ones(len(credit), dtype=bool), groups)
    assert counts.sum() == groups
    assert (counts >= 0).all()


def test_learnable_domains_get_more_than_solved_and_hopeless_ones() -> None:
    rule = AdaptiveRule(arms(6, 1), samples=8, seed=0)
    drawn = play(rule, chances(np.array([0.4, 0.0, 1.0, 0.4, 0.0, 1.0])), 1, 60)
    assert min(drawn[0], drawn[3]) > 2 * max(drawn[1], drawn[2], drawn[4], drawn[5])


def test_cheap_domains_get_more_than_dear_ones_that_learn_alike() -> None:
    rule = AdaptiveRule(arms(6, 1), samples=8, seed=0)
    drawn = play(rule, chances(np.full(6, 0.4)), 1, 30, price=np.array([1.0, 1, 1, 5, 5, 5]))
    assert drawn[:3].sum() > 2 * drawn[3:].sum()


def test_a_coin_is_found_out_and_a_real_domain_is_not() -> None:
    def grade(rng: np.random.Generator, plan: Allocation) -> npt.NDArray[Any]:
        real = np.where(rng.random(len(plan)) < 0.5, 0.85, 0.15)  # prompts of real domains differ
        return rng.binomial(plan.samples, np.where(plan.domain < 3, 0.5, real))

    rule = AdaptiveRule(arms(6, 1), samples=8, seed=0)
    play(rule, grade, 1, 60)
    assert rule.noise.suspects().tolist() == [True] * 3 + [False] * 3


def test_no_domain_is_left_alone_longer_than_the_bound() -> None:
    rule = AdaptiveRule(arms(20, 1), samples=8, seed=0)
    last = np.zeros(20)
    for step in range(1, 200):
        plan = rule.allocate(step, 8, np.ones(20))
        last[plan.domain] = step
        assert (step - last).max() <= 40
        hear(rule, step, plan, np.where(plan.domain < 2, 4, 0), np.ones(20))


def test_a_closed_domain_gets_nothing_and_its_share_goes_to_the_others() -> None:
    rule = AdaptiveRule(arms(4, 1), samples=8, seed=0)
    play(rule, chances(np.full(4, 0.5)), 1, 10)
    plan = rule.allocate(11, 12, np.array([0.0, 1, 1, 1]))
    assert len(plan) == 12
    assert (plan.domain != 0).all()


def test_levels_open_as_lower_ones_are_passed_and_close_again() -> None:
    rule = AdaptiveRule(arms(1, 4), samples=8, seed=0)

    def seen(first: int, last: int, right: int) -> set[int]:
        """Levels drawn in the last third of these steps, in which all samples pass or none does."""
        levels: set[int] = set()
        for step in range(first, last + 1):
            plan = rule.allocate(step, 12, np.ones(1))
            hear(rule, step, plan, right * plan.samples, np.ones(1))
            if 3 * (step - first) > 2 * (last - first):
                levels |= set(plan.level.tolist())
        return levels

    assert seen(1, 10, right=0) == {0}
    assert seen(11, 80, right=1) == {0, 1, 2, 3}
    assert seen(81, 240, right=0) == {0}


def test_domains_come_and_go() -> None:
    before = AdaptiveRule(Arms.of({"a": 1, "gone": 1}), samples=8, seed=0)
    play(before, chances(np.full(2, 0.5)), 1, 20)
    after = AdaptiveRule(Arms.of({"new": 1, "a": 1}), samples=8, seed=0)
    after.restore(json.loads(json.dumps(before.state())))
    assert after.hits[1].tolist() == before.hits[0].tolist()
    assert after.hits[0].tolist() == [0.0]
    assert (after.allocate(21, 4, np.ones(2)).domain == 0).any()
