"""Small sources and graders to test with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from surefoot.protocols import Domain, Sandbox
from surefoot.rewards.text import ExactGrader
from surefoot.types import Rollout, Split, Task


def ask(question: str, answer: str | None = "yes", **fields: Any) -> Task:
    checks = {} if answer is None else {"answer": answer}
    metadata = {} if answer is None else {"answer": answer}
    messages = ({"role": "user", "content": question},)
    return Task(f"made/{question}", "made", messages, checks, metadata=metadata, **fields)


@dataclass
class ListSource:
    """Tasks from two lists; `made` counts which were asked for."""

    train: list[Task]
    heldout: list[Task]
    made: list[tuple[str, int]] = field(default_factory=list)

    def size(self, split: Split) -> int | None:
        return len(self.train if split == "train" else self.heldout)

    def task(self, split: Split, index: int) -> Task:
        self.made.append((split, index))
        return (self.train if split == "train" else self.heldout)[index]


@dataclass
class EndlessSource:
    """Tasks without end, of which `distinct` read differently."""

    distinct: int

    def size(self, split: Split) -> int | None:
        return None

    def task(self, split: Split, index: int) -> Task:
        return ask(f"question {index % self.distinct}")


def domain_of(source: Any, grader: Any = None, **fields: Any) -> Domain:
    return Domain("made", source, grader or ExactGrader(), **fields)


def written(task: Task, text: str, sample: int = 0) -> Rollout:
    return Rollout(task.id, task.domain, sample, (1, 2), (False, True), (0.0, -0.5), text, "stop")


class NoSandbox:
    """Fails the test if a grader wants a jail."""

    @property
    def level(self) -> Any:
        raise AssertionError("this answer needs no jail")


NO_SANDBOX: Sandbox = NoSandbox()  # type: ignore[assignment]
