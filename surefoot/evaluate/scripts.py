"""Scripts of conversations: rules given once, at the beginning, and questions that go on and on.

The questions are fixed, so that the conversations of two models, or of one before and after training, differ in the
replies only. Rules come from `rewards.constraint_kinds`, which checks each of them in every reply; those of a script
can all be kept at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from surefoot.rewards.constraints import describe
from surefoot.types import stable_seed

Constraint = Mapping[str, Any]

RULES: tuple[tuple[Constraint, ...], ...] = (
    ({"kind": "lowercase"}, {"kind": "uppercase"}),
    ({"kind": "words_at_most", "n": 25}, {"kind": "sentences_at_most", "n": 2}, {"kind": "words_at_least", "n": 8}),
    ({"kind": "ends_with", "end": "over and out."}, {"kind": "starts_with", "start": "Well"}, {"kind": "quoted"}),
    ({"kind": "no_commas"}, {"kind": "no_digits"}, {"kind": "forbidden", "words": ["the"]}),
    ({"kind": "keyword", "word": "maybe", "n": 1}, {"kind": "letter_at_most", "letter": "z", "n": 0}),
)
"""Rules by what they are about; a script has at most one of each."""
RULES_A_SCRIPT = 3

TOPICS = (
    *("gardens", "trains", "bread", "the sea", "libraries", "bicycles", "winter", "music", "markets", "bridges"),
    *("tea", "mountains", "cats", "maps", "clocks", "kites"),
)
QUESTIONS = (
    "What do people like about {topic}?",
    "What is difficult about {topic}?",
    "Tell me something surprising about {topic}.",
    "How would you explain {topic} to a child?",
    "What did {topic} mean to people a hundred years ago?",
    "What might change about {topic} in the future?",
    "Describe a day that has to do with {topic}.",
    "What advice would you give to a beginner?",
    "Which mistake do most people make?",
    "What would the world be like without {topic}?",
    "Name a feeling that goes with {topic}, and say why.",
    "Who should know more about {topic}?",
    "What should I remember of all this?",
)
READING = (
    "Some notes that I found on {topic}: people have written about {topic} for a long time.",
    "One of them kept a diary and filled many pages with what happened on ordinary days.",
    "Another went from town to town and asked everybody the same questions.",
    "The answers were put in a box and forgotten until somebody moved the furniture.",
    "Most of it is of little use today, but the drawings are still pleasant to look at.",
    "A few of the old names are in use, and nobody can tell where they come from.",
)


@dataclass(frozen=True, slots=True)
class Script:
    """A conversation as the user has it, whatever the model replies."""

    id: str
    constraints: tuple[Constraint, ...]
    questions: tuple[str, ...]
    """What the user says, turn by turn; the rules are in the first one."""


def make_scripts(count: int, turns: int, *, padding: int = 0) -> list[Script]:
    """The first `count` scripts, each a pure function of its number.

    Args:
        turns: Questions of each; beyond the ones that are known they come again.
        padding: Words of reading matter before each question but the first.
    """
    return [_script(number, turns, padding) for number in range(count)]


def _script(number: int, turns: int, padding: int) -> Script:
    random = Random(stable_seed("script", number))
    topic = TOPICS[number % len(TOPICS)]
    groups = random.sample(RULES, RULES_A_SCRIPT)
    constraints = tuple(random.choice(group) for group in groups)
    rules = "\n".join(f"{i}. {describe(constraint)}" for i, constraint in enumerate(constraints, start=1))
    asked = [QUESTIONS[turn % len(QUESTIONS)].format(topic=topic) for turn in range(turns)]
    first = f"Keep to these rules in every single reply, until the end of our conversation:\n{rules}\n\n{asked[0]}"
    later = [f"{_reading(topic, padding, turn)}{question}" for turn, question in enumerate(asked[1:], start=1)]
    return Script(f"script-{number}", constraints, (first, *later))


def _reading(topic: str, words: int, turn: int) -> str:
    text: list[str] = []
    place = turn
    while len(text) < words:
        text += READING[place % len(READING)].format(topic=topic).split()
        place += 1
    return f"{' '.join(text)}\n\n" if text else ""


def rules_of(scripts: Sequence[Script]) -> list[str]:
    """The kinds of rules that occur, in the order of `RULES`."""
    kinds = [str(constraint["kind"]) for group in RULES for constraint in group]
    present = {str(constraint["kind"]) for script in scripts for constraint in script.constraints}
    return [kind for kind in kinds if kind in present] + sorted(present - set(kinds))
