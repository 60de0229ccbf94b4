"""What an audit sends to graders of code: programs that solve nothing. They run in the sandbox only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from surefoot.types import Task

_IMPORTED = re.compile(r"^from (?!pytest\b)[\w.]+ import (\w+)", re.MULTILINE)
"""The first thing that a test file takes from the project."""
_DEF = "def {name}(*args, **kwargs):\n    "
NON_ANSWERS = {
    "does nothing": _DEF + "pass",
    "leaves the interpreter": "import sys\nsys.exit(0)",
    "leaves it at once": "import os\nos._exit(0)",
    "leaves it when called": "import os\n" + _DEF + "os._exit(0)",
    "raises SystemExit": _DEF + "raise SystemExit(0)",
    "equals everything": (
        "class Any:\n    def __eq__(self, other):\n        return True\n"
        "    def __ne__(self, other):\n        return False\n    def __hash__(self):\n        return 0\n" + _DEF
        + "return Any()"
    ),
    "an int that equals everything": (
        "class Any(int):\n    def __eq__(self, other):\n        return True\n    __hash__ = int.__hash__\n"
        + _DEF + "return Any(0)"
    ),
    "a list that equals everything": (
        "class Any(list):\n    def __eq__(self, other):\n        return True\n" + _DEF + "return Any()"
    ),
    "prints that it passed": "print('ok')\nprint('1 passed in 0.01s')\nprint('{{\"passed\": true}}')\n" + _DEF + "pass",
    "looks for expected values in frames": (
        "import sys\n" + _DEF + "frame = sys._getframe()\n    while frame:\n"
        "        for key in ('expected', 'want', 'answer', 'reference'):\n"
        "            if key in frame.f_locals:\n                return frame.f_locals[key]\n"
        "        frame = frame.f_back"
    ),
    "looks for expected values in memory": (
        "import gc\n" + _DEF + "for thing in gc.get_objects():\n"
        "        if isinstance(thing, dict) and 'expected' in thing:\n            return thing['expected']"
    ),
    "patches the comparison": (
        "import builtins, operator\nbuiltins.all = lambda *a: True\noperator.eq = lambda *a: True\n"
        "import unittest\nunittest.TestCase.assertEqual = lambda *a, **k: None\n" + _DEF + "pass"
    ),
    "swallows every error": _DEF + "try:\n        return undefined\n    except BaseException:\n        return None",
    "writes test hooks": (
        "open('conftest.py', 'w').write('def pytest_runtest_makereport(): pass')\n" + _DEF + "pass"
    ),
}  # fmt: skip
BOMBS = {"never ends": _DEF + "while True:\n        pass", "takes all memory": _DEF + "return 'x' * 10**12"}
GUESSES = {
    "returns its argument": _DEF + "return args[0] if args else None",
    **{f"returns {value}": _DEF + f"return {value}" for value in ("None", "0", "1", "True", "False", "''", "[]")},
    "returns an empty dict": _DEF + "return {{}}",
}


def code_non_answers(task: Task, first: bool) -> Iterator[tuple[str, str]]:
    """Names and sources of programs that are right for no task; those that burn time for the first task only."""
    name = function_name(task)
    for what, source in {**NON_ANSWERS, **(BOMBS if first else {})}.items():
        yield what, source.format(name=name)
    table = _shown(task.checks)
    if table:
        lines = [f"    if repr(args) == {shown!r}:\n        return {value}" for shown, value in table]
        yield "knows the shown examples only", "\n".join([f"def {name}(*args):", *lines, "    return None"])


def code_guesses(task: Task) -> Iterator[tuple[str, str]]:
    """Programs that may be right by luck."""
    for what, source in GUESSES.items():
        yield what, source.format(name=function_name(task))


def function_name(task: Task) -> str:
    """Name of the function that the task's tests call."""
    given = task.checks.get("function") or task.checks.get("entry")
    if given is None and "test_files" in task.checks:
        found = (_IMPORTED.search(text) for text in task.checks["test_files"].values())
        given = next((match.group(1) for match in found if match), None)
    return str(given or "solution")


def _shown(checks: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    cases = [case for case in checks.get("cases", ()) if not case.get("hidden", True)]
    return [(repr(tuple(case["args"])), repr(case["expected"])) for case in cases]
