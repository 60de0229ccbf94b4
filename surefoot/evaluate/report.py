"""Before/after reports for the terminal, for Markdown and for programs; `html` makes the page."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from surefoot.evaluate.calibration import Calibration, calibrations
from surefoot.evaluate.findings import caveats, findings, report_findings
from surefoot.evaluate.layout import LEFT_OUT, LEGEND, MARKS, Block, Cell, any_left_out, blocks, headings, percent
from surefoot.evaluate.metric import Metric, estimate, overall
from surefoot.evaluate.modes import modes
from surefoot.evaluate.records import Evaluation
from surefoot.evaluate.retention import breaking, retention_by_length, retention_by_turn, survival
from surefoot.evaluate.sensitivity import Sensitivity, sensitivities

__all__ = ["caveats", "findings", "report_findings", "summary", "summary_json", "table", "to_markdown"]

REPORT_SCHEMA = 1


def table(evaluations: Sequence[Evaluation]) -> Table:
    """The report for a terminal: a block of lines a domain, a column a stage (base, warm start, after RL, ...)."""
    made = blocks(evaluations)
    notes = [f"%, with 95% intervals clustered by task; {LEGEND}", *([LEFT_OUT] if any_left_out(made) else [])]
    grid = Table(title="Evaluation by domain", caption="\n".join(notes), caption_justify="left", show_lines=False)
    grid.add_column("domain", overflow="fold")
    grid.add_column("chance", justify="right")
    grid.add_column("metric", no_wrap=True)
    for heading in headings(evaluations):
        grid.add_column(Text(heading), justify="left", overflow="fold")
    for block in made:
        for row, line in enumerate(block.lines):
            first = row == 0
            grid.add_row(
                Text(block.name if first else "", style="bold" if block.is_mean else ""),
                f"{block.chance:.0%}" if first else "",
                line.metric.label,
                *[_styled(cell) for cell in line.cells],
                style="" if first else "dim",
                end_section=row == len(block.lines) - 1,
            )
    return grid


def _styled(cell: Cell) -> Text:
    style = {"better": "green", "worse": "red", "unclear": ""}[cell.direction]
    return Text(f"{percent(cell.estimate)} {MARKS[cell.direction]}".strip(), style=style)


def to_markdown(evaluations: Sequence[Evaluation]) -> str:
    """The report as a Markdown page: findings first, then the table."""
    made, titles = blocks(evaluations), [_plain(h) for h in headings(evaluations)]
    head = ["domain", "chance", "metric", *titles]
    lines = ["# Evaluation", "", *[f"- {_plain(said)}" for said in report_findings(evaluations)], ""]
    lines += [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [row for block in made for row in _markdown_rows(block)]
    lines += ["", f"Figures are percentages with 95% intervals clustered by task. {LEGEND}."]
    lines += [f"{LEFT_OUT}."] if any_left_out(made) else []
    lines += _left_out(evaluations)
    lines += ["", *_setups(evaluations)]
    return "\n".join(lines) + "\n"


def _markdown_rows(block: Block) -> list[str]:
    rows = []
    for row, line in enumerate(block.lines):
        name = f"**{_plain(block.name)}**" if row == 0 else ""
        chance = f"{block.chance:.0%}" if row == 0 else ""
        shown = [(percent(cell.estimate).replace("*", "\\*"), MARKS[cell.direction]) for cell in line.cells]
        cells = [" ".join(filter(None, pair)) for pair in shown]
        rows.append(f"| {' | '.join([name, chance, _plain(line.metric.label), *cells])} |")
    return rows


def _left_out(evaluations: Sequence[Evaluation]) -> list[str]:
    rows = [
        f"- {_plain(heading)}: {_plain(task.id)}: {_plain(task.reason)}"
        for heading, e in zip(headings(evaluations), evaluations, strict=True)
        for domain in e.domains
        for task in domain.skipped
    ]
    return ["", "## Left out", "", "Nothing could be sampled for these tasks.", "", *rows] if rows else []


def _setups(evaluations: Sequence[Evaluation]) -> list[str]:
    return [
        f"- {_plain(heading)}: {_plain(setup(e))}"
        for heading, e in zip(headings(evaluations), evaluations, strict=True)
    ]


def setup(evaluation: Evaluation) -> str:
    """How an evaluation was made, in one line."""
    s, tasks = evaluation.sampling, sum(len(d.tasks) for d in evaluation.domains)
    return (
        f"{evaluation.model or 'unnamed model'}, {tasks} tasks x {evaluation.samples} samples, "
        f"temperature {s.temperature:g}, top-p {s.top_p:g}, top-k {s.top_k}, seed {evaluation.seed}"
    )


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, inside a table, too."""
    for sign in "\\`*_[]<>|":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def summary(evaluation: Evaluation) -> dict[str, Any]:
    """Every headline metric by domain and over domains, as JSON-ready data: the content of `report.json`."""
    k = evaluation.samples
    metrics = [Metric("pass@"), Metric("truncated"), Metric("ungradable"), Metric("tokens")]
    if k > 1:
        metrics += [
            Metric(name, k) for name in ("pass@", "pass^", "mgpass@", "maj@", "worst@", "ceiling@", "tries@", "spent@")
        ]
        metrics += [Metric("gpass@", k, 0.5), Metric("gpass@", k, 0.75)]
        metrics += [Metric("agreement"), Metric("entropy"), Metric("flip")]
    return {
        "schema": REPORT_SCHEMA,
        "model": evaluation.model,
        "label": evaluation.label,
        "sampling": asdict(evaluation.sampling),
        "samples": k,
        "seed": evaluation.seed,
        "domains": {
            d.name: {
                "chance": d.chance,
                "tasks": len(d.tasks),
                "skipped": [{"id": task.id, "reason": task.reason} for task in d.skipped],
                "samples": d.drawn,
                "ungradable": d.ungradable,
                "truncated": d.truncated,
                "failures": dict(modes(d).most_common()),
                "metrics": {str(m): _numbers(asdict(estimate(m, d))) for m in metrics},
            }
            for d in evaluation.domains
        },
        "mean": {str(m): _numbers(asdict(overall(m, evaluation))) for m in metrics},
        "variants": [_variant(row) for row in sensitivities(evaluation)],
        "conversations": _conversations(evaluation),
        "calibration": [_calibration(found) for found in calibrations(evaluation)],
    }


