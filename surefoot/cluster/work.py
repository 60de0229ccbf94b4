"""What is still to be sampled in one call of `rollout`, in portions that can be given to another engine."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from surefoot.types import Draw, Rollout, stable_seed


@dataclass(slots=True)
class Portion:
    """Draws given to one engine, with the samples of each that have not come back."""

    draws: dict[str, Draw]
    """By task; with all seeds."""
    missing: dict[str, list[int]]

    def asked(self) -> list[Draw]:
        """The same, for the engine: as many samples as are missing, each with its own seed."""
        return [
            replace(draw, samples=len(left), seeds=tuple(draw.seeds[i] for i in left))
            for task, draw in self.draws.items()
            if (left := self.missing[task])
        ]


class Work:
    """Portions that wait, and those that engines have."""

    def __init__(self, draws: Sequence[Draw], most_samples: int) -> None:
        """`most_samples`: of a portion, unless one draw alone has more."""
        self.most = most_samples
        self.waiting: deque[tuple[Draw, list[int]]] = deque(
            (with_seeds(draw), list(range(draw.samples))) for draw in draws
        )
        self.given: dict[str, tuple[Portion, dict[str, list[int]]]] = {}
        """By engine: the portion, and for each task which samples were asked for, in their order."""

    @property
    def unfinished(self) -> bool:
        """Whether anything is waiting or with an engine."""
        return bool(self.waiting or self.given)

    def give(self, engine: str, engines: int) -> list[Draw]:
        """A portion for an engine, one of `engines` that share the work; empty if nothing waits.

        No two draws of a portion are of the same task: what comes back could not be told apart.
        """
        share = math.ceil(len(self.waiting) / max(1, engines))
        portion, later, samples = Portion({}, {}), deque[tuple[Draw, list[int]]](), 0
        while self.waiting and len(portion.draws) < share:
            draw, missing = self.waiting[0]
            if portion.draws and samples + len(missing) > self.most:
                break
            self.waiting.popleft()
            if draw.task.id in portion.draws:
                later.append((draw, missing))
                continue
            portion.draws[draw.task.id], portion.missing[draw.task.id] = draw, missing
            samples += len(missing)
        self.waiting.extendleft(reversed(later))
        if portion.draws:
            self.given[engine] = portion, {task: list(left) for task, left in portion.missing.items()}
        return portion.asked()

    def took(self, engine: str, rollout: Rollout) -> Rollout:
        """A sample that came back, numbered as in its draw."""
        portion, asked = self.given[engine]
        number = asked[rollout.task_id][rollout.sample]
        portion.missing[rollout.task_id].remove(number)
        return replace(rollout, sample=number)

    def finished(self, engine: str) -> None:
        """The engine has nothing left to do."""
        del self.given[engine]

    def lost(self, engine: str) -> int:
        """The engine is gone: what it owes waits again, before all else. Returns how many samples that are."""
        if engine not in self.given:
            return 0
        portion, _ = self.given.pop(engine)
        owed = [(draw, portion.missing[task]) for task, draw in portion.draws.items() if portion.missing[task]]
        self.waiting.extendleft(reversed(owed))
        return sum(len(missing) for _, missing in owed)


def with_seeds(draw: Draw) -> Draw:
    """With the seeds that an engine would choose, so that a sample is the same wherever it is drawn."""
    seeds = draw.seeds or tuple(stable_seed(draw.task.id, index) for index in range(draw.samples))
    return replace(draw, seeds=seeds)
