"""What changed copies of tasks do to a model: each variant held against its originals, task by task."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from surefoot.evaluate.intervals import Estimate, mean_interval
from surefoot.evaluate.metric import PASS_1, Metric, estimate, floor_of, task_scores
from surefoot.evaluate.modes import modes, smallest
from surefoot.evaluate.paired import holm, paired_interval, sign_flip_test
from surefoot.evaluate.passk import Floats
from surefoot.evaluate.records import DomainRecord, Evaluation, Sample
from surefoot.evaluate.variants import HARMLESS, MARK

SEEDS = Metric("flip")


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """One variant of one domain."""

    domain: str
    variant: str
    original: Estimate
    """pass@1 of the originals that have such a variant."""
    changed: Estimate
    """pass@1 of the changed copies."""
    difference: Estimate
    p: float
    """Adjusted over all variants of the evaluation after Holm."""
    flip: Estimate
    """How often the grade differs between a sample of the original and one of the copy. Unknown for boundary inputs,
    where both are the same sample."""
    seeds: Estimate
    """How often it differs between two samples of the original: what `flip` would be if the change did not matter."""
    failures: tuple[tuple[str, int, Sample | None], ...]
    """How the copies failed: mode, how often, and the shortest example."""

    @property
    def matters(self) -> bool:
        return self.p < 0.05

    @property
    def harmless(self) -> bool:
        """Whether the right answer is that of the original, so that any change of the grade is instability."""
        return self.variant in HARMLESS


def sensitivities(evaluation: Evaluation) -> list[Sensitivity]:
    """Every variant of every domain, in the evaluation's order."""
    pairs = [
        (original, changed)
        for changed in evaluation.domains
        if changed.is_variant and (original := evaluation.domain(changed.name.partition(MARK)[0])) is not None
    ]
    scores = [_scores(original, changed) for original, changed in pairs]
    adjusted = holm([sign_flip_test(y - x) if len(x) else math.nan for x, y, _ in scores])
    return [_of(*pair, *three, p) for pair, three, p in zip(pairs, scores, adjusted, strict=True)]


def _of(original: DomainRecord, changed: DomainRecord, x: Floats, y: Floats, seeds: Floats, p: float) -> Sensitivity:
    variant = changed.name.partition(MARK)[2]
    floor = floor_of(PASS_1, original)
    counted = modes(changed).most_common()
    same_samples = variant.endswith("-input")
    return Sensitivity(
        domain=original.name,
        variant=variant,
        original=mean_interval(x, floor=floor),
        changed=estimate(PASS_1, changed),
        difference=paired_interval(x, y, floor=floor),
        p=p,
        flip=mean_interval(np.full(1, np.nan) if same_samples else x * (1 - y) + y * (1 - x), floor=floor),
        seeds=mean_interval(seeds, floor=floor),
        failures=tuple((mode, count, smallest(changed, mode)) for mode, count in counted),
    )


def _scores(original: DomainRecord, changed: DomainRecord) -> tuple[Floats, Floats, Floats]:
    """Pass rate of each original that has a copy, of that copy, and the flip rate between seeds of the original."""
    rates = dict(zip((t.id for t in original.tasks), task_scores(PASS_1, original), strict=True))
    flips = dict(zip((t.id for t in original.tasks), task_scores(SEEDS, original), strict=True))
    copies = list(zip((str(t.variant_of) for t in changed.tasks), task_scores(PASS_1, changed), strict=True))
    known = [(of, rate) for of, rate in copies if of in rates]
    x, y, seeds = ([rates[of] for of, _ in known], [rate for _, rate in known], [flips[of] for of, _ in known])
    return np.array(x), np.array(y), np.array(seeds)


def sensitivity_findings(evaluation: Evaluation) -> list[str]:
    """What the variants say, in sentences."""
    found = sensitivities(evaluation)
    if not found:
        return []
    worse = [s for s in found if s.matters and s.difference.value < 0]
    told = [
        f"{s.domain}, {s.variant}: pass@1 falls from {_share(s.original)} to {_share(s.changed)} "
        f"({100 * s.difference.value:+.1f} points, Holm-adjusted p = {s.p:.3f})."
        for s in worse
    ]
    if not told:
        told = ["No variant of the tasks lowers pass@1 detectably."]
    for variant in dict.fromkeys(s.variant for s in found if s.harmless):
        rows = [s for s in found if s.variant == variant and s.flip.known and s.seeds.known]
        if rows:
            flip, seeds = (float(np.mean([getattr(s, name).value for s in rows])) for name in ("flip", "seeds"))
            told.append(
                f"Flip rate, {variant}: {flip:.1%} of the grades differ between original and copy, "
                f"{seeds:.1%} between two seeds of the original."
            )
    return told


def _share(found: Estimate) -> str:
    return f"{found.value:.1%}" if found.known else "unknown"
