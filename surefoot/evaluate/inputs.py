"""Boundary inputs for code: samples that were drawn already are graded again on empty, huge, unusual arguments.

A task that calls a function with plain arguments, and has a reference solution, is asked for once; what was written is
then called with arguments of each class, made from the types of the task's own cases. What is expected is what the
reference gives for them, run in the sandbox as well; arguments for which it raises are outside of the task, and left
out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from surefoot.protocols import Call, Sandbox
from surefoot.rewards.extract import extract
from surefoot.types import Task

MOST = 4
"""Cases of a class that a task gets."""
LONG = 2_000
"""Items of a huge list, characters of a huge text."""

_STRANGE = ("ß İ ǆ", "e\u0301clair", "日本語 テスト", "🙂👍🏽", "مرحبا", "a\u200bb", "\t\n ")


def _huge(value: Any) -> Any:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return 10**18 + 7
    if isinstance(value, str):
        return (value or "ab") * (LONG // max(1, len(value)) + 1)
    if isinstance(value, list) and value:
        return (value * (LONG // len(value) + 1))[:LONG]
    return None


def _negative(value: Any) -> Any:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return -abs(value) or -1
    if isinstance(value, list) and value and all(isinstance(v, int) and not isinstance(v, bool) for v in value):
        return [-abs(v) or -1 for v in value]
    return None


def _minimal(value: Any) -> Any:
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return 0
    if isinstance(value, str):
        return value[:1]
    if isinstance(value, list):
        return value[:1]
    return dict(list(value.items())[:1]) if isinstance(value, dict) else None


def _duplicates(value: Any) -> Any:
    if isinstance(value, list) and value:
        return [value[0]] * 3 + value + [value[-1]]
    return value[:1] * 3 + value * 2 if isinstance(value, str) and value else None


def _empty(value: Any) -> Any:
    return type(value)() if isinstance(value, str | list | dict) and value else None


def _unicode(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(_STRANGE)
    if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
        return [*_STRANGE, *value]
    return None


INPUT_CLASSES: Mapping[str, Callable[[Any], Any]] = {
    "empty-input": _empty,
    "minimal-input": _minimal,
    "negative-input": _negative,
    "duplicates-input": _duplicates,
    "unicode-input": _unicode,
    "maximal-input": _huge,
}
"""Classes of arguments: how one is made from an ordinary argument; None where its type has no such value. The huge
ones are last, since a reference that they kill gives no results for what would follow."""


def boundary_tasks(task: Task, sandbox: Sandbox) -> dict[str, Task]:
    """The task with its cases replaced by those of a class of inputs, for each class that it can have.

    Empty for a task that does not call a function, or has no reference solution.
    """
    cases, reference = task.checks.get("cases"), task.metadata.get("answer")
    solution = extract(reference, "code") if isinstance(reference, str) else None
    if not cases or solution is None:
        return {}
    arguments = {name: _arguments(cases, change) for name, change in INPUT_CLASSES.items()}
    calls = [Call(task.checks["function"], args) for made in arguments.values() for args in made]
    results, _ = sandbox.call(solution, calls)
    expected = {repr(call.args): result for call, result in zip(calls, results, strict=False)}
    found: dict[str, Task] = {}
    for name, made in arguments.items():
        kept = [
            {"args": list(args), "expected": result.value, "hidden": True, "boundary": True}
            for args in made
            if (result := expected.get(repr(args))) is not None and result.error is None
        ]
        if kept:
            found[name] = replace(task, checks={"function": task.checks["function"], "cases": kept})
    return found


def _arguments(cases: Sequence[Mapping[str, Any]], change: Callable[[Any], Any]) -> list[tuple[Any, ...]]:
    """At most `MOST` distinct argument lists of a class; in each, every argument is changed that can be."""
    found: dict[str, tuple[Any, ...]] = {}
    for case in cases:
        changed = [change(value) for value in case["args"]]
        if any(value is not None for value in changed):
            args = tuple(old if new is None else new for old, new in zip(case["args"], changed, strict=True))
            found.setdefault(repr(args), args)
    return list(found.values())[:MOST]
