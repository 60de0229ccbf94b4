"""Reads the rows that `surefoot data ingest` wrote, with what the other steps need of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.data.reading import read
from surefoot.domains.files import make_task
from surefoot.domains.published import recognise
from surefoot.domains.written import TaskFormat
from surefoot.errors import DataError
from surefoot.types import Task


@dataclass(frozen=True, slots=True)
class Line:
    """One row of an ingested file."""

    number: int
    """Line of the file, or number of the row, from 1."""
    row: dict[str, Any]

    @property
    def text(self) -> str:
        """What the model sees, without the roles."""
        return "\n".join(message["content"] for message in self.row["messages"])

    @property
    def answer(self) -> int:
        """Hash of the answer, 64 bits; 0 if the row has tests or other checks instead of an answer."""
        checks = self.row.get("checks")
        found = json.loads(checks) if isinstance(checks, str) else checks
        answer = found.get("answer") if isinstance(found, dict) else None
        if answer is None:
            return 0
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return int.from_bytes(hashlib.blake2b(" ".join(text.split()).encode(), digest_size=8).digest(), "little") | 1


def lines(path: Path) -> Iterator[Line]:
    """The rows of an ingested file. Raises DataError for any other file, and at a malformed row."""
    for entry in read(str(path)):
        row = entry.row
        if row is None or not isinstance(row.get("messages"), list) or "checks" not in row or "grader" not in row:
            raise DataError(
                entry.problem or "this is not a row that `surefoot data ingest` writes",
                where=f"{path}:{entry.number}",
                fix=f"surefoot data ingest {path.name} --out tasks.jsonl",
            )
        yield Line(entry.number, row)


def layout_of(line: Line, path: Path) -> TaskFormat:
    """How the rows of the file become tasks."""
    found = recognise(line.row)
    if not isinstance(found, TaskFormat):
        raise DataError("this is not a row that `surefoot data ingest` writes", where=f"{path}:{line.number}")
    return found


def tasks(path: Path, domain: str = "data") -> Iterator[tuple[Line, Task, TaskFormat]]:
    """The rows of an ingested file as tasks."""
    layout: TaskFormat | None = None
    for index, line in enumerate(lines(path)):
        layout = layout or layout_of(line, path)
        yield line, make_task(line.row, layout, domain, "train", index, f"{path}:{line.number}"), layout
