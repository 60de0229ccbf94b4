"""The inputs that a task's own tests use, found by running them against a recorder, in the sandbox."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from surefoot.errors import GraderError
from surefoot.protocols import Call, Limits, Sandbox
from surefoot.rewards.adversarial.inputs import Args

_COMPARE = (ast.Eq, ast.Is, ast.NotEq, ast.IsNot)
_RECORDER = """
import copy as __copy
__calls = []
def __recording(function):
    def recorded(*args, **kwargs):
        if not kwargs and len(__calls) < 300:
            __calls.append(__copy.deepcopy(args))
        return function(*args, **kwargs)
    return recorded
def recorded_calls():
    return __calls
{entry} = __recording({entry})
"""


def seed_inputs(checks: Mapping[str, Any], code: str, function: str, sandbox: Sandbox, limits: Limits) -> list[Args]:
    """Arguments of the calls in a task's tests, in their order. Raises GraderError if the tests make none."""
    if "cases" in checks:
        return [tuple(case["args"]) for case in checks["cases"] if not case.get("kwargs")]
    source = "\n".join(
        [code, _RECORDER.format(entry=function), checks.get("setup") or "", *_statements(checks, function)]
    )
    results, execution = sandbox.call(source, [Call("recorded_calls")], limits=limits)
    if not results or results[0].error is not None or not results[0].value:
        what = results[0].error if results else execution.detail or execution.stderr[-200:] or execution.outcome
        raise GraderError(f"the task's tests make no call of {function} that could be recorded ({what})")
    return [tuple(args) for args in results[0].value]


def one_right_answer(checks: Mapping[str, Any]) -> bool:
    """Whether the tests ask for one value an input, so that a right solution must agree with the reference.

    Tests that check a property (`assert abs(poly(candidate(xs))) < 1e-4`) accept several; for these the reference is
    no oracle.
    """
    if "cases" in checks:
        return True
    tests = checks["tests"]
    try:
        tree = ast.parse(tests if isinstance(tests, str) else "\n".join(tests))
    except SyntaxError:
        return False
    name = "candidate" if isinstance(tests, str) and "def check(" in tests else checks.get("entry", "")
    asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    bound = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _calls(node.value, name)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return not bound and all(_is_exact(node.test, name) for node in asserts if not name or _calls(node.test, name))


def _is_exact(test: ast.expr, name: str) -> bool:
    """`f(...)`, `not f(...)`, `f(...) == value`, `value == f(...)`, or `abs(f(...) - value) < tolerance`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_exact(test.operand, name)
    if isinstance(test, ast.Call):
        return not name or _is_call(test, name)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    sides = (test.left, test.comparators[0])
    if isinstance(test.ops[0], _COMPARE):
        return any(_is_call(side, name) for side in sides)
    inner = test.left.args[0] if isinstance(test.left, ast.Call) and test.left.args else None
    return isinstance(inner, ast.BinOp) and (_is_call(inner.left, name) or _is_call(inner.right, name))


def _is_call(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and (not name or node.func.id == name)


def _calls(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Call) and getattr(part.func, "id", "") == name for part in ast.walk(node))


def _statements(checks: Mapping[str, Any], function: str) -> Sequence[str]:
    """The tests, each one guarded: one that fails should not hide the calls after it."""
    tests = checks["tests"]
    if isinstance(tests, str) and "def check(" in tests:
        return [tests, f"try:\n    check({function})\nexcept Exception:\n    pass"]
    listed = [tests] if isinstance(tests, str) else tests
    return [
        "try:\n" + "\n".join(f"    {line}" for line in t.splitlines()) + "\nexcept Exception:\n    pass" for t in listed
    ]
