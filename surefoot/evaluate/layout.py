"""The rows of a before/after report, whatever form it is printed in: one block a domain, one column a stage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from surefoot.errors import ConfigError
from surefoot.evaluate.comparison import Direction, compare
from surefoot.evaluate.intervals import UNKNOWN, Estimate, mean_of
from surefoot.evaluate.metric import PASS_1, Metric, estimate
from surefoot.evaluate.records import Evaluation

MARKS: dict[Direction, str] = {"better": "▲", "worse": "▼", "unclear": ""}
LEGEND = "▲ ▼ changed from the stage before, Holm-adjusted paired test at 5%"
LEFT_OUT = "* tasks with too few graded samples left out"


@dataclass(frozen=True, slots=True)
class Cell:
    """One metric at one stage."""

    estimate: Estimate
    direction: Direction = "unclear"
    """Against the stage before it."""


@dataclass(frozen=True, slots=True)
class Line:
    """One metric at every stage."""

    metric: Metric
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """All metrics of one domain, or of the mean over domains."""

    name: str
    chance: float
    lines: tuple[Line, ...]
    is_mean: bool = False


def metrics_of(evaluations: Sequence[Evaluation]) -> list[Metric]:
    """pass@1, pass@k, pass^k and the realised ceiling, with the largest k that every evaluation can tell."""
    k = min((evaluation.samples for evaluation in evaluations), default=1)
    return [PASS_1] + ([Metric("pass@", k), Metric("pass^", k), Metric("ceiling@", k)] if k > 1 else [])


def blocks(evaluations: Sequence[Evaluation], *, level: float = 0.95) -> list[Block]:
    """A block for each domain of any evaluation, then, for two or more shared domains, their mean."""
    if not evaluations:
        raise ConfigError("a report needs at least one evaluation")
    evaluations = [evaluation.originals for evaluation in evaluations]
    names = list(dict.fromkeys(d.name for evaluation in evaluations for d in evaluation.domains))
    metrics = metrics_of(evaluations)
    arrows = _directions(evaluations, metrics)
    made = [_domain_block(name, evaluations, metrics, arrows, level) for name in names]
    shared = [block for block in made if all(c.estimate is not UNKNOWN for line in block.lines[:1] for c in line.cells)]
    return [*made, _mean_block(shared, metrics, arrows)] if len(shared) > 1 else made


Arrows = dict[tuple[Metric, int, str], Direction]


def _directions(evaluations: Sequence[Evaluation], metrics: Sequence[Metric]) -> Arrows:
    """Directions by (metric, stage, domain), each stage against the one before; not for the ceiling, a ratio."""
    arrows: Arrows = {}
    for stage in range(1, len(evaluations)):
        for metric in metrics:
            if metric.name != "ceiling@":
                found = compare(evaluations[stage - 1], evaluations[stage], metric)
                arrows |= {(metric, stage, change.name): change.direction for change in found.domains}
                arrows[metric, stage, ""] = found.mean.direction
    return arrows


def _domain_block(
    name: str, evaluations: Sequence[Evaluation], metrics: Sequence[Metric], arrows: Arrows, level: float
) -> Block:
    stages = [evaluation.domain(name) for evaluation in evaluations]
    lines = [
        Line(
            metric,
            tuple(
                Cell(
                    estimate(metric, domain, level=level) if domain else UNKNOWN,
                    arrows.get((metric, stage, name), "unclear"),
                )
                for stage, domain in enumerate(stages)
            ),
        )
        for metric in metrics
    ]
    chance = next((domain.chance for domain in stages if domain), 0.0)
    return Block(name, chance, tuple(lines))


def _mean_block(shared: Sequence[Block], metrics: Sequence[Metric], arrows: Arrows) -> Block:
    stages = len(shared[0].lines[0].cells)
    lines = [
        Line(
            metric,
            tuple(
                Cell(
                    mean_of([block.lines[row].cells[stage].estimate for block in shared]),
                    arrows.get((metric, stage, ""), "unclear"),
                )
                for stage in range(stages)
            ),
        )
        for row, metric in enumerate(metrics)
    ]
    chance = sum(block.chance for block in shared) / len(shared)
    return Block(f"mean of {len(shared)}", chance, tuple(lines), is_mean=True)


def percent(estimate: Estimate) -> str:
    """`31.2 [24, 39]`, in percent; a dash where nothing was measured; a star where tasks are left out."""
    if not estimate.known:
        return "–"
    star = "*" if estimate.left_out else ""
    if math.isnan(estimate.low):
        return f"{100 * estimate.value:.1f}{star}"
    return f"{100 * estimate.value:.1f}{star} [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"


def any_left_out(made: Sequence[Block]) -> bool:
    return any(cell.estimate.left_out for block in made for line in block.lines for cell in line.cells)


def headings(evaluations: Sequence[Evaluation]) -> list[str]:
    """A title for each stage; numbered where two share one."""
    titles = [evaluation.title for evaluation in evaluations]
    return [f"{t} ({i})" if titles.count(t) > 1 else t for i, t in enumerate(titles, start=1)]
