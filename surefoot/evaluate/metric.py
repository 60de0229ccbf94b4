"""Metrics by name: `pass^4`, `gpass@8(0.75)`, `ceiling@8`, ... of a domain, and their mean over domains.

One table says which metrics there are; reports, comparisons and gates all read their names from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from surefoot.errors import ConfigError
from surefoot.evaluate import agreement, effort, passk
from surefoot.evaluate.calibration import task_brier
from surefoot.evaluate.intervals import UNKNOWN, Estimate, mean_interval, mean_of, ratio_interval, student_interval
from surefoot.evaluate.passk import Floats
from surefoot.evaluate.records import DomainRecord, Evaluation


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with its parameters."""

    name: str
    """Key of `KINDS`, for example `pass@`."""
    k: int = 1
    tau: float | None = None

    def __str__(self) -> str:
        parameter = str(self.k) if self.name[-1] in "@^" else ""
        return f"{self.name}{parameter}" + (f"({self.tau:g})" if self.tau is not None else "")

    @property
    def is_share(self) -> bool:
        """Whether its values lie in [0, 1]."""
        return self.name not in _UNBOUNDED

    @property
    def label(self) -> str:
        """The name as a report prints it."""
        return "realised ceiling" if self.name == "ceiling@" else str(self)


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of a domain that metrics are computed from, one entry per task."""

    right: Floats
    graded: Floats
    domain: DomainRecord


Scores = Callable[[Counts, Metric], Floats]


def _of_samples(pick: Callable[..., float], graded_only: bool = True) -> Scores:
    """Scores that are the mean over a task's samples of `pick(sample)`."""

    def scores(counts: Counts, metric: Metric) -> Floats:
        rows = [task.graded if graded_only else task.samples for task in counts.domain.tasks]
        return np.array([np.mean([pick(s) for s in row]) if row else np.nan for row in rows], dtype=np.float64)

    return scores


def _answers(counts: Counts) -> list[list[str | None]]:
    return [[s.answer for s in task.graded] for task in counts.domain.tasks]


def _majority(counts: Counts, metric: Metric) -> Floats:
    right = [[s.right for s in task.graded] for task in counts.domain.tasks]
    return agreement.maj_at_k(_answers(counts), right, metric.k)


def _worst(counts: Counts, metric: Metric) -> Floats:
    return passk.worst_of_k([[s.score for s in task.graded] for task in counts.domain.tasks], metric.k)


def _spent(counts: Counts, metric: Metric) -> Floats:
    graded = [task.graded for task in counts.domain.tasks]
    return effort.spent_at_k(
        [[s.tokens for s in row] for row in graded], [[s.right for s in row] for row in graded], metric.k
    )


KINDS: dict[str, Scores] = {
    "pass@": lambda c, m: passk.pass_at_k(c.right, c.graded, m.k),
    "pass^": lambda c, m: passk.pass_hat_k(c.right, c.graded, m.k),
    "gpass@": lambda c, m: passk.g_pass_at_k(c.right, c.graded, m.k, 1.0 if m.tau is None else m.tau),
    "mgpass@": lambda c, m: passk.mg_pass_at_k(c.right, c.graded, m.k),
    "maj@": _majority,
    "worst@": _worst,
    "ceiling@": lambda c, m: passk.pass_at_1(c.right, c.graded) / passk.pass_at_k(c.right, c.graded, m.k),
    "agreement": lambda c, m: agreement.answer_agreement(_answers(c)),
    "entropy": lambda c, m: agreement.answer_entropy(_answers(c)),
    "flip": lambda c, m: agreement.flip_rate(c.right, c.graded),
    "score": _of_samples(lambda s: s.score),
    "tries@": lambda c, m: effort.tries_at_k(c.right, c.graded, m.k),
    "spent@": _spent,
    "brier": lambda c, m: np.array(task_brier(c.domain.tasks)),
    "truncated": _of_samples(lambda s: s.truncated, graded_only=False),
    "ungradable": _of_samples(lambda s: s.grade == "ungradable", graded_only=False),
    "tokens": _of_samples(lambda s: s.tokens, graded_only=False),
}
_UNBOUNDED = {"entropy", "tokens", "tries@", "spent@"}
_PAIRS = {"agreement", "flip"}
KNOWN = (
    "pass@K, pass^K, gpass@K(TAU), mgpass@K, maj@K, worst@K, ceiling@K, agreement, entropy, flip, score, tries@K, "
    "spent@K, brier, truncated, ungradable, tokens"
)
"""The names that `parse_metric` takes, for messages and help."""

