"""From evaluation files to a report on disk: what `surefoot eval` and `surefoot compare` call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from surefoot.evaluate.files import write_atomically
from surefoot.evaluate.html import to_html
from surefoot.evaluate.records import Evaluation, read
from surefoot.evaluate.report import summary_json, to_markdown


def read_stages(paths: Sequence[Path]) -> list[Evaluation]:
    """The evaluations in files or directories, in the order given: the stages of one report.

    Where two have the same title, all get the name of their directory, so that sentences can tell them apart.
    """
    stages = [read(path) for path in paths]
    if len({stage.title for stage in stages}) == len(stages):
        return stages
    names = [(path if path.is_dir() else path.parent).resolve().name for path in paths]
    if len(set(names)) < len(names):
        names = [path.resolve().name if path.is_file() else str(path) for path in paths]
    return [replace(stage, label=name) for stage, name in zip(stages, names, strict=True)]


def write_report(evaluations: Sequence[Evaluation], directory: Path, *, title: str = "Evaluation") -> list[Path]:
    """Write `report.html`, `report.json` and `report.md`; gives their paths."""
    pages = {
        "report.html": to_html(evaluations, title=title),
        "report.json": summary_json(evaluations),
        "report.md": to_markdown(evaluations),
    }
    for name, text in pages.items():
        write_atomically(directory / name, text)
    return [directory / name for name in pages]
