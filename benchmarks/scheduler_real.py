"""The rules of the scheduler on real training: a small network, 24 domains that can be learnt, and four traps.

No simulated learner here: a network of two layers, which all domains share, is trained by policy gradient (the
learner's own group advantages) on what it sampled, and its answers are graded by Surefoot's graders. It is no language
model: it sees the domain and two digits, and answers with one of 20 numbers, so that hundreds of runs fit a CPU.
Domains are functions of the digits, from the larger of them to products modulo 17; a quarter of all pairs of digits is
held out. The traps: a grader that flips coins, one that rejects everything, one that crashes, one that wants the same
answer always. Every rule has the same budget of samples (one token each), and the same seeds.

    python benchmarks/scheduler_real.py [--quick] [--plot docs/scheduler_real.svg]
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot.config import ScheduleConfig
from surefoot.errors import GraderError
from surefoot.learner.advantages import group_advantages
from surefoot.rewards.text import ExactGrader
from surefoot.schedule.choose import make_rule
from surefoot.schedule.rule import Arms, Outcomes
from surefoot.types import Reward, Rollout, Task, Verdict

ANSWERS, SAMPLES, GROUPS, WIDTH = 20, 8, 28, 96
Function = Callable[[int, int], int]
FUNCTIONS: dict[str, Function] = {
    "first": lambda a, b: a,
    "second": lambda a, b: b,
    "larger": max,
    "smaller": min,
    "difference": lambda a, b: abs(a - b),
    "sum": lambda a, b: a + b,
    "is larger": lambda a, b: int(a > b),
    "is equal": lambda a, b: int(a == b),
    "both even": lambda a, b: int(a % 2 == b % 2 == 0),
    "parity": lambda a, b: (a + b) % 2,
    "half": lambda a, b: (a + b) // 2,
    "tens": lambda a, b: (a + b) // 10,
    "units": lambda a, b: (a + b) % 10,
    "double first": lambda a, b: 2 * a,
    "next": lambda a, b: b + 1,
    "complement": lambda a, b: 9 - a,
    "thirds": lambda a, b: (a + b) % 3,
    "divides": lambda a, b: int(b > 0 and a % b == 0),
    "remainder": lambda a, b: a % (b + 1),
    "exclusive or": lambda a, b: a ^ b,
    "and bits": lambda a, b: a & b,
    "product mod 10": lambda a, b: a * b % 10,
    "product mod 17": lambda a, b: a * b % 17,
    "square mod 19": lambda a, b: (a * a + b) % 19,
}
TRAPS = ("coin", "dead", "crash", "constant")
NAMES = (*FUNCTIONS, *TRAPS)
PAIRS = [(a, b) for a in range(10) for b in range(10)]
ENTROPY = 0.15
"""Weight of the entropy, without which a policy that begins at chance settles on one answer a domain."""
RULES = ("adaptive", "uniform", "dapo")


@dataclass(frozen=True)
class Point:
    """Where a run is: `budget` is samples spent, `score` mean held-out pass@1 over the 24 real domains."""

    budget: int
    score: float
    wasted: float
    """Share of all groups so far whose samples fared alike."""


class Policy(torch.nn.Module):
    """Answers' log-probabilities from a domain and two digits, float32."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Sequential(
            torch.nn.Linear(len(NAMES) + 20, WIDTH), torch.nn.ReLU(),
            torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, ANSWERS),
        )  # fmt: skip

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        one = torch.nn.functional.one_hot
        seen = [one(rows[:, 0], len(NAMES)), one(rows[:, 1], 10), one(rows[:, 2], 10)]
        return torch.log_softmax(self.inner(torch.cat(seen, 1).float()), -1)  # [n, 20]


def grade(name: str, a: int, b: int, answer: int, coin: random.Random) -> Verdict:
    """The verdict of a domain's grader on one answer."""
    if name == "coin":
        return Verdict("right", 1.0) if coin.random() < 0.5 else Verdict("wrong", 0.0)
    if name == "crash":
        return Verdict("ungradable", 0.0, reason=str(GraderError("the grader crashed")))
    wanted = {"dead": "none", "constant": "7"}.get(name) or str(FUNCTIONS[name](a, b))
    task = Task("t", name, (), {"answer": wanted})
    rollout = Rollout("t", name, 0, (), (), (), str(answer), "stop")
    return ExactGrader().grade(task, rollout, None)  # type: ignore[arg-type]


