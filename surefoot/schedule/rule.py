"""What an allocation rule is: it says which domain and level the next groups come from, and is told how they ended.

Rules work on plain arrays over domains `[D]`, levels `[D, L]` and groups `[m]`; they know nothing of tasks, so that the
simulator and the run use the very same code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Arms:
    """The domains that a rule chooses among. All arrays are `[D]`."""

    names: tuple[str, ...]
    levels: Ints
    """Levels of difficulty, 1 or more; level 0 is the easiest."""
    weights: Floats
    """Priority: what the user wants relative to the other domains; 0 is never drawn."""
    floors: Floats
    """Least share of the groups, whatever the rule thinks."""
    caps: Floats
    """Largest share of the groups."""

    @classmethod
    def of(
        cls,
        weights: Mapping[str, float],
        levels: Mapping[str, int] | None = None,
        floors: Mapping[str, float] | None = None,
        caps: Mapping[str, float] | None = None,
    ) -> Arms:
        """Arms of named domains; what is left out is one level, no floor, no cap."""
        names = tuple(weights)
        return cls(
            names,
            np.array([(levels or {}).get(name, 1) for name in names], dtype=np.int64),
            np.array([weights[name] for name in names], dtype=np.float64),
            np.array([(floors or {}).get(name, 0.0) for name in names]),
            np.array([(caps or {}).get(name, 1.0) for name in names]),
        )

    def __len__(self) -> int:
        return len(self.names)

    @property
    def exists(self) -> Flags:
        """Which cells there are `[D, L]`: domains may have fewer levels than the largest one."""
        return np.arange(int(self.levels.max()))[None, :] < self.levels[:, None]


@dataclass(frozen=True, eq=False)
class Allocation:
    """Where the groups of a step come from; all arrays are `[m]`."""

    domain: Ints
    level: Ints
    samples: Ints

    def __len__(self) -> int:
        return len(self.domain)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """How the groups of a step ended; all arrays are `[m]`, in the order of the draws."""

    domain: Ints
    level: Ints
    asked: Ints
    """Samples that were asked for."""
    valid: Ints
    """Samples that could be graded: a fault of grader or sandbox is no evidence about the policy."""
    passes: Floats
    """Sum of the valid samples' scores in [0, 1]; a count where scores are 0 or 1."""
    cost: Floats
    """Of the whole group, in tokens (or whatever the run counts)."""

    @property
    def mixed(self) -> Flags:
        """Groups that teach something: not all valid samples fared alike."""
        return (self.passes > 0) & (self.passes < self.valid)


class Rule(Protocol):
    """Decides the sampling ratio over domains and levels. A function of what it was told, and of nothing else."""

    def allocate(self, step: int, groups: int, available: Floats) -> Allocation:
        """Where `groups` groups of step `step` come from.

        Args:
            available: `[D]`, from 0 (closed, for example by a circuit breaker) to 1: what multiplies a domain's share.
        """
        ...

    def observe(self, step: int, outcomes: Outcomes) -> None:
        """Take in how the groups of `step` ended."""
        ...

    def state(self) -> dict[str, Any]:
        """All that the next allocation depends on, as JSON-ready data."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state; new domains start afresh, domains that are gone are forgotten."""
        ...


class ArrayState:
    """State that is arrays with one row a domain, kept under the domains' names.

    A subclass lists the names of its arrays in `ARRAYS`; their shapes and types are those that it was built with.
    """

    ARRAYS: tuple[str, ...] = ()
    arms: Arms

    def state(self) -> dict[str, Any]:
        """Every array by name, rows in the order of `domains`; floats survive JSON bit for bit."""
        arrays = {name: getattr(self, name).tolist() for name in self.ARRAYS}
        return {"domains": list(self.arms.names), **arrays}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Rows of domains that are in both; levels that are in both."""
        places = {name: row for row, name in enumerate(state.get("domains", ()))}
        kept = [(row, places[name]) for row, name in enumerate(self.arms.names) if name in places]
        if not kept:
            return
        mine, theirs = map(list, zip(*kept, strict=True))
        for name in self.ARRAYS:
            if name in state:
                _copy_rows(getattr(self, name), mine, state[name], theirs)


def _copy_rows(target: npt.NDArray[Any], mine: list[int], saved: Sequence[Any], theirs: list[int]) -> None:
    rows = np.asarray(saved, dtype=target.dtype)[theirs]
    if target.ndim == 1:
        target[mine] = rows
        return
    shared = min(target.shape[1], rows.shape[1])
    target[mine, :shared] = rows[:, :shared]


def step_generator(seed: int, step: int) -> np.random.Generator:
    """Random numbers that depend on (seed, step) only: a checkpoint holds no generator."""
    return np.random.Generator(np.random.Philox(key=np.array([seed % 2**63, step], dtype=np.uint64)))
