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


verdict_lists = st.lists(
    st.tuples(st.booleans(), st.dictionaries(names, any_number, max_size=4)), min_size=1, max_size=8
).map(lambda rows: tuple(right(dimensions=d) if good else Verdict("wrong", 0.5, dimensions=d) for good, d in rows))


def grouped(config, verdicts):
    return Rewarder(config).score_group(Group(Task("t", "d", ()), (), tuple(verdicts))).rewards


@given(configs, verdict_lists)
def test_in_a_group_no_wrong_answer_reaches_a_right_one(config, verdicts):
    for verdict, reward in zip(verdicts, grouped(config, verdicts), strict=True):
        low, high = (1.0, 1.0 + config.bonus_cap) if verdict.grade == "right" else (0.0, PARTIAL_CEILING)
        assert low <= reward.value <= high + 1e-12


@given(configs, st.lists(st.floats(0, 1), min_size=2, max_size=8), names, st.floats(0, 1))
def test_in_a_group_more_of_a_dimension_never_costs(config, values, name, rise):
    def first(value):
        return grouped(config, [right(dimensions={name: v}) for v in (value, *values[1:])])[0].value

    assert first(values[0]) <= first(values[0] + (1 - values[0]) * rise) + 1e-9


def test_in_a_group_a_narrow_scale_counts_as_much_as_a_wide_one():
    rows = [(0.8, 1.0), (0.9, 0.0), (0.8, 0.0), (0.9, 1.0)]  # readability within a tenth, efficiency over all of it
    verdicts = [right(dimensions={"readability": a, "efficiency": b}) for a, b in rows]
    weights = {"readability": 0.1, "efficiency": 0.1}
    wide, narrow, none, both = (r.value for r in grouped(RewardConfig(weights=weights), verdicts))
    assert none < narrow < both and wide == pytest.approx(narrow)
    plain = RewardConfig(weights=weights, normalise="none")
    wide, narrow, _, _ = (r.value for r in grouped(plain, verdicts))
    assert wide - narrow > 0.08


def test_in_a_group_noise_is_not_blown_up():
    verdicts = [right(dimensions={"efficiency": 0.9 + d}) for d in (0.0, 0.001, 0.0005)]
    values = [r.value for r in grouped(RewardConfig(weights={"efficiency": 0.2}), verdicts)]
    assert max(values) - min(values) < 0.002