def _calibration(found: Calibration) -> dict[str, Any]:
    figures = _numbers({name: getattr(found, name) for name in ("samples", "confidence", "right", "base", "ece")})
    told = {"domain": found.domain, "source": found.source, **figures}
    return {**told, "brier": _numbers(asdict(found.brier)), "bins": [asdict(one) for one in found.bins]}


def _variant(row: Sensitivity) -> dict[str, Any]:
    figures = {
        name: _numbers(asdict(getattr(row, name))) for name in ("original", "changed", "difference", "flip", "seeds")
    }
    return {
        "domain": row.domain,
        "variant": row.variant,
        **figures,
        **_numbers({"p": row.p}),
        "failures": {mode: count for mode, count, _ in row.failures},
    }


def _conversations(evaluation: Evaluation) -> dict[str, Any] | None:
    talks = evaluation.conversations
    if not talks:
        return None
    return {
        "conversations": len(talks),
        "retention": [_numbers(asdict(found)) for found in retention_by_turn(talks)],
        "by_length": [
            {"from": low, "below": high, **_numbers(asdict(found))} for low, high, found in retention_by_length(talks)
        ],
        "survival": [_numbers(asdict(found)) for found in survival(talks).values],
        "median_turn": survival(talks).median,
        "rules": [
            {name: getattr(rule, name) for name in ("kind", "conversations", "kept", "first", "never", "dropped")}
            | {"median_turn": rule.survival.median}
            for rule in breaking(talks)
        ],
    }


def _numbers(values: dict[str, Any]) -> dict[str, Any]:
    """NaN as None: JSON has no NaN."""
    return {key: None if isinstance(v, float) and math.isnan(v) else v for key, v in values.items()}


def summary_json(evaluations: Sequence[Evaluation]) -> str:
    """`report.json`: the summaries of all stages and the sentences about them."""
    data = {
        "schema": REPORT_SCHEMA,
        "stages": [summary(evaluation) for evaluation in evaluations],
        "findings": report_findings(evaluations),
    }
    return json.dumps(data, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
