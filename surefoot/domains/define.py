"""A domain of your own in a few lines.

    from surefoot import domain, task

    @domain(max_new_tokens=8)
    def doubling(rng):
        n = rng.randint(1, 50)
        return task(f"What is twice {n}?", answer=2 * n)

    @doubling.grader                      # optional: without it, answers are compared as text
    def grade(task, rollout):
        return rollout.text.strip() == task.checks["answer"]

    @doubling.environment                 # optional: what answers the policy's turns, see `protocols.Environment`
    class Teacher:
        def reset(self, task): return task.messages
        def step(self, message): return None if "yes" in message["content"] else [{"role": "user", "content": "No."}]
        def end(self): return {}

In a recipe: `source = "my_domain.py:doubling"`. The function makes one task from a random generator that depends on the
task's place only, so tasks never end and every run sees the same ones. A function with `yield` and a parameter `split`
gives a finite list for `"train"` and for `"heldout"` instead.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from surefoot.domains.seeds import split_seed
from surefoot.errors import DataError
from surefoot.protocols import Environment, EnvironmentMaker, GraderFunction
from surefoot.types import Message, Split, Task

MakeTask = Callable[[random.Random], Task]
ListTasks = Callable[[Split], Iterable[Task]]


@dataclass(eq=False)
class Definition:
    """What `@domain` makes of a function: everything about a domain but its place in a recipe."""

    make: MakeTask | ListTasks
    name: str
    grade_function: GraderFunction | None = None
    grader_name: str = "exact"
    extract: str | None = None
    max_new_tokens: int | None = None
    chance: float = 0.0
    description: str = ""
    make_environment: EnvironmentMaker | None = None
    turns: int | None = None

    def environment(self, maker: Callable[..., Environment]) -> Callable[..., Environment]:
        """Decorator: episodes of many turns, against what `maker()` or `maker(sandbox)` gives: one object an episode.

        It runs in this process; what the model wrote may only be run in the sandbox that it is given.
        """
        takes_sandbox = bool(inspect.signature(maker).parameters)
        self.make_environment = maker if takes_sandbox else lambda sandbox: maker()
        return maker

    def grader(self, function: GraderFunction) -> GraderFunction:
        """Decorator: grade with `function(task, rollout) -> Verdict | float | bool`."""
        self.grade_function = function
        return function

    def __call__(self, argument: Any) -> Any:
        return self.make(argument)

    @property
    def endless(self) -> bool:
        """Whether tasks are made one by one, rather than listed for each split."""
        return not lists_tasks(self.make)


def domain(
    function: MakeTask | ListTasks | None = None,
    /,
    *,
    grader: str = "exact",
    extract: str | None = None,
    max_new_tokens: int | None = None,
    chance: float = 0.0,
    turns: int | None = None,
) -> Any:
    """Decorator: the function makes the tasks of a domain.

    Args:
        function: `function(rng) -> Task`, or a generator function `function(split)` that yields tasks.
        grader: Name of the grader, unless a function is given by `@NAME.grader`.
        extract: How the answer is found in what the model wrote; None for the grader's own way.
        max_new_tokens: Longest answer.
        chance: Pass rate of blind guessing in the right format.
        turns: Most turns of the policy, where there is an environment.
    """

    def define(make: MakeTask | ListTasks) -> Definition:
        summary = (inspect.getdoc(make) or "").strip().splitlines()
        return Definition(
            make=make,
            name=make.__name__,
            grader_name=grader,
            extract=extract,
            max_new_tokens=max_new_tokens,
            chance=chance,
            turns=turns,
            description=summary[0] if summary else "",
        )

    return define if function is None else define(function)


def task(question: str, /, answer: object = None, *, system: str | None = None, **checks: Any) -> Task:
    """A task that asks `question`.

    Args:
        answer: The reference answer; the grader finds it, as text, as `checks["answer"]`.
        system: A system message before the question.
        checks: More that the grader needs. The model sees none of it.
    """
    messages: list[Message] = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": question})
    if answer is None:
        return Task(id="", domain="", messages=tuple(messages), checks=checks)
    text = str(answer)
    return Task("", "", tuple(messages), checks={"answer": text, **checks}, metadata={"answer": text})


@dataclass(frozen=True)
class MadeSource:
    """Tasks that a function makes one by one, each from its own random generator."""

    make: MakeTask
    domain: str
    seed_name: str

    def size(self, split: Split) -> int | None:
        return None

    def task(self, split: Split, index: int) -> Task:
        made = self.make(random.Random(split_seed(self.seed_name, split, index)))
        return _placed(made, self.domain, split, index)


@dataclass(frozen=True)
class ListedSource:
    """Tasks that a generator function yields for each split; kept as far as they were asked for."""

    listing: ListTasks
    domain: str
    _begun: dict[Split, tuple[Iterator[Task], list[Task]]] = field(default_factory=dict)

    def size(self, split: Split) -> int | None:
        """How many there are; None if there are more than `COUNTED`, which may be without end."""
        count = len(self._upto(split, COUNTED))
        return count if count <= COUNTED else None

    def task(self, split: Split, index: int) -> Task:
        if index < 0:
            raise IndexError(index)
        return _placed(self._upto(split, index)[index], self.domain, split, index)

    def _upto(self, split: Split, index: int) -> list[Task]:
        if split not in self._begun:
            self._begun[split] = iter(self.listing(split)), []
        rest, seen = self._begun[split]
        while len(seen) <= index:
            try:
                seen.append(next(rest))
            except StopIteration:
                break
        return seen


COUNTED = 100_000
"""Tasks that are counted before a list is taken for an endless one."""


def lists_tasks(function: Callable[..., Any]) -> bool:
    """Whether `function` lists the tasks of a split, rather than making one from a random generator."""
    names: Mapping[str, inspect.Parameter] = inspect.signature(function).parameters
    return inspect.isgeneratorfunction(function) or "split" in names


def _placed(made: object, name: str, split: Split, index: int) -> Task:
    if not isinstance(made, Task):
        raise DataError(
            f"a task function must give a Task, not {type(made).__name__}",
            where=f"domain {name}, {split} {index}",
            fix='return task("question", answer=...)',
        )
    return replace(made, id=f"{name}/{split}/{made.id or index}", domain=name)
