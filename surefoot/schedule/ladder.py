"""Level curricula of the other rules: a window of levels that only moves up (RLVE, arXiv 2511.07317)."""

from __future__ import annotations

import numpy as np

from surefoot.schedule.rule import Floats, Ints, Outcomes


class Ladder:
    """Levels are drawn evenly from the `window` levels up to the top; the top rises when it is passed often enough."""

    def __init__(self, levels: Ints, top: Ints, tried: Floats, passed: Floats, *, window: int = 4, rises: float = 0.9):
        """The arrays `[D]` are kept, and changed in place."""
        self.levels, self.top, self.tried, self.passed = levels, top, tried, passed
        self.window, self.rises = window, rises

    def draw(self, domain: Ints, generator: np.random.Generator) -> Ints:
        """A level for each group."""
        lowest = np.maximum(self.top[domain] - self.window + 1, 0)
        spread = self.top[domain] - lowest + 1
        levels: Ints = lowest + (generator.random(len(domain)) * spread).astype(np.int64)
        return levels

    def observe(self, outcomes: Outcomes) -> None:
        """After 8 groups at the top level, rise if their pass rate was at least `rises`; else count anew."""
        o = outcomes
        at_top = (o.level == self.top[o.domain]) & (o.valid > 0)
        np.add.at(self.tried, o.domain[at_top], 1.0)
        np.add.at(self.passed, o.domain[at_top], o.passes[at_top] / o.valid[at_top])
        judged = self.tried >= 8
        self.top[judged & (self.passed >= self.rises * self.tried) & (self.top < self.levels - 1)] += 1
        self.tried[judged] = 0.0
        self.passed[judged] = 0.0
