"""What an audit found: rates with intervals, and in words what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from surefoot.domains.audit.probes import ProbeKind
from surefoot.rewards.interval import clopper_pearson

LUCK = 0.2
"""By how much the best blind guess may beat the stated chance level: the sample is small."""
SLOW_SECONDS = 1.0
FLOOR = 0.05
"""Mean score for nothing that is worth telling: with partial credit, it is what a policy can live on."""
FAULTS = ("non-answer", "hedge")


@dataclass(frozen=True)
class Rate:
    """`hits` of `tries` independent tasks, with the exact 95% interval of Clopper and Pearson (1934)."""

    hits: int
    tries: int

    @property
    def share(self) -> float:
        return self.hits / self.tries if self.tries else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        return clopper_pearson(self.hits, self.tries)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.share:.1%} [{low:.1%}, {high:.1%}]" if self.tries else "not tried"


@dataclass(frozen=True)
class ProbeResult:
    """How one probe fared over the tasks."""

    kind: ProbeKind
    name: str
    accepted: int
    tried: int
    score: float
    """Mean score that it earned."""
    example: str = ""
    """Task that accepted it (or, for a variant, refused it), with what was sent."""


@dataclass(frozen=True)
class Audit:
    """The audit of one domain. Rates count tasks, which are independent of each other, and not single probes."""

    domain: str
    source: str
    tasks: int
    fooled: Rate
    """Tasks that accepted a non-answer or a hedge: the false-accept rate."""
    refused: Rate
    """Tasks that refused a harmless variant of their reference answer, which they accept: the false-reject rate."""
    oracle_failures: Rate
    """Tasks whose own reference answer scores below 1."""
    probes: tuple[ProbeResult, ...]
    ungradable: int
    reasons: tuple[str, ...]
    """The commonest causes of ungradable answers."""
    disagreements: int
    """Verdicts that came out differently in a second process with another hash seed, or when asked again."""
    compared: int
    unstable: int
    """Tasks that read differently when they were made again, here or in the second process."""
    mean_seconds: float
    slowest_seconds: float
    slow: int
    """Gradings that took more than a second."""
    chance: float
    """Stated by the domain."""
    prompts: int
    """Training prompts looked at for leakage."""
    distinct: int
    leaked: Rate
    """Held-out prompts of the bare source that its training split shows too; `TaskPool` skips these."""
    heldout_in_train: int
    """Held-out prompts that training would show all the same."""
    shots_shown: int = 0
    fingerprint: str = ""
    """Changes if tasks or grader do."""
    cases: Rate = Rate(0, 0)
    """Texts that people rejected and that are still paid."""
    lost_cases: int = 0
    """Such texts whose task the domain has no longer."""
    error: str = ""
    """Why the domain could not be audited at all."""

    @property
    def floor(self) -> float:
        """Mean score that the best-paid non-answer earns."""
        return max((p.score for p in self.probes if p.kind == "non-answer" and p.tried), default=0.0)

    @property
    def best_guess(self) -> ProbeResult | None:
        """The blind guess that is right most often."""
        return max((p for p in self.probes if p.kind == "guess"), key=lambda p: p.accepted / p.tried, default=None)

    @property
    def guess_rate(self) -> float:
        best = self.best_guess
        return best.accepted / best.tried if best else 0.0

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, in words; empty for a domain that can be trusted."""
        return tuple(self._problems())

    def fails(self, rate: float) -> bool:
        """Whether more than a share of `rate` of tasks is fooled, refuses a variant, or fails its own answer.

        Crashes, changing verdicts, held-out prompts in training, and texts that people rejected fail at any rate.
        """
        worst = max(self.fooled.share, self.refused.share, self.oracle_failures.share)
        broken = self.ungradable or self.disagreements or self.unstable or self.heldout_in_train or self.error
        return worst > rate or bool(broken) or self.cases.hits > 0

    def _problems(self) -> Iterator[str]:
        if self.error:
            yield f"it cannot be audited: {self.error}"
        if self.oracle_failures.hits:
            count = f"{self.oracle_failures.hits} of {self.oracle_failures.tries}"
            yield f"{count} reference answers score below 1{self._example('reference')}"
        for kind in FAULTS:
            for probe in sorted((p for p in self.probes if p.kind == kind), key=lambda p: -p.accepted)[:3]:
                if probe.accepted:
                    yield f"{kind} accepted by {probe.accepted} of {probe.tried} tasks: {probe.name} ({probe.example})"
        if self.cases.hits:
            example = next(p for p in self.probes if p.kind == "case" and p.accepted)
            paid = f"{self.cases.hits} of {self.cases.tries} texts that people rejected are still paid"
            yield f"{paid}: {example.name} ({example.example})"
        if self.lost_cases:
            yield f"{self.lost_cases} rejected texts were not tried: their tasks are not found any more"
        if self.floor >= FLOOR:
            best = max((p for p in self.probes if p.kind == "non-answer"), key=lambda p: p.score)
            yield f"it pays {self.floor:.3f} for nothing ({best.name})"
        refused = [p for p in self.probes if p.kind == "variant" and p.accepted < p.tried]
        if self.refused.hits:
            names = ", ".join(p.name for p in refused)
            yield f"{self.refused.hits} of {self.refused.tries} tasks refuse harmless variants: {names}"
        if self.guess_rate > self.chance + LUCK and self.best_guess is not None and self.tasks >= 5:
            rate, given = f"{self.guess_rate:.0%}", f"{self.chance:.0%}"
            yield f"{self.best_guess.name} is right for {rate} of tasks; chance is given as {given}"
        if self.ungradable:
            yield f"{self.ungradable} answers could not be graded: {'; '.join(self.reasons[:2])}"
        if self.disagreements:
            yield f"{self.disagreements} of {self.compared} verdicts differ between two processes"
        if self.unstable:
            yield f"{self.unstable} tasks change when they are made again, so a run cannot be repeated"
        if self.slow:
            yield f"{self.slow} gradings took more than {SLOW_SECONDS:g} s, the slowest {self.slowest_seconds:.1f} s"
        if self.heldout_in_train:
            yield f"{self.heldout_in_train} held-out prompts are trained on"
        if self.leaked.share > 0.5:
            yield f"{self.leaked.hits} of {self.leaked.tries} held-out prompts occur in the training split too"
        if self.prompts >= 5 and self.distinct < 0.5 * self.prompts:
            yield f"only {self.distinct} of {self.prompts} training prompts are distinct"

    def _example(self, kind: ProbeKind) -> str:
        examples = [p.example for p in self.probes if p.kind == kind and p.example]
        return f" ({examples[0]})" if examples else ""
