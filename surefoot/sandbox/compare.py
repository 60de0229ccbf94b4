"""Comparing what a program printed with what it should have printed: exact, by tokens, or with a tolerance."""

from __future__ import annotations

import math
from itertools import zip_longest
from typing import Literal

Comparison = Literal["exact", "lines", "tokens", "floats"]


def same_output(
    printed: str, expected: str, how: Comparison = "tokens", *, relative: float = 1e-6, absolute: float = 1e-9
) -> tuple[bool, str]:
    """Whether `printed` is the expected output, and the first difference if it is not.

    Args:
        how: `exact`: every character. `lines`: trailing blanks and trailing empty lines do not count. `tokens`: only
            the words count, as most contests have it. `floats`: like `tokens`, and words that are both finite numbers
            need to be close only; a nan equals nothing.
        relative, absolute: Tolerances of `floats`, as in `math.isclose`.
    """
    if how == "exact":
        return (True, "") if printed == expected else (False, _first_difference([printed], [expected]))
    if how == "lines":
        left, right = _lines(printed), _lines(expected)
    else:
        left, right = printed.split(), expected.split()
    if len(left) == len(right):
        close = how == "floats"
        if all(a == b or (close and _close(a, b, relative, absolute)) for a, b in zip(left, right, strict=True)):
            return True, ""
    return False, _first_difference(left, right)


def _lines(text: str) -> list[str]:
    lines = [line.rstrip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _close(left: str, right: str, relative: float, absolute: float) -> bool:
    try:
        a, b = float(left), float(right)
    except ValueError:
        return False
    return math.isfinite(a) and math.isfinite(b) and math.isclose(a, b, rel_tol=relative, abs_tol=absolute)


def _first_difference(left: list[str], right: list[str]) -> str:
    for index, (a, b) in enumerate(zip_longest(left, right)):
        if a != b:
            return f"at {index}: printed {_short(a)}, expected {_short(b)}"
    return ""


def _short(text: str | None) -> str:
    if text is None:
        return "nothing"
    return repr(text) if len(text) <= 80 else f"{text[:80]!r}... ({len(text)} characters)"
