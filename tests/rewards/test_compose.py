from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.config import RewardConfig
from surefoot.errors import ConfigError
from surefoot.rewards import Rewarder
from surefoot.rewards.compose import PARTIAL_CEILING
from surefoot.types import Finding, Group, Task, Verdict

any_number = st.floats(allow_nan=True, allow_infinity=True)
names = st.sampled_from(["format", "efficiency", "readability", "robustness"])
dimensions = st.dictionaries(names, any_number, max_size=4)
configs = st.builds(
    RewardConfig,
    partial=st.booleans(),
    weights=st.dictionaries(names, st.floats(0, 1e6), max_size=4),
    bonus_cap=st.floats(0, 1),
)
harmless = st.lists(st.builds(Finding, st.just("x"), st.just("info")), max_size=2).map(tuple)


def right(**fields) -> Verdict:
    return Verdict("right", 1.0, **fields)


@given(configs, any_number, dimensions, dimensions, harmless, harmless)
def test_nothing_lifts_a_wrong_answer_to_a_right_one(config, score, wrong_dimensions, right_dimensions, some, more):
    rewarder = Rewarder(config)
    wrong = rewarder.score(Verdict("wrong", score, dimensions=wrong_dimensions, findings=some))
    correct = rewarder.score(right(dimensions=right_dimensions, findings=more))
    assert 0.0 <= wrong.value <= PARTIAL_CEILING < 1.0 <= correct.value <= 1.0 + config.bonus_cap
    assert wrong.valid and correct.valid


@given(configs, dimensions, names, st.floats(0, 1))
def test_more_of_a_dimension_never_costs(config, values, name, rise):
    rewarder = Rewarder(config)
    base = {**values, name: 0.3}
    less, more = (rewarder.score(right(dimensions={**base, name: v})).value for v in (0.3 * rise, 0.3 + 0.7 * rise))
    assert less <= more + 1e-12


@given(configs, any_number, dimensions)
def test_rewards_are_finite_and_so_are_their_dimensions(config, score, values):
    for grade in ("right", "wrong", "ungradable"):
        reward = Rewarder(config).score(Verdict(grade, score, dimensions=values))
        assert math.isfinite(reward.value)
        assert all(0.0 <= v <= 1.0 for v in reward.dimensions.values())


def test_wrong_answers_earn_nothing_unless_partial_credit_is_asked_for():
    half = Verdict("wrong", 0.5)
    assert Rewarder(RewardConfig()).score(half).value == 0.0
    assert Rewarder(RewardConfig(partial=True)).score(half).value == PARTIAL_CEILING / 2


def test_bonuses_are_weight_times_dimension_up_to_the_cap():
    verdict = right(dimensions={"format": 1.0, "efficiency": 0.5, "unweighted": 1.0})
    small = Rewarder(RewardConfig(weights={"format": 0.05, "efficiency": 0.1}, bonus_cap=0.2))
    assert small.score(verdict).value == pytest.approx(1.10)
    large = Rewarder(RewardConfig(weights={"format": 5.0, "efficiency": 5.0}, bonus_cap=0.2))
    assert large.score(verdict).value == pytest.approx(1.15)


def test_an_ungradable_rollout_takes_no_part():
    reward = Rewarder(RewardConfig(partial=True)).score(Verdict("ungradable", 0.0))
    assert not reward.valid


def test_findings_zero_quarantine_or_only_flag():
    rewarder = Rewarder(RewardConfig())
    flagged, zeroed, kept_out = (
        rewarder.score(right(findings=(Finding("f", "info"), Finding("x", "severe", action=action))))
        for action in ("flag", "zero", "quarantine")
    )
    assert (flagged.value, flagged.valid) == (1.0, True)
    assert (zeroed.value, zeroed.valid) == (0.0, True)
    assert not kept_out.valid


def test_a_group_gets_a_reward_for_each_verdict():
    task = Task("t", "d", ())
    verdicts = (right(), Verdict("wrong"), Verdict("ungradable"))
    group = Rewarder(RewardConfig()).score_group(Group(task, (), verdicts))
    assert [(r.value, r.valid) for r in group.rewards] == [(1.0, True), (0.0, True), (0.0, False)]


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf")])
def test_a_weight_that_is_no_number_is_refused(weight):
    with pytest.raises(ConfigError, match="format"):
        Rewarder(RewardConfig(weights={"format": weight}))
