"""Which prompt of a domain and level is drawn next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from surefoot.schedule.posterior import mixed_share
from surefoot.types import Task, stable_seed

POOLED = 1.0
"""Samples' worth of its level's pass rate that the estimate of a prompt starts from."""
LIKELY = 0.25
"""A prompt whose group is mixed with less than this chance is skipped ..."""
RETRY = 0.1
"""... but for this share of the times that it comes up: policies change."""
TRIES = 32
"""Prompts looked at before the next that may be drawn at all is taken as it comes."""
KEPT = {False: 4096, True: 256}
"""Prompts of a domain that are remembered, of finite and of endless ones; the longest unseen is forgotten first."""
HARD = 0.25
"""A prompt that was passed at all, but by no more than this share, is kept for replay."""
REPLAYS = 16
"""Hard prompts kept for each level."""
OFTEN = 8
"""One draw of so many is a replay, where one is due."""


class Pool(Protocol):
    """The training tasks of one domain as a walk through each of its levels: a cursor in, a task and the next out."""

    @property
    def levels(self) -> int: ...

    @property
    def endless(self) -> bool:
        """Whether new prompts are made without end, so that none needs to be drawn twice."""
        ...

    def train(self, cursor: int, level: int | None = None) -> tuple[Task, int]: ...


@dataclass
class Record:
    """What is known of one prompt."""

    passes: float = 0.0
    valid: float = 0.0
    step: int = 0
    """When it was drawn last."""


@dataclass
class PromptPicker:
    """Walks through a domain's prompts; skips those that would teach nothing, and comes back to hard ones.

    Args:
        window: Steps within which no prompt is drawn twice (unless the level has no other).
        seed: Decides which skipped prompts are tried all the same.
    """

    pool: Pool
    samples: int
    window: int
    seed: int
    cursors: list[int] = field(init=False)
    records: dict[str, Record] = field(default_factory=dict)
    """By hash of the prompt, the longest unseen first."""
    hard: list[list[int]] = field(init=False)
    """Places of hard-but-solved prompts of each level, the oldest first."""
    excluded: set[str] = field(default_factory=set)
    """Hashes of prompts that are never drawn."""
    drawn: int = 0
    skipped: int = 0
    _places: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    """Level, place and prompt hash of the tasks that are being sampled, by task id."""

    def __post_init__(self) -> None:
        self.cursors = [0] * self.pool.levels
        self.hard = [[] for _ in range(self.pool.levels)]

    def pick(self, level: int, step: int, rate: float) -> Task | None:
        """The next task of a level; None where the level has no more than are being sampled already.

        Args:
            rate: Pass rate believed of the level, from which the estimate of each prompt starts.
        """
        self.drawn += 1
        task = (self._replay(level, step) if self.drawn % OFTEN == 0 else None) or self._walk(level, step, rate)
        if task is not None:
            self._touch(task.prompt_hash, step)
        return task

    def refuse(self, task: Task) -> None:
        """The task that was picked last cannot be sampled: forget it, and never pick it again."""
        del self._places[task.id]
        self.records.pop(task.prompt_hash, None)
        self.excluded.add(task.prompt_hash)

    def observe(self, task_id: str, passes: float, valid: int) -> None:
        """How the group of a task that was picked in this step ended."""
        level, place, key = self._places.pop(task_id)
        record = self.records.get(key)
        if record is not None:
            record.passes, record.valid = 0.5 * record.passes + passes, 0.5 * record.valid + valid
        hard = 0 < passes <= HARD * valid
        if hard and place not in self.hard[level]:
            self.hard[level] = [*self.hard[level], place][-REPLAYS:]
        elif not hard and valid and place in self.hard[level]:
            self.hard[level].remove(place)

    def state(self) -> dict[str, Any]:
        records = [[key, r.passes, r.valid, r.step] for key, r in self.records.items()]
        return {
            "cursors": list(self.cursors),
            "hard": [list(places) for places in self.hard],
            "counts": [self.drawn, self.skipped],
            "records": records,
            "excluded": sorted(self.excluded),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Levels that the domain no longer has are forgotten."""
        for level, cursor in enumerate(state["cursors"][: len(self.cursors)]):
            self.cursors[level] = int(cursor)
        for level, places in enumerate(state["hard"][: len(self.hard)]):
            self.hard[level] = [int(place) for place in places]
        self.excluded = set(state.get("excluded", ()))
        self.drawn, self.skipped = map(int, state["counts"])
        self.records = {key: Record(float(p), float(v), int(s)) for key, p, v, s in state["records"]}

    # ------------------------------------------------------------------------------------------------------- inside

    def _walk(self, level: int, step: int, rate: float) -> Task | None:
        for attempt in range(2 * TRIES):
            task, after = self.pool.train(self.cursors[level], level)
            self.cursors[level] = after
            if self._worth(task, step, rate, last=attempt >= TRIES - 1):
                self._places[task.id] = level, after - 1, task.prompt_hash
                return task
            self.skipped += 1
        return None

    def _worth(self, task: Task, step: int, rate: float, last: bool) -> bool:
        """Whether to draw it; a `last` one is drawn unless it is being sampled already, or excluded."""
        if task.id in self._places or task.prompt_hash in self.excluded:
            return False
        record = self.records.get(task.prompt_hash)
        if record is None or last:
            return True
        if step - record.step < self.window:
            return False
        a, b = POOLED * rate + record.passes, POOLED * (1 - rate) + record.valid - record.passes
        likely = mixed_share(max(a, 0.01), max(b, 0.01), self.samples) >= LIKELY
        return likely or stable_seed(self.seed, "retry", step, task.id) % 1000 < 1000 * RETRY

    def _replay(self, level: int, step: int) -> Task | None:
        for place in self.hard[level]:
            task, after = self.pool.train(place, level)
            record = self.records.get(task.prompt_hash)
            rested = record is None or step - record.step >= self.window
            barred = task.id in self._places or task.prompt_hash in self.excluded
            if after == place + 1 and rested and not barred:
                self._places[task.id] = level, place, task.prompt_hash
                return task
        return None

    def _touch(self, key: str, step: int) -> None:
        record = self.records.pop(key, None) or Record()
        record.step = step
        self.records[key] = record
        while len(self.records) > KEPT[self.pool.endless]:
            del self.records[next(iter(self.records))]
