"""Sudden rises of a domain's pass rate over a run: learning is gradual, a cheat that is found is not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surefoot.rewards.integrity.kinds import finding
from surefoot.types import Finding, Group

BEFORE, AFTER = 10, 4
"""Steps on either side of a change; it is seen `AFTER` steps late."""
RISE = 0.25
"""Smallest rise beyond the trend that is told."""
SIGMAS = 4.0
"""Rise over its standard error: at 4, one in 30,000 steps of a steady domain is alarmed by chance."""


@dataclass(frozen=True, slots=True)
class Jump:
    """A change point: after `step` (counted from 0) the pass rate is higher than the trend before it led to expect."""

    step: int
    before: float
    after: float
    sigmas: float


def newest_jump(rates: Sequence[float], samples: Sequence[int]) -> Jump | None:
    """Whether the last `AFTER` steps lie above what the `BEFORE` steps ahead of them lead to expect.

    A two-window change-point test: the line fitted to the window before is carried on to the middle of the window
    after, and the rise above it is held against its standard error, binomial or as seen, whichever is larger.

    Args:
        rates: Pass rate of each step of the domain.
        samples: Graded rollouts behind each.
    """
    if len(rates) < BEFORE + AFTER:
        return None
    past, recent = rates[-BEFORE - AFTER : -AFTER], rates[-AFTER:]
    graded_past, graded_recent = sum(samples[-BEFORE - AFTER : -AFTER]), sum(samples[-AFTER:])
    level, slope, scatter = _line(past)
    expected = min(1.0, level + max(0.0, slope) * ((BEFORE - 1) / 2 + (AFTER + 1) / 2))
    mean = sum(recent) / AFTER
    pooled = min(0.95, max(0.05, (level * graded_past + mean * graded_recent) / max(1, graded_past + graded_recent)))
    binomial = pooled * (1 - pooled) * (1 / max(1, graded_past) + 1 / max(1, graded_recent))
    error = math.sqrt(max(binomial, scatter**2 * (1 / BEFORE + 1 / AFTER)))
    rise = mean - expected
    if rise < RISE or rise < SIGMAS * error:
        return None
    return Jump(len(rates) - AFTER, level, mean, rise / error)


def jumps(rates: Sequence[float], samples: Sequence[int]) -> list[Jump]:
    """The jumps of a whole run, one for each rise: what follows within the two windows is the same one."""
    found: list[Jump] = []
    for end in range(BEFORE + AFTER, len(rates) + 1):
        jump = newest_jump(rates[:end], samples[:end])
        if jump and (not found or jump.step - found[-1].step > AFTER + BEFORE):
            found.append(jump)
    return found


@dataclass
class JumpWatch:
    """Watches the pass rate of every domain while a run goes on. Its state is part of every checkpoint."""

    history: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=dict)
    """Observations of a domain since its last alarm, which is given once for a rise."""

    def observe(self, groups: Iterable[Group]) -> list[Finding]:
        """Take in one step; the domains whose pass rate has jumped."""
        graded: dict[str, list[bool]] = {}
        for group in groups:
            verdicts = [verdict for verdict in group.verdicts if verdict.grade != "ungradable"]
            graded.setdefault(group.task.domain, []).extend(verdict.grade == "right" for verdict in verdicts)
        found = []
        for domain, right in sorted(graded.items()):
            if right and (jump := self._add(domain, sum(right) / len(right), len(right))):
                found.append(as_finding(domain, jump))
        return found

    def state(self) -> dict[str, Any]:
        """All that later alarms depend on, as JSON-ready data."""
        history = {domain: [list(pair) for pair in kept] for domain, kept in self.history.items()}
        return {"history": history, "told": dict(self.told)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state; nothing for a run from before there was one."""
        saved = state.get("history", {})
        self.history = {domain: [(float(rate), int(n)) for rate, n in kept] for domain, kept in saved.items()}
        self.told = dict(state.get("told", {}))

    def _add(self, domain: str, rate: float, samples: int) -> Jump | None:
        kept = self.history.setdefault(domain, [])
        kept.append((rate, samples))
        del kept[: -(BEFORE + AFTER)]
        self.told[domain] = self.told.get(domain, BEFORE + AFTER) + 1
        jump = newest_jump([r for r, _ in kept], [n for _, n in kept])
        if jump is None or self.told[domain] <= BEFORE + AFTER:
            return None
        self.told[domain] = 0
        return jump


def as_finding(domain: str, jump: Jump) -> Finding:
    """The finding that stands for a jump of a domain."""
    evidence = f"{domain}: pass rate from {jump.before:.0%} to {jump.after:.0%}, {jump.sigmas:.1f} standard errors"
    return finding("reward_jump", evidence)


def _line(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean, slope by least squares, and standard deviation about the line."""
    n = len(values)
    middle, mean = (n - 1) / 2, sum(values) / n
    slope = sum((i - middle) * (v - mean) for i, v in enumerate(values)) / sum((i - middle) ** 2 for i in range(n))
    rest = sum((v - mean - slope * (i - middle)) ** 2 for i, v in enumerate(values))
    return mean, slope, math.sqrt(rest / max(1, n - 2))
