"""Which checkpoints of a run are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retention:
    """The newest `keep`, every one whose step `keep_every` divides, and the one with the best score."""

    keep: int = 2
    keep_every: int = 0
    """0 for none."""

    def kept(self, scores: Mapping[int, float | None]) -> frozenset[int]:
        """The steps to keep, of checkpoints given as step -> score (larger is better, None where there is none).

        Of equal scores the earliest is the best: what came later gained nothing.
        """
        steps = sorted(scores)
        wanted = set(steps[-self.keep :])
        if self.keep_every:
            wanted |= {step for step in steps if step % self.keep_every == 0 and step > 0}
        known = {step: score for step, score in scores.items() if score is not None}
        if known:
            wanted.add(max(known, key=lambda step: (known[step], -step)))
        return frozenset(wanted)
