"""All topics, and the problems of each."""

from __future__ import annotations

from functools import cache

from surefoot.domains.code_tasks import choices, dicts, lists, loops, numbers, strings, words
from surefoot.domains.code_tasks.family import Family, Problem

FAMILIES: dict[str, tuple[Family, ...]] = {
    "lists": lists.FAMILIES,
    "strings": strings.FAMILIES,
    "words": words.FAMILIES,
    "numbers": numbers.FAMILIES,
    "choices": choices.FAMILIES,
    "dicts": dicts.FAMILIES,
    "loops": loops.FAMILIES,
}
"""Families by topic."""
LEVELS = (0, 1, 2)


@cache
def problems(topic: str) -> tuple[Problem, ...]:
    """All problems of a topic: each family with each set of its parameters."""
    return tuple(problem for family in FAMILIES[topic] for problem in family.problems(topic))
