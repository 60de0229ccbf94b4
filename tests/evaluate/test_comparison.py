"""Comparing evaluations, metrics by name, and gates."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

import pytest
from evaluation_stand_ins import evaluation
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.errors import ConfigError
from surefoot.evaluate.comparison import compare
from surefoot.evaluate.gate import check_gate, parse_gate
from surefoot.evaluate.metric import Metric, estimate, overall, parse_metric, task_scores
from surefoot.evaluate.paired import sign_flip_test
from surefoot.evaluate.records import Evaluation

BEFORE = evaluation({"up": [2] * 16, "down": [6] * 16, "same": [3, 4] * 8, "zero": [0] * 16}, label="base")
AFTER = evaluation({"up": [5] * 16, "down": [3] * 16, "same": [4, 3] * 8, "zero": [0] * 16}, label="after")


def test_compare_tells_the_directions() -> None:
    got = compare(BEFORE, AFTER)
    assert [(c.name, c.direction) for c in got.domains] == [
        ("up", "better"),
        ("down", "worse"),
        ("same", "unclear"),
        ("zero", "unclear"),
    ]
    up = got.domains[0]
    assert (up.before.value, up.after.value, up.difference.value) == (0.25, 0.625, 0.375)
    assert up.p == pytest.approx(2 / 2**16) and up.adjusted == pytest.approx(8 / 2**16)
    assert got.mean.difference.value == pytest.approx(0) and got.mean.direction == "unclear"
    assert got.direction("up") == "better" and got.direction("nothing") == "unclear"


def test_less_is_better_for_some_metrics() -> None:
    steady, shaky = evaluation({"d": [8] * 16}), evaluation({"d": [4] * 16})
    assert compare(shaky, steady, Metric("flip")).direction("d") == "better"
    assert compare(steady, shaky, Metric("flip")).direction("d") == "worse"


def test_pairing_is_by_task_and_prompt_and_leaves_the_rest_out() -> None:
    longer = evaluation({"up": [5] * 20, "new": [1]})
    got = compare(BEFORE, longer)
    assert [c.name for c in got.domains] == ["up"] and got.domains[0].difference.tasks == 16
    assert got.only_before == ("down", "same", "zero") and got.only_after == ("new",)
    changed = replace(AFTER.domains[0], tasks=tuple(replace(t, prompt_hash="other") for t in AFTER.domains[0].tasks))
    nothing = compare(BEFORE, replace(AFTER, domains=(changed,)))
    assert not nothing.domains[0].difference.known and nothing.domains[0].direction == "unclear"
    disjoint = compare(BEFORE, evaluation({"other": [1]}))
    assert disjoint.domains == () and not disjoint.mean.difference.known


def test_mean_weighs_domains_alike() -> None:
    before, after = evaluation({"a": [0] * 4, "b": [0] * 12}), evaluation({"a": [8] * 4, "b": [0] * 12})
    got = compare(before, after).mean
    assert got.difference.value == pytest.approx(0.5)
    assert got.p == sign_flip_test([1 / 4] * 4 + [0] * 12)


@pytest.mark.parametrize(
    "text",
    [
        "pass@1",
        "pass^4",
        "gpass@8(0.75)",
        "mgpass@8",
        "maj@3",
        "worst@2",
        "ceiling@8",
        "agreement",
        "entropy",
        "flip",
        "score",
        "truncated",
        "ungradable",
        "tokens",
    ],
)
def test_every_metric_has_a_name_that_reads_back(text: str) -> None:
    metric = parse_metric(text)
    assert str(metric) == text
    got, mean = estimate(metric, BEFORE.domains[0]), overall(metric, BEFORE)
    assert got.known and got.tasks == 16 and (math.isnan(got.low) or got.low <= got.value <= got.high)
    assert mean.known and task_scores(metric, BEFORE.domains[0]).shape == (16,)


def test_metric_values() -> None:
    domain = BEFORE.domains[0]  # 2 of 8 right, with answers yes and no
    want = {"pass@1": 2 / 8, "pass@2": 1 - 15 / 28, "pass^2": 1 / 28, "worst@2": 1 / 28, "maj@8": 0.0, "flip": 3 / 7}
    want |= {"agreement": 4 / 7, "ceiling@2": 2 / 8 / (13 / 28), "tokens": 5.0, "truncated": 0.0, "score": 0.25}
    for name, value in want.items():
        assert estimate(parse_metric(name), domain).value == pytest.approx(value), name
    assert not estimate(parse_metric("pass@9"), domain).known


@pytest.mark.parametrize("text", ["", "pass", "pass@", "pass@0", "Pass@1", "pass@1(0.5)", "gpass@8", "gpass@8(1.5)"])
def test_unknown_metrics_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_metric(text)


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("pass@1.up < 0.25", True),
        ("pass@1.up <= 0.25", False),
        ("pass@1.up<30%", False),
        ("pass^4.down < .2", True),
        ("pass@1.up:high < 0.3", True),
        ("pass@1.up:low < 0.25", False),
        ("pass@1 < 0.2", True),
        ("pass@1.mean > 0.2", False),
        ("pass@1.* >= 0.8", True),
        ("pass@1.* < 0.1", False),
        ("gpass@8(0.5).up > 0", True),
        (" truncated.same > 5% ", True),
    ],
)
def test_gates(text: str, passed: bool) -> None:
    result = check_gate(text, BEFORE)
    assert result.passed is passed, result.message
    assert ("fails" in result.message) is not passed


def test_gate_message_names_the_domain_that_failed() -> None:
    assert check_gate("pass@1.* < 0.1", BEFORE).message == "pass@1.zero = 0 [0, 0.119]: fails, the gate is < 0.1"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "metrics are pass@K"),
        ("pass^4.code = 0.6", "cannot read"),
        ("pass^4.code < ", "cannot read"),
        ("__import__('os') < 1", "cannot read"),
        ("pass^4.up < 0.5 or 1", "cannot read"),
        ("past^4.up < 0.5", "no metric 'past^4'"),
        ("pass^4.dwn < 0.5", "did you mean 'down'"),
        ("pass^4.elsewhere < 0.5", "domains are up, down, same, zero"),
        ("pass^16.up < 0.5", "--samples 16"),
    ],
)
def test_bad_gates_say_what_is_wrong(text: str, hint: str) -> None:
    with pytest.raises(ConfigError) as error:
        check_gate(text, BEFORE)
    assert hint in str(error.value)


def test_domain_names_may_have_dots_and_colons() -> None:
    odd = Evaluation("toy", (replace(BEFORE.domains[0], name="rg:v1.2"),), 8)
    assert parse_gate("pass@1.rg:v1.2:low < 1").domain == "rg:v1.2"
    assert not check_gate("pass@1.rg:v1.2 < 1", odd).passed


def test_a_gate_does_not_open_on_nothing() -> None:
    lost = tuple(replace(s, grade="ungradable") for s in BEFORE.domains[0].tasks[0].samples)
    nothing = replace(BEFORE.domains[0], tasks=(replace(BEFORE.domains[0].tasks[0], samples=lost),))
    result = check_gate("pass@1.up < 0.1", replace(BEFORE, domains=(nothing,)))
    assert not result.passed and "could not be measured" in result.message


@settings(deadline=None)
@given(st.text(max_size=40))
def test_gate_parser_never_breaks(text: str) -> None:
    with suppress(ConfigError):
        parse_gate(text)
