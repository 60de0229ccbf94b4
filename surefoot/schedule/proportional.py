"""Draws in proportion to the domains' weights: deterministic, and no domain with a weight ever starves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from surefoot.types import Draw, Group, Task, UpdateReport, stable_seed


class Pool(Protocol):
    """The training tasks of one domain as a walk: a cursor in, a task and the next cursor out."""

    def train(self, cursor: int) -> tuple[Task, int]: ...


class ProportionalScheduler:
    """Deficit round-robin: each step a domain earns credit in proportion to its weight and pays one for each prompt.

    Over any stretch of steps every domain gets its share to within one prompt (Shreedhar & Varghese 1995).
    """

    def __init__(
        self,
        pools: Mapping[str, Pool],
        weights: Mapping[str, float],
        max_new_tokens: Mapping[str, int],
        *,
        prompts: int,
        samples: int,
        seed: int,
    ) -> None:
        """One entry a domain in each mapping; `prompts` groups of `samples` are drawn a step."""
        total = sum(weights.values())
        self.shares = {name: weight / total for name, weight in weights.items() if weight > 0}
        self.given = dict(self.shares)
        """Shares before any was scaled: a resumed run whose weights were changed starts from the new ones."""
        self.pools, self.max_new_tokens = pools, max_new_tokens
        self.prompts, self.samples, self.seed = prompts, samples, seed
        self.credit = dict.fromkeys(self.shares, 0.0)
        self.cursors = dict.fromkeys(self.shares, 0)

    def draw(self, step: int) -> list[Draw]:
        """The draws of one step; advances the domains' cursors."""
        for name, share in self.shares.items():
            self.credit[name] += share * self.prompts
        return [self._draw_from(self._richest(), step) for _ in range(self.prompts)]

    def observe(self, groups: Sequence[Group], update: UpdateReport) -> None:
        """Fixed shares learn nothing from outcomes."""

    def scale(self, name: str, factor: float) -> None:
        """Multiply a domain's share by `factor`, at the expense or to the benefit of all others."""
        if name in self.shares:
            self.shares[name] *= factor
            total = sum(self.shares.values())
            self.shares = {other: share / total for other, share in self.shares.items()}

    def state(self) -> dict[str, Any]:
        """Credits, cursors and shares."""
        return {"credit": dict(self.credit), "cursors": dict(self.cursors), "shares": self.shares, "given": self.given}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state; domains that are new keep a fresh one, domains that are gone are forgotten."""
        kept = state.get("shares", {})
        if kept.keys() == self.shares.keys() and state.get("given") in (None, self.given):
            self.shares = {name: float(kept[name]) for name in self.shares}
        for name in self.shares:
            self.credit[name] = float(state["credit"].get(name, 0.0))
            self.cursors[name] = int(state["cursors"].get(name, 0))

    def _richest(self) -> str:
        name = max(self.credit, key=lambda n: self.credit[n])  # the first of equals: dicts keep the recipe's order
        self.credit[name] -= 1.0
        return name

    def _draw_from(self, name: str, step: int) -> Draw:
        task, self.cursors[name] = self.pools[name].train(self.cursors[name])
        seeds = tuple(stable_seed(self.seed, step, task.id, sample) for sample in range(self.samples))
        return Draw(task, self.samples, self.max_new_tokens[name], seeds)
