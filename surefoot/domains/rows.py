"""Reads task files: JSON lines, JSON and Parquet, each also gzipped, one row after the other with its place."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from surefoot.errors import DataError

Row = dict[str, Any]
KINDS = (".jsonl", ".json", ".parquet")


class Rows(Protocol):
    """The rows of a file: `scan` reads all of them once, `load` reads one again by the handle that `scan` gave."""

    def scan(self) -> Iterator[tuple[int, str, Row]]:
        """(handle, place such as `file.jsonl:12`, row). Raises DataError at the first malformed one."""
        ...

    def load(self, handle: int) -> Row: ...


def open_rows(path: Path, key: str | None = None) -> Rows:
    """The rows of a file, by its name's ending.

    Args:
        key: In a JSON file, the key of the list of rows; None if there is only one list.

    Raises DataError if the file is missing, or of no kind that is known.
    """
    if not path.is_file():
        what = "this is a folder, not a file" if path.is_dir() else "there is no such file"
        raise DataError(what, where=str(path), fix="give the path of a .jsonl, .json or .parquet file (or .gz)")
    zipped = path.suffix == ".gz"
    kind = Path(path.stem).suffix if zipped else path.suffix
    if kind == ".parquet":
        return ParquetRows(path, _unzipped(path) if zipped else None)
    if kind == ".json":
        content = _unzipped(path) if zipped else path.read_bytes()
        return LineRows(path, content) if is_lines(content) else ListedRows(path, json_rows(path, content, key))
    if kind in (".jsonl", ".ndjson"):
        return LineRows(path, _unzipped(path) if zipped else None)
    raise DataError(
        f"files that end in {kind or 'nothing'!r} are not known", where=str(path), fix=f"use {', '.join(KINDS)}"
    )


@dataclass
class LineRows:
    """One JSON object a line. A plain file is read where it lies; a gzipped one is held in memory."""

    path: Path
    content: bytes | None = None

    def scan(self) -> Iterator[tuple[int, str, Row]]:
        with self._open() as stream:
            handle = 0
            for number, line in enumerate(stream, 1):
                if line.strip():
                    place = f"{self.path}:{number}"
                    yield handle, place, object_of(line, place)
                handle += len(line)

    def load(self, handle: int) -> Row:
        with self._open() as stream:
            stream.seek(handle)
            return object_of(stream.readline(), str(self.path))

    def _open(self) -> BinaryIO:
        return self.path.open("rb") if self.content is None else io.BytesIO(self.content)


@dataclass
class ListedRows:
    """Rows of a JSON file, which can only be read whole."""

    path: Path
    rows: Sequence[Any]

    def scan(self) -> Iterator[tuple[int, str, Row]]:
        for index, row in enumerate(self.rows):
            place = f"{self.path}, row {index + 1}"
            if not isinstance(row, dict):
                raise DataError(f"a row must be an object, not {type(row).__name__}", where=place)
            yield index, place, row

    def load(self, handle: int) -> Row:
        row: Row = self.rows[handle]
        return row


class ParquetRows:
    """Rows of a Parquet file, of which one row group at a time is held in memory."""

    def __init__(self, path: Path, content: bytes | None = None) -> None:
        import pyarrow as arrow
        import pyarrow.parquet as parquet

        self.path = path
        try:
            self._file = parquet.ParquetFile(path if content is None else io.BytesIO(content))
        except (arrow.ArrowInvalid, OSError) as error:
            raise DataError(f"not a Parquet file: {error}", where=str(path)) from None
        groups = self._file.metadata.num_row_groups
        self._starts = [0]
        for group in range(groups):
            self._starts.append(self._starts[-1] + self._file.metadata.row_group(group).num_rows)
        self._held: tuple[int, list[Row]] = (-1, [])

    def scan(self) -> Iterator[tuple[int, str, Row]]:
        for handle in range(self._starts[-1]):
            yield handle, f"{self.path}, row {handle + 1}", self.load(handle)

    def load(self, handle: int) -> Row:
        group = next(g for g, end in enumerate(self._starts[1:]) if handle < end)
        if self._held[0] != group:
            self._held = group, self._file.read_row_group(group).to_pylist()
        return self._held[1][handle - self._starts[group]]


def object_of(line: bytes, place: str) -> Row:
    """The JSON object on a line. Raises DataError if it is none."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        shown = line.decode("utf-8", "replace").strip()[:60]
        fix = "each line must be one JSON object"
        raise DataError(f"malformed line: {error}: {shown}", where=place, fix=fix) from None
    if not isinstance(row, dict):
        raise DataError(f"a line must be one JSON object, not {type(row).__name__}", where=place)
    return row


def is_lines(content: bytes) -> bool:
    """Whether a file called .json has an object a line, as BFCL's have."""
    first, _, rest = content.lstrip().partition(b"\n")
    if not rest.lstrip().startswith(b"{"):
        return False
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def json_rows(path: Path, content: bytes, key: str | None) -> Sequence[Any]:
    """The rows in a JSON file. Raises DataError if it is malformed or it is not clear where they are."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        line = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        fix = "if each line is one object, call the file .jsonl"
        raise DataError(f"not valid JSON: {error}", where=f"{path}{line}", fix=fix) from None
    if isinstance(data, list):
        return data
    lists = {name: value for name, value in data.items() if isinstance(value, list)} if isinstance(data, dict) else {}
    if key is None and len(lists) == 1:
        return next(iter(lists.values()))
    if key in lists:
        return lists[key]
    found = f"lists in it: {', '.join(lists)}" if lists else "there is no list in it"
    raise DataError("the rows are not found", where=str(path), fix=f'options.rows = "KEY"; {found}')


def _unzipped(path: Path) -> bytes:
    try:
        with gzip.open(path) as stream:
            return stream.read()
    except (OSError, EOFError) as error:
        raise DataError(f"cannot be unzipped: {error}", where=str(path)) from None
