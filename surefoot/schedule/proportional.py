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

    def state(self) -> dict[str, Any]:
        """Credits and cursors."""
        return {"credit": dict(self.credit), "cursors": dict(self.cursors)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state; domains that are new keep a fresh one, domains that are gone are forgotten."""
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
