"""Code graders in the real sandbox: every style, every way to end, and attempts to win without solving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from surefoot.errors import SandboxError
from surefoot.protocols import Call, CallResult, Limits, Program
from surefoot.rewards.code import CodeGrader, style_of
from surefoot.sandbox import Sandbox
from surefoot.types import Check, Execution, IsolationLevel, Rollout, Task, Verdict

CASES = [
    {"args": [[1, 2, 3]], "expected": 2, "hidden": False},
    {"args": [[4, 6]], "expected": 10, "hidden": True},
    {"args": [[1, 3]], "expected": 0, "hidden": True},
    {"args": [[]], "expected": 0, "hidden": True, "boundary": True},
]
SUM_EVEN = {"function": "sum_even", "cases": CASES}
GOOD = "def sum_even(numbers):\n    return sum(n for n in numbers if n % 2 == 0)"


def grade(text: str, checks: dict[str, Any], sandbox: Any, grader: CodeGrader | None = None) -> Verdict:
    task = Task("t", "code", ({"role": "user", "content": "?"},), checks)
    return (grader or CodeGrader()).grade(task, Rollout("t", "code", 0, (), (), (), text, "stop"), sandbox)


def test_a_right_solution(sandbox: Sandbox) -> None:
    verdict = grade(f"```python\n{GOOD}\n```", SUM_EVEN, sandbox)
    assert (verdict.grade, verdict.score, verdict.reason, verdict.findings) == ("right", 1.0, "", ())
    assert [check.name for check in verdict.checks] == ["example 0", "hidden 1", "hidden 2", "boundary 3"]
    assert [check.hidden for check in verdict.checks] == [False, True, True, True]
    assert verdict.executions[0].outcome == "ok" and verdict.seconds > 0


def test_no_code(sandbox: Sandbox) -> None:
    verdict = grade("I would add the even numbers.", SUM_EVEN, sandbox)
    assert (verdict.grade, verdict.reason, len(verdict.checks)) == ("wrong", "no code", 1)


def test_partly_right_says_what_fails(sandbox: Sandbox) -> None:
    code = "def sum_even(numbers):\n    return sum(n for n in numbers if n % 2 == 0 and n < 5)"
    verdict = grade(code, SUM_EVEN, sandbox)
    assert (verdict.grade, verdict.score) == ("wrong", pytest.approx(2 / 3))
    assert verdict.reason == "sum_even([4, 6]) gave 4, expected 10"
    assert [finding.kind for finding in verdict.findings] == ["visible_hidden_gap"]


def test_failing_only_the_visible_test_is_not_full_marks(sandbox: Sandbox) -> None:
    code = f"{GOOD} if len(numbers) != 3 else None"
    verdict = grade(code, SUM_EVEN, sandbox)
    assert verdict.grade == "wrong" and verdict.score < 1 and verdict.findings == ()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("while True:\n        pass", "timeout"),
        ("return undefined", "NameError"),
        ("import os\n    os._exit(0)", ""),
        ("import sys\n    sys.exit(0)", "SystemExit"),
        ("return 'x' * 10**10", ""),
        ("return numbers.append(numbers)", "gave None"),
        ("return 10 ** 6000", "too large"),
    ],
)
def test_ways_to_fail(body: str, reason: str, sandbox: Sandbox) -> None:
    grader = CodeGrader(limits=Limits(cpu_seconds=0.5, memory_mb=256))
    verdict = grade(f"def sum_even(numbers):\n    {body}", SUM_EVEN, sandbox, grader)
    assert verdict.grade == "wrong" and verdict.score == 0
    assert reason in verdict.reason
    assert len(verdict.checks) == len(CASES)
    assert all(len(check.evidence) <= 200 for check in verdict.checks)


@pytest.mark.parametrize("code", ["def sum_even(numbers:", "def other(numbers):\n    return 0", "import nothing_there"])
def test_code_that_does_not_load_or_lacks_the_function(code: str, sandbox: Sandbox) -> None:
    verdict = grade(code, SUM_EVEN, sandbox)
    assert (verdict.grade, verdict.score) == ("wrong", 0.0) and verdict.reason


EQUAL = "class Same(int):\n    def __eq__(self, other):\n        return True\n    __hash__ = None\n"


@pytest.mark.parametrize(
    "code",
    [
        f"{EQUAL}\ndef sum_even(numbers):\n    return Same(7)",
        "def sum_even(numbers):\n    print('passed')\n    raise SystemExit(0)",
        "import builtins\nbuiltins.all = lambda items: True\ndef sum_even(numbers):\n    return None",
        "import gc\ndef sum_even(numbers):\n"
        "    return next((d['expected'] for d in gc.get_objects() if type(d) is dict and 'expected' in d), None)",
    ],
)
def test_attempts_to_win_without_solving(code: str, sandbox: Sandbox) -> None:
    assert grade(code, SUM_EVEN, sandbox).score == 0


def test_truth_values_are_no_numbers_and_floats_are_close(sandbox: Sandbox) -> None:
    def is_right(value: str, expected: Any) -> bool:
        checks = {"function": "f", "cases": [{"args": [], "expected": expected}]}
        return grade(f"def f():\n    return {value}", checks, sandbox).grade == "right"

    assert not is_right("1", True) and not is_right("True", 1) and is_right("True", True)
    assert is_right("0.1 + 0.2", 0.3) and is_right("2", 2.0) and is_right("2.0", 2) and not is_right("2.0000001", 2)
    assert is_right("float('nan')", float("nan")) and not is_right("float('nan')", 1.0)
    assert not is_right("[True]", [1]) and not is_right("(1,)", [1]) and is_right("{'a': [1]}", {"a": [1]})
    assert not is_right("{1: 2}", {True: 2}) and is_right("{1, 2}", {2, 1}) and not is_right("10**400", 1.0)


def test_changes_in_place(sandbox: Sandbox) -> None:
    checks = {"function": "f", "cases": [{"args": [[3, 1]], "expected": None, "after": [[1, 3]]}]}
    assert grade("def f(x):\n    x.sort()", checks, sandbox).grade == "right"
    verdict = grade("def f(x):\n    sorted(x)", checks, sandbox)
    assert verdict.reason == "f([3, 1]) left its arguments as [[3, 1]], expected [[1, 3]]"
    kept = {"function": "f", "cases": [{"args": [[3, 1]], "expected": [1, 3], "after": [[3, 1]]}]}
    assert grade("def f(x):\n    return sorted(x)", kept, sandbox).grade == "right"
    assert grade("def f(x):\n    x.sort()\n    return x", kept, sandbox).grade == "wrong"


HUMAN_EVAL = {
    "tests": "def check(candidate):\n    assert candidate([2, 3]) == 2\n    assert candidate([]) == 0\n",
    "entry": "sum_even",
    "prefix": 'from typing import List\n\ndef sum_even(numbers: List[int]) -> int:\n    """ Sum. """\n',
}


def test_check_style(sandbox: Sandbox) -> None:
    assert style_of(HUMAN_EVAL) == "check"
    typed = "def sum_even(numbers: List[int]) -> int:\n    return sum(n for n in numbers if n % 2 == 0)"
    assert grade(typed, HUMAN_EVAL, sandbox).grade == "right"
    body = "    return sum(n for n in numbers if n % 2 == 0)"
    assert grade(f"```\n{GOOD}\n```", HUMAN_EVAL, sandbox, CodeGrader("check")).grade == "right"
    assert grade("def sum_even(numbers):\n    return 2", HUMAN_EVAL, sandbox).grade == "wrong"
    assert grade(body, {**HUMAN_EVAL, "prefix": None}, sandbox, CodeGrader(extract="whole")).grade == "wrong"


def test_assert_style(sandbox: Sandbox) -> None:
    checks = {"tests": ["assert sum_even([2, 3]) == 2", "assert sum_even([4, 4]) == FOUR * 2"], "setup": "FOUR = 4"}
    assert style_of(checks) == "asserts"
    assert grade(GOOD, checks, sandbox).grade == "right"
    verdict = grade("def sum_even(numbers):\n    return 2", {**checks, "visible": 1}, sandbox)
    assert (verdict.grade, [check.passed for check in verdict.checks]) == ("wrong", [True, False])
    assert [check.hidden for check in verdict.checks] == [False, True]
    assert [finding.kind for finding in verdict.findings] == ["visible_hidden_gap"]


def test_stdin_style(sandbox: Sandbox) -> None:
    io = [{"input": "1 2\n", "output": "3\n", "hidden": False}, {"input": "5 5\n", "output": "10\n"}]
    code = "import sys\na, b = map(int, sys.stdin.read().split())\nprint(a + b)"
    assert grade(f"```\n{code}\n```", {"io": io}, sandbox).grade == "right"
    verdict = grade("```\nprint(3)\n```", {"io": io}, sandbox)
    assert (verdict.grade, verdict.score) == ("wrong", 0.0)
    assert verdict.findings[0].kind == "visible_hidden_gap"
    assert grade("```\nprint(3)\nraise SystemExit(1)\n```", {"io": io}, sandbox).score == 0
    slow = grade("```\nwhile True: pass\n```", {"io": io}, sandbox, CodeGrader(limits=Limits(cpu_seconds=0.3)))
    assert len(slow.executions) == 1 and len(slow.checks) == 2 and "timeout" in slow.reason


@pytest.mark.parametrize(
    "checks", [{"x": 1}, {"function": "f", "cases": [{}]}, {"function": "f", "cases": []}, {"io": []}]
)
def test_a_task_without_sound_tests_is_ungradable(checks: dict[str, Any], sandbox: Sandbox) -> None:
    verdict = grade(GOOD, checks, sandbox)
    assert verdict.grade == "ungradable" and verdict.reason


class Broken:
    """A sandbox that fails, as `how` says."""

    level: IsolationLevel = "landlock"

    def __init__(self, how: str) -> None:
        self.how = how

    def _fail(self) -> Execution:
        if self.how == "raises":
            raise SandboxError("no zygote")
        return Execution("sandbox_error", detail="the worker died")

    def run(self, program: Program) -> Execution:
        return self._fail()

    def call(self, code: str, calls: Sequence[Call], **_: Any) -> tuple[tuple[CallResult, ...], Execution]:
        return (), self._fail()

    def judge(self, code: str, tests: str, **_: Any) -> tuple[tuple[Check, ...], Execution]:
        return (), self._fail()


@pytest.mark.parametrize("how", ["raises", "reports"])
@pytest.mark.parametrize("checks", [SUM_EVEN, HUMAN_EVAL, {"io": [{"input": "", "output": "1"}]}])
def test_a_fault_of_the_sandbox_is_ungradable(how: str, checks: dict[str, Any]) -> None:
    verdict = grade(GOOD, checks, Broken(how))
    assert verdict.grade == "ungradable" and verdict.reason


def test_data_beyond_what_can_be_sent_is_ungradable(sandbox: Sandbox) -> None:
    checks = {"function": "f", "cases": [{"args": [object()], "expected": 1}]}
    assert grade("def f(x):\n    return 1", checks, sandbox).grade == "ungradable"


def test_efficiency_is_cost_beside_the_reference_and_for_right_answers_only(sandbox: Sandbox) -> None:
    grader = CodeGrader(efficiency=True)
    task = Task("e", "code", (), SUM_EVEN, metadata={"answer": f"```python\n{GOOD}\n```"})

    def measured(code: str) -> Verdict:
        text = f"```python\n{code}\n```"
        return grader.grade(task, Rollout("e", "code", 0, (), (), (), text, "stop"), sandbox)

    assert measured(GOOD).dimensions["efficiency"] > 0.9
    padded = f"{GOOD}\n" + "# as fast as can be\n" * 50
    assert measured(padded).dimensions["efficiency"] <= 1.0
    waste = GOOD.replace("    return", "    for _ in range(2_000_000): pass\n    return")
    assert measured(waste).dimensions["efficiency"] < 0.7
    assert measured("def sum_even(numbers):\n    return 2").dimensions == {}
