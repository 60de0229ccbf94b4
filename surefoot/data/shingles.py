"""Texts as sets of hashed word windows (shingles), a batch of texts at a time.

Case, spacing and most punctuation don't count. A window is at least `words` words and `characters` characters long, so
that grids and sums, whose words are single digits, have windows that say something.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Hashes = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]
T = TypeVar("T")

_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[^\w\s.,!?;:'\"]"
)
_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)
MOST_KNOWN = 1_000_000
"""Words whose hashes are remembered."""


@dataclass(frozen=True)
class Windows:
    """How long a shingle is."""

    words: int = 3
    characters: int = 12


@dataclass(frozen=True)
class Shingled:
    """The shingles of a batch: those of text i are `hashes[starts[i] : starts[i + 1]]`, distinct and sorted."""

    hashes: Hashes
    starts: Counts
    numbers: Words
    """A hash of the numerals of each text, in any order."""


class _Known(dict[str, int]):
    """Hashes of words; the lowest bit says whether the word is a numeral."""

    def __missing__(self, word: str) -> int:
        if len(self) >= MOST_KNOWN:
            self.clear()
        crc = zlib.crc32(word.encode("utf-8", "surrogatepass"))
        mixed = ((crc + 1) * 0xD6E8FEB86659FD93 + len(word)) & 0xFFFFFFFFFFFFFFFF
        mixed ^= mixed >> 32
        self[word] = (mixed & ~1) | word[0].isdigit()
        return self[word]


_known = _Known()


def words_of(text: str) -> list[str]:
    """The words of a text, of lower case; a symbol of code or mathematics is a word, a comma is none."""
    return _WORD.findall((text if text.isascii() else unicodedata.normalize("NFKC", text)).casefold())


def shingles(texts: Sequence[str], windows: Windows = Windows()) -> Shingled:
    """Hash all windows of every text. A text that is shorter than a window has one shingle, one without words none."""
    split = [words_of(text) for text in texts]
    flat = [word for words in split for word in words]
    hashes = np.fromiter(map(_known.__getitem__, flat), np.uint64, len(flat))
    widths = np.fromiter(map(len, flat), np.int64, len(flat))
    bounds = np.concatenate([[0], np.cumsum([len(words) for words in split], dtype=np.int64)])
    found, owners = _windows(hashes, widths, bounds, windows)
    keys = np.unique((owners.astype(np.uint64) << np.uint64(32)) | found)
    starts = np.searchsorted(keys, np.arange(len(texts) + 1, dtype=np.uint64) << np.uint64(32))
    numerals = np.concatenate([[np.uint64(0)], np.cumsum(_mix(hashes) * (hashes & np.uint64(1)), dtype=np.uint64)])
    return Shingled((keys & np.uint64(0xFFFFFFFF)).astype(np.uint32), starts, np.diff(numerals[bounds]))


def _windows(hashes: Words, widths: Counts, bounds: Counts, windows: Windows) -> tuple[Words, Counts]:
    """Hash (32 bits) and text of each window; by prefix sums of a polynomial over words, modulo 2^64."""
    total, texts = len(hashes), len(bounds) - 1
    powers = _powers(total, _BASE)
    prefix = np.concatenate([[np.uint64(0)], np.cumsum(hashes * powers, dtype=np.uint64)])
    passed = np.concatenate([[0], np.cumsum(widths)])
    begins = np.arange(total, dtype=np.int64)
    owners = np.repeat(np.arange(texts, dtype=np.int64), np.diff(bounds))
    ends = np.maximum(begins + windows.words, np.searchsorted(passed, passed[:-1] + windows.characters))
    whole = ends <= bounds[1:][owners]
    short = np.setdiff1d(np.flatnonzero(np.diff(bounds) > 0), owners[whole])
    begins = np.concatenate([begins[whole], bounds[short]])
    ends = np.concatenate([ends[whole], bounds[short + 1]])
    values = (prefix[ends] - prefix[begins]) * _powers(total, _INVERSE)[begins]
    return _mix(values) >> np.uint64(32), np.concatenate([owners[whole], short])


def _powers(count: int, base: int) -> Words:
    steps = np.full(count, base, np.uint64)
    if count:
        steps[0] = 1
    return np.cumprod(steps, dtype=np.uint64)


def _mix(values: Words) -> Words:
    """The finaliser of MurmurHash3 (Appleby, 2011)."""
    values = values ^ (values >> np.uint64(33))
    values = values * np.uint64(0xFF51AFD7ED558CCD)
    values = values ^ (values >> np.uint64(33))
    values = values * np.uint64(0xC4CEB9FE1A85EC53)
    return values ^ (values >> np.uint64(33))


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in lists of `size`."""
    walk = iter(items)
    while batch := list(islice(walk, size)):
        yield batch
