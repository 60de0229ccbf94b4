"""What an answer must look like before some of reasoning-gym's scorers are asked: their faults, mended from outside."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

Guard = Callable[[str, str], bool]
"""Whether an answer may be scored, given the reference answer."""
_INTEGER = re.compile(r"\d+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def admitted(name: str, answer: str, reference: str | None) -> bool:
    """Whether the scorer of generator `name` can be trusted with `answer`; where not, it is wrong."""
    guard = GUARDS.get(name)
    return guard is None or reference is None or guard(answer, reference)


def _only_numbers(answer: str, reference: str) -> bool:
    return re.search(r"[^\W\dij_]", answer) is None


def _as_many_numbers(answer: str, reference: str) -> bool:
    return len(_NUMBER.findall(answer)) == len(_NUMBER.findall(reference))


def _as_many_words(answer: str, reference: str) -> bool:
    return len(answer.split()) == len(reference.split())


def _same_numbers(answer: str, reference: str) -> bool:
    return sorted(_INTEGER.findall(answer)) == sorted(_INTEGER.findall(reference))


def _only_moves(answer: str, reference: str) -> bool:
    return re.fullmatch(r"[UDLRudlr\s]*", answer) is not None


GUARDS: Mapping[str, Guard] = {
    # `nan` is at no distance from anything: min(1, exp(-nan)) is 1
    "complex_arithmetic": _only_numbers,
    # the first fraction, or number, of the text counts, whatever follows
    "fraction_simplification": _as_many_numbers,
    "gsm_symbolic": _as_many_numbers,
    # what follows the first number of days is not read
    "time_intervals": _as_many_numbers,
    # letters that are no moves are passed over, so that prose around several attempts plays on
    "sokoban": _only_moves,
    # words are compared pairwise, those of a longer answer are left over
    "letter_jumble": _as_many_words,
    # any four numbers that make 24 will do, not only those of the question
    "puzzle24": _same_numbers,
}
