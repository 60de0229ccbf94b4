"""Writes files again without the rows that an earlier row is the same as, within a file and between files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.data.card import Step, follow
from surefoot.data.clusters import Clusters, Progress, Settings, find_clusters
from surefoot.data.tasks import lines
from surefoot.data.writing import Writer
from surefoot.errors import DataError


@dataclass(frozen=True)
class Deduplicated:
    """What was removed."""

    rows: int
    equal: int
    """Rows of a text that was there before."""
    near: int
    between: Mapping[tuple[str, str], int]
    """Removed rows by (the file of the row, the file of the row that stays); both may be the same."""
    contradictions: int
    """Pairs of equal text but different answers, which stay; at most 10,000 are counted."""

    @property
    def kept(self) -> int:
        return self.rows - self.equal - self.near


def dedup(
    files: Sequence[Path], outs: Sequence[Path], settings: Settings | None = None, progress: Progress | None = None
) -> Deduplicated:
    """Write each file to the output at its place, a card and a list of what was removed beside it.

    Earlier files, and earlier rows, stay. Raises DataError for a file that ingest didn't write, or whose every row is
    somewhere before it.
    """
    settings = settings or Settings()
    found = find_clusters(files, settings, progress)
    between: Counter[tuple[str, str]] = Counter()
    equal = near = 0
    for which, (path, out) in enumerate(zip(files, outs, strict=True)):
        exact, alike = _write(found, which, path, out, between)
        equal, near = equal + exact, near + alike
        rows = found.bounds[which + 1] - found.bounds[which]
        detail: dict[str, Any] = {"equal": exact, "near": alike, "threshold": settings.threshold}
        if len(files) > 1:
            detail["against"] = [other.name for other in files[:which]]
        follow([path], out, Step("dedup", rows, rows - exact - alike, detail))
    return Deduplicated(len(found.heads), equal, near, between, len(found.contradictions))


def _write(found: Clusters, which: int, path: Path, out: Path, between: Counter[tuple[str, str]]) -> tuple[int, int]:
    exact = alike = 0
    removed = out.with_name(f"{out.name}.removed.jsonl")
    with Writer(out) as writer, removed.open("w", encoding="utf-8") as gone:
        for row, line in enumerate(lines(path), found.bounds[which]):
            head = int(found.heads[row])
            if head == row:
                writer.write(line.row)
                continue
            kind = "equal" if found.similarity[row] > 1 else "near"
            exact, alike = exact + (kind == "equal"), alike + (kind == "near")
            file, number = found.place(head)
            between[path.name, file.name] += 1
            told = {"line": line.number, "id": line.row["id"], "kind": kind, "stays": f"{file.name}:{number}"}
            if kind == "near":
                told["similarity"] = round(float(found.similarity[row]), 3)
            gone.write(json.dumps(told, ensure_ascii=False) + "\n")
        if not writer.rows:
            raise DataError("every row of it is in the files before it", where=str(path), fix="leave the file out")
    return exact, alike
