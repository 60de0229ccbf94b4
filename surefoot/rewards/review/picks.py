"""Which rollouts of a run people should look at: a random audit by domain, and picks that look suspicious.

The audit is what a bound can be computed from, so its rollouts are chosen by a hash of their place in the run and of
nothing that depends on what they say. The active picks are where cheating is likeliest, and say nothing of rates.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from surefoot.rewards.integrity.jumps import AFTER, jumps
from surefoot.types import stable_seed

ODD = 4.0
"""Robust standard scores from which a rewarded text counts as short or odd among those of its domain."""
FEW = 20
"""Rewarded texts of a domain below which none of them can be called odd."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One rollout, reduced to what picking needs, so that 100,000 of them fit in memory."""

    step: int
    task_id: str
    sample: int
    domain: str
    grade: str
    reward: float
    valid: bool
    text_hash: int
    """Of the text without its spacing."""
    shape: tuple[float, float, float]
    """Log of the length, compressed over plain length, share of characters that are neither letter, digit nor space."""
    findings: tuple[tuple[str, str, str], ...] = ()
    """Kind, severity and action of each."""
    failed: int = 0
    """Checks of correctness that it failed."""
    passed: int = 0

    @property
    def key(self) -> tuple[int, str, int]:
        return self.step, self.task_id, self.sample

    @property
    def rewarded(self) -> bool:
        """Whether training took it for right."""
        return self.valid and self.grade == "right" and self.reward > 0


@dataclass(frozen=True, slots=True)
class Pick:
    """A rollout for the queue, and why it is there."""

    candidate: Candidate
    why: str
    audit: bool = False


def audit_sample(candidates: Iterable[Candidate], per_domain: int, seed: int = 0) -> dict[str, list[Pick]]:
    """By domain, `per_domain` rewarded rollouts drawn uniformly at random without replacement, in random order."""
    strata: defaultdict[str, list[tuple[int, Candidate]]] = defaultdict(list)
    for one in candidates:
        if one.rewarded:
            strata[one.domain].append((stable_seed("review", seed, *one.key), one))
    why = "random audit of rewarded rollouts"
    return {
        domain: [Pick(one, why, audit=True) for _, one in sorted(drawn, key=lambda pair: pair[0])[:per_domain]]
        for domain, drawn in sorted(strata.items())
    }


def active_picks(candidates: Sequence[Candidate], per_reason: int) -> list[Pick]:
    """Suspicious rollouts: at most `per_reason` for each domain and reason, the most telling first, each text once."""
    by_domain: defaultdict[str, list[Candidate]] = defaultdict(list)
    for one in candidates:
        by_domain[one.domain].append(one)
    streams = [
        _distinct(reason, per_reason)
        for _, inside in sorted(by_domain.items())
        for reason in (*_findings(inside), _disagreements(inside), _jumps(inside), _odd(inside))
    ]
    return _taking_turns(streams)


def queue(candidates: Sequence[Candidate], audit: int, per_reason: int, seed: int = 0) -> list[Pick]:
    """The whole queue: audit and active picks in turn, the domains in turn within each; no rollout twice."""
    drawn = _taking_turns(list(audit_sample(candidates, audit, seed).values()))
    found: dict[tuple[int, str, int], Pick] = {}
    audited = {pick.candidate.key for pick in drawn}
    active = [pick for pick in active_picks(candidates, per_reason) if pick.candidate.key not in audited]
    for pick in _taking_turns([drawn, active]):
        found.setdefault(pick.candidate.key, pick)
    return list(found.values())


def _findings(inside: Sequence[Candidate]) -> Iterator[list[Pick]]:
    """One stream for each kind of finding; those that kept their reward come first."""
    kinds: defaultdict[str, list[Pick]] = defaultdict(list)
    for one in sorted(inside, key=lambda c: (not c.rewarded, c.step)):
        for kind, severity, action in one.findings:
            kinds[kind].append(Pick(one, f"finding: {kind} ({severity}, {action})"))
    yield from (picks for _, picks in sorted(kinds.items()))


def _disagreements(inside: Sequence[Candidate]) -> list[Pick]:
    """The same text judged differently, and verdicts that their own checks contradict."""
    same: defaultdict[tuple[str, int], list[Candidate]] = defaultdict(list)
    for one in inside:
        if one.grade != "ungradable":
            same[one.task_id, one.text_hash].append(one)
    picks = [
        Pick(one, "disagreement: the same text was judged right and wrong")
        for twins in same.values()
        if len({one.grade for one in twins}) > 1
        for one in sorted(twins, key=lambda c: c.grade)[:2]
    ]
    for one in inside:
        if one.grade == "right" and one.failed:
            picks.append(
                Pick(one, f"disagreement: right, with {one.failed} of {one.failed + one.passed} checks failed")
            )
        elif one.grade == "wrong" and one.failed and one.passed >= 9 * one.failed:
            picks.append(
                Pick(one, f"disagreement: wrong, with {one.passed} of {one.failed + one.passed} checks passed")
            )
    return picks


def _jumps(inside: Sequence[Candidate]) -> list[Pick]:
    """What was rewarded just after the domain's pass rate rose faster than learning explains."""
    graded: defaultdict[int, list[bool]] = defaultdict(list)
    for one in inside:
        if one.grade != "ungradable":
            graded[one.step].append(one.grade == "right")
    steps = sorted(graded)
    rates = [sum(graded[step]) / len(graded[step]) for step in steps]
    picks = []
    for jump in jumps(rates, [len(graded[step]) for step in steps]):
        after = set(steps[jump.step : jump.step + 2 * AFTER])  # the test may see a change some steps early
        why = f"reward jump: pass rate from {jump.before:.0%} to {jump.after:.0%} about step {min(after)}"
        risen = [Pick(one, why) for one in inside if one.rewarded and one.step in after]
        picks += sorted(risen, key=lambda pick: -pick.candidate.step)
    return picks


def _odd(inside: Sequence[Candidate]) -> list[Pick]:
    """Rewarded texts whose length or make-up is far from that of the domain's others (median and MAD)."""
    rewarded = [one for one in inside if one.rewarded]
    if len(rewarded) < FEW:
        return []
    scored: list[tuple[float, Pick]] = []
    scales = [_scale([one.shape[i] for one in rewarded], least) for i, least in enumerate((0.3, 0.05, 0.03))]
    for one in rewarded:
        marks = [(value - middle) / width for value, (middle, width) in zip(one.shape, scales, strict=True)]
        worst = max(range(3), key=lambda i: abs(marks[i]))
        if abs(marks[worst]) >= ODD:
            how = ("long" if marks[0] > 0 else "short", "repetitive" if marks[1] < 0 else "random", "full of signs")
            name = how[worst] if worst < 2 or marks[2] > 0 else "without signs"
            scored.append((abs(marks[worst]), Pick(one, f"odd: rewarded, and {name} for its domain")))
    return [pick for _, pick in sorted(scored, key=lambda pair: -pair[0])]


def _scale(values: Sequence[float], least: float) -> tuple[float, float]:
    """Median, and the median distance from it scaled to a standard deviation, at least `least`."""
    middle = statistics.median(values)
    return middle, max(least, 1.4826 * statistics.median(abs(value - middle) for value in values))


def _distinct(picks: Sequence[Pick], most: int) -> list[Pick]:
    return list({pick.candidate.text_hash: pick for pick in reversed(picks)}.values())[::-1][:most]


def _taking_turns(streams: Sequence[Sequence[Pick]]) -> list[Pick]:
    return [pick for pick in chain.from_iterable(zip_longest(*streams)) if pick is not None]
