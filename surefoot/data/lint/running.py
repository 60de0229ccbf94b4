"""Rules that run the grader: on the reference answer, and for code on solutions that ought to fail. In the sandbox."""

from __future__ import annotations

import ast
import difflib
import warnings
from collections.abc import Iterator, Sequence
from random import Random

from surefoot.data.lint.rules import Problem
from surefoot.domains.audit.code_probes import GUESSES
from surefoot.domains.audit.trial import Trial
from surefoot.domains.shots import present
from surefoot.protocols import Domain, Grader, Sandbox, TaskSource
from surefoot.rewards.adversarial.mutants import mutants
from surefoot.rewards.code import CodeGrader, style_of
from surefoot.rewards.extract import extract
from surefoot.rewards.graders import named_grader
from surefoot.rewards.grading import GradingPool
from surefoot.types import Split, Task, stable_seed

REPEATS = 3
"""Runs of a reference solution."""
MUTANTS = 8
"""Faulty versions of it."""
FEWEST = 3
"""Faulty versions below which nothing is said of the tests."""
WEAK = 0.5


class Runner:
    """Grades references and probes of tasks with one grader. Close it when done."""

    def __init__(self, grader: str, extraction: str | None, sandbox: Sandbox, workers: int = 2) -> None:
        made: Grader = (
            CodeGrader(extract=extraction or "code") if grader == "code" else named_grader(grader, extract=extraction)
        )
        self._code, self._how = grader == "code", str(getattr(made, "extract", "whole"))
        self._pool = GradingPool([Domain("data", _NoTasks(), made)], sandbox, workers, seconds=120.0)
        self._trial = Trial(self._pool)

    def close(self) -> None:
        self._pool.close()

    def problems(self, tasks: Sequence[tuple[int, Task]]) -> Iterator[Problem]:
        """What running finds. Args: tasks: (line, task), any that have a reference answer."""
        asked = [(line, task) for line, task in tasks if task.metadata.get("answer") is not None]
        repeats = REPEATS if self._code else 1
        answers = [
            (task, present(str(task.metadata["answer"]), self._how)) for _, task in asked for _ in range(repeats)
        ]
        verdicts = self._trial.verdicts(answers)
        sound: list[tuple[int, Task]] = []
        for place, (line, task) in enumerate(asked):
            mine = verdicts[place * repeats :][:repeats]
            rights = sum(verdict.grade == "right" for verdict in mine)
            if rights == repeats:
                sound.append((line, task))
                continue
            bad = next(verdict for verdict in mine if verdict.grade != "right")
            if rights:
                yield _problem("flaky-reference", line, task, f"right in {rights} of {repeats} runs", bad.reason)
            elif bad.grade == "ungradable":
                yield _problem("unreadable-answer", line, task, "the grader cannot read it", bad.reason)
            else:
                yield _problem(
                    "reference-fails", line, task, "graded wrong", bad.reason or str(task.metadata["answer"])
                )
        if self._code:
            yield from self._tests(sound)

    def _tests(self, tasks: Sequence[tuple[int, Task]]) -> Iterator[Problem]:
        """Which tests let through what they shouldn't."""
        tries: list[tuple[Task, str]] = []
        told: list[tuple[int, str, str]] = []
        for line, task in tasks:
            code = extract(str(task.metadata["answer"]), "code") or ""
            probes = _guesses(task)
            faulty = [("mutant", source) for source in mutants(code, MUTANTS, Random(stable_seed("lint", code)))]
            for what, source in (*probes, *faulty):
                tries.append((task, f"```python\n{source}\n```"))
                told.append((line, what, source))
        passed: dict[int, list[tuple[str, str]]] = {}
        made: dict[int, int] = {}
        for (line, what, source), verdict in zip(told, self._trial.verdicts(tries), strict=True):
            made[line] = made.get(line, 0) + (what == "mutant")
            if verdict.grade == "right":
                passed.setdefault(line, []).append((what, source))
        for line, task in tasks:
            through = passed.get(line, [])
            trivial = [(what, source) for what, source in through if what != "mutant"]
            survivors = [source for what, source in through if what == "mutant"]
            if trivial:
                yield _problem("trivial-passes", line, task, f"passes all tests: {trivial[0][0]}", trivial[0][1])
            elif made.get(line, 0) >= FEWEST and len(survivors) >= WEAK * made[line]:
                message = f"{len(survivors)} of {made[line]} faulty versions pass all tests"
                yield _problem("weak-tests", line, task, message, _difference(task, survivors[0]))


class _NoTasks(TaskSource):
    def task(self, split: Split, index: int) -> Task:
        raise IndexError(index)

    def size(self, split: Split) -> int:
        return 0


def _guesses(task: Task) -> list[tuple[str, str]]:
    if style_of(task.checks) == "stdin":
        return [
            ("prints its input", "import sys\nprint(sys.stdin.read())"),
            ("prints nothing", "pass"),
            ("prints 0", "print(0)"),
        ]
    name = _called(task)
    return [(what, source.format(name=name)) for what, source in GUESSES.items()] if name else []


def _called(task: Task) -> str | None:
    """The function that the tests call: the one they name, else the last of the reference that stands in them."""
    if given := task.checks.get("function") or task.checks.get("entry"):
        return str(given)
    code = extract(str(task.metadata["answer"]), "code") or ""
    tests = str(task.checks.get("tests", ""))
    named = [node.name for node in _parsed(code).body if isinstance(node, ast.FunctionDef) and f"{node.name}(" in tests]
    return named[-1] if named else None


def _parsed(code: str) -> ast.Module:
    with warnings.catch_warnings(action="ignore"):
        return ast.parse(code)


def _difference(task: Task, mutant: str) -> str:
    code = ast.unparse(_parsed(extract(str(task.metadata["answer"]), "code") or ""))
    lines = difflib.unified_diff(code.splitlines(), mutant.splitlines(), n=0, lineterm="")
    return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def _problem(rule: str, line: int, task: Task, message: str, evidence: str) -> Problem:
    return Problem(rule, line, str(task.metadata.get("id", "")), message, evidence[:400])
