"""The tasks of one domain: a held-out set that is fixed, and training tasks that never show a held-out prompt."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from surefoot.domains.seeds import permuted
from surefoot.errors import DataError
from surefoot.protocols import Domain, TaskSource
from surefoot.types import Split, Task, stable_seed

PATIENCE = 1000
"""Tasks without a new prompt after which an endless source counts as exhausted."""
DEMONSTRATED = "demonstrated"
"""Key of a task's metadata that is true if its own question is among the worked examples of the prompt."""


class TaskPool:
    """Held-out and training tasks of a domain. Tasks are made when they are asked for.

    Args:
        domain: Whose tasks.
        heldout: Distinct held-out prompts to set aside; fewer if the source has no more.
        seed: Decides the order of a finite source.
    """

    def __init__(self, domain: Domain, heldout: int, *, seed: int = 0) -> None:
        self.domain, self.wanted, self.seed = domain, heldout, seed

    @cached_property
    def heldout(self) -> tuple[Task, ...]:
        """The first distinct held-out prompts, at most as many as were asked for. Raises DataError if there is none."""
        if self.wanted == 0:
            return ()
        found: dict[str, Task] = {}
        stale = 0
        for task in self._walk("heldout"):
            stale += 1
            if task.prompt_hash not in found and not task.metadata.get(DEMONSTRATED):
                found[task.prompt_hash] = task
                stale = 0
            if len(found) == self.wanted or stale > PATIENCE:
                break
        if not found:
            raise DataError(
                "there are no held-out tasks",
                where=f"domain {self.domain.name}",
                fix="give the source a held-out share (options.heldout = 0.1) or file (options.heldout_file)",
            )
        return tuple(found.values())

    @cached_property
    def hashes(self) -> frozenset[str]:
        """Prompt hashes of the held-out tasks."""
        return frozenset(task.prompt_hash for task in self.heldout)

    @property
    def levels(self) -> int:
        """Levels of difficulty that a scheduler may choose among."""
        return max(1, len(self.domain.levels))

    @property
    def endless(self) -> bool:
        """Whether training tasks are made without end."""
        return self._train_size(None) is None

    def train(self, cursor: int, level: int | None = None) -> tuple[Task, int]:
        """The next training task of a level (None: of all in turn) at or after `cursor`, and the cursor behind it.

        The cursor counts places of the level's train split, wrapping around a finite source in a new order each time;
        it is all the state there is. Raises DataError for a source without any task that may be trained on.
        """
        source, size = self._source(level), self._train_size(level)
        for place in range(cursor, cursor + (min(2 * size, 10**6) if size is not None else PATIENCE)):
            task = self._task(source, "train", self._index(place, size))
            if task.prompt_hash not in self.hashes and not task.metadata.get(DEMONSTRATED):
                return task, place + 1
        raise DataError(
            f"every training prompt is also one of the {len(self.heldout)} held-out ones or of the worked examples",
            where=f"domain {self.domain.name}",
            fix="make the domain larger (harder options, more rows) or lower evaluate.tasks",
        )

    def behind(self, cursor: int) -> list[int]:
        """Where each level's cursor stands when tasks of all levels in turn were taken up to `cursor`."""
        return [-(-(cursor - level) // self.levels) for level in range(self.levels)]

    def training_tasks(self, cursor: int = 0) -> Iterator[Task]:
        """Training tasks from `cursor` on, without end."""
        while True:
            task, cursor = self.train(cursor)
            yield task

    def _source(self, level: int | None) -> TaskSource:
        return self.domain.levels[level] if level is not None and self.domain.levels else self.domain.source

    def _train_size(self, level: int | None) -> int | None:
        size = self._source(level).size("train")
        if size == 0:
            raise DataError(
                "there are no training tasks",
                where=f"domain {self.domain.name}",
                fix="check that the source has rows, and that shots and the held-out share leave some of them",
            )
        return size

    def _index(self, place: int, size: int | None) -> int:
        if size is None:
            return place
        epoch, place = divmod(place, size)
        return permuted(place, size, stable_seed(self.domain.name, "order", self.seed, epoch))

    def _walk(self, split: Split) -> Iterator[Task]:
        size = self.domain.source.size(split)
        index = 0
        while size is None or index < size:
            yield self._task(self.domain.source, split, index)
            index += 1

    def _task(self, source: TaskSource, split: Split, index: int) -> Task:
        task = source.task(split, index)
        if not task.checks and not task.constraints:
            raise DataError(
                "the task has nothing to check an answer by",
                where=f"domain {self.domain.name}, task {task.id}",
                fix="give it an answer, tests or constraints",
            )
        if not any(message["content"].strip() for message in task.messages):
            raise DataError("the task has an empty prompt", where=f"domain {self.domain.name}, task {task.id}")
        return task
