"""Coverage of the 95% intervals in simulation: how often they hold the true value.

A design fixes the number of tasks and of samples a task, a band of true pass rates (one is drawn per repetition, so
that the lattice of possible counts does not favour a single lucky or unlucky rate), the correlation of two samples of
a task (rho = variance of the tasks' pass rates / p(1-p)) and the shape of the tasks' pass rates: `beta`, or `two`
levels, which no beta fits. Real suites have rho of about 0.2 to 0.8.

* stated designs (the keys `coverage_min` and `coverage_max`): 32 to 128 tasks, 1 to 8 samples, rho 0.2 to 0.8;
* hard designs (`hard_min`, `hard_max`): 8 or 16 tasks, rates below 5%, samples that are wholly independent (rho 0);
* paired designs (`paired_min`, `paired_max`): the difference of two evaluations of the same tasks;
* subset designs (`subset_min`, `subset_max`): pass@k and pass^k for k of 8 samples, 32 to 128 tasks;
* ratio designs (`ratio_min`, `ratio_max`): the realised ceiling pass@1 / pass@k.

Beside each stands the usual mean +- t standard errors (`student_*` in the last line, over the stated designs).

Run: python benchmarks/intervals.py [--quick]
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from surefoot.evaluate.intervals import mean_bounds, ratio_interval
from surefoot.evaluate.paired import paired_interval
from surefoot.evaluate.passk import pass_at_k, pass_hat_k

Floats = npt.NDArray[np.float64]
STATED_BANDS = ((0.05, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 0.95))


@dataclass(frozen=True)
class Design:
    tasks: int
    samples: int
    band: tuple[float, float]
    rho: float
    shape: str

    def __str__(self) -> str:
        low, high = self.band
        return f"{self.tasks:4d} tasks x {self.samples:2d}  p {low:.2f}-{high:.2f}  rho {self.rho:.1f}  {self.shape:4s}"


def designs(
    tasks: tuple[int, ...], bands: tuple[tuple[float, float], ...], rhos: tuple[float, ...]
) -> Iterator[Design]:
    """All combinations; shape and correlation do not matter, and are not varied, where they cannot be seen."""
    for m in tasks:
        for band in bands:
            yield Design(m, 1, band, 0.0, "one")
            for samples in (4, 8):
                for rho in rhos:
                    for shape in ("beta", "two") if rho else ("same",):
                        yield Design(m, samples, band, rho, shape)


def rates(design: Design, p: Floats, rng: np.random.Generator) -> Floats:
    """True pass rates `[repetitions, tasks]` with mean p and the design's correlation."""
    size, mean = (len(p), design.tasks), p[:, None]
    if design.rho == 0:
        return np.broadcast_to(mean, size)
    if design.shape == "beta":
        odds = (1 - design.rho) / design.rho
        return rng.beta(mean * odds, (1 - mean) * odds, size)
    gap = np.sqrt(design.rho)  # two levels, `gap` apart: variance gap^2 p (1-p)
    return np.asarray(mean * (1 - gap) + gap * (rng.random(size) < mean), dtype=np.float64)


def student_bounds(x: Floats) -> tuple[Floats, Floats]:
    m = x.shape[-1]
    half = stats.t.ppf(0.975, m - 1) * x.std(axis=-1, ddof=1) / np.sqrt(m)
    return x.mean(axis=-1) - half, x.mean(axis=-1) + half


def share(bounds: tuple[Floats, Floats], truth: Floats) -> float:
    return float(np.mean((bounds[0] <= truth) & (truth <= bounds[1])))


def measure(design: Design, repetitions: int, rng: np.random.Generator) -> tuple[float, float]:
    """Coverage of the default interval and of Student's."""
    p = rng.uniform(*design.band, repetitions)
    x = rng.binomial(design.samples, rates(design, p, rng)) / design.samples
    return share(mean_bounds(x, floor=1 / design.samples), p), share(student_bounds(x), p)


