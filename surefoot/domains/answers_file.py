"""Rows whose answers are in a file of their own, joined by `id`, as BFCL publishes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from surefoot.domains.rows import Row, Rows, open_rows
from surefoot.errors import DataError


@dataclass(frozen=True)
class AnsweredRows:
    """Rows with the columns of their answers."""

    rows: Rows
    answers: Mapping[str, Row]

    def scan(self) -> Iterator[tuple[int, str, Row]]:
        for handle, place, row in self.rows.scan():
            yield handle, place, self._joined(row)

    def load(self, handle: int) -> Row:
        return self._joined(self.rows.load(handle))

    def _joined(self, row: Row) -> Row:
        return {**self.answers.get(str(row.get("id")), {}), **row}


def with_answers(rows: Rows, path: Path, answers_file: str | None) -> Rows:
    """The rows of `path` with those of its file of answers, if one is named or lies where BFCL's does.

    Raises DataError for a named file that is missing, and for a row without an `id` or one that comes twice.
    """
    if answers_file is not None:
        found: Path | None = Path(answers_file).expanduser()
    else:
        found = answers_beside(path)
    if found is None:
        return rows
    answers: dict[str, Row] = {}
    for _, place, row in open_rows(found).scan():
        if row.get("id") is None:
            raise DataError("a row of answers has no id", where=place)
        if str(row["id"]) in answers:
            raise DataError(f"two rows of answers have the id {row['id']!r}", where=place)
        answers[str(row["id"])] = row
    return AnsweredRows(rows, answers)


def answers_beside(path: Path) -> Path | None:
    """The file of answers that lies where BFCL's does, if there is one."""
    beside = (path.with_name(f"{path.stem}.answers{path.suffix}"), path.parent / "possible_answer" / path.name)
    return next((p for p in beside if p.is_file()), None)
