"""Which rows of some files are the same task, or nearly. Rows stay on disk: what is held in memory is 50 bytes a row.

Two rows are duplicates if their texts are equal up to spacing, or if the Jaccard similarity of their shingles reaches a
threshold and their numerals are the same ("3 apples" and "4 apples" are two tasks); and if their answers, where both
have one, are equal. MinHash only proposes pairs: each is then checked on the real shingles. Shingles that very many
rows share (a template's, an instruction's) don't count.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from surefoot.data.minhash import Bands, band_hashes
from surefoot.data.shingles import Counts, Hashes, batches, shingles
from surefoot.data.tasks import Line, lines

Progress = Callable[[str, int], None]
BATCH = 1000
FEWEST = 5
"""Shingles below which texts are too short to be nearly the same."""
HEADS = 8
"""Members of one bucket that a further one is compared with."""
CELLS = 1 << 22
"""Cells that shingles are counted in."""


@dataclass(frozen=True)
class Settings:
    threshold: float = 0.8
    """Jaccard similarity from which texts are nearly the same."""
    common: float = 0.01
    """Shingles in more than this share of the rows don't count ..."""
    common_rows: int = 50
    """... if there are more than so many such rows."""
    numerals: bool = True
    """Texts with different numerals are different."""
    answers: bool = True
    """Texts with different answers are different."""


@dataclass
class Clusters:
    """`heads[i]` is the first row of the cluster that row i belongs to: itself, if there is none before it."""

    files: tuple[Path, ...]
    bounds: tuple[int, ...]
    """Rows of file f: `bounds[f]` to `bounds[f + 1]`."""
    numbers: array[int]
    """Line of each row in its file."""
    heads: npt.NDArray[np.int64]
    similarity: npt.NDArray[np.float32]
    """To the row that it was found to be the same as; 2 for an equal text, 0 for a row of its own."""
    contradictions: list[tuple[int, int]] = field(default_factory=list)
    """Pairs of rows of equal text and different answers; the first 10,000."""
    compared: int = 0

    def place(self, row: int) -> tuple[Path, int]:
        """File and line of a row."""
        which = int(np.searchsorted(self.bounds, row, side="right")) - 1
        return self.files[which], self.numbers[row]


def find_clusters(
    files: Sequence[Path],
    settings: Settings | None = None,
    progress: Progress | None = None,
    *,
    skip_bad: bool = False,
) -> Clusters:
    """Read all files and find duplicates in and between them.

    Raises DataError for a row that ingest didn't write, unless such rows are skipped.
    """
    settings = settings or Settings()
    with tempfile.TemporaryDirectory(prefix="surefoot-dedup-") as scratch:
        store = _Store(Path(scratch), settings, progress or (lambda *_: None))
        store.read(files, skip_bad)
        return store.clusters(files)


