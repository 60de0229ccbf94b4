"""Worked examples as chat turns before each question, and the instruction after it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from surefoot.domains.pool import DEMONSTRATED
from surefoot.errors import ConfigError
from surefoot.protocols import Domain, TaskSource
from surefoot.types import Message, Split, Task

CANDIDATES = 4
"""Tasks looked at for each worked example that is shown."""


def present(answer: str, how: str) -> str:
    """`answer` as a perfect model would write it where the answer is extracted by `how`; the inverse of `extract`."""
    if how == "tag" and "<answer>" not in answer:
        return f"<answer>{answer}</answer>"
    if how == "boxed" and "\\boxed" not in answer:
        return f"\\boxed{{{answer}}}"
    return answer


@dataclass(frozen=True)
class PresentedSource:
    """Another source whose tasks carry the instruction, and their reference answer in the form that is asked for."""

    inner: TaskSource
    how: str
    instruction: str = ""

    def size(self, split: Split) -> int | None:
        return self.inner.size(split)

    def task(self, split: Split, index: int) -> Task:
        task = self.inner.task(split, index)
        messages = task.messages
        if self.instruction:
            last: Message = {**messages[-1], "content": f"{messages[-1]['content'].rstrip()}\n{self.instruction}"}
            messages = (*messages[:-1], last)
        metadata: Mapping[str, Any] = task.metadata
        if metadata.get("answer") is not None:
            metadata = {**metadata, "answer": present(str(metadata["answer"]), self.how)}
        return replace(task, messages=messages, metadata=metadata)


@dataclass(frozen=True)
class ShotSource:
    """Another source whose tasks begin with `shots` worked examples, the same ones for every task.

    They are taken from the first tasks of the train split, which are set aside for it: train index i is the inner
    source's `i + reserved`. A task that asks one of their questions all the same is marked in its metadata, and
    `TaskPool` draws it for neither split. Examples with different answers are preferred, so that they do not teach one.
    """

    inner: TaskSource
    shots: int
    name: str
    reserved: int = field(init=False)
    turns: tuple[Message, ...] = field(init=False)
    shown: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        size = self.inner.size("train")
        reserved = self.shots * CANDIDATES if size is None else min(self.shots * CANDIDATES, size // 2)
        examples = _choose([self.inner.task("train", i) for i in range(reserved)], self.shots)
        if len(examples) < self.shots:
            raise ConfigError(
                f"{self.shots} worked examples are asked for, and only {len(examples)} can be had",
                where=f"domains.{self.name}.shots",
                fix="lower shots; an example needs a reference answer and a question of its own",
            )
        turns: list[Message] = []
        for example in examples:
            turns += [*example.messages, {"role": "assistant", "content": str(example.metadata["answer"])}]
        object.__setattr__(self, "reserved", reserved)
        object.__setattr__(self, "turns", tuple(turns))
        object.__setattr__(self, "shown", frozenset(example.prompt_hash for example in examples))

    def size(self, split: Split) -> int | None:
        size = self.inner.size(split)
        return size if size is None or split == "heldout" else size - self.reserved

    def task(self, split: Split, index: int) -> Task:
        if index < 0:
            raise IndexError(index)
        task = self.inner.task(split, index + (self.reserved if split == "train" else 0))
        metadata = {**task.metadata, DEMONSTRATED: True} if task.prompt_hash in self.shown else task.metadata
        system = task.messages[:1] if task.messages[0]["role"] == "system" else ()
        turns = tuple(turn for turn in self.turns if turn["role"] != "system")
        return replace(task, messages=(*system, *turns, *task.messages[len(system) :]), metadata=metadata)


def _choose(candidates: list[Task], count: int) -> list[Task]:
    """`count` tasks with an answer and different prompts; as many different answers as there are come first."""
    fresh: list[Task] = []
    others: list[Task] = []
    prompts: set[str] = set()
    answers: set[str] = set()
    for task in candidates:
        answer = task.metadata.get("answer")
        if answer is None or task.prompt_hash in prompts:
            continue
        prompts.add(task.prompt_hash)
        text = re.sub(r"\s+", " ", str(answer))
        (others if text in answers else fresh).append(task)
        answers.add(text)
    return (fresh + others)[:count]


def demonstration(domain: Domain, task: Task) -> str | None:
    """What a perfect model would write for a task of a built domain; None if the task has no reference answer."""
    answer = task.metadata.get("answer")
    return None if answer is None else str(answer)
