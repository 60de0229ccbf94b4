"""Calibration and time to correct: closed forms, brute force over all orders, simulation, reports."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from evaluation_stand_ins import evaluation
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.evaluate import Evaluation, estimate, parse_metric, report_findings, to_html
from surefoot.evaluate.calibration import brier, calibration, ece, reliability, stated_confidence
from surefoot.evaluate.comparison import LESS_IS_BETTER
from surefoot.evaluate.effort import spent_at_k, tries_at_k
from surefoot.evaluate.report import summary_json

outcomes = st.lists(st.tuples(st.booleans(), st.integers(1, 90)), min_size=1, max_size=6)


@settings(deadline=None, max_examples=60)
@given(outcomes, st.integers(1, 6))
def test_time_to_correct_equals_the_mean_over_all_orders(drawn: list[tuple[bool, int]], k: int) -> None:
    right, tokens = [r for r, _ in drawn], [t for _, t in drawn]
    tries = tries_at_k([sum(right)], [len(right)], k)[0]
    spent = spent_at_k([tokens], [right], k)[0]
    if k > len(drawn):
        assert np.isnan(tries) and np.isnan(spent)
        return
    counts, sums = [], []
    for order in permutations(drawn):
        taken = next((i + 1 for i, (ok, _) in enumerate(order[:k]) if ok), k)
        counts.append(taken)
        sums.append(sum(length for _, length in order[:taken]))
    assert tries == pytest.approx(np.mean(counts)) and spent == pytest.approx(np.mean(sums))


def test_tries_closed_forms() -> None:
    assert tries_at_k([8, 0, 4], [8, 8, 8], 8).tolist() == pytest.approx([1, 8, 9 / 5])  # (n + 1) / (c + 1)
    assert tries_at_k([3], [7], 1)[0] == 1
    assert spent_at_k([[10, 20, 30]], [[False, False, False]], 2)[0] == pytest.approx(40)


def test_tries_are_without_bias() -> None:
    rng, p, n, k = np.random.default_rng(0), 0.3, 8, 5
    found = tries_at_k(rng.binomial(n, p, 40_000), np.full(40_000, n), k)
    assert found.mean() == pytest.approx((1 - (1 - p) ** k) / p, abs=4 * found.std() / 200)


def test_brier_and_ece_closed_forms() -> None:
    assert brier([1, 0, 1], [1, 0, 0]) == pytest.approx(1 / 3)
    assert brier([0.5] * 4, [0, 1, 0, 1]) == 0.25 and ece([0.5] * 4, [0, 1, 0, 1]) == 0
    assert ece([1, 1, 1, 1], [1, 0, 0, 0]) == 0.75
    # Two bins: 10 samples at 0.85 of which 9 are right, 30 at 0.35 of which 3 are.
    p, y = [0.85] * 10 + [0.35] * 30, [1] * 9 + [0] + [1] * 3 + [0] * 27
    assert ece(p, y) == pytest.approx((10 * 0.05 + 30 * 0.25) / 40)
    assert [(b.samples, b.right) for b in reliability(p, y)] == [(30, 0.1), (10, 0.9)]
    assert [b.samples for b in reliability([0, 0.1, 0.1000001, 1.0], [0, 0, 0, 1])] == [2, 1, 1]
    assert np.isnan(brier([], [])) and np.isnan(ece([], []))


def test_a_calibrated_forecaster_has_no_error_and_the_brier_score_of_its_spread() -> None:
    rng = np.random.default_rng(1)
    p = rng.uniform(0, 1, 200_000)
    y = rng.uniform(0, 1, 200_000) < p
    assert ece(p, y) < 0.01 and brier(p, y) == pytest.approx(1 / 6, abs=0.005)  # E p(1-p) of a uniform p


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Confidence: 80%\n42", 0.8),
        ("<confidence>0.35</confidence> 7", 0.35),
        ("**Confidence:** 90 %", 0.9),
        ("confidence level: **75%**", 0.75),
        ("Confidence (0-100): 65", 0.65),
        ("confidence = 1", 1.0),
        ("I am 99.5% sure.", 0.995),
        ("Confidence: 20%. No: confidence: 60%", 0.6),
        ("Confidence: 300%", None),
        ("I have confidence in you. 42", None),
        ("It is 80% water.", None),
        ("", None),
    ],
)
def test_stated_confidence(text: str, value: float | None) -> None:
    assert stated_confidence(text) == value


def stating(found: Evaluation, right: str, wrong: str) -> Evaluation:
    def said(task: object) -> object:
        samples = tuple(replace(s, text=right if s.right else wrong) for s in task.samples)  # type: ignore[attr-defined]
        return replace(task, samples=samples)  # type: ignore[type-var]

    domains = tuple(replace(d, tasks=tuple(said(t) for t in d.tasks)) for d in found.domains)  # type: ignore[misc]
    return replace(found, domains=domains)


def test_reports_show_what_is_stated_and_what_is_repeated() -> None:
    plain = evaluation({"sums": [8, 6, 2, 0] * 3, "words": [4] * 12})
    silent = report_findings([plain])
    assert not any("confidence" in line for line in silent) and calibration(plain.domains[0], "stated") is None
    both = stating(plain, "Confidence: 90%\nyes", "Confidence: 90%\nno")
    row = next(line for line in report_findings([both]) if line.startswith("sums: stated confidence"))
    assert "90% on average where 50% is right" in row and "ECE 0.40" in row and "is no better than" in row
    data = json.loads(summary_json([both]))["stages"][0]
    stated = next(c for c in data["calibration"] if c["domain"] == "sums" and c["source"] == "stated")
    assert stated["brier"]["value"] == pytest.approx(0.5 * 0.01 + 0.5 * 0.81) and stated["samples"] == 96
    assert estimate(parse_metric("brier"), both.domains[0]).value == pytest.approx(0.41)
    assert data["domains"]["sums"]["metrics"]["tries@8"]["value"] == pytest.approx(np.mean([1, 9 / 7, 3, 8]))
    assert data["domains"]["sums"]["metrics"]["spent@8"]["value"] == pytest.approx(5 * np.mean([1, 9 / 7, 3, 8]))
    agreement = calibration(plain.domains[0], "agreement")
    # 8 of 8 agree and are right; of 6 each agrees with 5 of 7 others, of 2 with 1.
    expected = [0, (6 * (2 / 7) ** 2 + 2 * (1 / 7) ** 2) / 8, (2 * (6 / 7) ** 2 + 6 * (5 / 7) ** 2) / 8, 1]
    assert agreement is not None and agreement.brier.value == pytest.approx(np.mean(expected))
    assert "Calibration" in to_html([plain]) and {"tries@", "spent@", "brier"} <= LESS_IS_BETTER
