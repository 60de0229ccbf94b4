"""Reads the rows that `surefoot data ingest` wrote, with what the other steps need of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.data.reading import read
from surefoot.domains.files import make_task
from surefoot.domains.published import recognise
from surefoot.domains.written import TaskFormat
from surefoot.errors import ConfigError, DataError
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


def problem_of(row: Any) -> str:
    """What keeps a row from being one that `surefoot data ingest` writes; empty if it is one."""
    if not isinstance(row, dict):
        return ""
    if lacking := [name for name in ("messages", "checks", "grader") if name not in row]:
        return f"the row has no {', '.join(lacking)}"
    listed = isinstance(row["messages"], list) and row["messages"]
    if not listed or not all(isinstance(m, dict) and isinstance(m.get("content"), str) and "role" in m for m in listed):
        return "messages is not a list of chat messages"
    return ""


def lines(path: Path, skip_bad: bool = False) -> Iterator[Line]:
    """The rows of an ingested file. Raises DataError for any other row, unless bad ones are skipped."""
    for entry in read(str(path)):
        wrong = entry.problem or problem_of(entry.row)
        if not wrong and entry.row is not None:
            yield Line(entry.number, entry.row)
        elif not skip_bad:
            fix = f"surefoot data ingest {path.name} --out tasks.jsonl"
            raise DataError(f"not what `surefoot data ingest` writes: {wrong}", where=f"{path}:{entry.number}", fix=fix)


def outputs(files: Sequence[Path], out: Path) -> list[Path]:
    """Where results go: the file itself for one input, files of their names in the folder for several.

    Raises ConfigError if that is no place for them.
    """
    if len(files) == 1 and out.suffix and not out.is_dir():
        outs = [out]
    else:
        if out.suffix and not out.is_dir():
            raise ConfigError("several inputs need a folder", where=str(out), fix="give a folder")
        outs = [out / path.name for path in files]
    if {path.resolve() for path in files} & {path.resolve() for path in outs}:
        raise ConfigError("an input would be written over", where=str(out), fix="choose another folder")
    if len(set(outs)) < len(outs):
        raise ConfigError("two inputs would become one file", where=str(out), fix="take them one at a time")
    return outs


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
