"""Grades function calls in the format of the Berkeley Function Calling Leaderboard (BFCL; Patil et al., ICML 2025).

`Task.checks` holds `functions` (the schemas shown to the model) and `ground_truth`: one entry a wanted call,
`{name: {parameter: [accepted values]}}`; an empty string among the values means that the parameter may be left out.
A model may write Python calls (`[f(a=1), g(b="x")]`) or JSON (`{"name": ..., "arguments": {...}}`, or a list of these).
Nothing is evaluated: calls are read as syntax with literal arguments.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.errors import GraderError
from surefoot.protocols import Sandbox
from surefoot.rewards.extract import extract
from surefoot.rewards.verdicts import no_answer, right, wrong
from surefoot.types import Rollout, Task, Verdict

LONGEST, DEEPEST = 10_000, 40
"""Characters of an answer, and brackets open at once in it, beyond which it is not read."""
_FENCE = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)
_UNTOLD = re.compile(r"[ ,./\-_*^()]")
Called = tuple[str, dict[str, Any]]


class NoCallsError(ValueError):
    """An answer is not a list of calls; the message says why."""


@dataclass(frozen=True)
class FunctionCallGrader:
    """Right if the answer makes exactly the wanted calls, in any order, each with accepted arguments only."""

    extract: str = "whole"

    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict:
        text = extract(rollout.text, self.extract)
        if text is None:
            return no_answer(self.extract)
        try:
            wanted = [next(iter(entry.items())) for entry in task.checks["ground_truth"]]
            schemas = {function["name"]: function["parameters"] for function in task.checks["functions"]}
        except (KeyError, TypeError, AttributeError, StopIteration) as error:
            raise GraderError(
                f"the task's calls are malformed ({type(error).__name__}: {error})", where=task.id
            ) from None
        try:
            calls = read_calls(text)
        except NoCallsError as error:
            return wrong("calls", str(error))
        if len(calls) != len(wanted):
            return wrong("calls", f"{len(calls)} calls, expected {len(wanted)}")
        left = list(calls)
        for name, parameters in wanted:
            schema = schemas.get(name, {})
            fits = next((call for call in left if not trouble(call, name, parameters, schema)), None)
            if fits is None:
                closest = next((call for call in left if call[0] == name), left[0])
                return wrong("calls", trouble(closest, name, parameters, schema))
            left.remove(fits)
        return right("calls", text)


def read_calls(text: str) -> list[Called]:
    """The calls in a text, as (name, arguments by name). Raises NoCallsError."""
    blocks = _FENCE.findall(text)
    if len(blocks) > 1:
        raise NoCallsError("several code blocks")
    source = (blocks[0] if blocks else text).strip()
    if len(source) > LONGEST or _depth(source) > DEEPEST:
        raise NoCallsError("too long or too deeply nested")
    return _json_calls(source) if source[:1] == "{" or re.match(r"\[\s*\{", source) else _python_calls(source)


def trouble(call: Called, name: str, accepted: Mapping[str, Sequence[Any]], schema: Mapping[str, Any]) -> str:
    """What is wrong with a call; empty if nothing is."""
    given_name, arguments = call
    if given_name != name:
        return f"calls {given_name}, expected {name}"
    strange = [key for key in arguments if key not in accepted]
    if strange:
        return f"{name}: unexpected argument {strange[0]!r}"
    types = schema.get("properties", {})
    for key, values in accepted.items():
        if key not in arguments:
            if "" not in values or key in schema.get("required", ()):
                return f"{name}: argument {key!r} is missing"
        elif not any(accepts(arguments[key], value, types.get(key, {}).get("type", "")) for value in values):
            return f"{name}: {key} is {str(arguments[key])[:60]!r}, accepted: {str(list(values))[:80]}"
    return ""


def accepts(given: Any, value: Any, kind: str = "") -> bool:
    """Whether an argument is an accepted value. As in BFCL, case, spaces and ` ,./-_*^()` in texts do not count, an
    int will do for a float, and in nested objects each key has a list of accepted values."""
    if isinstance(value, bool) or isinstance(given, bool):
        return given is value
    if isinstance(value, str):
        return isinstance(given, str) and _plain(given) == _plain(value)
    if isinstance(value, (int, float)):
        whole = isinstance(given, int) or kind != "integer"
        return isinstance(given, (int, float)) and whole and given == value
    if isinstance(value, list):
        alike = isinstance(given, (list, tuple)) and len(given) == len(value)
        return alike and all(accepts(a, b) for a, b in zip(given, value, strict=True))
    if isinstance(value, dict):
        return isinstance(given, dict) and _accepts_object(given, value)
    return bool(given == value)


def _accepts_object(given: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    if any(key not in value for key in given):
        return False
    for key, options in value.items():
        choices = options if isinstance(options, list) else [options]
        if key not in given:
            if "" not in choices:
                return False
        elif not any(accepts(given[key], choice) for choice in choices) and not accepts(given[key], options):
            return False
    return True


def _plain(text: str) -> str:
    return _UNTOLD.sub("", text).casefold().replace("'", '"')


def _json_calls(source: str) -> list[Called]:
    try:
        value = json.loads(source, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise NoCallsError(f"not JSON: {error}") from None
    calls = []
    for entry in value if isinstance(value, list) else [value]:
        inner = entry.get("function", entry) if isinstance(entry, dict) else None
        name = inner.get("name") if isinstance(inner, dict) else None
        arguments = inner.get("arguments", inner.get("parameters", {})) if isinstance(inner, dict) else None
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise NoCallsError('a call must be {"name": ..., "arguments": {...}}')
        calls.append((name, arguments))
    return calls


def _python_calls(source: str) -> list[Called]:
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NoCallsError(f"not a call: {error}") from None
    calls = []
    for node in tree.elts if isinstance(tree, (ast.List, ast.Tuple)) else [tree]:
        if not isinstance(node, ast.Call) or node.args or any(keyword.arg is None for keyword in node.keywords):
            raise NoCallsError("not a call with named arguments")
        if not re.fullmatch(r"\w+(\.\w+)*", name := ast.unparse(node.func)):
            raise NoCallsError(f"not the name of a function: {name[:60]}")
        try:
            arguments = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
        except (ValueError, TypeError, RecursionError, MemoryError) as error:
            raise NoCallsError(f"an argument is no literal: {error}"[:200]) from None
        calls.append((name, arguments))
    return calls


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a name that comes twice would let an answer say two things."""
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name comes twice in an object")
    return dict(pairs)


def _depth(source: str) -> int:
    """Most brackets that are open at once; those in strings count as well, which only makes it stricter."""
    deepest = depth = 0
    for character in source:
        depth += (character in "([{") - (character in ")]}")
        deepest = max(deepest, depth)
    return deepest + source.count("--") + source.count("not not")
