"""Surefoot's allocation rule against others, on simulated learners; `scheduling/world.py` says what is assumed.

Each scenario is run with the same worlds (paired seeds) and the same budget of tokens for every rule. All other rules
get a level curriculum (`surefoot/schedule/ladder.py`). Reported for each rule:

* `final`, the true mean pass rate over domains and levels at the end, and its difference to uniform's;
* `budget`, the part of the budget after which it first reached uniform's final score (inf: never), median over seeds;
* `worst`, the mean over the worst tenth of the domains that can be learnt;
* `regret`, the mean distance from the reachable score; `wasted`, tokens for coins, dead graders and failed groups;
* `unseen`, the longest time in steps that a healthy domain was not drawn.

Run: python benchmarks/scheduler_sim.py [--quick] [--seeds N] [--only TEXT]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scheduling.scenarios import PAIRED, SCENARIOS, Scenario, quiet
from scheduling.simulate import SAMPLES, Trace, arms_of, run
from scheduling.world import Settings, World

from surefoot.schedule import AdaptiveRule, Arms, DumpRule, FilteringRule, FixedRule, Rule, SecRule

Make = Callable[[World, int], Rule]
REACH = (0.8, 0.9, 0.95)


def equal(world: World) -> Arms:
    return arms_of(world, np.ones(len(world.base)))


RULES: dict[str, Make] = {
    "uniform": lambda w, seed: FixedRule(equal(w), samples=SAMPLES, seed=seed),
    "proportional": lambda w, seed: FixedRule(arms_of(w, w.size), samples=SAMPLES, seed=seed),
    "dapo": lambda w, seed: FilteringRule(equal(w), samples=SAMPLES, seed=seed),
    "sec": lambda w, seed: SecRule(equal(w), samples=SAMPLES, seed=seed),
    "dump": lambda w, seed: DumpRule(equal(w), samples=SAMPLES, seed=seed),
    "adaptive": lambda w, seed: AdaptiveRule(equal(w), samples=SAMPLES, seed=seed),
}


def play(scenario: Scenario, seed: int) -> tuple[dict[str, Trace], float]:
    """Every rule in the same world, and the budget."""
    traces: dict[str, Trace] = {}
    budget = 0.0
    for name, make in RULES.items():
        world = World.make(scenario.settings, seed)
        budget = scenario.steps * scenario.groups * SAMPLES * 1.2 * float(world.cost.mean())
        rule = make(world, seed)
        traces[name] = run(world, rule, budget=budget, groups=scenario.groups, event=scenario.event)
    return traces, budget


def interval(values: list[float], rng: np.random.Generator) -> tuple[float, float]:
    """95% bootstrap interval of the median over seeds; infinite values are ranked last."""
    drawn = np.sort(rng.choice(values, (2000, len(values))), axis=1)[:, (len(values) - 1) // 2]
    low, high = np.sort(drawn)[[49, 1949]]
    return float(low), float(high)


def summarise(scenario: Scenario, seeds: int) -> dict[str, dict[str, Any]]:
    """Plays one scenario and prints its table."""
    games = [play(scenario, seed) for seed in range(seeds)]
    rng, rows = np.random.default_rng(5), {}
    print(f"\n{scenario.name}: {scenario.settings.domains} domains, {seeds} seeds", flush=True)
    for name in RULES:
        traces = [game[name] for game, _ in games]
        base = [game["uniform"] for game, _ in games]
        ratio = [t.tokens_to(u.final) / b for t, u, (_, b) in zip(traces, base, games, strict=True)]
        used = [u.tokens_to(u.final) / b for u, (_, b) in zip(base, games, strict=True)]
        relative = [min(r / u, 99.0) for r, u in zip(ratio, used, strict=True)]
        reach = [
            float(np.median([t.tokens_to(r * t.reachable) / b for t, (_, b) in zip(traces, games, strict=True)]))
            for r in REACH
        ]
        row = {
            "final": float(np.mean([t.final for t in traces])),
            "gain": float(np.mean([t.final - u.final for t, u in zip(traces, base, strict=True)])),
            "over_uniform": float(np.mean([t.final for t in traces]) / np.mean([u.final for u in base])),
            "budget": float(np.sort(relative)[(seeds - 1) // 2]),
            "budget_interval": interval(relative, rng),
            "worst": float(np.mean([t.worst for t in traces])),
            "regret": float(np.mean([t.regret(b) for t, (_, b) in zip(traces, games, strict=True)])),
            "wasted": float(np.mean([t.wasted for t in traces])),
            "flat": float(np.mean([t.flat for t in traces])),
            "unseen": max(t.unseen for t in traces),
            "reach": reach,
            "ms": 1e3 * float(np.median([t.seconds for t in traces])),
        }
        rows[name] = row
        low, high = (("never" if x >= 99 else f"{x:.2f}") for x in row["budget_interval"])
        shown = "never" if row["budget"] >= 99 else f"{row['budget']:.2f}"
        marks = "/".join("-" if r == float("inf") else f"{r:.2f}" for r in reach)
        print(
            f"  {name:13s} final {row['final']:.3f} ({row['gain']:+.3f})  budget {shown:>5s} [{low}, {high}]  "
            f"worst {row['worst']:.3f}  regret {row['regret']:.3f}  wasted {row['wasted']:.2f}  "
            f"flat {row['flat']:.2f}  "
            f"unseen {row['unseen']:3d}  to 80/90/95%: {marks}  {row['ms']:.2f} ms",
            flush=True,
        )
    return rows


def replays() -> bool:
    """Whether the log of a run, through JSON, rebuilds the rule's state bit for bit."""
    settings = Settings(domains=40, coin=0.15, flaky=0.1)
    world, lines = World.make(settings, 3), []
    rule = AdaptiveRule(equal(world), samples=SAMPLES, seed=3)

    def log(step: int, _: object, o: Any) -> None:
        columns = (o.domain, o.level, o.asked, o.valid, o.passes, o.cost)
        lines.append(
            json.dumps({"step": step, "groups": [list(r) for r in zip(*(c.tolist() for c in columns), strict=True)]})
        )

    run(world, rule, budget=2e5, groups=48, event=quiet, log=log, most_steps=120)
    from surefoot.schedule import replay

    fresh = AdaptiveRule(equal(world), samples=SAMPLES, seed=3)
    replay(fresh, [json.loads(line) for line in lines], 48)
    return json.dumps(fresh.state()) == json.dumps(rule.state())


