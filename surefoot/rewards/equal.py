"""Whether plain data that came back from a solution equals what was expected: Python's equality, made safe and strict.

Stricter: `True` is not 1. Laxer: floats need to be close only. Runs in our process, on plain data; it calls nothing of
the solution's, and does not fail for huge or deep values.
"""

from __future__ import annotations

import math
import reprlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

RELATIVE = 1e-6
ABSOLUTE = 1e-9


def same(given: Any, expected: Any, *, truth_is_number: bool = False) -> bool:
    """Whether `given` is the value `expected`; containers must be of the same kind and hold the same values.

    With `truth_is_number`, `True` is 1 as it is to Python, for tests that were written with `==`.
    """
    if truth_is_number:
        given, expected = _numbered(given), _numbered(expected)
    if isinstance(given, bool) != isinstance(expected, bool):
        return False
    if isinstance(expected, float) and isinstance(given, (int, float)):
        return _close(given, expected)
    if isinstance(expected, complex) and isinstance(given, (int, float, complex)):
        return _close(given.real, expected.real) and _close(given.imag, expected.imag)
    if isinstance(expected, (list, tuple)):
        if type(given) is not type(expected) or len(given) != len(expected):
            return False
        return all(same(a, b) for a, b in zip(given, expected, strict=True))
    if isinstance(expected, Mapping):
        return _same_mapping(given, expected)
    if isinstance(expected, (set, frozenset)):
        return isinstance(given, (set, frozenset)) and _tagged(given) == _tagged(expected)
    return _plainly_equal(given, expected)


def shown(value: Any) -> str:
    """A short repr of plain data; never fails, however large or deep the value is."""
    try:
        return _SHORT.repr(value)
    except (ValueError, RecursionError, MemoryError):
        return f"<{type(value).__name__} too large to show>"


def _numbered(value: Any) -> Any:
    """The value with truth values as numbers; too deep a value stays as it is."""
    if isinstance(value, bool):
        return int(value)
    try:
        if type(value) in (list, tuple, set, frozenset):
            return type(value)(_numbered(item) for item in value)
        if type(value) is dict:
            return {_numbered(key): _numbered(item) for key, item in value.items()}
    except RecursionError:
        pass
    return value


def _same_mapping(given: Any, expected: Mapping[Any, Any]) -> bool:
    if not isinstance(given, Mapping) or _tagged(given) != _tagged(expected):
        return False
    return all(same(given[key], value) for key, value in expected.items())


def _tagged(values: Any) -> Counter[tuple[bool, Any]]:
    """The members, each with whether it is a truth value."""
    return Counter((isinstance(value, bool), value) for value in values)


def _close(given: float, expected: float) -> bool:
    try:
        given = float(given)
    except OverflowError:
        return False
    if math.isnan(expected):
        return math.isnan(given)
    return math.isclose(given, expected, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def _plainly_equal(given: Any, expected: Any) -> bool:
    """`==` for what is no container; numpy arrays by their items."""
    if hasattr(expected, "tolist") or hasattr(given, "tolist"):
        return same(_listed(given), _listed(expected))
    try:
        return bool(given == expected)
    except (TypeError, ValueError, RecursionError):
        return False


def _listed(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = _SHORT.maxdict = 12
_SHORT.maxlevel = 4