_FORM = re.compile(r"(?P<name>[a-z]+(?:[@^](?=\d))?)(?P<k>\d+)?(?:\((?P<tau>\d*\.?\d+)\))?")

PASS_1 = Metric("pass@")


def parse_metric(text: str) -> Metric:
    """The metric that a name stands for; `gpass@8(0.75)` is G-Pass@8 at tau = 0.75. Raises ConfigError."""
    match = _FORM.fullmatch(text.strip())
    if match is None or match["name"] not in KINDS or (match["k"] is not None) != (match["name"][-1] in "@^"):
        raise ConfigError(f"there is no metric {text.strip()!r}", fix=f"metrics are {KNOWN}")
    name, k, tau = match["name"], int(match["k"] or 1), match["tau"]
    if k < 1 or (name == "mgpass@" and k < 2):
        raise ConfigError(f"{text.strip()}: K is too small", fix="mgpass needs K >= 2, the others K >= 1")
    if (tau is not None) != (name == "gpass@") or (tau is not None and not 0 < float(tau) <= 1):
        raise ConfigError(
            f"{text.strip()}: gpass@K needs a TAU in (0, 1], and no other metric takes one", fix="as in gpass@8(0.75)"
        )
    return Metric(name, k, float(tau) if tau else None)


def task_scores(metric: Metric, domain: DomainRecord) -> Floats:
    """The metric of each task, `[tasks]`; NaN where it has too few graded samples."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return KINDS[metric.name](_counts(domain), metric)


def floor_of(metric: Metric, domain: DomainRecord) -> float:
    """k/n, the smallest spread of the metric's score (see `intervals.mean_bounds`), averaged over tasks."""
    k = 2 if metric.name in _PAIRS else metric.k
    sizes = _counts(domain).graded
    sizes = sizes[sizes >= k]
    return float(np.mean(k / sizes)) if len(sizes) else 1.0


def estimate(metric: Metric, domain: DomainRecord, *, level: float = 0.95) -> Estimate:
    """The metric of a domain, with its interval clustered by task."""
    counts = _counts(domain)
    if not len(domain.tasks):
        return UNKNOWN
    floor = floor_of(metric, domain)
    if metric.name == "ceiling@":
        one, many = passk.pass_at_1(counts.right, counts.graded), passk.pass_at_k(counts.right, counts.graded, metric.k)
        return ratio_interval(one, many, floor=1 / max(1.0, float(counts.graded.mean())), level=level)
    scores = task_scores(metric, domain)
    return mean_interval(scores, floor=floor, level=level) if metric.is_share else student_interval(scores, level=level)


def overall(metric: Metric, evaluation: Evaluation, *, level: float = 0.95) -> Estimate:
    """The unweighted mean over domains, changed copies apart, with an interval for exactly these domains."""
    return mean_of([estimate(metric, domain, level=level) for domain in evaluation.originals.domains])


def _counts(domain: DomainRecord) -> Counts:
    graded = [task.graded for task in domain.tasks]
    return Counts(
        right=np.array([sum(s.right for s in row) for row in graded], dtype=np.float64),
        graded=np.array([len(row) for row in graded], dtype=np.float64),
        domain=domain,
    )
