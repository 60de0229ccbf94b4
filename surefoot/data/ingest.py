"""Brings files of any known form into the one that domains read, and lists every row that did not make it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.data.card import Card, Step, card_path, origin_of
from surefoot.data.mapping import Join, Mapping
from surefoot.data.reading import Read, file_hash, read
from surefoot.data.writing import Writer, canonical
from surefoot.domains.answers_file import answers_beside
from surefoot.domains.files import make_task
from surefoot.domains.formats import Format
from surefoot.errors import DataError


@dataclass
class Summary:
    """What became of the rows."""

    out: Path
    rows: int = 0
    """Rows read."""
    written: int = 0
    rejected: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    """How often each reason occurred; without what differs from row to row."""
    formats: dict[str, str] = field(default_factory=dict)
    """Format of each file."""

    @property
    def rejects(self) -> Path:
        """The list of rejected rows, one JSON object a line; there if any was rejected."""
        return self.out.with_name(f"{self.out.name}.rejects.jsonl")


def ingest(
    inputs: Sequence[str],
    out: Path,
    mapping: Mapping | None = None,
    *,
    progress: Callable[[Summary], None] | None = None,
) -> Summary:
    """Read all files in order and write their tasks to `out`, a card beside it.

    Args:
        inputs: Paths or fsspec URLs.
        progress: Called every 10,000 rows.

    Raises:
        DataError: a file cannot be read or recognised; files whose tasks need different graders; no good row at all.
    """
    mapping = mapping or Mapping()
    summary = Summary(out)
    grader: str | None = None
    summary.rejects.unlink(missing_ok=True)
    with Writer(out) as writer, _Rejects(summary) as rejects:
        for url in inputs:
            layout: Format | None = None
            join = _join_of(mapping, url)
            joined = _joined(join)
            for entry in read(url, mapping.rows):
                summary.rows += 1
                if progress and summary.rows % 10_000 == 0:
                    progress(summary)
                if entry.row is None:
                    rejects.add(url, entry, entry.problem)
                    continue
                row = {**joined.get(str(entry.row.get(join.on)), {}), **entry.row} if join else entry.row
                if layout is None:
                    layout = mapping.layout(row, f"{url}:{entry.number}")
                    summary.formats[url] = layout.name
                    grader = _same_grader(grader, layout.grader, url)
                _take(row, layout, url, entry, writer, rejects)
        summary.written = writer.rows
        if not summary.written:
            first = summary.reasons.most_common(1)
            what = f"no row could be used: {first[0][0]}" if first else "there are no rows"
            raise DataError(what, where=", ".join(inputs), fix=f"see {summary.rejects}" if first else None)
    _write_card(inputs, mapping, summary)
    return summary


def _take(row: Any, layout: Format, url: str, entry: Read, writer: Writer, rejects: _Rejects) -> None:
    place = f"{url}:{entry.number}"
    try:
        made = canonical(make_task(row, layout, "data", "train", 0, place), layout, f"{Path(url).name}:{entry.number}")
        writer.write(made)
    except DataError as error:
        rejects.add(url, entry, error.what)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        rejects.add(url, entry, f"{type(error).__name__}: {error}")


class _Rejects:
    """The file of rejected rows, made when the first one comes."""

    def __init__(self, summary: Summary) -> None:
        self._summary = summary
        self._file: Any = None

    def __enter__(self) -> _Rejects:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, url: str, entry: Read, reason: str) -> None:
        if self._file is None:
            self._file = self._summary.rejects.open("w", encoding="utf-8", errors="replace")
        self._summary.rejected += 1
        kind = reason.partition(": ")[0]
        self._summary.reasons[kind if len(self._summary.reasons) < 1000 else "other"] += 1
        shown = entry.shown or json.dumps(entry.row, ensure_ascii=False, default=str)[:200]
        line = {"file": url, "line": entry.number, "reason": reason[:500], "row": shown}
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _join_of(mapping: Mapping, url: str) -> Join | None:
    """The file of answers of a file: the mapping's, or the one that lies where BFCL's does."""
    if mapping.join is not None or "://" in url:
        return mapping.join
    found = answers_beside(Path(url).expanduser())
    return Join(file=str(found)) if found else None


def _joined(join: Join | None) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for entry in read(join.file) if join else ():
        if entry.row is None or join is None or join.on not in entry.row:
            what = entry.problem or f"there is no column {join.on if join else ''!r}"
            where = f"{join.file if join else ''}:{entry.number}"
            raise DataError(what, where=where, fix="correct [join] in the mapping")
        found[str(entry.row[join.on])] = entry.row
    return found


def _same_grader(known: str | None, grader: str, url: str) -> str:
    if known not in (None, grader):
        raise DataError(
            f"its tasks need the grader {grader!r}, those before it {known!r}",
            where=url,
            fix="ingest them into different files, or set `grader` in the mapping",
        )
    return grader


def _write_card(inputs: Sequence[str], mapping: Mapping, summary: Summary) -> None:
    joins = (join.file for url in inputs if (join := _join_of(mapping, url)))
    files = [*inputs, *dict.fromkeys(joins)]
    sources = tuple(
        origin_of(url, file_hash(url), mapping.source, mapping.license, mapping.url, summary.formats.get(url, "joined"))
        for url in files
    )
    step = Step("ingest", summary.rows, summary.written, {"rejected": dict(summary.reasons.most_common(20))})
    Card(sources, (step,), summary.written, file_hash(summary.out)).save(card_path(summary.out))
