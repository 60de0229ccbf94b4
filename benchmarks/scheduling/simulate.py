"""One simulated run of one rule."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from scheduling.world import COIN, DEAD, FLAKY, Floats, Ints, World
from surefoot.schedule.rule import Allocation, Arms, Outcomes, Rule

SAMPLES = 8


@dataclass
class Trace:
    """What a run did. Curves have one entry a step."""

    tokens: list[float] = field(default_factory=list)
    mean: list[float] = field(default_factory=list)
    reachable: float = 0.0
    start: float = 0.0
    worst: float = 0.0
    """Mean score of the worst tenth of the honest domains that can be learnt, at the end."""
    wasted: float = 0.0
    """Part of the tokens that went to coins, dead graders and groups that could not be graded."""
    flat: float = 0.0
    """Share of groups in which all samples fared alike."""
    unseen: int = 0
    """Longest stretch of steps that any healthy domain was not drawn."""
    seconds: float = 0.0
    """Of the rule itself, a step."""

    @property
    def final(self) -> float:
        return self.mean[-1]

    def tokens_to(self, score: float) -> float:
        """Tokens until the mean score first reached `score`; infinite if it never did."""
        for tokens, mean in zip(self.tokens, self.mean, strict=True):
            if mean >= score:
                return tokens
        return float("inf")

    def regret(self, budget: float) -> float:
        """Mean distance from the reachable score over the budget."""
        tokens, mean = np.array([0.0, *self.tokens]), np.array([self.start, *self.mean])
        grid = np.linspace(0, budget, 200)
        return float(np.mean(self.reachable - np.interp(grid, tokens, mean)))


Event = Callable[[World, float], Floats]
"""What happens in a scenario at a part of the budget in [0, 1]; returns the availability of each domain `[D]`.

It may also change the world, and sets the chance that a domain's grader fails through `World.harshness` and the like.
"""


def arms_of(world: World, weights: Floats) -> Arms:
    """Domains d0, d1, ... with all levels."""
    return Arms.of({f"d{i}": float(w) for i, w in enumerate(weights)}, {f"d{i}": 8 for i in range(len(weights))})


def run(
    world: World,
    rule: Rule,
    *,
    budget: float,
    groups: int,
    event: Callable[[World, float], tuple[Floats, Floats]],
    log: Callable[[int, Allocation, Outcomes], None] | None = None,
    most_steps: int = 5000,
) -> Trace:
    """Spend `budget` tokens. `event` gives, at each part of the budget, availability and chance of failure `[D]`."""
    trace, honest = Trace(), world.honest
    goal, start = world.reachable(), world.scores()
    trace.reachable, trace.start = float(goal[honest].mean()), float(start[honest].mean())
    spent = wasted = flat = drawn = 0.0
    last = np.zeros(len(honest))
    for step in range(1, most_steps + 1):
        available, failing = event(world, spent / budget)
        began = time.perf_counter()
        plan = rule.allocate(step, groups, available)
        trace.seconds += time.perf_counter() - began
        outcomes = _play(world, plan, failing)
        began = time.perf_counter()
        rule.observe(step, outcomes)
        trace.seconds += time.perf_counter() - began
        if log:
            log(step, plan, outcomes)
        last[plan.domain] = step
        healthy = honest & (available > 0) & (failing < 0.5)
        last[~healthy] = np.maximum(last[~healthy], step)
        trace.unseen = max(trace.unseen, int((step - last[healthy]).max(initial=0)))
        spent += float(outcomes.cost.sum())
        useless = (world.kind[plan.domain] == COIN) | (world.kind[plan.domain] == DEAD) | (outcomes.valid == 0)
        wasted += float(outcomes.cost[useless].sum())
        flat += float((~outcomes.mixed).sum())
        drawn += len(plan)
        scores = world.scores()
        trace.tokens.append(spent)
        trace.mean.append(float(scores[honest].mean()))
        if spent >= budget:
            break
    learnable = honest & (goal > start + 0.05)
    trace.worst = float(np.sort(scores[learnable])[: max(1, int(learnable.sum()) // 10)].mean())
    trace.wasted, trace.flat = wasted / spent, flat / drawn
    trace.seconds /= len(trace.tokens)
    return trace


def _play(world: World, plan: Allocation, failing: Floats) -> Outcomes:
    failed = world.rng.random(len(plan)) < failing[plan.domain]
    valid: Ints = np.where(failed, 0, plan.samples)
    passes = world.sample(plan.domain, plan.level, valid)
    world.learn(plan.domain, passes, valid)
    cost = world.group_cost(plan.domain, plan.level, plan.samples)
    return Outcomes(plan.domain, plan.level, plan.samples, valid, passes.astype(np.float64), cost)


__all__ = ["COIN", "DEAD", "FLAKY", "SAMPLES", "Trace", "arms_of", "run"]
