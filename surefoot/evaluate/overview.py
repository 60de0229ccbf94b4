"""What `surefoot eval` prints: domains, variants, conversations, how samples failed."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from surefoot.evaluate.intervals import Estimate
from surefoot.evaluate.layout import percent
from surefoot.evaluate.records import Evaluation
from surefoot.evaluate.report import report_findings, table
from surefoot.evaluate.retention import breaking, retention_by_turn, survival
from surefoot.evaluate.sensitivity import sensitivities


def overview(evaluation: Evaluation) -> Iterator[RenderableType]:
    """The parts of the overview, in order."""
    yield table([evaluation])
    if any(domain.is_variant for domain in evaluation.domains):
        yield variants_table(evaluation)
    if evaluation.conversations:
        yield turns_table(evaluation)
        yield rules_table(evaluation)
    for sentence in report_findings([evaluation]):
        yield Text(f"- {sentence}")


def variants_table(evaluation: Evaluation) -> Table:
    """A line for each variant of each domain."""
    grid = Table(title="Changed copies of tasks: pass@1 and flips of the grade, %", title_justify="left")
    for name in ("domain", "variant", "tasks", "original", "changed", "points", "flips", "flips between seeds"):
        grid.add_column(name, justify="left" if name in ("domain", "variant") else "right")
    previous = ""
    for row in sensitivities(evaluation):
        mark = " [bold]![/]" if row.matters else ""
        grid.add_row(
            Text("" if row.domain == previous else row.domain),
            Text(row.variant),
            str(row.changed.tasks),
            _plain(row.original),
            _plain(row.changed),
            f"{100 * row.difference.value:+.1f}{mark}" if row.difference.known else "–",
            _plain(row.flip),
            _plain(row.seeds),
        )
        previous = row.domain
    grid.caption, grid.caption_justify = "! Holm-adjusted paired test at 5%", "left"
    return grid


def turns_table(evaluation: Evaluation) -> Table:
    """Retention and survival by turn."""
    talks = evaluation.conversations
    grid = Table(
        title=f"Rules kept over {len(talks)} conversations, % [95% interval over scripts]", title_justify="left"
    )
    for name in ("turn", "rules kept", "conversations without any violation so far"):
        grid.add_column(name, justify="right")
    for turn, (kept, alive) in enumerate(zip(retention_by_turn(talks), survival(talks).values, strict=False), start=1):
        grid.add_row(str(turn), percent(kept), percent(alive))
    return grid


def rules_table(evaluation: Evaluation) -> Table:
    """A line for each kind of rule, those that break first on top."""
    grid = Table(title="Which rules break first, % of the conversations that have them", title_justify="left")
    for name in ("rule", "conversations", "replies that keep it", "breaks first", "never kept", "dropped later"):
        grid.add_column(name, justify="left" if name == "rule" else "right")
    for rule in breaking(evaluation.conversations):
        shares = (f"{100 * value:.0f}" for value in (rule.kept, rule.first, rule.never, rule.dropped))
        grid.add_row(rule.kind, str(rule.conversations), *shares)
    return grid


def _plain(found: Estimate) -> str:
    return f"{100 * found.value:.1f}" if found.known else "–"
