"""Programs judged by what they print."""

from __future__ import annotations

import pytest

from surefoot.protocols import Limits, Program
from surefoot.sandbox import Sandbox
from surefoot.sandbox.compare import same_output
from surefoot.sandbox.programs import Case, judge_program

CASES = [
    ("exact", "a b\n", "a b\n", True),
    ("exact", "a b", "a b\n", False),
    ("lines", "a b  \n\n", "a b", True),
    ("lines", "a  b", "a b", False),
    ("lines", "\na", "a", False),
    ("tokens", " a\nb ", "a b", True),
    ("tokens", "1.0", "1", False),
    ("tokens", "a", "a b", False),
    ("tokens", "", "", True),
    ("floats", "1.0 x 0.33333333", "1 x 0.333333331", True),
    ("floats", "1.001", "1", False),
    ("floats", "nan", "1", False),
    ("floats", "nan", "nan", True),
    ("floats", "inf", "1e309", False),
    ("floats", "1 2", "1", False),
    ("floats", "1_0", "10", True),
]


@pytest.mark.parametrize(("how", "printed", "expected", "same"), CASES)
def test_comparison(how: str, printed: str, expected: str, same: bool) -> None:
    result, difference = same_output(printed, expected, how)  # type: ignore[arg-type]
    assert result is same and bool(difference) is not same


def test_a_program_is_judged_case_by_case(sandbox: Sandbox) -> None:
    program = Program(code="n = int(input())\nprint(10 // n)", limits=Limits(cpu_seconds=0.5))
    checks, executions = judge_program(
        sandbox, program, [Case("5", "2"), Case("3", "4"), Case("0", ""), Case("1", "10")]
    )
    assert [check.passed for check in checks] == [True, False, False, True]
    assert "printed '3', expected '4'" in checks[1].evidence
    assert "ZeroDivisionError" in checks[2].evidence and len(executions) == 4


def test_the_expected_output_with_a_bad_ending_is_no_pass(sandbox: Sandbox) -> None:
    program = Program(code="print(42, flush=True)\nwhile True: pass", limits=Limits(cpu_seconds=0.3))
    checks, executions = judge_program(sandbox, program, [Case("", "42"), Case("", "42")], stop_early=True)
    assert [check.passed for check in checks] == [False] and executions[0].outcome == "timeout"
