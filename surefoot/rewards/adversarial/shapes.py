"""What the inputs of a function look like, learnt from examples: types, ranges, alphabets, and likely invariants.

The idea is Daikon's (Ernst et al., "The Daikon system for dynamic detection of likely invariants", 2007): a property
that every known input has is taken for a precondition. It may be narrower than the truth, which costs strength, and
is seldom wider, which would hold an invalid input against a right solution.
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CLASSES = (string.ascii_lowercase, string.ascii_uppercase, string.digits)
BRACKETS = {")": "(", "]": "[", "}": "{", ">": "<"}
NUMBERS = (int, float)
SCALARS: tuple[type, ...] = (bool, int, float, str, type(None))
ROOM = 2
"""Sizes and magnitudes up to so many times the largest that was seen count as ordinary."""


@dataclass(frozen=True)
class Shape:
    """Inputs of one type. Which fields have a meaning depends on `kind`."""

    kind: type
    low: float = 0
    high: float = 0
    """Smallest and largest number, or length of a text or container."""
    alphabet: frozenset[str] = frozenset()
    """Characters that texts may hold."""
    facts: frozenset[str] = frozenset()
    """Names of `FACTS` that hold for all examples."""
    items: tuple[Shape, ...] = ()
    """What containers hold, one shape for each type."""
    values: tuple[Shape, ...] = ()
    """What the values of dicts are; `items` are then the keys."""
    places: tuple[tuple[Shape, ...], ...] = ()
    """What stands in each place of tuples of one length; `items` is then empty."""


def learn(examples: Sequence[Any]) -> tuple[Shape, ...]:
    """One shape for each type among `examples`; ints beside floats are floats."""
    kinds = dict.fromkeys(type(value) for value in examples)
    if float in kinds:
        kinds.pop(int, None)
    return tuple(_shape(kind, [v for v in examples if _is(v, kind)]) for kind in kinds)


def admits(shapes: Sequence[Shape], value: Any) -> bool:
    """Whether a value is like the examples that the shapes were learnt from."""
    return any(_is(value, shape.kind) and _fits(shape, value) for shape in shapes)


def relations(inputs: Sequence[Sequence[Any]]) -> tuple[tuple[int, int, str], ...]:
    """Relations between two arguments that hold for all inputs, as (i, j, name); none from fewer than three inputs."""
    width = min((len(args) for args in inputs), default=0)
    if len(inputs) < 3:
        return ()
    return tuple(
        (i, j, name)
        for i in range(width)
        for j in range(width)
        if i != j
        for name in RELATIONS
        if all(related(name, args[i], args[j]) for args in inputs)
    )


def related(name: str, a: Any, b: Any) -> bool:
    """Whether relation `name` holds; false where it has no meaning."""
    try:
        return bool(RELATIONS[name](a, b))
    except TypeError:
        return False


def _is(value: Any, kind: type) -> bool:
    return type(value) is kind or (kind is float and type(value) is int)


def _shape(kind: type, examples: list[Any]) -> Shape:
    if kind in NUMBERS:
        finite = [value for value in examples if _finite(value)] or [0]
        return Shape(kind, min(finite), max(finite), facts=_facts(examples))
    if kind not in (str, list, tuple, dict, set, frozenset):
        return Shape(kind)
    sizes = [len(value) for value in examples]
    bounds: dict[str, Any] = {"low": min(sizes), "high": max(sizes), "facts": _facts(examples)}
    if kind is str:
        return Shape(kind, alphabet=_alphabet(examples), **bounds)
    if kind is dict:
        keys, values = ([x for value in examples for x in part(value)] for part in (dict.keys, dict.values))
        return Shape(kind, items=learn(keys), values=learn(values), **bounds)
    if kind is tuple and min(sizes) == max(sizes):
        return Shape(kind, places=tuple(learn(place) for place in zip(*examples, strict=True)), **bounds)
    return Shape(kind, items=learn([item for value in examples for item in value]), **bounds)


def _alphabet(texts: Sequence[str]) -> frozenset[str]:
    """The characters seen; of letters and digits, the whole class."""
    seen = frozenset("".join(texts))
    return seen.union(*(group for group in CLASSES if seen & frozenset(group)))


def _fits(shape: Shape, value: Any) -> bool:
    if not all(FACTS[fact](value) for fact in shape.facts):
        return False
    if shape.kind in NUMBERS:
        limit = max(ROOM * abs(shape.low), ROOM * abs(shape.high), 10)
        return _finite(value) and bool(abs(value) <= limit)
    if not isinstance(value, (str, list, tuple, dict, set, frozenset)):
        return True
    if not min(shape.low, 1) <= len(value) <= max(ROOM * shape.high, 4) or (shape.places and len(value) != shape.low):
        return False
    if isinstance(value, str):
        return shape.alphabet.issuperset(value)
    if isinstance(value, dict):
        return all(admits(shape.items, k) and admits(shape.values, v) for k, v in value.items())
    if shape.places:
        return all(admits(place, item) for place, item in zip(shape.places, value, strict=True))
    return all(admits(shape.items, item) for item in value)


def _finite(value: float) -> bool:
    return isinstance(value, int) or math.isfinite(value)


def _facts(examples: Sequence[Any]) -> frozenset[str]:
    return frozenset(name for name, holds in FACTS.items() if all(holds(value) for value in examples))


def _sized(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, (list, tuple)) and _safely(test, value)


def _text(test: Callable[[str], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and test(value)


def _number(test: Callable[[float], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, NUMBERS) and test(value)


def _safely(test: Callable[[Any], bool], value: Any) -> bool:
    try:
        return bool(test(value))
    except TypeError:
        return False


def _balanced(text: str) -> bool:
    """Whether brackets pair up; false for a text without any, where it says nothing."""
    open_: list[str] = []
    for character in text:
        if character in BRACKETS.values():
            open_.append(character)
        elif character in BRACKETS and (not open_ or open_.pop() != BRACKETS[character]):
            return False
    return not open_ and any(character in BRACKETS for character in text)


def _template(text: str) -> str:
    """Runs of letters as `a`, of digits as `0`, all else as it is."""
    out: list[str] = []
    for character in text:
        mark = "0" if character.isdigit() else "a" if character.isalpha() else character
        if not out or out[-1] != mark or mark not in "0a":
            out.append(mark)
    return "".join(out)


FACTS: Mapping[str, Callable[[Any], bool]] = {
    "not negative": _number(lambda x: x >= 0),
    "positive": _number(lambda x: x > 0),
    "negative": _number(lambda x: x < 0),
    "even": _number(lambda x: x % 2 == 0),
    "odd": _number(lambda x: x % 2 == 1),
    "at least two": _number(lambda x: x >= 2),
    "not empty": lambda value: hasattr(value, "__len__") and len(value) > 0,
    "even size": lambda value: hasattr(value, "__len__") and len(value) % 2 == 0,
    "odd size": lambda value: hasattr(value, "__len__") and len(value) % 2 == 1,
    "rising": _sized(lambda v: all(a <= b for a, b in itertools.pairwise(v))),
    "falling": _sized(lambda v: all(a >= b for a, b in itertools.pairwise(v))),
    "distinct": _sized(lambda v: len(v) == len({repr(item) for item in v})),
    "equal sizes": _sized(lambda v: len({len(item) for item in v}) <= 1),
    "square": _sized(lambda v: all(len(item) == len(v) for item in v)),
    "balanced": _text(_balanced),
    "tidy spaces": _text(lambda s: s == " ".join(s.split(" ")).strip() and "  " not in s),
    "one case": _text(lambda s: s in (s.lower(), s.upper())),
    "one word": _text(lambda s: not any(c.isspace() for c in s)),
    "a date or time": _text(lambda s: _template(s) in ("0-0-0", "0/0/0", "0:0", "0:0:0")),
    "a fraction": _text(lambda s: _template(s) == "0/0"),
}
"""Properties of one value; each is false where it has no meaning."""

RELATIONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "at most": lambda a, b: a <= b,
    "within the size of": lambda a, b: not isinstance(a, bool) and 0 <= a <= len(b),
    "an index of": lambda a, b: not isinstance(a, bool) and 0 <= a < len(b),
    "as long as": lambda a, b: len(a) == len(b),
    "no longer than": lambda a, b: len(a) <= len(b),
    "a member of": lambda a, b: a in b,
}
"""Relations between two arguments; a TypeError says that one has no meaning."""
