"""The scenarios: what the world is like, what happens in it, how long the run is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from scheduling.world import COIN, FLAKY, HONEST, Floats, Settings, World

Event = Callable[[World, float], tuple[Floats, Floats]]
"""At a part of the budget in [0, 1]: availability and chance of failure of each domain `[D]`; may change the world."""
PAIRED = ("clean", "equal cost")


def quiet(world: World, part: float) -> tuple[Floats, Floats]:
    """All domains are there; flaky ones fail nine groups of ten in two fifths of the time."""
    d = len(world.base)
    failing = (world.kind == FLAKY) & ((10 * part + 0.37 * np.arange(d)) % 1 < 0.4)
    return np.ones(d), np.where(failing, 0.9, 0.0)


def drifting(world: World, part: float) -> tuple[Floats, Floats]:
    """From 0.3 on, every fifth grader gets harsher; from 0.6 on, half of these flip coins."""
    d = np.arange(len(world.base))
    world.harshness = np.where(d % 5 == 0, 0.5 * np.clip((part - 0.3) / 0.3, 0, 1), 0.0)
    if part > 0.6:
        world.kind = np.where((d % 10 == 0) & (world.kind == HONEST), COIN, world.kind)
    return quiet(world, part)


def arriving(world: World, part: float) -> tuple[Floats, Floats]:
    """Every third domain comes at 0.35 of the budget."""
    available, failing = quiet(world, part)
    available[::3] = float(part >= 0.35)
    return available, failing


def outage(world: World, part: float) -> tuple[Floats, Floats]:
    """From 0.4 to 0.6, the sandbox of every third domain is down: all of its groups fail, and cost all the same."""
    available, failing = quiet(world, part)
    failing[1::3] = np.where(0.4 <= part < 0.6, 1.0, failing[1::3])
    return available, failing


@dataclass(frozen=True)
class Scenario:
    """One row of the benchmark."""

    name: str
    settings: Settings = field(default_factory=Settings)
    event: Event = quiet
    steps: int = 150
    """Budget: what uniform sampling of the first level would spend in so many steps."""
    groups: int = 96
    seeds: int = 20


STRESS = {"coin": 0.15, "dead": 0.10, "flaky": 0.10}
SCENARIOS = (
    Scenario("clean"),
    Scenario("equal cost", Settings(cost_spread=0.0)),
    Scenario("stress", Settings(**STRESS)),
    Scenario("stress, equal cost", Settings(cost_spread=0.0, **STRESS)),
    Scenario("drifting grader", event=drifting),
    Scenario("domains arriving", event=arriving),
    Scenario("sandbox outage", event=outage),
    Scenario("interference x10", Settings(interference=0.2)),
    Scenario("forgetting x10", Settings(forgetting=2e-3)),
    Scenario("tiny budget", steps=20),
    Scenario("long run", steps=400, seeds=6),
    Scenario("20 domains", Settings(domains=20), groups=24),
    Scenario("30 domains", Settings(domains=30)),
    Scenario("300 domains", Settings(domains=300), seeds=8),
    Scenario("500 domains", Settings(domains=500), seeds=6),
    Scenario("1000 domains", Settings(domains=1000), seeds=4),
    Scenario("law: rare successes", Settings(law="rare")),
    Scenario("law: any spread", Settings(law="mixed")),
    Scenario("law: normalised step", Settings(law="normalised", pace=4.0)),
    Scenario("no transfer", Settings(transfer=0.0)),
    Scenario("alike prompts", Settings(spread=(0.1, 0.3))),
    Scenario("cheap spread", Settings(cost_spread=0.45)),
)
