"""Reads files of rows one after the other: JSONL, JSON, Parquet and CSV, also .gz and .zst, local or by fsspec URL.

Only a JSON file is read whole; of all others a few rows are held in memory.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from surefoot.domains.rows import Row, is_lines, json_rows, object_of
from surefoot.errors import DataError

KINDS = (".jsonl", ".ndjson", ".json", ".parquet", ".csv", ".tsv")
LONGEST_LINE = 64_000_000
"""Bytes; a longer line is a fault of the file."""


@dataclass(frozen=True, slots=True)
class Read:
    """One row, or what is wrong with it."""

    number: int
    """Line of the file, or number of the row, from 1."""
    row: Row | None
    problem: str = ""
    shown: str = ""
    """The beginning of a malformed line."""


def read(url: str, key: str | None = None) -> Iterator[Read]:
    """All rows of a file, bad ones with their problem.

    Raises DataError if the file cannot be opened, is of no known kind, or breaks off in the middle.
    """
    kind, packing = kind_of(url)
    try:
        with _open(url, packing) as stream:
            if kind == ".parquet":
                yield from _parquet(stream, packing)
            elif kind in (".csv", ".tsv"):
                yield from _table(stream, "\t" if kind == ".tsv" else ",")
            elif kind == ".json":
                yield from _json(stream, url, key)
            else:
                yield from _lines(stream, url)
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError("there is no such file", where=url) from None
    except ImportError as missing:
        raise DataError(f"cannot be read: {missing}", where=url, fix="pip install 'surefoot[data]'") from None
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"cannot be read: {error}", where=url) from None
    except Exception as error:  # zstandard has an error class of its own, and is not always installed
        if type(error).__module__.partition(".")[0] not in ("zstandard", "zstd", "zlib", "pyarrow"):
            raise
        raise DataError(f"cannot be read: {error}", where=url) from None


def kind_of(url: str) -> tuple[str, str]:
    """The kind of a file and its packing (`.gz`, `.zst` or empty). Raises DataError for an unknown kind."""
    path = PurePosixPath(url.partition("?")[0] if "://" in url else url)
    packing = path.suffix if path.suffix in (".gz", ".zst") else ""
    kind = PurePosixPath(path.stem).suffix if packing else path.suffix
    if kind not in KINDS:
        raise DataError(
            f"files that end in {kind or 'nothing'!r} are not known", where=url, fix=f"use {' '.join(KINDS)}"
        )
    return kind, packing


def file_hash(path: str | Path) -> str:
    """SHA-256 of a local file, in hexadecimal; of a remote one, after reading it once more."""
    digest = hashlib.sha256()
    with _open(str(path), "") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _open(url: str, packing: str) -> Any:
    if "://" in url:
        import fsspec

        return _unpacked(fsspec.open(url, "rb").open(), packing)
    return _unpacked(Path(url).expanduser().open("rb"), packing)


def _unpacked(stream: Any, packing: str) -> Any:
    if packing == ".gz":
        return gzip.GzipFile(fileobj=stream)
    if packing == ".zst":
        import zstandard

        return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True))
    return stream


def _lines(stream: IO[bytes], url: str) -> Iterator[Read]:
    number = 0
    while line := stream.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            raise DataError(f"a line of more than {LONGEST_LINE} bytes", where=f"{url}:{number}")
        if line.strip():
            yield _line(line, number)


def _line(line: bytes, number: int) -> Read:
    try:
        return Read(number, object_of(line, ""))
    except DataError as error:
        return Read(number, None, error.what, line.decode("utf-8", "replace").strip()[:200])


def _json(stream: IO[bytes], url: str, key: str | None) -> Iterator[Read]:
    """A JSON document, or lines of JSON under the name of one."""
    first = stream.readline(LONGEST_LINE)
    second = stream.readline(LONGEST_LINE)
    if is_lines(first + second):
        yield from _lines(io.BytesIO(first), url)
        yield _line(second, 2)
        yield from (Read(r.number + 2, r.row, r.problem, r.shown) for r in _lines(stream, url))
        return
    for number, row in enumerate(json_rows(Path(url), first + second + stream.read(), key), 1):
        good = isinstance(row, dict)
        yield Read(number, row if good else None, "" if good else f"a {type(row).__name__}, not an object")


def _parquet(stream: Any, packing: str) -> Iterator[Read]:
    import pyarrow.parquet as parquet

    number = 0
    for batch in parquet.ParquetFile(io.BytesIO(stream.read()) if packing else stream).iter_batches(batch_size=1000):
        for row in batch.to_pylist():
            number += 1
            yield Read(number, row)


def _table(stream: Any, delimiter: str) -> Iterator[Read]:
    csv.field_size_limit(LONGEST_LINE)
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
    table = csv.DictReader(text, delimiter=delimiter, strict=True)
    while True:
        began = table.line_num + 1
        try:
            row = next(table)
        except StopIteration:
            return
        except csv.Error as error:
            yield Read(began, None, f"malformed: {error}")
            continue
        values = [value for value in row.values() if isinstance(value, str)]
        if None in row or None in row.values():
            have = len(values) + len(row.get(None) or ())
            yield Read(began, None, f"{have} fields, the head has {len(table.fieldnames or ())}", str(values)[:200])
        elif any("\udc80" <= c <= "\udcff" for value in values for c in value):
            yield Read(began, None, "not valid UTF-8", str(values).encode("utf-8", "replace").decode()[:200])
        else:
            yield Read(began, dict(row))
