"""Writes a file again with what can safely be mended: damaged text repaired, rows that teach nothing right left out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.data.card import Step, follow
from surefoot.data.lint.rowwise import repaired
from surefoot.data.lint.rules import DROPS, RULES
from surefoot.data.lint.run import Report
from surefoot.data.reading import read
from surefoot.data.writing import Writer
from surefoot.errors import DataError


@dataclass(frozen=True)
class Fixed:
    kept: int
    repaired: int
    left_out: int


def fix(path: Path, out: Path, report: Report) -> Fixed:
    """Write `out` and its card. Raises DataError if nothing is left, or the report's list of findings was cut short."""
    dropping = {name for name, rule in RULES.items() if rule.fixed == DROPS}
    drop = {problem.line for problem in report.problems if problem.rule in dropping}
    cut = next(
        (name for name in dropping if report.counts[name] > len([p for p in report.problems if p.rule == name])), ""
    )
    if cut:
        what = f"{report.counts[cut]:,} findings of {cut} are more than are fixed at once"
        raise DataError(what, where=str(path), fix="mend their cause first: ingest again, or surefoot data dedup")
    rows = changed = 0
    with Writer(out) as writer:
        for entry in read(str(path)):
            rows += 1
            if entry.row is None or entry.number in drop:
                continue
            row = _repaired(entry.row)
            changed += row != entry.row
            writer.write(row)
        kept = writer.rows
        if not kept:
            raise DataError("no row is left", where=str(path))
    detail = {"repaired": changed, "left out": {n: report.counts[n] for n in sorted(dropping) if report.counts[n]}}
    follow([path], out, Step("lint --fix", rows, kept, detail))
    return Fixed(kept, changed, rows - kept)


def _repaired(row: dict[str, Any]) -> dict[str, Any]:
    messages = [{**message, "content": repaired(message["content"])} for message in row["messages"]]
    checks = row["checks"]
    if isinstance(checks, dict) and isinstance(checks.get("answer"), str):
        checks = {**checks, "answer": repaired(checks["answer"])}
    return {**row, "messages": messages, "checks": checks}
