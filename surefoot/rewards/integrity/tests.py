"""What a task's tests contain: the inputs and results that honest code has no way to know."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

SMALL = 10
"""Integers below this, and strings of one character, are in any program."""


@dataclass(frozen=True)
class Example:
    """One test: its input (a tuple of arguments), its result, and whether the model could not see it."""

    args: tuple[Any, ...]
    expected: Any
    hidden: bool


@dataclass(frozen=True)
class Tests:
    """The tests of a task as literals."""

    examples: tuple[Example, ...]

    @cached_property
    def inputs(self) -> dict[str, Example]:
        """The tests with a telling input, by its arguments and, for a single one, by that."""
        return {form: e for e in self.examples if telling_input(e.args) for form in _forms(e.args)}

    @cached_property
    def decisive(self) -> frozenset[Example]:
        """The tests with a telling input that decide: the hidden ones, or all where every test was shown."""
        found = frozenset(e for e in self.examples if telling_input(e.args))
        return frozenset(e for e in found if e.hidden) or found

    @cached_property
    def results(self) -> frozenset[str]:
        """Telling results, as `key` writes them."""
        return frozenset(key(e.expected) for e in self.examples if telling(e.expected))

    @property
    def exhaustive(self) -> bool:
        """Whether the tests go through a whole range of integers: then a table of it is what the task asks for."""
        numbers = sorted({e.args[0] for e in self.examples if len(e.args) == 1 and type(e.args[0]) is int})
        if len(numbers) < 3 or any(len(e.args) != 1 or type(e.args[0]) is not int for e in self.examples):
            return False
        return numbers == list(range(numbers[0], numbers[-1] + 1))


def tests_of(checks: Mapping[str, Any]) -> Tests:
    """The tests in a task's `checks`, in whichever style; those that are not plain literals are left out."""
    if "cases" in checks:
        cases = checks["cases"]
        return Tests(
            tuple(Example(_tupled(c["args"]), _tupled(c["expected"]), bool(c.get("hidden", True))) for c in cases)
        )
    if "io" in checks:
        return Tests(
            tuple(Example((c["input"],), _printed(c["output"]), bool(c.get("hidden", True))) for c in checks["io"])
        )
    if "test_files" in checks:
        found = [example for text in checks["test_files"].values() for example in _asserted(text)]
        return Tests(tuple(Example(args, expected, True) for args, expected in found))
    tests = checks.get("tests", "")
    source = tests if isinstance(tests, str) else "\n".join(tests)
    visible = int(checks.get("visible", 0))
    asserted = enumerate(_asserted(source))
    return Tests(tuple(Example(args, expected, place >= visible) for place, (args, expected) in asserted))


def telling_input(args: tuple[Any, ...]) -> bool:
    """Whether an input is one that a program would not hold by chance."""
    return any(telling(arg) for arg in args) or (len(args) > 1 and any(type(a) is int and abs(a) > 2 for a in args))


def telling(value: Any) -> bool:
    """Whether a value would not be in a program by chance: not empty, not small, not a truth value."""
    if value is None or isinstance(value, bool):
        return False
    if isinstance(value, (int, float)):
        return abs(value) >= SMALL or value != int(value) if value == value and abs(value) != float("inf") else False
    if isinstance(value, str):
        return len(value.strip()) > 1
    return bool(value) if isinstance(value, (tuple, list, dict, set, frozenset)) else True


def key(value: Any) -> str:
    """A value in a form that does not tell lists from tuples, nor 2 from 2.0."""
    value = _tupled(value)
    return repr(int(value)) if isinstance(value, float) and value.is_integer() else repr(value)


def _forms(args: tuple[Any, ...]) -> Iterator[str]:
    yield key(args)
    if len(args) == 1:
        yield key(args[0])


def forms(value: Any) -> Iterator[str]:
    """A value of the code as it may be among `Tests.inputs`: itself and, for a string, the literal that it spells."""
    yield key(value)
    if isinstance(value, str):
        spelt = _printed(value)
        if not isinstance(spelt, str):
            yield key(spelt)


def _tupled(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_tupled(item) for item in value)
    if isinstance(value, Mapping):
        return _Frozen((k, _tupled(v)) for k, v in value.items())
    return frozenset(value) if isinstance(value, set) else value


class _Frozen(dict[Any, Any]):
    """A dict that can be hashed by its text."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(self))


def _printed(text: str) -> Any:
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text.strip()


def _asserted(source: str) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Arguments and results of the comparisons `f(literals) == literal` in test source."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Call) and len(node.comparators) == 1:
            try:
                args = tuple(_tupled(ast.literal_eval(arg)) for arg in node.left.args)
                yield args, _tupled(ast.literal_eval(node.comparators[0]))
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                continue
