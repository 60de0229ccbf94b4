"""Splits a file into a part to train on and a part to hold out, so that neither shows what the other asks.

Rows that are nearly the same (whatever their numbers and answers), and rows of the same source where one is named, are
always on the same side.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.data.card import Step, follow
from surefoot.data.clusters import Clusters, Progress, Settings, find_clusters
from surefoot.data.tasks import Line, lines
from surefoot.data.writing import Writer
from surefoot.errors import DataError
from surefoot.types import stable_seed


@dataclass(frozen=True)
class Split:
    train: int
    heldout: int
    groups: int
    """Clusters and sources: what is never divided."""
    largest: int
    """Rows of the largest one."""


def split(
    path: Path,
    train: Path,
    heldout: Path,
    *,
    share: float = 0.1,
    by: str | None = None,
    threshold: float = 0.6,
    seed: int = 0,
    progress: Progress | None = None,
) -> Split:
    """Write both parts and their cards; the same seed gives the same parts.

    Args:
        share: Part of the rows to hold out; fewer where whole groups don't fit.
        by: Rows with the same value of this (`origin`, or a key of the metadata) stay together.
        threshold: Jaccard similarity from which rows stay together.

    Raises DataError if the file was not written by ingest, lacks `by`, or cannot be split at all.
    """
    found = find_clusters([path], Settings(threshold, numerals=False, answers=False), progress)
    if by:
        _join_sources(found, path, by)
    sizes = Counter(found.heads.tolist())
    wanted, chosen, held = share * len(found.heads), set[int](), 0
    for head in sorted(sizes, key=lambda head: stable_seed("split", seed, head)):
        if held + sizes[head] <= wanted + 0.5:
            chosen.add(head)
            held += sizes[head]
    if not held or held == len(found.heads):
        fix = "another --share, a higher --threshold, or without --by"
        raise DataError("it cannot be split: its rows are all in one group", where=str(path), fix=fix)
    with Writer(train) as first, Writer(heldout) as second:
        for row, line in enumerate(lines(path)):
            (second if int(found.heads[row]) in chosen else first).write(line.row)
        counts = first.rows, second.rows
    detail: dict[str, Any] = {"share": share, "by": by, "threshold": threshold, "seed": seed}
    for out, kept in ((train, counts[0]), (heldout, counts[1])):
        follow([path], out, Step("split", sum(counts), kept, detail))
    return Split(*counts, groups=len(sizes), largest=max(sizes.values()))


def _join_sources(found: Clusters, path: Path, by: str) -> None:
    """Put clusters that share a source together (union-find; heads stay the first rows)."""
    parents, first = np.arange(len(found.heads)), dict[str, int]()

    def root(row: int) -> int:
        while parents[row] != row:
            parents[row] = parents[parents[row]]
            row = int(parents[row])
        return row

    for row, line in enumerate(lines(path)):
        source = _value(line, by, path)
        for other in (int(found.heads[row]), first.setdefault(source, row)):
            one, two = sorted((root(row), root(other)))
            parents[two] = one
    found.heads = np.array([root(row) for row in range(len(parents))])


def _value(line: Line, by: str, path: Path) -> str:
    metadata = line.row.get("metadata") or {}
    known = json.loads(metadata) if isinstance(metadata, str) else metadata
    if by == "origin":
        return str(line.row.get("origin", "")).rpartition(":")[0]
    if by not in known:
        keys = ", ".join(["origin", *known])
        raise DataError(f"the row has no {by!r}", where=f"{path}:{line.number}", fix=f"--by one of: {keys}")
    return json.dumps(known[by], sort_keys=True, default=str)