def overhead(domains: int = 500) -> float:
    """Milliseconds of allocate and observe a step; the best of three runs, as other processes only add to it."""
    times = []
    for seed in range(3):
        world = World.make(Settings(domains=domains), seed)
        rule = AdaptiveRule(equal(world), samples=SAMPLES, seed=seed)
        times.append(run(world, rule, budget=1e18, groups=96, event=quiet, most_steps=40).seconds * 1e3)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer seeds and only worlds of up to 100 domains")
    parser.add_argument("--seeds", type=int, help="most seeds of a scenario")
    parser.add_argument("--only", default="", help="only scenarios whose name contains this")
    options = parser.parse_args()
    began, table = time.perf_counter(), {}
    for scenario in SCENARIOS:
        if options.only not in scenario.name:
            continue
        if options.quick and (scenario.settings.domains > 100 or scenario.steps > 150):
            continue
        if options.quick and scenario.name not in PAIRED:
            scenario = replace(scenario, steps=min(scenario.steps, 60))
        most = 2 if options.quick else options.seeds or 20
        table[scenario.name] = summarise(scenario, min(most, scenario.seeds))
    result = headline(table) | {"replay_exact": replays(), "overhead_ms_500": round(overhead(), 3)}
    # A step of the quick start (64 samples on two cores) takes about 8 s; on one GPU with 96 x 8 samples, about 20 s.
    result |= {"overhead_share_of_8s": round(result["overhead_ms_500"] / 8000, 6)}
    print(json.dumps(result | {"seconds": round(time.perf_counter() - began, 1), "quick": options.quick}))


def headline(table: dict[str, dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """The keys that others read, from the scenarios that were played."""
    found: dict[str, Any] = {}
    if "clean" in table:
        clean = table["clean"]
        ours = clean["adaptive"]["budget"]
        others = {name: row["budget"] for name, row in clean.items() if name != "adaptive"}
        best = min(others, key=lambda name: others[name])
        found = {"vs_uniform": ours, "vs_best_other": ours / min(others.values()), "best_other": best}
        found |= {"vs_uniform_interval": clean["adaptive"]["budget_interval"]}
        found |= {"worst_decile_ratio": clean["adaptive"]["worst"] / max(clean["uniform"]["worst"], 1e-9)}
    if "equal cost" in table:
        found["vs_uniform_equal_cost"] = table["equal cost"]["adaptive"]["budget"]
    scores = {name: 1 / rows["adaptive"]["over_uniform"] for name, rows in table.items()}
    worst = max(scores, key=lambda name: scores[name])
    found |= {"worst_vs_uniform": scores[worst], "worst_scenario": worst}
    found |= {"unseen": max(rows["adaptive"]["unseen"] for rows in table.values())}
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in found.items()}


if __name__ == "__main__":
    main()
