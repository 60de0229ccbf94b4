"""Arguments of test cases: random ones and boundary ones, by kind, around the values that a problem is about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

VOCABULARY = (
    "apple river stone cloud tree house bird moon fish lamp green level noon radar eye sun a an of it go cat dog "
    "banana kayak window summer letter coffee needle paper orange music garden civic pepper on up"
)
WORDS = VOCABULARY.split()
LETTERS = "abcdefghijklmnopqrstuvwxyz"
Focus = Sequence[Any]


@dataclass(frozen=True)
class Kind:
    """A kind of argument: how to make random ones, and the boundary ones."""

    make: Callable[[Random, Focus], Any]
    edges: Callable[[Focus], list[Any]]


def _integers(focus: Focus) -> list[int]:
    return [value for value in focus if isinstance(value, int)]


def _texts(focus: Focus) -> list[str]:
    return [value for value in focus if isinstance(value, str) and value]


def _int(random: Random, focus: Focus) -> int:
    near = [n + d for n in _integers(focus) for d in (-1, 0, 1)]
    return random.choice(near) if near and random.random() < 0.4 else random.randint(-20, 40)


def _int_edges(focus: Focus) -> list[int]:
    near = [n + d for n in _integers(focus) for d in (0, 1, -1)]
    return [0, *near, -1, 1, -7, 100]


def _natural(random: Random, focus: Focus) -> int:
    return abs(_int(random, focus))


def _natural_edges(focus: Focus) -> list[int]:
    return list(dict.fromkeys(abs(n) for n in [0, 1, *_int_edges(focus)]))


def _ints(random: Random, focus: Focus, shortest: int = 0) -> list[int]:
    numbers = [_int(random, focus) for _ in range(random.randint(max(shortest, 2), max(shortest + 2, 5)))]
    if random.random() < 0.3:
        numbers[-1] = numbers[0]
    return numbers


def _int_list_edges(focus: Focus) -> list[list[int]]:
    near = [n + d for n in _integers(focus) for d in (-1, 0, 1)]
    return [[], *([near] if near else []), [0], [-3], [5, 5, 5], [-1, -2, -3], [2, 1, 2, 1], [1, 3, 5, 7], [2, 4, 6]]


def _naturals(random: Random, focus: Focus) -> list[int]:
    return [random.randint(1, 30) for _ in range(random.randint(2, 5))]


def _word(random: Random, focus: Focus) -> str:
    word = random.choice(WORDS)
    for text in _texts(focus):
        if random.random() < 0.6:
            place = random.choice([0, len(word), random.randrange(len(word) + 1)])
            word = word[:place] + text + word[place:]
    return word


def _word_edges(focus: Focus) -> list[str]:
    return ["", *[t for text in _texts(focus) for t in (text, text * 3)], "a", "zz", "abc", "Abba", "XYZ"]


def _text(random: Random, focus: Focus) -> str:
    words = [_word(random, focus) for _ in range(random.randint(2, 4))]
    return " ".join(word.capitalize() if random.random() < 0.3 else word for word in words)


def _text_edges(focus: Focus) -> list[str]:
    return [
        "",
        *[t for text in _texts(focus) for t in (text, f"{text} {text}")],
        "one",
        "Hello World",
        "AEIOU xyz",
        "a b c",
    ]


def _words(random: Random, focus: Focus) -> list[str]:
    words = [_word(random, focus) for _ in range(random.randint(2, 5))]
    lengths = [n for n in _integers(focus) if 0 < n < 10]
    if lengths and random.random() < 0.7:
        length = random.choice(lengths) + random.choice([-1, 0, 1])
        words[0] = "".join(random.choice(LETTERS) for _ in range(length))
    return words


def _word_list_edges(focus: Focus) -> list[list[str]]:
    lengths = [n for n in _integers(focus) if 0 < n < 10]
    near = ["abcdefghijkl"[: n + d] for n in lengths for d in (-1, 0, 1)]
    seen = [text for t in _texts(focus) for text in (t, f"x{t}", f"{t}x")]
    return [
        [],
        *([near] if near else []),
        *([seen] if seen else []),
        ["a"],
        [""],
        ["same", "same"],
        ["Bee", "ant", "Cow"],
    ]


def _counts(random: Random, focus: Focus) -> dict[str, int]:
    names = random.sample(["red", "blue", "green", "pink", "gray", "gold"], random.randint(1, 3))
    counts = {name: _int(random, focus) for name in names}
    for text in _texts(focus):
        if random.random() < 0.6:
            counts[text] = random.randint(1, 20)
    return counts


def _count_edges(focus: Focus) -> list[dict[str, int]]:
    near = {f"k{i}": n + d for i, (n, d) in enumerate((n, d) for n in _integers(focus) for d in (-1, 0, 1))}
    seen = dict.fromkeys(_texts(focus), 7)
    return [{}, *([near] if near else []), *([seen] if seen else []), {"a": 0}, {"b": 2, "a": 2}, {"z": -5, "y": 5}]


def _nonempty(edges: Callable[[Focus], list[Any]]) -> Callable[[Focus], list[Any]]:
    return lambda focus: [value for value in edges(focus) if value]


def _bool(random: Random, focus: Focus) -> bool:
    return random.random() < 0.5


def _rows(random: Random, focus: Focus) -> list[list[int]]:
    return [[random.randint(-5, 15) for _ in range(random.randint(1, 3))] for _ in range(random.randint(2, 3))]


KINDS: dict[str, Kind] = {
    "int": Kind(_int, _int_edges),
    "int2": Kind(_int, lambda focus: _int_edges(focus)[::-1]),
    "natural": Kind(_natural, _natural_edges),
    "small": Kind(lambda random, _: random.randint(0, 9), lambda _: [0, 1, 2, 10]),
    "positive": Kind(lambda random, _: random.randint(1, 40), lambda _: [1, 2, 3, 7, 12, 100]),
    "year": Kind(
        lambda random, _: random.choice([100, 400, 4, 1]) * random.randint(1, 20), lambda _: [1900, 2000, 2023, 2024]
    ),
    "fifteens": Kind(
        lambda random, _: random.choice([1, 2, 3, 5]) * random.randint(1, 9), lambda _: [30, 1, 15, 6, 10, 0]
    ),
    "ints": Kind(_ints, _int_list_edges),
    "ints2": Kind(_ints, lambda focus: _int_list_edges(focus)[::-1]),
    "ints+": Kind(_ints, _nonempty(_int_list_edges)),
    "naturals": Kind(_naturals, lambda _: [[1], [2, 2], [1, 2, 3, 4]]),
    "long ints": Kind(
        lambda random, focus: _ints(random, focus, 6), lambda focus: [[], [1], [1, 2], [3, 1, 2, 3, 1, 2, 3]]
    ),
    "word": Kind(_word, _word_edges),
    "word2": Kind(_word, lambda focus: _word_edges(focus)[::-1]),
    "word+": Kind(_word, _nonempty(_word_edges)),
    "text": Kind(_text, _text_edges),
    "words": Kind(_words, _word_list_edges),
    "words+": Kind(_words, _nonempty(_word_list_edges)),
    "dict": Kind(_counts, _count_edges),
    "dict+": Kind(_counts, _nonempty(_count_edges)),
    "bool": Kind(_bool, lambda _: [True, False]),
    "bool2": Kind(_bool, lambda _: [True]),
    "rows": Kind(_rows, lambda _: [[], [[]], [[1]], [[1, 2], []]]),
}
