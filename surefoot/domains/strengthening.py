"""Writes a file of code tasks again, with generated tests beside each row's own (see `rewards.adversarial`).

The tests are kept in one more column, `generated_tests`, as the sandbox's plain-data JSON, so that tuples, sets and nan
survive; `file:PATH` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.config import DomainConfig
from surefoot.domains.files import FileSource, build, make_task
from surefoot.domains.formats import GENERATED
from surefoot.errors import DataError
from surefoot.protocols import Sandbox
from surefoot.rewards.adversarial import Settings, Strengthened, strengthen
from surefoot.rewards.extract import extract
from surefoot.sandbox.inside import codec
from surefoot.types import Task


@dataclass(frozen=True)
class Line:
    """What became of one row."""

    task: Task
    made: Strengthened
    row: Mapping[str, Any]


def strengthen_file(path: Path, sandbox: Sandbox, settings: Settings | None = None) -> Iterator[Line]:
    """Each row of a file of code tasks, in order. A column `precondition` may hold the source of that function.

    Raises DataError for a file that holds no code tasks, or whose rows lack reference solutions.
    """
    config = DomainConfig(name="tasks", source=f"file:{path}", options={"heldout": 0.0})
    source = build(config).source
    assert isinstance(source, FileSource)
    if source.layout.tests is None:
        fix = "give a file with tests and reference solutions, such as HumanEval's or MBPP's"
        raise DataError("the file holds no code tasks", where=str(path), fix=fix)
    for _, place, row in source.files["train"].scan():
        task = make_task(row, source.layout, config.name, "train", 0, place)
        yield Line(task, _strengthened(task, row, place, sandbox, settings), row)


def row_of(line: Line) -> dict[str, Any]:
    """The row with the generated tests."""
    generated = line.made.checks({}).get("generated")
    return {**line.row, **({GENERATED: json.dumps(codec.encode(generated))} if generated else {})}


def _strengthened(
    task: Task, row: Mapping[str, Any], place: str, sandbox: Sandbox, settings: Settings | None
) -> Strengthened:
    answer = task.metadata.get("answer")
    code = extract(answer, "code") if isinstance(answer, str) else None
    if code is None:
        raise DataError("the row has no reference solution", where=place, fix="add a column of solutions")
    precondition = row.get("precondition")
    return strengthen(
        task.checks, code, sandbox, precondition=str(precondition) if precondition else None, settings=settings
    )