def split() -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Pairs to train on, and held-out ones."""
    pairs = random.Random(5).sample(PAIRS, len(PAIRS))
    return pairs[25:], pairs[:25]


def score(policy: Policy, pairs: Sequence[tuple[int, int]]) -> float:
    """Mean pass@1 of the real domains, exact: the probability of the right answer."""
    rows = torch.tensor([(d, a, b) for d in range(len(FUNCTIONS)) for a, b in pairs])
    right = torch.tensor([f(a, b) for f in FUNCTIONS.values() for a, b in pairs])
    with torch.no_grad():
        return float(policy(rows).exp()[torch.arange(len(rows)), right].mean())


def train(name: str, seed: int, budget: int, points: int) -> tuple[list[Point], float]:
    """One run: its curve, and the share of the samples that went to the traps."""
    torch.manual_seed(seed)
    chance, coin = random.Random(seed), random.Random(seed + 1)
    arms = Arms.of(dict.fromkeys(NAMES, 1.0))
    rule = make_rule(ScheduleConfig(rule=name), arms, samples=SAMPLES, seed=seed)  # type: ignore[arg-type]
    policy, (training, heldout) = Policy(), split()
    optimiser = torch.optim.Adam(policy.parameters(), lr=2e-3)
    cache: dict[tuple[int, int, int, int], Verdict] = {}
    curve, spent, step, groups, alike, trapped = [Point(0, score(policy, heldout), 0.0)], 0, 0, 0, 0, 0
    while spent < budget:
        step += 1
        plan = rule.allocate(step, GROUPS, np.ones(len(arms)))
        rows = torch.tensor([(d, *chance.choice(training)) for d in plan.domain.tolist()])  # [m, 3]
        logs = policy(rows)  # [m, 20]
        picks = torch.multinomial(logs.exp(), SAMPLES, replacement=True)  # [m, 8]
        valid, passes, advantages = [], [], []
        for (d, a, b), answers in zip(rows.tolist(), picks.tolist(), strict=True):
            rewards = []
            for answer in answers:
                key = (d, a, b, answer)
                verdict = cache.get(key) or grade(NAMES[d], a, b, answer, coin)
                if NAMES[d] != "coin":
                    cache[key] = verdict
                rewards.append(Reward(verdict.score, valid=verdict.grade != "ungradable"))
            valid.append(sum(r.valid for r in rewards))
            passes.append(sum(r.value for r in rewards if r.valid))
            advantages.append(group_advantages(rewards, "group_std"))
        loss = -(torch.tensor(advantages) * logs.gather(1, picks)).sum() / (GROUPS * SAMPLES)
        loss = loss + ENTROPY * (logs.exp() * logs).sum(1).mean()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimiser.step()
        asked, cost = plan.samples, np.full(len(plan), float(SAMPLES))
        outcomes = Outcomes(plan.domain, plan.level, asked, np.array(valid), np.array(passes), cost)
        rule.observe(step, outcomes)
        spent += len(plan) * SAMPLES
        groups, alike = groups + len(plan), alike + int((~outcomes.mixed).sum())
        trapped += int((plan.domain >= len(FUNCTIONS)).sum())
        if spent >= budget * len(curve) / points:
            curve.append(Point(spent, score(policy, heldout), alike / groups))
    return curve, trapped / groups


def plot(curves: dict[str, list[list[Point]]], path: Path) -> None:
    """Mean held-out pass@1 over the budget, with the least and the most over seeds; and wasted groups."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3))
    for name, runs in curves.items():
        for axis, field in zip(axes, ("score", "wasted"), strict=True):
            table = np.array([[getattr(p, field) for p in run] for run in runs])
            x = [p.budget / 1000 for p in runs[0]]
            axis.plot(x, table.mean(0), label=name)
            axis.fill_between(x, table.min(0), table.max(0), alpha=0.15)
    axes[0].set(xlabel="thousand samples", title="mean held-out pass@1")
    axes[1].set(xlabel="thousand samples", title="groups without a signal")
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed, a fifth of the budget")
    parser.add_argument("--budget", type=int, help="samples a run")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--plot", type=Path, help="write the curves here (.svg or .png)")
    options = parser.parse_args()
    seeds = options.seeds or (1 if options.quick else 3)
    budget = options.budget or (20_000 if options.quick else 100_000)
    torch.set_num_threads(1)
    curves: dict[str, list[list[Point]]] = {name: [] for name in RULES}
    result: dict[str, Any] = {"domains": len(FUNCTIONS), "traps": len(TRAPS), "budget": budget, "seeds": seeds}
    for name in RULES:
        began, traps = time.process_time(), []
        for seed in range(seeds):
            curve, trapped = train(name, seed, budget, 20)
            curves[name].append(curve)
            traps.append(trapped)
        last = [run[-1] for run in curves[name]]
        finals = [p.score for p in last]
        error = statistics.stdev(finals) / math.sqrt(seeds) if seeds > 1 else float("nan")
        area = statistics.fmean(p.score for run in curves[name] for p in run)
        print(
            f"{name:9} held-out pass@1 {statistics.fmean(finals):.3f} (standard error {error:.3f}), mean over the run "
            f"{area:.3f}, groups without a signal {statistics.fmean(p.wasted for p in last):.0%}, in traps "
            f"{statistics.fmean(traps):.0%}, {time.process_time() - began:.0f} s of CPU"
        )
        result |= {
            f"{name}_final": round(statistics.fmean(finals), 4),
            f"{name}_mean": round(area, 4),
            f"{name}_wasted": round(statistics.fmean(p.wasted for p in last), 4),
            f"{name}_traps": round(statistics.fmean(traps), 4),
        }
    if options.plot:
        plot(curves, options.plot)
    print(json.dumps(result | {"quick": options.quick}))


if __name__ == "__main__":
    main()
