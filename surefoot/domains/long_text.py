"""Words that long texts are made of: things with codes, people with facts, and prose that says nothing of either."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

COLOURS = ("red", "green", "blue", "grey", "white", "black", "brown", "silver")
THINGS = ("door", "locker", "safe", "gate", "cabinet", "garage", "archive", "cellar", "tower", "boat")
KEYS = tuple(f"{colour} {thing}" for colour in COLOURS for thing in THINGS)

GIVEN = ("Ada", "Ben", "Clara", "David", "Emma", "Felix", "Greta", "Hugo", "Ines", "Jonas", "Karin", "Leo")
FAMILY = ("Adler", "Berg", "Castro", "Duval", "Ekman", "Fischer", "Garcia")
OWNERS = tuple(f"{given} {family}" for given in GIVEN for family in FAMILY)

FACTS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "city": (
        "{person} lives in {value}.",
        "Where does {person} live?",
        ("Lisbon", "Oslo", "Prague", "Dublin", "Vienna", "Athens", "Turin", "Lyon"),
    ),
    "work": (
        "{person} works as a {value}.",
        "What does {person} work as?",
        ("baker", "pilot", "teacher", "painter", "doctor", "gardener", "lawyer", "welder"),
    ),
    "pet": (
        "{person} keeps a {value}.",
        "Which animal does {person} keep?",
        ("parrot", "rabbit", "tortoise", "cat", "dog", "goat", "pony", "hamster"),
    ),
}
"""Kind of fact -> how it is said, how it is asked for, its values."""

SUBJECTS = ("The committee", "An old neighbour", "The morning paper", "A visitor", "The assistant", "Somebody")
VERBS = ("spoke about", "remembered", "asked for", "wrote down", "looked for", "forgot about", "described", "praised")
OBJECTS = ("the weather", "a long walk", "the last meeting", "an open window", "the harvest", "a quiet street")
ENDS = ("before noon", "in the evening", "without a reason", "for the second time", "as usual", "with some patience")


def filler(random: Random, words: int) -> list[str]:
    """Sentences of about `words` words in all, about nothing that is ever asked for."""
    sentences: list[str] = []
    count = 0
    while count < words:
        sentence = " ".join(random.choice(part) for part in (SUBJECTS, VERBS, OBJECTS, ENDS)) + "."
        sentences.append(sentence)
        count += len(sentence.split())
    return sentences
