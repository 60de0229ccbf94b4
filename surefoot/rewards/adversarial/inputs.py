"""Makes inputs from inputs: type-aware mutation (EvalPlus, arXiv 2305.01210), boundary values, Hypothesis."""

from __future__ import annotations

import copy
import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from surefoot.rewards.adversarial.shapes import Shape, learn
from surefoot.sandbox.inside import codec

Args = tuple[Any, ...]
MOST_BYTES = 4000
"""Encoded size of one input; larger ones make grading slow."""
EDGE_NUMBERS: tuple[Any, ...] = (0, 1, -1, 2, 10, 100, -7, 2**31, -(2**63), 10**20)
EDGE_FLOATS: tuple[Any, ...] = (0.0, -0.0, 0.5, -1.5, 1e-9, 1e17, math.inf, -math.inf, math.nan)
EDGE_TEXTS: tuple[str, ...] = ("", " ", "a", "aa", "A", "aA", "0", "-1", "a b", " a ", "é", "ß", "\U0001f600", "\n")


def candidates(seeds: Sequence[Args], random: Random, *, mutated: int = 160, drawn: int = 80) -> list[Args]:
    """Distinct new inputs, none of them among `seeds`; boundary values first.

    Args:
        mutated: How many mutations of seeds and of mutations to try.
        drawn: How many inputs to draw from Hypothesis strategies.
    """
    known = {key(args) for args in seeds}
    found: list[Args] = []
    made = itertools.chain(_edges(seeds), _mutations(seeds, random, mutated), _drawn(seeds, random, drawn))
    for args in made:
        name = key(args)
        if name is not None and name not in known and len(name) <= MOST_BYTES:
            known.add(name)
            found.append(args)
    return found


def key(args: Args) -> bytes | None:
    """A name for an input: equal for equal inputs of equal types; None if it is not plain data."""
    try:
        return codec.dumps(codec.encode(args))
    except codec.CodecError:
        return None


# ---------------------------------------------------------------------------------------------------- boundary values


def edges(value: Any) -> list[Any]:
    """Boundary values of the type of `value`: empty, one, huge, negative, unicode, nan, duplicates, unsorted."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, -value, *EDGE_NUMBERS]
    if isinstance(value, float):
        return [math.nextafter(value, math.inf), -value, *EDGE_FLOATS]
    if isinstance(value, str):
        return [value[:1], value[::-1], value * 2, value.upper(), value.lower(), value + " ", *EDGE_TEXTS]
    if isinstance(value, (list, tuple)):
        return _sequence_edges(value)
    if isinstance(value, dict):
        first = dict(itertools.islice(value.items(), 1))
        return [
            {},
            first,
            dict(reversed(list(value.items()))),
            *({**value, k: e} for k in first for e in edges(first[k])),
        ]
    if isinstance(value, (set, frozenset)):
        return [type(value)(), type(value)(itertools.islice(value, 1))]
    return []


def _sequence_edges(value: list[Any] | tuple[Any, ...]) -> list[Any]:
    kind, items = type(value), list(value)
    made: list[list[Any]] = [[], items[:1], items[:2], items[::-1], items + items, items[:1] * 3, items[1:]]
    made.append(sorted(items, key=repr))
    made += [[edge, *items[1:]] for item in items[:1] for edge in edges(item)]
    made += [[edge] for item in items[:1] for edge in edges(item)]
    return [kind(part) for part in made]


def _edges(seeds: Sequence[Args]) -> Iterator[Args]:
    """Each seed with one argument at a boundary; then all arguments at once."""
    for args in seeds[:4]:
        for place, value in enumerate(args):
            for edge in edges(value):
                yield (*args[:place], edge, *args[place + 1 :])
    for args in seeds[:1]:
        yield from itertools.islice(itertools.product(*(edges(value)[:4] for value in args)), 30)


# ---------------------------------------------------------------------------------------------------------- mutation


def _mutations(seeds: Sequence[Args], random: Random, count: int) -> Iterator[Args]:
    """Mutations of seeds, and of their mutations; what is put in comes from other inputs as often as not."""
    if not any(seeds):
        return
    pool = list(seeds)
    parts = list(itertools.islice(_parts(seeds), 2000))
    for _ in range(count):
        args = list(copy.deepcopy(random.choice(pool)))
        if not args:
            continue
        for _ in range(random.choice((1, 1, 2, 3))):
            place = random.randrange(len(args))
            args[place] = mutate(args[place], random, parts)
        made = tuple(args)
        pool.append(made)
        yield made


def mutate(value: Any, random: Random, parts: Sequence[Any]) -> Any:
    """A value of the same type, a small step away. `parts`: values seen anywhere, to be put in."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return _mutated_number(value, random, parts)
    if isinstance(value, str):
        return _mutated_text(value, random, parts)
    if isinstance(value, (list, tuple)):
        return type(value)(_mutated_items(list(value), random, parts))
    if isinstance(value, (set, frozenset)):
        return type(value)(item for item in _mutated_items(sorted(value, key=repr), random, parts) if _hashable(item))
    if isinstance(value, dict):
        return _mutated_dict(dict(value), random, parts)
    return value


