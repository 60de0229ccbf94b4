"""What each domain has done so far: pass rate by level, length, and what it gained or lost while others were trained.

A domain's pass rate changes by its own groups, and by those of the others. The second part shows between visits: the
first group after a pause is held against the last group of that level before it. A domain whose rate rises over its
pauses profits from the others (transfer); one whose rate falls is being forgotten.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from surefoot.types import Group

SLOW = 0.1
"""Weight of a new group in the running means."""
PAUSE = 3
"""Steps without a group of the level that count as a pause."""
SURE = 2.0
"""Standard errors from 0 at which a change between visits is called transfer or forgetting."""


@dataclass
class Account:
    """Running figures of one domain; lists have one entry a level."""

    groups: int = 0
    samples: int = 0
    ungradable: int = 0
    tokens: int = 0
    flat: int = 0
    """Groups that taught nothing, as all valid rewards were equal."""
    length: float = 0.0
    """Tokens an answer."""
    surprise: float = 0.0
    """Mean -log p of the written tokens under the policy that sampled them, nats: an estimate of its entropy."""
    rates: list[float] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    lasts: list[int] = field(default_factory=list)
    """Step of the level's last group."""
    previous: list[float] = field(default_factory=list)
    """Pass rate of the level's last group."""
    first: float = 0.0
    """Mean pass rate of the first groups, up to 4."""
    best: float = 0.0
    pauses: int = 0
    change: float = 0.0
    """Sum over pauses of the change in pass rate."""
    square: float = 0.0
    """Sum over pauses of the squared change."""

    def room(self, level: int) -> None:
        """Make the lists long enough for `level`."""
        while len(self.rates) <= level:
            self.rates.append(0.5)
            self.counts.append(0)
            self.lasts.append(0)
            self.previous.append(0.0)

    @property
    def rate(self) -> float:
        """Pass rate over the levels seen, weighted by their groups."""
        total = sum(self.counts)
        return sum(r * c for r, c in zip(self.rates, self.counts, strict=True)) / total if total else 0.0

    def between(self) -> tuple[float, float]:
        """Mean change of the pass rate over a pause, and its standard error."""
        if self.pauses < 2:
            return 0.0, math.inf
        mean = self.change / self.pauses
        variance = max(0.0, self.square / self.pauses - mean**2) * self.pauses / (self.pauses - 1)
        return mean, math.sqrt(variance / self.pauses)


class Ledger:
    """An account for each domain that was drawn."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}

    def rate(self, domain: str, level: int) -> float:
        """Pass rate believed of a level; one half where nothing is known."""
        account = self.accounts.get(domain)
        return account.rates[level] if account is not None and level < len(account.rates) else 0.5

    def add(self, step: int, group: Group, level: int) -> None:
        """Take in one group of a domain."""
        account = self.accounts.setdefault(group.task.domain, Account())
        account.room(level)
        valid = [min(1.0, max(0.0, reward.value)) for reward in group.rewards if reward.valid]
        written = sum(rollout.sampled for rollout in group.rollouts)
        account.groups += 1
        account.samples += len(group.rollouts)
        account.ungradable += len(group.rollouts) - len(valid)
        account.tokens += written
        account.flat += group.degenerate
        weight = max(SLOW, 1 / account.groups)
        account.length += weight * (written / max(1, len(group.rollouts)) - account.length)
        surprise = -sum(sum(rollout.logprobs) for rollout in group.rollouts) / max(1, written)
        account.surprise += weight * (surprise - account.surprise)
        if valid:
            self._rate(account, step, level, sum(valid) / len(valid))

    def _rate(self, account: Account, step: int, level: int, rate: float) -> None:
        seen = account.counts[level]
        if seen and step - account.lasts[level] >= PAUSE:
            change = rate - account.previous[level]
            account.pauses += 1
            account.change += change
            account.square += change**2
        account.rates[level] += max(SLOW, 1 / (seen + 1)) * (rate - account.rates[level])
        account.counts[level], account.lasts[level], account.previous[level] = seen + 1, step, rate
        total = sum(account.counts)
        if total <= 4:
            account.first += (rate - account.first) / total
        account.best = max(account.best, account.rate) if total >= 4 else 0.0

    def rows(self) -> list[dict[str, Any]]:
        """One row a domain for a report: shares, rates, lengths, transfer and forgetting."""
        total = sum(account.groups for account in self.accounts.values())
        return [self._row(name, account, total) for name, account in sorted(self.accounts.items())]

    def _row(self, name: str, account: Account, total: int) -> dict[str, Any]:
        mean, error = account.between()
        sure = abs(mean) > SURE * error
        return {
            "domain": name,
            "share": account.groups / max(1, total),
            "groups": account.groups,
            "tokens": account.tokens,
            "flat": account.flat / max(1, account.groups),
            "ungradable": account.ungradable / max(1, account.samples),
            "length": account.length,
            "surprise": account.surprise,
            "level": max((level for level, count in enumerate(account.counts) if count), default=0),
            "first": account.first,
            "now": account.rate,
            "best": account.best,
            "between": mean,
            "between_error": error if math.isfinite(error) else None,
            "reading": ("transfer" if mean > 0 else "forgetting") if sure else "",
        }

    def state(self) -> dict[str, Any]:
        """The accounts as JSON-ready data."""
        return {name: asdict(account) for name, account in self.accounts.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """The inverse of `state`."""
        self.accounts = {name: Account(**account) for name, account in state.items()}
