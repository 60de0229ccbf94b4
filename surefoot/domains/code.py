"""Small Python functions to write, graded by running them against hidden tests in the sandbox.

    [[domains]]
    name = "code"
    source = "code"                                  # all topics; `code:lists` is one of them
    options = {level = [0, 1], topics = ["lists", "strings"], dimensions = true}

With `dimensions`, right answers are measured for `efficiency` and `readability`, which `[reward]` may then weigh.

A problem is a function with its parameters filled in ("keep the numbers greater than 5"). Whole problems are held out,
a quarter of them: no wording of a held-out problem occurs in training. What held-out tasks measure is therefore writing
a function that was never practised: for most of them the family was seen with other parameters (metadata `unseen` is
`parameters`: greater than 3, but never 5), for the rest nothing of the family was (`function`).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from surefoot.config import DomainConfig
from surefoot.domains.code_tasks.family import Case, Problem
from surefoot.domains.code_tasks.topics import FAMILIES, LEVELS, problems
from surefoot.errors import ConfigError
from surefoot.protocols import Domain, TaskSource
from surefoot.rewards.code import CodeGrader
from surefoot.types import Split, Task, stable_seed

OPTIONS = ("level", "topics", "dimensions")
INSTRUCTION = "\nReply with the code only."
SENTENCES = (
    "Write a Python function `{signature}` that {says}.",
    "Implement the Python function `{signature}`. It {says}.",
    "Define a function `{signature}` in Python which {says}.",
)
MAX_NEW_TOKENS = 80


@dataclass(frozen=True)
class CodeSource:
    """Tasks of some problems: each problem in each of the sentences. The first ones are all of different problems."""

    domain: str
    train: tuple[Problem, ...]
    heldout: tuple[Problem, ...]
    suffix: str = INSTRUCTION

    def size(self, split: Split) -> int:
        return len(self._side(split)) * len(SENTENCES)

    def task(self, split: Split, index: int) -> Task:
        side = self._side(split)
        if not 0 <= index < self.size(split):
            raise IndexError(f"{self.domain} has {self.size(split)} {split} tasks, there is no number {index}")
        turn, place = divmod(index, len(side))
        problem = side[place]
        return _task(self.domain, split, index, problem, turn + place, self.suffix)

    def _side(self, split: Split) -> tuple[Problem, ...]:
        return self.train if split == "train" else self.heldout


def source(
    options: Mapping[str, Any], *, topic: str = "", domain: str = "code", suffix: str = INSTRUCTION
) -> TaskSource:
    """The tasks that `options` (`level`, `topics`) choose. Raises ConfigError for what there is not."""
    unknown = [key for key in options if key not in OPTIONS]
    if unknown:
        raise ConfigError(f"there is no option {unknown[0]!r}{_near(unknown[0], OPTIONS)}", where="options")
    topics = [topic] if topic else _listed(options.get("topics", list(FAMILIES)))
    levels = _listed(options.get("level", list(LEVELS)))
    for name in topics:
        if name not in FAMILIES:
            fix = f"topics: {', '.join(FAMILIES)}"
            raise ConfigError(f"there is no code topic {name!r}{_near(name, FAMILIES)}", where="code", fix=fix)
    for level in levels:
        if level not in LEVELS or isinstance(level, bool):
            raise ConfigError(
                f"there is no level {level!r}", where="options.level", fix="levels: 0, 1, 2, or a list of them"
            )
    chosen = [p for name in dict.fromkeys(topics) for p in problems(name) if p.level in levels]
    chosen.sort(key=lambda problem: stable_seed("code order", problem.name))
    sides = {side: tuple(p for p in chosen if p.split == side) for side in ("train", "heldout")}
    for side, members in sides.items():
        if not members:
            raise ConfigError(f"no {side} problem has that topic and level", where="options", fix="choose more of them")
    return CodeSource(domain, sides["train"], sides["heldout"], suffix)


def build(config: DomainConfig) -> Domain:
    """The domain of `code` or `code:TOPIC`. Raises ConfigError for an unknown topic or option."""
    topic = config.source.partition(":")[2]
    suffix = INSTRUCTION if config.instruction is None else ""
    try:
        tasks = source(config.options, topic=topic, domain=config.name, suffix=suffix)
    except ConfigError as error:
        raise ConfigError(error.what, where=f"domains.{config.name} ({error.where})", fix=error.fix) from None
    measured = bool(config.options.get("dimensions", False))
    return Domain(
        name=config.name,
        source=tasks,
        grader=CodeGrader("calls", extract=config.extract or "code", efficiency=measured, readability=measured),
        max_new_tokens=config.max_new_tokens or MAX_NEW_TOKENS,
        weight=config.weight,
        chance=config.chance or 0.0,
        description=f"Python functions to write{f' ({topic})' if topic else ''}, run against hidden tests",
    )


def described() -> list[tuple[str, str]]:
    """The source of each topic, with one line on it."""
    return [(f"code:{topic}", f"{len(problems(topic))} Python functions on {topic} to write") for topic in FAMILIES]


def _task(domain: str, split: Split, index: int, problem: Problem, way: int, suffix: str) -> Task:
    sentence = SENTENCES[way % len(SENTENCES)].format(signature=problem.signature, says=problem.says(way))
    examples = "\n".join(_shown(problem, case) for case in problem.examples)
    return Task(
        id=f"{domain}/{split}/{index}",
        domain=domain,
        messages=({"role": "user", "content": f"{sentence} For example:\n{examples}{suffix}"},),
        checks={"function": problem.function, "cases": _cases(problem)},
        metadata={
            "source": "code",
            "topic": problem.topic,
            "level": problem.level,
            "problem": problem.name,
            "answer": problem.reference,
            **({"unseen": _unseen(problem)} if split == "heldout" else {}),
        },
    )


def _cases(problem: Problem) -> list[dict[str, Any]]:
    """All test cases, the shown ones first."""
    kinds = ((problem.examples, False, False), (problem.hidden, True, False), (problem.boundary, True, True))
    return [
        {"args": list(case.args), "expected": case.expected, "hidden": hidden, "boundary": boundary}
        for cases, hidden, boundary in kinds
        for case in cases
    ]


def _shown(problem: Problem, case: Case) -> str:
    return f"{problem.function}({', '.join(map(repr, case.args))}) == {case.expected!r}"


def _unseen(problem: Problem) -> str:
    return "parameters" if id(problem.family) in _practised(problem.topic) else "function"


@cache
def _practised(topic: str) -> frozenset[int]:
    """Families of which at least one problem is trained on."""
    return frozenset(id(problem.family) for problem in problems(topic) if problem.split == "train")


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]


def _near(name: Any, known: Any) -> str:
    near = difflib.get_close_matches(str(name), list(known), n=1, cutoff=0.5)
    return f" (did you mean {near[0]!r}?)" if near else ""
