"""No wrong solution is judged right, whatever it does; a right one is."""

from __future__ import annotations

import pytest
from spoofs import CORRECT, SPOOFS, TESTS

from surefoot.protocols import Limits
from surefoot.sandbox import Sandbox

LIMITS = Limits(cpu_seconds=0.5, wall_seconds=3, memory_mb=256)


def test_the_right_solution_passes(sandbox: Sandbox) -> None:
    checks, execution = sandbox.judge(CORRECT, TESTS, entry="add", limits=LIMITS)
    assert [check.passed for check in checks] == [True, True, True]
    assert execution.outcome == "ok"


@pytest.mark.parametrize("name", SPOOFS)
def test_a_spoof_fails(sandbox: Sandbox, name: str) -> None:
    checks, execution = sandbox.judge(SPOOFS[name], TESTS, entry="add", limits=LIMITS)
    assert checks and not all(check.passed for check in checks)
    assert execution.outcome != "sandbox_error", "a spoof must be wrong, not ungradable"


@pytest.mark.parametrize("name", SPOOFS)
def test_a_spoof_fails_without_entry(namespaces: Sandbox, name: str) -> None:
    checks, _ = namespaces.judge(SPOOFS[name], "assert add(2, 3) == 5\nassert add(40, 60) == 100", limits=LIMITS)
    assert checks and not all(check.passed for check in checks)


def test_there_are_enough_spoofs() -> None:
    assert len(SPOOFS) >= 24


def test_nan_does_not_slip_through_a_negated_comparison(sandbox: Sandbox) -> None:
    code = "def f(x): return float('nan')\ndef g(x): return [float('nan')]"
    tests = "assert not abs(f(1) - 5) > 1e-6\nassert not (f(1) < 4 or f(1) > 6)\nassert not abs(g(1)[0] - 5) > 1e-6"
    checks, _ = sandbox.judge(code, tests)
    assert [check.passed for check in checks] == [False, False, False]


def test_the_solutions_own_math_is_not_believed(sandbox: Sandbox) -> None:
    code = "class math:\n    isclose = staticmethod(lambda *a: True)\ndef f(x): return 0.0"
    checks, _ = sandbox.judge(code, "assert math.isclose(f(1), 3.0)")
    assert [check.passed for check in checks] == [False]


@pytest.mark.parametrize("tests", ["", "x = 1", "def check(candidate):\n    pass", "for x in []:\n    assert f(x)"])
def test_no_assertion_is_no_pass(namespaces: Sandbox, tests: str) -> None:
    checks, _ = namespaces.judge("def f(x): return 1", tests, entry="f")
    assert checks and not any(check.passed for check in checks)