def sweep(title: str, chosen: list[Design], repetitions: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    print(f"\n{title}: {len(chosen)} designs, {repetitions} repetitions each")
    got = np.array([measure(design, repetitions, rng) for design in chosen])
    ours, student = got[:, 0], got[:, 1]
    for name, column in (("default", ours), ("student", student)):
        inside = np.mean((column >= 0.93) & (column <= 0.97))
        print(
            f"  {name}: min {column.min():.3f}  5% {np.quantile(column, 0.05):.3f}  median {np.median(column):.3f}  "
            f"95% {np.quantile(column, 0.95):.3f}  max {column.max():.3f}  within 0.93-0.97: {inside:.0%}"
        )
    order = np.argsort(ours)
    for i in [*order[:3], *order[-3:]]:
        print(f"    {chosen[i]}   default {ours[i]:.3f}   student {student[i]:.3f}")
    return ours, student


def paired(repetitions: int, rng: np.random.Generator) -> list[float]:
    """Difference after training that lifts every task's rate by a share of what it lacks."""
    print(f"\npaired differences: {repetitions} repetitions each")
    covered = []
    for tasks, samples, (a, b), gain in [
        (32, 8, (1.0, 2.0), 0.0),
        (32, 8, (1.0, 2.0), 0.2),
        (64, 1, (1.0, 2.0), 0.2),
        (32, 8, (0.2, 0.8), 0.1),
        (128, 4, (0.5, 0.5), 0.1),
    ]:
        truth, hits = gain * b / (a + b), 0
        for _ in range(repetitions):
            before = rng.beta(a, b, tasks)
            after = before + gain * (1 - before)
            x, y = (rng.binomial(samples, r) / samples for r in (before, after))
            estimate = paired_interval(x, y, floor=1 / samples)
            hits += estimate.low <= truth <= estimate.high
        covered.append(hits / repetitions)
        print(f"  {tasks:4d} tasks x {samples}  rates beta({a}, {b})  gain {gain:.1f}   default {covered[-1]:.3f}")
    return covered


def subsets(repetitions: int, rng: np.random.Generator) -> list[float]:
    """pass@k and pass^k with k of 8 samples; rates beta(a, b)."""
    print(f"\npass@k and pass^k of 8 samples: {repetitions} repetitions each")
    covered, n = [], 8
    every = np.arange(n + 1)
    for tasks, k, (a, b) in itertools.product((32, 128), (2, 4, 8), ((1.0, 2.0), (0.5, 0.5), (2.0, 1.0))):
        many = rng.beta(a, b, 1_000_000)
        right = rng.binomial(n, rng.beta(a, b, (repetitions, tasks)))
        for name, metric, chance in (("@", pass_at_k, 1 - (1 - many) ** k), ("^", pass_hat_k, many**k)):
            x = metric(every, np.full(n + 1, n), k)[right]
            truth = np.full(repetitions, chance.mean())
            covered.append(share(mean_bounds(x, floor=k / n), truth))
            design = f"{tasks:4d} tasks  pass{name}{k}  rates beta({a}, {b})  true {truth[0]:.3f}"
            print(f"  {design}   default {covered[-1]:.3f}")
    return covered


def ratios(repetitions: int, rng: np.random.Generator) -> list[float]:
    print(f"\nrealised ceiling pass@1 / pass@k: {repetitions} repetitions each")
    covered = []
    for tasks, k, (a, b) in [(32, 8, (1.0, 2.0)), (64, 8, (0.5, 0.5)), (64, 4, (2.0, 1.0)), (128, 8, (0.4, 1.6))]:
        many = rng.beta(a, b, 1_000_000)
        truth, hits = many.mean() / (1 - (1 - many) ** k).mean(), 0
        for _ in range(repetitions):
            right = rng.binomial(k, rng.beta(a, b, tasks))
            estimate = ratio_interval(right / k, right > 0, floor=1 / k)
            hits += estimate.low <= truth <= estimate.high
        covered.append(hits / repetitions)
        print(f"  {tasks:4d} tasks x {k}  rates beta({a}, {b})   default {covered[-1]:.3f}")
    return covered


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, same designs (under 50 s on 2 cores)")
    quick = parser.parse_args().quick
    began, rng = time.perf_counter(), np.random.default_rng(20240607)
    many, few = (12_000, 1_500) if quick else (40_000, 10_000)

    stated = list(designs((32, 64, 128), STATED_BANDS, (0.2, 0.5, 0.8)))
    hard = list(designs((8, 16), STATED_BANDS, (0.2, 0.5, 0.8)))
    hard += list(designs((32, 64), ((0.01, 0.05), (0.95, 0.99)), (0.2, 0.5, 0.8)))
    hard += [d for d in designs((16, 32, 64), STATED_BANDS, (0.0,)) if d.samples > 1]
    ours, student = sweep("stated designs", stated, many, rng)
    ours_hard, student_hard = sweep("hard designs", hard, many, rng)
    pair, subset, ratio = paired(few, rng), subsets(few * 2, rng), ratios(few, rng)

    result = {
        "coverage_min": float(ours.min()),
        "coverage_max": float(ours.max()),
        "student_min": float(student.min()),
        "student_max": float(student.max()),
        "hard_min": float(ours_hard.min()),
        "hard_max": float(ours_hard.max()),
        "student_hard_min": float(student_hard.min()),
        "paired_min": min(pair),
        "paired_max": max(pair),
        "subset_min": min(subset),
        "subset_max": max(subset),
        "ratio_min": min(ratio),
        "ratio_max": max(ratio),
        "repetitions": many,
        "seconds": time.perf_counter() - began,
        "quick": quick,
    }
    print(json.dumps({key: round(value, 4) if isinstance(value, float) else value for key, value in result.items()}))


if __name__ == "__main__":
    main()
