"""How much CPU time and memory a right solution takes beside the reference, in one number that noise does not move."""

from __future__ import annotations

from collections.abc import Sequence

from surefoot.types import Execution

TOLERATED = 1.25
"""Up to so many times the reference's cost is as good as it."""
CPU_FLOOR, MEMORY_FLOOR = 0.01, 8.0
"""Seconds and MiB of difference that a machine makes by itself."""
CPU_SHARE = 0.75
"""Weight of CPU time; memory has the rest."""


def efficiency(own: Sequence[Execution], reference: Sequence[Execution]) -> float:
    """In (0, 1]; 1 for a cost like the reference's or below, half of it for twice what is tolerated.

    Being cheaper than the reference earns no more, so nothing is to be had by returning early where tests are few.
    Both must have run the same tests on this machine.
    """
    seconds = _beside(sum(e.cpu_seconds for e in own), sum(e.cpu_seconds for e in reference), CPU_FLOOR)
    memory = _beside(_peak(own), _peak(reference), MEMORY_FLOOR)
    return CPU_SHARE * seconds + (1 - CPU_SHARE) * memory


def _beside(own: float, reference: float, floor: float) -> float:
    allowed = TOLERATED * reference + floor
    return min(1.0, allowed / own) if own > 0 else 1.0


def _peak(executions: Sequence[Execution]) -> float:
    return max((e.peak_memory_mb for e in executions), default=0.0)
