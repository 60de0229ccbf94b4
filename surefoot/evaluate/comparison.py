"""Before and after, domain by domain: how much changed, and whether chance alone would do the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from surefoot.evaluate.intervals import Estimate, mean_of
from surefoot.evaluate.metric import PASS_1, Metric, estimate, floor_of, overall, task_scores
from surefoot.evaluate.paired import holm, paired_interval, sign_flip_test
from surefoot.evaluate.passk import Floats
from surefoot.evaluate.records import DomainRecord, Evaluation

Direction = Literal["better", "worse", "unclear"]

LESS_IS_BETTER = {"entropy", "flip", "truncated", "ungradable", "tokens", "tries@", "spent@", "brier"}


@dataclass(frozen=True, slots=True)
class Change:
    """One metric of one domain (or of their mean), before and after."""

    name: str
    before: Estimate
    after: Estimate
    difference: Estimate
    """After - before on the tasks that both evaluations have."""
    p: float
    """Two-sided, from the paired sign-flip test over tasks."""
    adjusted: float
    """p adjusted over the domains after Holm."""
    direction: Direction


@dataclass(frozen=True, slots=True)
class Comparison:
    """All domains that two evaluations share, and their mean."""

    metric: Metric
    domains: tuple[Change, ...]
    mean: Change
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    def direction(self, name: str) -> Direction:
        return next((c.direction for c in self.domains if c.name == name), "unclear")


def compare(before: Evaluation, after: Evaluation, metric: Metric = PASS_1, *, alpha: float = 0.05) -> Comparison:
    """Compare two evaluations, paired by task id and prompt.

    A domain is `better` or `worse` where its Holm-adjusted p is below `alpha`: the chance that even one unchanged
    domain is called changed is at most `alpha`. The mean over domains is one more test, of its own.
    """
    pairs = [(b, a) for b in before.domains if (a := after.domain(b.name)) is not None]
    scores = [_pair(b, a, metric) for b, a in pairs]
    p_values = [sign_flip_test(y - x) for x, y in scores]
    changes = []
    for (b, a), (x, y), p, adjusted in zip(pairs, scores, p_values, holm(p_values), strict=True):
        difference = paired_interval(x, y, floor=floor_of(metric, a))
        ends = estimate(metric, b), estimate(metric, a)
        changes.append(Change(b.name, *ends, difference, p, adjusted, _direction(difference, adjusted, alpha, metric)))
    return Comparison(
        metric,
        tuple(changes),
        _mean_change(before, after, metric, changes, scores, alpha),
        only_before=tuple(d.name for d in before.domains if after.domain(d.name) is None),
        only_after=tuple(d.name for d in after.domains if before.domain(d.name) is None),
    )


def _pair(before: DomainRecord, after: DomainRecord, metric: Metric) -> tuple[Floats, Floats]:
    """Scores of the tasks that both have, in one order."""
    x = {(t.id, t.prompt_hash): s for t, s in zip(before.tasks, task_scores(metric, before), strict=True)}
    y = {(t.id, t.prompt_hash): s for t, s in zip(after.tasks, task_scores(metric, after), strict=True)}
    shared = [key for key in x if key in y]
    return np.array([x[key] for key in shared]), np.array([y[key] for key in shared])


def _direction(difference: Estimate, p: float, alpha: float, metric: Metric) -> Direction:
    if p >= alpha or not difference.known or difference.value == 0:
        return "unclear"
    return "better" if (difference.value > 0) != (metric.name in LESS_IS_BETTER) else "worse"


def _mean_change(
    before: Evaluation,
    after: Evaluation,
    metric: Metric,
    changes: Sequence[Change],
    scores: Sequence[tuple[Floats, Floats]],
    alpha: float,
) -> Change:
    """The mean over domains, each domain with the same weight however many tasks it has."""
    difference = mean_of([change.difference for change in changes])
    weighted = [(y - x)[~np.isnan(y - x)] for x, y in scores]
    flips = np.concatenate([d / len(d) for d in weighted if len(d)]) if any(map(len, weighted)) else np.zeros(0)
    p = sign_flip_test(flips) if changes else math.nan
    shared = {change.name for change in changes}
    ends = [overall(metric, _only(evaluation, shared)) for evaluation in (before, after)]
    return Change("mean", ends[0], ends[1], difference, p, p, _direction(difference, p, alpha, metric))


def _only(evaluation: Evaluation, names: set[str]) -> Evaluation:
    return Evaluation(evaluation.model, tuple(d for d in evaluation.domains if d.name in names), evaluation.samples)