class _Store:
    """Rows as shingles on disk, and little of each in memory."""

    def __init__(self, scratch: Path, settings: Settings, progress: Progress) -> None:
        self.scratch, self.settings, self.progress = scratch, settings, progress
        self.bounds, self.numbers = [0], array("Q")
        self.texts, self.answers, self.numerals, self.starts = array("Q"), array("Q"), array("Q"), array("Q", [0])
        self.counts = np.zeros(CELLS, np.uint32)
        self.compared = 0

    def read(self, files: Sequence[Path], skip_bad: bool) -> None:
        with (self.scratch / "shingles").open("wb") as out:
            for path in files:
                for batch in batches(lines(path, skip_bad), BATCH):
                    self._add(batch, out)
                    self.progress("read", len(self.numbers))
                self.bounds.append(len(self.numbers))

    def _add(self, batch: Sequence[Line], out: IO[bytes]) -> None:
        texts = [line.text for line in batch]
        made = shingles(texts)
        self.numbers.extend(line.number for line in batch)
        self.texts.extend(map(_text_hash, texts))
        self.answers.extend(line.answer for line in batch)
        self.numerals.frombytes(made.numbers.tobytes())
        self.starts.frombytes((made.starts[1:] + self.starts[-1]).astype(np.uint64).tobytes())
        np.add.at(self.counts, made.hashes & np.uint32(CELLS - 1), 1)
        out.write(made.hashes.tobytes())

    def clusters(self, files: Sequence[Path]) -> Clusters:
        rows = len(self.numbers)
        found = Clusters(
            tuple(files), tuple(self.bounds), self.numbers, np.arange(rows, dtype=np.int64), np.zeros(rows, np.float32)
        )
        if not rows:
            return found
        self._equal_texts(found)
        with (self.scratch / "shingles").open("rb") as store:
            self._similar_texts(found, store)
        for row in range(rows):  # every head is before its row, so that one pass is enough
            found.heads[row] = found.heads[found.heads[row]]
        found.compared = self.compared
        return found

    def _equal_texts(self, found: Clusters) -> None:
        for members in _buckets(np.frombuffer(self.texts, np.uint64)):
            kept: list[int] = []
            for row in members:
                same = next((head for head in kept if self._answers_agree(head, row)), None)
                if same is not None:
                    _join(found, same, row, 2.0)
                    continue
                if kept and len(found.contradictions) < 10_000:
                    found.contradictions.append((kept[0], row))
                kept.append(row)

    def _similar_texts(self, found: Clusters, store: IO[bytes]) -> None:
        bands = Bands.for_threshold(self.settings.threshold)
        places = self._write_bands(found, bands, store)
        for band in range(bands.count):
            values = np.fromfile(self.scratch / f"band{band}", np.uint64)
            for members in _buckets(values):
                self._compare([int(places[member]) for member in members], found, store)
            self.progress("compared", self.compared)

    def _write_bands(self, found: Clusters, bands: Bands, store: IO[bytes]) -> Counts:
        """Band hashes of the rows that are nobody's equal, a file a band; gives the rows that they are of."""
        places: list[Counts] = []
        outs = [(self.scratch / f"band{band}").open("wb") for band in range(bands.count)]
        try:
            for first in range(0, len(self.numbers), BATCH):
                last = min(first + BATCH, len(self.numbers))
                hashes, owners = self._shingles(store, first, last)
                alone = found.heads[first:last] == np.arange(first, last)
                sizes = np.bincount(owners, minlength=last - first)
                kept = np.flatnonzero(alone & (sizes >= FEWEST))
                if not len(kept):
                    continue
                hashes = hashes[np.isin(owners, kept)]
                starts = np.concatenate([[0], np.cumsum(sizes[kept])[:-1]])
                for out, values in zip(outs, band_hashes(hashes, starts, bands), strict=True):
                    out.write(values.tobytes())
                places.append(kept + first)
                self.progress("hashed", last)
        finally:
            for out in outs:
                out.close()
        return np.concatenate(places) if places else np.zeros(0, np.int64)

    def _compare(self, members: Sequence[int], found: Clusters, store: IO[bytes]) -> None:
        heads: list[tuple[int, Hashes]] = []
        for row in members:
            mine: Hashes | None = None
            for head, theirs in heads:
                if _root(found, head) == _root(found, row):
                    break
                if not self._answers_agree(head, row) or not self._numerals_agree(head, row):
                    continue
                mine = self._shingles(store, row, row + 1)[0] if mine is None else mine
                self.compared += 1
                alike = jaccard(theirs, mine)
                if alike >= self.settings.threshold:
                    _join(found, head, row, alike)
                    break
            else:
                if len(heads) < HEADS:
                    heads.append((row, self._shingles(store, row, row + 1)[0] if mine is None else mine))

    def _answers_agree(self, one: int, other: int) -> bool:
        a, b = self.answers[one], self.answers[other]
        return not self.settings.answers or not a or not b or a == b

    def _numerals_agree(self, one: int, other: int) -> bool:
        return not self.settings.numerals or self.numerals[one] == self.numerals[other]

    def _shingles(self, store: IO[bytes], first: int, last: int) -> tuple[Hashes, Counts]:
        """Shingles of the rows `[first, last)` that are not everybody's, and whose they are; from disk."""
        starts = np.array(self.starts[first : last + 1], np.int64)
        raw = os.pread(store.fileno(), int(starts[-1] - starts[0]) * 4, int(starts[0]) * 4)
        hashes = np.frombuffer(raw, np.uint32)
        owners = np.repeat(np.arange(last - first), np.diff(starts))
        most = max(self.settings.common * len(self.numbers), self.settings.common_rows)
        rare = self.counts[hashes & np.uint32(CELLS - 1)] <= most
        return hashes[rare], owners[rare]


def jaccard(one: Hashes, other: Hashes) -> float:
    """Similarity of two sets of shingles, each sorted and distinct."""
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / max(1, len(one) + len(other) - shared)


def _text_hash(text: str) -> int:
    plain = " ".join(text.split()).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(plain, digest_size=8).digest(), "little")


def _buckets(values: npt.NDArray[Any]) -> Iterator[list[int]]:
    """Places of equal values, in order; of those that come more than once."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    edges = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1], [True]]))
    for which in np.flatnonzero(np.diff(edges) > 1):
        yield order[edges[which] : edges[which + 1]].tolist()


def _root(found: Clusters, row: int) -> int:
    heads = found.heads
    while heads[row] != row:
        heads[row] = heads[heads[row]]
        row = int(heads[row])
    return row


def _join(found: Clusters, one: int, other: int, alike: float) -> None:
    first, second = sorted((_root(found, one), _root(found, other)))
    found.heads[second] = first
    found.similarity[second] = max(found.similarity[second], alike)
    later = max(one, other)
    found.similarity[later] = max(found.similarity[later], alike)
