"""Rules that need the whole file: duplicates, and which answers there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from surefoot.data.clusters import Settings, find_clusters
from surefoot.data.lint.rules import Problem
from surefoot.types import Task

FEWEST = 20
"""Rows below which nothing can be said of the answers."""
MOST = 0.6
"""Share of the rows that one answer may be right for."""
UNLIKELY = 1e-6
MOST_ANSWERS = 100_000
"""Distinct answers that are counted."""


def duplicate_problems(path: Path, ids: dict[int, str]) -> Iterator[Problem]:
    """Rows that an earlier one is the same as, and pairs that contradict each other; bad rows are passed over.

    Args:
        ids: Ids of rows by line, where they are known.
    """
    found = find_clusters([path], Settings(), skip_bad=True)
    for row, head in enumerate(found.heads):
        if head == row:
            continue
        line, first = found.numbers[row], found.numbers[int(head)]
        if found.similarity[row] > 1:
            yield Problem("duplicate", line, ids.get(line, ""), f"equal to line {first}")
        else:
            alike = f"similarity {found.similarity[row]:.2f} within the cluster of line {first}"
            yield Problem("near-duplicate", line, ids.get(line, ""), alike)
    for one, other in found.contradictions:
        line, first = found.numbers[other], found.numbers[one]
        yield Problem("contradiction", line, ids.get(line, ""), f"the text of line {first} with another answer")


class Answers:
    """Counts answers, and the places of right options."""

    def __init__(self) -> None:
        self.texts: Counter[str] = Counter()
        self.places: Counter[tuple[int, int]] = Counter()
        """(place of the right option, number of options)."""

    def add(self, task: Task, grader: str) -> None:
        answer = task.checks.get("answer")
        if not isinstance(answer, str):
            return
        text = answer.strip()
        if text in self.texts or len(self.texts) < MOST_ANSWERS:
            self.texts[text] += 1
        options = task.checks.get("choices")
        if grader == "choice" and options:
            letters = list(options) if isinstance(options, dict) else [chr(65 + i) for i in range(len(options))]
            letter = text.strip("() .")
            if letter in letters:
                self.places[letters.index(letter), len(letters)] += 1

    def problems(self) -> Iterator[Problem]:
        total = self.texts.total()
        if total < FEWEST:
            return
        answer, count = self.texts.most_common(1)[0]
        if count > MOST * total:
            yield Problem("lopsided-answers", 0, "", f"{answer[:60]!r} is right for {count:,} of {total:,} rows")
        for options in sorted({options for _, options in self.places}):
            yield from self._uneven(options)

    def _uneven(self, options: int) -> Iterator[Problem]:
        from scipy.stats import chisquare

        counts = [self.places[place, options] for place in range(options)]
        if sum(counts) < FEWEST or sum(counts) < 5 * options:
            return
        if chisquare(counts).pvalue < UNLIKELY:
            told = ", ".join(f"{chr(65 + place)} {count}" for place, count in enumerate(counts))
            yield Problem(
                "lopsided-answers", 0, "", f"of {options} options, the right one is not evenly placed: {told}"
            )
