"""Levels of difficulty: one domain whose tasks come in steps, the easiest first, among which the scheduler chooses.

[[domains]]
name = "gcd"
source = "reasoning_gym:gcd"
levels = 4                                                # of the generator's own curriculum

[[domains]]
name = "sums"
source = "reasoning_gym:basic_arithmetic"
levels = [{ max_terms = 2 }, { max_terms = 3 }, { max_terms = 4, max_digits = 3 }]   # options, the easiest first
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from surefoot.config import DomainConfig
from surefoot.domains.reasoning_maker import MAKER
from surefoot.errors import ConfigError
from surefoot.protocols import TaskSource
from surefoot.types import Split, Task


@dataclass(frozen=True)
class LevelSource:
    """One level of a domain; its tasks are told from those of the other levels by their ids."""

    inner: TaskSource
    level: int

    def size(self, split: Split) -> int | None:
        return self.inner.size(split)

    def task(self, split: Split, index: int) -> Task:
        task = self.inner.task(split, index)
        metadata = {**task.metadata, "level": self.level}
        return replace(task, id=f"{task.domain}/{split}/level{self.level}.{index}", metadata=metadata)


@dataclass(frozen=True)
class MixedSource:
    """All levels in turn: what a domain with levels is evaluated on."""

    levels: tuple[TaskSource, ...]

    def size(self, split: Split) -> int | None:
        """As many as are had while every level has another one."""
        sizes = [size for level in self.levels if (size := level.size(split)) is not None]
        return len(self.levels) * min(sizes) if sizes else None

    def task(self, split: Split, index: int) -> Task:
        return self.levels[index % len(self.levels)].task(split, index // len(self.levels))


def at_levels(config: DomainConfig) -> Iterator[DomainConfig]:
    """The entry once for each level, as an entry of a domain without levels; the entry's own options hold at all.

    Raises ConfigError where a number of levels is asked of a source without a curriculum, or there is only one.
    """
    where = f"domains.{config.name}.levels"
    steps = config.levels if isinstance(config.levels, tuple) else _curriculum(config, config.levels, where)
    if len(steps) < 2:
        fix = "give the options of each level instead: levels = [{...}, {...}]"
        raise ConfigError(f"{config.source} has only {len(steps)} level that can be used", where=where, fix=fix)
    for step in steps:
        yield config.model_copy(update={"options": {**step, **config.options}, "levels": 1})


def _curriculum(config: DomainConfig, count: int, where: str) -> tuple[Mapping[str, Any], ...]:
    kind, _, name = config.source.partition(":")
    if kind != "reasoning_gym":
        raise ConfigError(
            f"{config.source} has no curriculum of its own",
            where=where,
            fix="give the options of each level, the easiest first: levels = [{...}, {...}]",
        )
    return tuple(MAKER.curriculum(name, count))
