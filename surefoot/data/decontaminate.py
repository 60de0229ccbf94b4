"""Removes rows that show what is asked in evaluation files.

A row is contaminated by an evaluation task if it holds most of the task's word n-grams (the task may be embedded in a
longer text), or if the Jaccard similarity of the two texts' shingles is high (the task was reworded a little). Both
are computed exactly, over an inverted index of the evaluation files: these are small, so that there is nothing to
estimate by MinHash. n-grams that many evaluation tasks share say nothing and don't count.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from surefoot.data.card import Step, follow
from surefoot.data.clusters import Progress
from surefoot.data.reading import file_hash
from surefoot.data.shingles import Shingled, Windows, batches, shingles
from surefoot.data.tasks import lines
from surefoot.data.writing import Writer
from surefoot.errors import DataError

BATCH = 1000
FEWEST = 3
"""n-grams of its own that a task must have to be found by; one with fewer is found only if all are there."""


@dataclass(frozen=True)
class Limits:
    ngram: int = 8
    """Words of an n-gram (PaLM's decontamination has 8; Chowdhery et al., arXiv 2204.02311)."""
    contained: float = 0.5
    """Share of a task's n-grams that a row may not reach."""
    similar: float = 0.5
    """Jaccard similarity that a row may not reach."""
    common: float = 0.02
    """n-grams in more than this share of the evaluation tasks don't count, ..."""
    common_tasks: int = 10
    """... if more than so many have them."""


@dataclass(frozen=True)
class Match:
    """Why a row is contaminated."""

    task: int
    """Number of the evaluation task, over all files."""
    contained: float
    similar: float


class Index:
    """The n-grams and shingles of evaluation tasks, to look rows up in.

    Raises DataError for files that ingest didn't write.
    """

    def __init__(self, files: Sequence[Path], limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.places: list[str] = []
        texts: list[str] = []
        for path in files:
            for line in lines(path):
                self.places.append(f"{path.name}:{line.number}")
                texts.append(line.text)
        if not texts:
            raise DataError("there are no evaluation tasks", where=", ".join(map(str, files)))
        self._grams = _Postings(texts, Windows(self.limits.ngram, 0), self.limits)
        self._shingles = _Postings(texts, Windows(), self.limits)

    def matches(self, texts: Sequence[str]) -> list[Match | None]:
        """For each text, the evaluation task that it holds most of; None for a clean one."""
        found: list[Match | None] = [None] * len(texts)
        grams = shingles(texts, Windows(self.limits.ngram, 0))
        for row, task, shared in self._grams.shared(grams):
            size = self._grams.sizes[task]
            needed = self.limits.contained if size >= FEWEST else 1.0
            if shared >= needed * size:
                self._better(found, row, Match(task, shared / size, 0.0))
        made = shingles(texts)
        sizes = self._shingles.own_sizes(made)
        for row, task, shared in self._shingles.shared(made):
            size = self._shingles.sizes[task]
            alike = shared / (size + sizes[row] - shared)
            if alike >= self.limits.similar and size >= FEWEST:
                self._better(found, row, Match(task, 0.0, alike))
        return found

    @staticmethod
    def _better(found: list[Match | None], row: int, match: Match) -> None:
        old = found[row]
        if old is None or max(match.contained, match.similar) > max(old.contained, old.similar):
            found[row] = match


class _Postings:
    """Which tasks each hash is in, as two arrays sorted by hash."""

    def __init__(self, texts: Sequence[str], windows: Windows, limits: Limits) -> None:
        hashes: list[npt.NDArray[np.uint32]] = []
        tasks: list[npt.NDArray[np.int64]] = []
        for first in range(0, len(texts), BATCH):
            made = shingles(texts[first : first + BATCH], windows)
            hashes.append(made.hashes)
            tasks.append(np.repeat(np.arange(len(made.starts) - 1), np.diff(made.starts)) + first)
        every, owners = np.concatenate(hashes), np.concatenate(tasks)
        distinct, counts = np.unique(every, return_counts=True)
        self.common = distinct[counts > max(limits.common * len(texts), limits.common_tasks)]
        rare = ~np.isin(every, self.common)
        order = np.argsort(every[rare], kind="stable")
        self.hashes, self.tasks = every[rare][order], owners[rare][order]
        self.sizes = np.bincount(self.tasks, minlength=len(texts)).tolist()

    def own_sizes(self, made: Shingled) -> list[int]:
        """Shingles of each text that count."""
        rare = ~np.isin(made.hashes, self.common)
        owners = np.repeat(np.arange(len(made.starts) - 1), np.diff(made.starts))
        sizes: list[int] = np.bincount(owners[rare], minlength=len(made.starts) - 1).tolist()
        return sizes

    def shared(self, made: Shingled) -> Iterator[tuple[int, int, int]]:
        """(text, task, hashes that both have) for all pairs that share any."""
        owners = np.repeat(np.arange(len(made.starts) - 1), np.diff(made.starts))
        low, high = (np.searchsorted(self.hashes, made.hashes, side=side) for side in ("left", "right"))
        times = high - low
        hit = np.flatnonzero(times)
        if not len(hit):
            return
        within = np.arange(times[hit].sum()) - np.repeat(np.cumsum(times[hit]) - times[hit], times[hit])
        tasks = self.tasks[np.repeat(low[hit], times[hit]) + within]
        keys, counts = np.unique((np.repeat(owners[hit], times[hit]) << 32) | tasks, return_counts=True)
        yield from zip((keys >> 32).tolist(), (keys & 0xFFFFFFFF).tolist(), counts.tolist(), strict=True)


@dataclass(frozen=True)
class Decontaminated:
    rows: int
    removed: int
    tasks: int
    """Evaluation tasks that were looked for."""
    tasks_found: int
    """Of these: how many some row shows."""


def decontaminate(
    path: Path,
    out: Path,
    against: Sequence[Path],
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Decontaminated:
    """Write the file again without the rows that show a task of `against`; card and list of removed rows beside it.

    Raises DataError for files that ingest didn't write, or if no row is clean.
    """
    index = Index(against, limits)
    rows = 0
    seen: set[int] = set()
    removed = out.with_name(f"{out.name}.removed.jsonl")
    with Writer(out) as writer, removed.open("w", encoding="utf-8") as gone:
        for batch in batches(lines(path), BATCH):
            rows += len(batch)
            for line, match in zip(batch, index.matches([line.text for line in batch]), strict=True):
                if match is None:
                    writer.write(line.row)
                    continue
                seen.add(match.task)
                told = {"line": line.number, "id": line.row["id"], "shows": index.places[match.task]}
                told |= {"contained": round(match.contained, 3), "similar": round(match.similar, 3)}
                gone.write(json.dumps(told, ensure_ascii=False) + "\n")
            if progress:
                progress("read", rows)
        kept = writer.rows
        if not kept:
            raise DataError("every row shows an evaluation task", where=str(path), fix="is it the evaluation file?")
    detail = {"against": {other.name: file_hash(other)[:16] for other in against}, "ngram": index.limits.ngram}
    follow([path], out, Step("decontaminate", rows, kept, detail))
    return Decontaminated(rows, rows - kept, len(index.places), len(seen))
