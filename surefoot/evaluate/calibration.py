"""Calibration: is the model right as often as it says, or as often as it agrees with itself?

Two sources of confidence:

* `stated`: what the answer itself says (`Confidence: 80%`, `<confidence>0.8</confidence>`, `I am 80% sure`);
  samples that say nothing do not count. Ask for it in the domain's `instruction`, on a line before the answer.
* `agreement`: the share of the task's other samples that gave the same answer (self-consistency, Xiong et al. 2023,
  arXiv 2306.13063). It is there for any model; a task needs two graded samples.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from surefoot.evaluate.intervals import Estimate, mean_interval
from surefoot.evaluate.records import DomainRecord, Evaluation, TaskRecord

BINS = 10
Source = Literal["stated", "agreement"]
SOURCES: tuple[Source, ...] = ("stated", "agreement")

_NUMBER = r"(\d+(?:\.\d+)?|\.\d+)\s*(%?)"
_STATED = re.compile(
    rf"<confidence>\s*{_NUMBER}\s*</confidence>"
    rf"|\bconfidence(?:\s+(?:level|score))?(?:\s*\([^()\n]*\))?\**\s*(?:[:=]|is)\s*\**\s*{_NUMBER}"
    rf"|\b{_NUMBER}\s+(?:sure|certain|confident)\b",
    re.IGNORECASE,
)


def stated_confidence(text: str) -> float | None:
    """The confidence in [0, 1] that a text states last; None if it states none.

    A number with a per cent sign, or above 1, is taken as per cent. What is then not within [0, 1] is none.
    """
    found = None
    for match in _STATED.finditer(text):
        number, percent = next((a, b) for a, b in zip(match.groups()[::2], match.groups()[1::2], strict=True) if a)
        value = float(number) / (100 if percent or float(number) > 1 else 1)
        found = value if value <= 1 else None
    return found


def brier(confidence: npt.ArrayLike, right: npt.ArrayLike) -> float:
    """Brier score, `mean (confidence - right)^2`: 0 is best, and 0.25 what always saying one half gives.

    Source: Brier 1950, "Verification of forecasts expressed in terms of probability", Monthly Weather Review 78.
    """
    p, y = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    return float(np.mean((p - y) ** 2)) if len(p) else math.nan


@dataclass(frozen=True, slots=True)
class Bin:
    """Samples of similar confidence."""

    samples: int
    confidence: float
    """Mean confidence."""
    right: float
    """Share that is right."""


def reliability(confidence: npt.ArrayLike, right: npt.ArrayLike, bins: int = BINS) -> list[Bin]:
    """The filled ones of `bins` equally wide bins of confidence, ((i / bins, (i + 1) / bins], the first with its 0)."""
    p, y = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    place = np.clip(np.ceil(p * bins - 1e-9).astype(np.int64) - 1, 0, bins - 1)
    return [
        Bin(int(here.sum()), float(p[here].mean()), float(y[here].mean()))
        for i in range(bins)
        if (here := place == i).any()
    ]


def ece(confidence: npt.ArrayLike, right: npt.ArrayLike, bins: int = BINS) -> float:
    """Expected calibration error, `sum_b n_b / N |right_b - confidence_b|` over equally wide bins.

    It is too high for few samples (noise in a bin counts as error), so compare only like with like. Sources: Naeini et
    al. 2015 (AAAI); Guo et al. 2017, "On Calibration of Modern Neural Networks" (arXiv 1706.04599).
    """
    found = reliability(confidence, right, bins)
    total = sum(b.samples for b in found)
    return sum(b.samples * abs(b.right - b.confidence) for b in found) / total if total else math.nan


@dataclass(frozen=True, slots=True)
class Calibration:
    """How well one source of confidence tells right from wrong in one domain."""

    domain: str
    source: Source
    samples: int
    """Samples with a confidence."""
    confidence: float
    """Their mean confidence."""
    right: float
    """Share of them that is right."""
    brier: Estimate
    base: float
    """Brier score of saying `right` of every sample: what a confidence must beat to be of use."""
    ece: float
    bins: tuple[Bin, ...]


def calibrations(evaluation: Evaluation) -> list[Calibration]:
    """Both sources in each domain that has them; changed copies of tasks are left out."""
    domains = evaluation.originals.domains
    return [found for source in SOURCES for domain in domains if (found := calibration(domain, source))]


def calibration(domain: DomainRecord, source: Source) -> Calibration | None:
    """One source in one domain; None if no sample has such a confidence."""
    tasks = [pairs for task in domain.tasks if (pairs := list(_pairs(task, source)))]
    if not tasks:
        return None
    p, y = (np.array([pair[i] for pairs in tasks for pair in pairs], dtype=np.float64) for i in (0, 1))
    rate = float(y.mean())
    return Calibration(
        domain=domain.name,
        source=source,
        samples=len(p),
        confidence=float(p.mean()),
        right=rate,
        brier=mean_interval([brier(*zip(*pairs, strict=True)) for pairs in tasks]),
        base=rate * (1 - rate),
        ece=ece(p, y),
        bins=tuple(reliability(p, y)),
    )


def task_brier(tasks: Sequence[TaskRecord]) -> list[float]:
    """Brier score of the stated confidence of each task; NaN for one without."""
    return [brier(*zip(*pairs, strict=True)) if (pairs := list(_pairs(t, "stated"))) else math.nan for t in tasks]


def _pairs(task: TaskRecord, source: Source) -> Iterable[tuple[float, bool]]:
    """Confidence and grade of the graded samples that have a confidence."""
    graded = task.graded
    if source == "stated":
        stated = [(stated_confidence(sample.text), sample.right) for sample in graded]
        return [(confidence, right) for confidence, right in stated if confidence is not None]
    if len(graded) < 2:
        return []
    counts = Counter(sample.answer for sample in graded)
    return [((counts[s.answer] - 1) / (len(graded) - 1), s.right) for s in graded if s.answer is not None]


def calibration_findings(evaluation: Evaluation) -> list[str]:
    """What stated confidences are worth, in a sentence; nothing where none is stated."""
    stated = [found for found in calibrations(evaluation) if found.source == "stated"]
    told = []
    for found in stated:
        verb = "beats" if found.brier.value < found.base else "is no better than"
        told.append(
            f"{found.domain}: stated confidence {found.confidence:.0%} on average where {found.right:.0%} is right "
            f"({found.samples} samples; ECE {found.ece:.2f}); its Brier score {found.brier.value:.3f} {verb} always "
            f"saying {found.right:.0%} ({found.base:.3f})."
        )
    return told
