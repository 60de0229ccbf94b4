"""Whether an engine samples from the learner's weights: log-probs of one fixed text under both."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from surefoot.errors import ResourceError

TOLERANCE = {torch.float32: 2e-3, torch.bfloat16: 0.1, torch.float16: 0.02}
"""Largest mean difference of log-probs (nats) that rounding explains, by compute type."""
CLEAR = 4.0
"""A change of the weights shows if it moved the log-probs by this many times the difference of the engines."""


class Proof:
    """Remembers what the learner said before, so that an update that did not arrive shows even if it was small."""

    def __init__(self, tokens: Sequence[int], dtype: torch.dtype) -> None:
        """`tokens` of the text (two or more), and the type in which both sides compute."""
        self.tokens, self.tolerance = tuple(tokens), TOLERANCE.get(dtype, 0.1)
        self.gap = 0.0
        """Mean absolute difference at the last check, in nats."""
        self._noise = 0.0
        self._before: list[float] = []

    def check(self, engine: Sequence[float], learner: Sequence[float], version: int) -> None:
        """Raises ResourceError, which names both sides, where they differ by more than rounding, or where the engine
        stands nearer to the learner's weights before the update than to those after it."""
        self.gap = _distance(engine, learner)
        if not self.gap <= self.tolerance:  # also if it is not a number
            raise self._error(engine, learner, version, f"by {self.gap:.3g} on average, {self.tolerance:g} is allowed")
        if self._before and _distance(learner, self._before) > CLEAR * max(self._noise, 1e-6):
            old = _distance(engine, self._before)
            if old <= self.gap:
                raise self._error(engine, learner, version, f"and the engine's are those of before ({old:.3g} away)")
        else:
            self._noise = max(self._noise, self.gap)
        self._before = list(learner)

    def _error(self, engine: Sequence[float], learner: Sequence[float], version: int, how: str) -> ResourceError:
        def shown(values: Sequence[float]) -> str:
            return ", ".join(f"{value:.4f}" for value in values[:6])

        return ResourceError(
            f"the engine does not sample from the learner's weights of version {version}: log-probs of a fixed text "
            f"differ {how} (engine: {shown(engine)}, ...; learner: {shown(learner)}, ...)",
            where="rollout.engine",
            fix='what was checkpointed is safe; continue with --resume, or with rollout.engine = "local"',
        )


def _distance(a: Sequence[float], b: Sequence[float]) -> float:
    if len(a) != len(b):
        return float("nan")
    return sum(abs(x - y) for x, y in zip(a, b, strict=True)) / max(1, len(a))
