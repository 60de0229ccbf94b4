"""Finding graders that flip coins.

A coin looks like the ideal task: half of its samples pass, for ever. What gives it away is that nothing matters to it.
Real domains have prompts that differ in difficulty, so that passes within a level vary more from group to group than a
binomial would; harder levels that pass less; and rates that move as the policy learns. A domain that shows none of
these after enough groups is suspected, and heard again as soon as it shows one.
"""

from __future__ import annotations

import numpy as np

from surefoot.schedule.rule import Flags, Floats, Ints

ENOUGH = 20.0
"""Groups before a domain can be suspected."""
MEMORY = 150.0
"""Groups of a cell after which its statistics have faded by a factor e."""
SURE = 2.0
"""Standard errors that count as a sign of life."""


class NoiseStatistics:
    """Per cell `[D, L]`: faded sums over groups of the pass rate, its square, and the variance a coin would have."""

    def __init__(self, count: Floats, rate: Floats, square: Floats, coin: Floats) -> None:
        """The arrays are kept, and changed in place."""
        self.count, self.rate, self.square, self.coin = count, rate, square, coin

    def add(self, domain: Ints, level: Ints, rate: Floats, samples: Floats) -> None:
        """One entry a group: its pass rate, over that many samples."""
        cells = (domain, level)
        added = np.zeros_like(self.count)
        np.add.at(added, cells, 1.0)
        fade = np.exp(-added / MEMORY)
        for total, values in ((self.count, 1.0), (self.rate, rate), (self.square, rate**2), (self.coin, 1 / samples)):
            total *= fade
            np.add.at(total, cells, values)

    def suspects(self) -> Flags:
        """Domains `[D]` whose outcomes do not depend on anything, as far as can be seen."""
        count = np.maximum(self.count, 1e-9)
        mean = self.rate / count
        spread = np.maximum(self.square - count * mean**2, 0.0)  # sum of squared deviations within the cell
        binomial = mean * (1 - mean) * self.coin / count  # variance of one group's rate, were it a coin
        seen = self.count > 2
        freedom = np.where(seen, self.count - 1, 0.0).sum(axis=1)
        ratio = np.where(seen, spread / np.maximum(binomial, 1e-9), 0.0).sum(axis=1) / np.maximum(freedom, 1.0)
        groups = self.count.sum(axis=1)
        overall = self.rate.sum(axis=1) / np.maximum(groups, 1e-9)
        even = ratio < 1 + SURE * np.sqrt(2 / np.maximum(freedom, 1.0))
        doubtful: Flags = (groups >= ENOUGH) & (overall > 0.1) & (overall < 0.9) & even & ~self._falls(count, mean)
        return doubtful

    def _falls(self, count: Floats, mean: Floats) -> Flags:
        """Whether pass rates clearly fall with the level: the slope of a weighted regression, in standard errors."""
        level = np.arange(count.shape[1])[None, :]
        weight = np.where(self.count > 2, self.count, 0.0)
        total = np.maximum(weight.sum(axis=1, keepdims=True), 1e-9)
        centred = level - (weight * level).sum(axis=1, keepdims=True) / total
        across = (weight * centred**2).sum(axis=1)
        slope = (weight * centred * mean).sum(axis=1) / np.maximum(across, 1e-9)
        binomial = mean * (1 - mean) * self.coin / count
        error = np.sqrt((weight * centred**2 * binomial).sum(axis=1)) / np.maximum(across, 1e-9)
        falls: Flags = (across > 1e-9) & (slope < -SURE * np.maximum(error, 1e-6))
        return falls
