"""Circuit breakers (Nygard, Release It!, 2007): a domain that cannot be graded is shut off, probed, and let back in.

    closed   drawn as the rule says; its faults are counted, and the count fades
    open     not drawn for `wait` steps; the others get its share
    probing  drawn about one group a step, until a step holds some of it: that decides between closed and open again,
             which then lasts twice as long

What is counted are faults of graders, sandbox and task sources, never wrong answers. All of it is a function of the
steps' outcomes, so a resumed run finds its breakers as they were and decides as it would have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from surefoot.config import FaultsConfig
from surefoot.types import Group

FADES = 0.7
"""What the counts of a domain are multiplied by whenever it is seen again."""
FEWEST_TASKS = 1.5
"""Tasks whose rollouts could not be graded before a domain is shut off: two in a row, or three of which some fade. One
may be the task's fault."""
LONGEST = 16
"""An open breaker waits at most so many times its first wait."""


@dataclass(frozen=True, slots=True)
class Health:
    """What one step showed of one domain."""

    asked: int
    """Rollouts that were to be graded."""
    faulty: int
    """Of these, the ungradable ones."""
    tasks: int
    """Tasks that had any of the ungradable ones."""
    seconds: float
    """Mean time of a grading."""
    reason: str = ""
    """Why most of the faulty ones are."""

    @classmethod
    def of(cls, groups: Sequence[Group]) -> Health:
        """The health that a domain's groups of one step show."""
        verdicts = [verdict for group in groups for verdict in group.verdicts]
        reasons = Counter(first_line(v.reason) for v in verdicts if v.grade == "ungradable")
        why = min(reasons, key=lambda reason: (-reasons[reason], reason)) if reasons else ""
        seconds = sum(verdict.seconds for verdict in verdicts) / max(1, len(verdicts))
        tasks = sum(any(verdict.grade == "ungradable" for verdict in group.verdicts) for group in groups)
        return cls(len(verdicts), reasons.total(), tasks, seconds, why)


@dataclass(frozen=True, slots=True)
class Change:
    """A breaker that moved, with the reason as a person would say it."""

    domain: str
    state: Literal["opened", "closed"]
    why: str
    again: int = 0
    """Step at which an open one is probed."""


@dataclass(slots=True)
class Breaker:
    """The state of one domain's breaker."""

    state: Literal["closed", "open", "probing"] = "closed"
    faulty: float = 0.0
    asked: float = 0.0
    tasks: float = 0.0
    wait: int = 0
    """Steps that it was open the last time; 0 if it never was or has recovered."""
    until: int = 0
    """First step at which an open one is probed."""


class Breakers:
    """The breakers of all domains of a run.

    Args:
        prompts: Groups a step, from which follows how much share a probe needs.
    """

    def __init__(self, names: Sequence[str], config: FaultsConfig, prompts: int) -> None:
        self.config = config
        self.breakers = {name: Breaker() for name in names}
        self.probe = min(1.0, len(self.breakers) / (2 * prompts))

    def available(self, step: int) -> dict[str, float]:
        """What multiplies the shares of domains that are not closed at `step`; breakers whose wait is over are probed.

        Where every domain is shut off all are probed: an empty step would be of no use to anyone.
        """
        for breaker in self.breakers.values():
            if breaker.state == "open" and step >= breaker.until:
                breaker.state = "probing"
        if all(breaker.state == "open" for breaker in self.breakers.values()):
            for breaker in self.breakers.values():
                breaker.state = "probing"
        shares = {"open": 0.0, "probing": self.probe}
        return {name: shares[b.state] for name, b in self.breakers.items() if b.state != "closed"}

    def observe(self, step: int, groups: Sequence[Group], sources: Mapping[str, str]) -> list[Change]:
        """Take in how a step ended; returns the breakers that moved.

        Args:
            sources: Domains that had no task to give, and why.
        """
        seen: dict[str, list[Group]] = {}
        for group in groups:
            seen.setdefault(group.task.domain, []).append(group)
        changes = [self._judge(name, Health.of(part), step) for name, part in sorted(seen.items())]
        changes += [
            self._open(name, f"it has no tasks to give: {first_line(why)}", step)
            for name, why in sorted(sources.items())
        ]
        return [change for change in changes if change]

    def is_closed(self, name: str) -> bool:
        """Whether a domain is drawn without restrictions."""
        return self.breakers[name].state == "closed"

    def _judge(self, name: str, health: Health, step: int) -> Change | None:
        breaker = self.breakers[name]
        breaker.faulty = FADES * breaker.faulty + health.faulty
        breaker.asked = FADES * breaker.asked + health.asked
        breaker.tasks = FADES * breaker.tasks + health.tasks
        slow = 0 < self.config.slow < health.seconds
        probing = breaker.state == "probing"
        faulty, asked = (health.faulty, health.asked) if probing else (breaker.faulty, breaker.asked)
        enough = probing or (asked >= self.config.evidence and breaker.tasks >= FEWEST_TASKS)
        if enough and faulty >= self.config.trip * max(1.0, asked):
            return self._open(name, f"{health.faulty} of {health.asked} rollouts ungradable: {health.reason}", step)
        if slow:
            return self._open(name, f"a grading takes {health.seconds:.1f} s", step)
        if probing:
            self.breakers[name] = Breaker()
            return Change(name, "closed", f"{health.asked - health.faulty} of {health.asked} rollouts could be graded")
        return None

    def _open(self, name: str, why: str, step: int) -> Change:
        breaker = self.breakers[name]
        breaker.wait = min(2 * breaker.wait or self.config.wait, LONGEST * self.config.wait)
        breaker.state, breaker.until = "open", step + 1 + breaker.wait
        breaker.faulty = breaker.asked = breaker.tasks = 0.0
        return Change(name, "opened", why, breaker.until)

    def state(self) -> dict[str, Any]:
        """Every breaker that is not as new, by domain."""
        return {name: asdict(breaker) for name, breaker in self.breakers.items() if breaker != Breaker()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state; new domains start closed, domains that are gone are forgotten."""
        known = {field.name for field in fields(Breaker)}
        for name in self.breakers:
            self.breakers[name] = Breaker(**{k: v for k, v in state.get(name, {}).items() if k in known})


def first_line(text: str) -> str:
    """The first line of a reason, short enough for a message."""
    return (text.strip().splitlines() or ["no reason given"])[0][:200]
