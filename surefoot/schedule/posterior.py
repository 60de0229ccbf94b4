"""What is believed about pass rates: a Beta posterior a cell (domain x level) that forgets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from surefoot.schedule.rule import Floats, Ints

PRIOR = 0.5
"""Pseudo-counts on either side before anything was seen (Jeffreys)."""


def mixed_probability(a: Floats, b: Floats, samples: int) -> Floats:
    """Expected share of groups of `samples` whose outcomes differ, where the pass rate is Beta(a, b).

        1 - E[p^n] - E[(1-p)^n] = 1 - prod_{i<n} (a+i)/(a+b+i) - prod_{i<n} (b+i)/(a+b+i)

    Such groups are the only ones that GRPO learns from; p(1-p) would undervalue rare successes in large groups.
    """
    all_pass: npt.NDArray[Any] = a / (a + b)
    all_fail = 1.0 - all_pass
    for i in range(1, samples):
        total = a + b + i
        all_pass = all_pass * ((a + i) / total)
        all_fail = all_fail * ((b + i) / total)
    return np.maximum(0.0, 1.0 - all_pass - all_fail)


def mixed_share(a: float, b: float, samples: int) -> float:
    """`mixed_probability` of a single Beta, without the cost of arrays."""
    all_pass = all_fail = 1.0
    for i in range(samples):
        all_pass *= (a + i) / (a + b + i)
        all_fail *= (b + i) / (a + b + i)
    return max(0.0, 1.0 - all_pass - all_fail)


def forget(values: Floats, last: Ints, step: int, memory: float) -> Floats:
    """Evidence `values` as it counts at `step`: it fades by a factor e in `memory` steps since `last`."""
    faded: Floats = values * np.exp((last - step) / memory)
    return faded
