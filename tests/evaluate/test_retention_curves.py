"""Retention and time to first violation: by hand, against Kaplan-Meier's own formula, and coverage by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation_stand_ins import evaluation

from surefoot.evaluate.html import to_html
from surefoot.evaluate.records import Conversation, Sample
from surefoot.evaluate.report import report_findings, summary
from surefoot.evaluate.retention import breaking, first_violation, retention_by_length, retention_by_turn, survival

RULES = ({"kind": "lowercase"}, {"kind": "no_commas"})


def talk(script: str, kept: list[tuple[bool, ...]], sample: int = 0, questions: int | None = None) -> Conversation:
    replies = tuple(
        Sample(sample, 0, "right" if all(k) else "wrong", 1.0, "hi", None, 5, "stop", context=100 * (i + 1))
        for i, k in enumerate(kept)
    )
    return Conversation(script, sample, RULES, ("q",) * (questions or len(kept)), replies, tuple(kept))


OK, FIRST, SECOND, NONE = (True, True), (False, True), (True, False), (False, False)
TALKS = [
    talk("a", [OK, OK, SECOND]),
    talk("a", [OK, SECOND, OK], 1),
    talk("b", [FIRST, FIRST, FIRST]),
    talk("c", [OK, OK], questions=3),
]


def test_retention_by_hand() -> None:
    first, second, third = retention_by_turn(TALKS)
    assert first.value == pytest.approx((1 + 0.5 + 1) / 3)
    assert second.value == pytest.approx((0.75 + 0.5 + 1) / 3)
    assert third.value == pytest.approx((0.75 + 0.5) / 2) and third.tasks == 2
    lengths = retention_by_length(TALKS, bins=2)
    assert lengths[0][0] == 100 and lengths[-1][1] == 301 and all(found.known for _, _, found in lengths)


def test_survival_is_the_product_of_the_turns_with_censoring() -> None:
    assert [first_violation(t.kept) for t in TALKS] == [3, 2, 1, None]
    found = survival(TALKS)
    # At risk 4, 3, then 1: the last conversation ended, unbroken, after turn 2.
    assert [e.value for e in found.values] == pytest.approx([3 / 4, 3 / 4 * 2 / 3, 0.0])
    assert found.median == 2
    assert all(e.low <= e.value <= e.high and e.high - e.low > 0.1 for e in found.values)
    assert survival([talk("a", [OK] * 3)]).median is None


def test_which_rule_breaks_first() -> None:
    rules = {rule.kind: rule for rule in breaking(TALKS)}
    assert (rules["no_commas"].first, rules["no_commas"].never, rules["no_commas"].dropped) == (0.5, 0.0, 0.5)
    assert (rules["lowercase"].first, rules["lowercase"].never, rules["lowercase"].dropped) == (0.25, 0.25, 0.0)
    assert next(iter(rules)) == "no_commas" and rules["lowercase"].survival.values[0].value == 0.75


@pytest.mark.slow
def test_intervals_cover_with_correlated_conversations() -> None:
    """24 scripts of 4 conversations; a script's hazard varies, and one in five conversations ends early."""
    rng, turns, hits, trials = np.random.default_rng(3), 6, [], 120
    truth = None
    for _ in range(trials):
        talks = []
        for script in range(24):
            hazard = rng.beta(1.2, 6)
            for sample in range(4):
                length = int(rng.integers(2, turns)) if rng.random() < 0.2 else turns
                broke = int(rng.geometric(hazard))
                talks.append(talk(f"s{script}", [OK if t < broke else NONE for t in range(1, length + 1)], sample))
        if truth is None:
            hazards = np.random.default_rng(0).beta(1.2, 6, 400_000)
            truth = [float(((1 - hazards) ** t).mean()) for t in range(1, turns + 1)]
        hits.append([e.low <= t <= e.high for e, t in zip(survival(talks).values, truth, strict=True)])
    coverage = np.mean(hits, axis=0)
    assert coverage.min() >= 0.89 and coverage.mean() <= 0.99, coverage


def test_the_report_tells_of_conversations() -> None:
    from dataclasses import replace

    got = replace(evaluation({"up": [2, 3]}), conversations=tuple(TALKS))
    told = " ".join(report_findings([got]))
    assert "Rules kept in conversations: 83% of the rules in the first reply" in told and "violation by turn 2" in told
    assert summary(got)["conversations"]["rules"][0]["kind"] == "no_commas"
    page = to_html([got])
    assert "Rules kept over conversations" in page and "no_commas" in page
