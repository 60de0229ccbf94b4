"""How fast each domain really learns, held against how fast it should.

Outcomes that differ are a chance to learn, no more: a domain at the ceiling that its wrong reference answers leave, or
one that the policy cannot learn, has them for ever. So the rise of each domain's score over its last groups is compared
with what the rule expected of them; both count in units of the other domains, and little evidence counts little.
"""

from __future__ import annotations

import numpy as np

from surefoot.schedule.rule import Floats, Ints

WINDOW = 30.0
"""Groups of a domain over which its rise is measured."""
CELL = 6.0
"""Groups of a cell after which its counts have faded by a factor e."""
SHRINK = 8.0
"""Samples that all failed, added to each cell: a level is credited only for what was seen."""
TRUST = 0.3
"""Weight of the expectation, in mean expectations over a window: what a domain without evidence is judged by."""


class LearningRates:
    """Faded passes and samples a cell `[D, L]`; the score as it was and the expectation `[D]`, both running means."""

    def __init__(self, passes: Floats, samples: Floats, slow: Floats, expected: Floats, levels: Ints) -> None:
        """The arrays are kept, and changed in place."""
        self.passes, self.samples, self.slow, self.expected, self.levels = passes, samples, slow, expected, levels

    def add(self, domain: Ints, level: Ints, passes: Floats, valid: Floats, expected: Floats) -> None:
        """The groups of a step `[m]`, and what was expected of a group of each domain `[D]`."""
        cells = (domain, level)
        groups = np.zeros_like(self.passes)
        np.add.at(groups, cells, 1.0)
        for total, amount in ((self.passes, passes), (self.samples, valid)):
            total *= np.exp(-groups / CELL)
            np.add.at(total, cells, amount)
        moved = 1 - np.exp(-groups.sum(axis=1) / WINDOW)
        self.slow += moved * (self.scores() - self.slow)
        self.expected += moved * (expected - self.expected)

    def scores(self) -> Floats:
        """Mean pass rate over all levels `[D]`; levels that were not tried count 0."""
        found: Floats = (self.passes / (self.samples + SHRINK)).sum(axis=1) / self.levels
        return found

    def factors(self) -> Floats:
        """Observed by expected rise, `[D]`: about 1 on average, above it for domains that learn fast."""
        risen = np.maximum(self.scores() - self.slow, 0.0)
        total = float(self.expected.sum())
        if total <= 0.0 or not risen.any():
            return np.ones_like(risen)
        expected = self.expected * (float(risen.sum()) / total)
        prior = TRUST * float(expected.mean())
        factors: Floats = (risen + prior) / (expected + prior)
        return factors