def _mutated_number(value: float, random: Random, parts: Sequence[Any]) -> float:
    alike = [part for part in parts if type(part) is type(value)]
    steps = [value + 1, value - 1, value + random.randint(-10, 10), value * 2, -value]
    steps += [value + random.random(), value / 2] if isinstance(value, float) else [value // 2]
    return random.choice([*steps, random.choice(alike)] if alike else steps)


def _mutated_text(text: str, random: Random, parts: Sequence[Any]) -> str:
    texts = [part for part in parts if isinstance(part, str) and part]
    if not text:
        return random.choice(texts) if texts else random.choice("ab 1")
    at, other = random.randrange(len(text)), random.randrange(len(text))
    low, high = sorted((at, other))
    character = random.choice(random.choice(texts) if texts else text)
    words = text.split(" ")
    random.shuffle(words)
    return random.choice((
        text[:at] + text[at + 1 :],
        text[:at] + character + text[at:],
        text[:at] + character + text[at + 1 :],
        text[:low] + text[high:],
        text[: high + 1] + text[low:],
        text[:at] + text[at].swapcase() + text[at + 1 :],
        text[low : high + 1],
        " ".join(words),
        text + text[::-1],
        random.choice(texts) if texts else text,
    ))  # fmt: skip


def _mutated_items(items: list[Any], random: Random, parts: Sequence[Any]) -> list[Any]:
    if not items:
        return [random.choice(parts)] if parts else []
    at = random.randrange(len(items))
    same_type = [part for part in parts if type(part) is type(items[at])] or items
    match random.randrange(7):
        case 0:
            del items[at]
        case 1:
            items.insert(at, copy.deepcopy(items[at]))
        case 2:
            items.insert(at, copy.deepcopy(random.choice(same_type)))
        case 3:
            random.shuffle(items)
        case 4:
            items = items[:at] + items[at:][::-1]
        case _:
            items[at] = mutate(items[at], random, parts)
    return items


def _mutated_dict(value: dict[Any, Any], random: Random, parts: Sequence[Any]) -> dict[Any, Any]:
    if not value:
        return value
    name = random.choice(list(value))
    match random.randrange(3):
        case 0:
            del value[name]
        case 1:
            new = mutate(name, random, parts)
            if _hashable(new):
                value[new] = value.pop(name)
        case _:
            value[name] = mutate(value[name], random, parts)
    return value


def _parts(values: Any) -> Iterator[Any]:
    """Every value inside `values`, containers included."""
    for value in values:
        yield value
        if isinstance(value, dict):
            yield from _parts(value)
            yield from _parts(value.values())
        elif isinstance(value, (list, tuple, set, frozenset)):
            yield from _parts(value)


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


# -------------------------------------------------------------------------------------------------------- Hypothesis


def _drawn(seeds: Sequence[Args], random: Random, count: int) -> list[Args]:
    """Inputs from Hypothesis strategies for the shapes of the seeds; the same ones for the same `random`."""
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis import strategies as st

    widths = {len(args) for args in seeds}
    if len(widths) != 1 or not any(widths) or count < 1:
        return []
    found: list[Args] = []
    strategy = st.tuples(*(strategy_for(learn(column)) for column in zip(*seeds, strict=True)))

    @settings(
        max_examples=count, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=[*HealthCheck]
    )
    @seed(random.getrandbits(32))
    @given(strategy)
    def collect(args: Args) -> None:
        found.append(copy.deepcopy(args))

    with warnings.catch_warnings(action="ignore"):
        collect()
    return found


def strategy_for(shapes: Sequence[Shape]) -> Any:
    """A Hypothesis strategy for values like the examples that the shapes were learnt from, a little beyond them."""
    from hypothesis import strategies as st

    return st.one_of(*map(_strategy, shapes)) if shapes else st.integers(-10, 10)


def _strategy(shape: Shape) -> Any:
    from hypothesis import strategies as st

    size: dict[str, Any] = {"min_size": int(min(shape.low, 1)), "max_size": int(2 * shape.high + 2)}
    if shape.kind is bool:
        return st.booleans()
    if shape.kind is int:
        most = int(2 * max(abs(shape.low), abs(shape.high))) + 5
        return st.integers(0 if "not negative" in shape.facts else -most, most)
    if shape.kind is float:
        top = 2.0 * max(abs(shape.low), abs(shape.high)) + 5
        return st.floats(0.0 if "not negative" in shape.facts else -top, top).map(lambda x: round(x, 3))
    if shape.kind is str:
        return st.text(sorted(shape.alphabet) or ["a"], **size)
    if shape.kind is dict:
        return st.dictionaries(strategy_for(shape.items), strategy_for(shape.values), **size)
    if shape.places:
        return st.tuples(*map(strategy_for, shape.places))
    if shape.kind in (list, tuple):
        return st.lists(strategy_for(shape.items), **size).map(sorted if _sortable(shape) else shape.kind)
    if shape.kind in (set, frozenset):
        return st.sets(strategy_for(shape.items), **size).map(shape.kind)
    return st.none()


def _sortable(shape: Shape) -> bool:
    return shape.kind is list and "rising" in shape.facts and len(shape.items) == 1 and shape.items[0].kind is not dict
