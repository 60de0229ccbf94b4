"""Grades grids of digits, as ARC has them (Chollet, arXiv 1911.01547)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from surefoot.errors import GraderError
from surefoot.protocols import Sandbox
from surefoot.rewards.extract import extract
from surefoot.rewards.verdicts import no_answer, right, wrong
from surefoot.types import Rollout, Task, Verdict

Grid = list[list[int]]
LONGEST = 20_000
"""Characters of an answer; a longer one is not read."""
_ROW = re.compile(r"[\[\s]*\d(?:[\s,]*\d)*[\]\s]*(?:,\s*)?")
"""No two parts can take the same characters: a line of 16,000 spaces must not take seconds."""


@dataclass(frozen=True)
class GridGrader:
    """Right if the answer's grids are `checks["grids"]`, a list of grids (rows of digits), in this order.

    A grid is lines of digits, with or without spaces, commas and brackets; other lines part grids. An answer that
    shows more grids than were asked for is wrong: it does not say which one is meant.
    """

    extract: str = "whole"

    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict:
        wanted = task.checks.get("grids")
        if not wanted:
            raise GraderError("the task has no grids to compare with", where=task.id)
        text = extract(rollout.text, self.extract)
        if text is None:
            return no_answer(self.extract)
        given = read_grids(text)
        if given == [[list(row) for row in grid] for grid in wanted]:
            return right("grids", text)
        return wrong("grids", f"{len(given)} grids, expected {len(wanted)}" if len(given) != len(wanted) else text)


def read_grids(text: str) -> list[Grid]:
    """The grids in a text; none if it is too long."""
    grids: list[Grid] = []
    inside = False
    for line in text.splitlines() if len(text) <= LONGEST else ():
        before, inside = inside, _ROW.fullmatch(line) is not None
        if inside:
            if not before:
                grids.append([])
            grids[-1].append([int(digit) for digit in re.findall("[0-9]", line)])
    return grids


def written(grid: Grid) -> str:
    """A grid as lines of digits."""
    return "\n".join("".join(map(str, row)) for row in grid)
