"""From a task with a reference solution to the same task with stronger tests, and how much stronger they are.

Inputs like the known ones decide whether a solution is right (`hidden`). Inputs beyond what was seen (boundary values
that no example has, other alphabets, broken invariants) may lie outside what the task promises; where the reference
answers them all the same they only count for the dimension `robustness` (`adversarial`), never against a right answer.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from surefoot.errors import GraderError
from surefoot.protocols import Sandbox
from surefoot.rewards.adversarial.inputs import Args, candidates
from surefoot.rewards.adversarial.mutants import mutants
from surefoot.rewards.adversarial.oracle import Answered, Program, agrees, ask, holds
from surefoot.rewards.adversarial.seeds import one_right_answer, seed_inputs
from surefoot.rewards.adversarial.shapes import admits, learn, related, relations
from surefoot.types import stable_seed


@dataclass(frozen=True)
class Settings:
    """How much to make and to keep."""

    mutated: int = 240
    """Mutated inputs to try."""
    drawn: int = 120
    """Inputs to draw from Hypothesis."""
    hidden: int = 60
    """Most hidden tests to keep."""
    adversarial: int = 30
    """Most adversarial tests to keep."""
    mutants: int = 24
    """Mutants of the reference that tests are chosen by."""
    seed: int = 0


@dataclass(frozen=True)
class Strengthened:
    """Tests that were made for one task."""

    function: str
    hidden: tuple[Answered, ...] = ()
    adversarial: tuple[Answered, ...] = ()
    tried: int = 0
    """Inputs that were made."""
    refused: int = 0
    """Of these: inputs that the reference does not answer, or that break the given precondition."""
    skipped: str = ""
    """Why no tests were made; empty if they were."""

    def checks(self, checks: Mapping[str, Any]) -> dict[str, Any]:
        """The task's checks with the new tests under `generated`, as `CodeGrader` reads them."""
        kinds = (("correctness", self.hidden), ("robustness", self.adversarial))
        cases = [{**case_of(test), "dimension": dimension} for dimension, tests in kinds for test in tests]
        return {**checks, **({"generated": {"function": self.function, "cases": cases}} if cases else {})}


def strengthen(
    checks: Mapping[str, Any],
    code: str,
    sandbox: Sandbox,
    *,
    precondition: str | None = None,
    settings: Settings | None = None,
) -> Strengthened:
    """Make tests for a code task.

    Args:
        checks: Of a task in the styles `calls`, `check` or `asserts` (see `rewards.code`).
        code: The whole reference solution.
        precondition: Python source of a function `precondition` of the same arguments that says which inputs are
            valid. With it, every valid input is a hidden test; without, preconditions are inferred from the tests.

    A task whose reference is no oracle (it fails its own tests, or these accept several answers) is skipped, with the
    reason. Raises GraderError if the checks hold nothing to start from, SandboxError if the sandbox fails.
    """
    settings = settings or Settings()
    function = str(checks.get("function") or checks.get("entry") or _called(checks, code))
    reference = Program(code, function)
    if not one_right_answer(checks):
        return Strengthened(function, skipped="the tests accept more than one answer")
    try:
        seeds = seed_inputs(checks, code, function, sandbox, reference.limits)
    except GraderError as error:
        return Strengthened(function, skipped=error.what)
    known = ask(reference, seeds, sandbox)
    if not known:
        return Strengthened(function, skipped="the reference answers none of the tests' inputs with plain data")
    valid = [test.args for test in known]
    made = candidates(valid, Random(stable_seed(settings.seed, code)), mutated=settings.mutated, drawn=settings.drawn)
    tried = len(made)
    if precondition is not None:
        checked = holds(Program(precondition, "precondition"), made, sandbox)
        made = [args for args, fine in zip(made, checked, strict=True) if fine]
    answered = ask(reference, made, sandbox)
    ordinary = _ordinary(valid, [test.args for test in answered]) if precondition is None else [True] * len(answered)
    inside = [test for test, fine in zip(answered, ordinary, strict=True) if fine]
    outside = [test for test, fine in zip(answered, ordinary, strict=True) if not fine]
    faulty = mutants(code, settings.mutants, Random(stable_seed(settings.seed, "mutants", code)))
    return Strengthened(
        function,
        hidden=choose(inside, faulty, reference, settings.hidden, sandbox),
        adversarial=choose(outside, faulty, reference, settings.adversarial, sandbox),
        tried=tried,
        refused=tried - len(answered),
    )


def choose(
    tests: Sequence[Answered], faulty: Sequence[str], reference: Program, most: int, sandbox: Sandbox
) -> tuple[Answered, ...]:
    """At most `most` tests: first those that together notice most mutants (greedily), then the most varied answers."""
    if len(tests) <= most:
        return tuple(tests)
    noticed: list[set[int]] = [set() for _ in tests]
    for number, code in enumerate(faulty):
        for place in killers(replace(reference, code=code), tests, sandbox):
            noticed[place].add(number)
    chosen: list[int] = []
    left = set[int]().union(*noticed)
    while left and len(chosen) < most:
        best = max(range(len(tests)), key=lambda place: len(noticed[place] & left))
        left -= noticed[best]
        chosen.append(best)
    answers = {repr(tests[place].expected) for place in chosen}
    for again in (False, True):
        for place, test in enumerate(tests):
            if len(chosen) < most and place not in chosen and (again or repr(test.expected) not in answers):
                answers.add(repr(test.expected))
                chosen.append(place)
    return tuple(tests[place] for place in chosen)


def killers(program: Program, tests: Sequence[Answered], sandbox: Sandbox) -> list[int]:
    """Places of the tests that notice that a program is not the reference; after one that kills it, none is known."""
    found = []
    for place, result in enumerate(program.results([test.args for test in tests], sandbox)):
        if result is None or not agrees(result, tests[place]):
            found.append(place)
        if result is None:
            break
    return found


def case_of(test: Answered) -> dict[str, Any]:
    """The test as a case of the style `calls`."""
    after = {} if test.after is None else {"after": list(test.after)}
    return {"args": list(test.args), "expected": test.expected, "hidden": True, **after}


def _ordinary(seeds: Sequence[Args], inputs: Sequence[Args]) -> list[bool]:
    """Whether each input has all that the seeds have in common."""
    widths = {len(args) for args in seeds}
    if len(widths) != 1:
        return [False] * len(inputs)
    shapes = [learn(column) for column in zip(*seeds, strict=True)]
    known = relations(seeds)
    return [
        all(admits(shape, value) for shape, value in zip(shapes, args, strict=True))
        and all(related(name, args[i], args[j]) for i, j, name in known)
        for args in inputs
    ]


def _called(checks: Mapping[str, Any], code: str) -> str:
    """The last function of the reference that the tests name."""
    tests = checks.get("tests", "")
    text = tests if isinstance(tests, str) else "\n".join(tests)
    try:
        names = [node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
    except SyntaxError as error:
        raise GraderError(f"the reference solution is not Python: {error}") from None
    named = [name for name in names if f"{name}(" in text]
    if not named:
        raise GraderError("no function of the reference solution is named in the tests")
    return named[-1]
