"""Long prompts whose answer is known by construction: needles, variables, documents with planted facts.

    [[domains]]
    name = "needle"
    source = "long:needle"                    # or long:variables, long:document
    options = { words = 2000, asked = 2, distractors = 8 }

The text is made to any length, `words` long within a sentence; what is asked lies at random depths between distractors
that look like it. Every task is a pure function of its split and number.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

from surefoot.config import DomainConfig
from surefoot.domains.define import MadeSource, task
from surefoot.domains.long_text import FACTS, KEYS, OWNERS, filler
from surefoot.errors import ConfigError
from surefoot.protocols import Domain
from surefoot.rewards.text import ExactGrader
from surefoot.types import Task

MAX_NEW_TOKENS = 24
DEFAULTS: Mapping[str, int] = {"words": 300, "asked": 1, "distractors": 4}


@dataclass(frozen=True)
class Size:
    """How long and how hard a task is."""

    words: int
    """Words of the text, within a sentence."""
    asked: int
    """Facts that the question asks for (or steps from the first variable to the last)."""
    distractors: int
    """Facts that look alike and are not asked for."""


def needle(random: Random, size: Size) -> Task:
    """One or several codes hidden in prose, among codes of other things."""
    names = random.sample(KEYS, size.asked + size.distractors)
    codes = random.sample(range(1000, 10000), len(names))
    lines = [f"The code of the {name} is {code}." for name, code in zip(names, codes, strict=True)]
    wanted, answer = names[: size.asked], ", ".join(map(str, codes[: size.asked]))
    if size.asked == 1:
        asks = f"What is the code of the {wanted[0]}? Reply with the code only."
    else:
        listed = ", ".join(f"the {name}" for name in wanted)
        asks = f"What are the codes of {listed}? Reply with the codes only, in this order, with commas between them."
    return task(f"{_hidden(random, lines, size.words)}\n\n{asks}", answer=answer)


def variables(random: Random, size: Size) -> Task:
    """A chain of assignments in prose: the value of its last variable, among chains that lead elsewhere."""
    letters = [f"{a}{n}" for a in "ABCDEFGHJKLMNPQRSTUVWXYZ" for n in range(1, 10)]
    chains = 1 + -(-size.distractors // (size.asked + 1))
    names = random.sample(letters, (size.asked + 1) * chains)
    lines: list[str] = []
    depths: list[float] = []
    answer, last = "", ""
    for place in range(chains):
        chain = names[place * (size.asked + 1) : (place + 1) * (size.asked + 1)]
        value = str(random.randint(100, 999))
        said = [f"Let {chain[0]} be {value}."]
        said += [f"Let {name} be the same as {before}." for before, name in pairwise(chain)]
        lines += said
        depths += sorted(random.random() for _ in said)  # a variable is set before it is used
        if not place:
            answer, last = value, chain[-1]
    text = _hidden(random, lines, size.words, depths)
    return task(f"{text}\n\nWhat is the value of {last}? Reply with the number only.", answer=answer)


def document(random: Random, size: Size) -> Task:
    """A report with planted facts on people; the question is on one of them, or on how many share one (1 to `asked`).

    The number is drawn, so that no constant answer is paid for.
    """
    people = random.sample(OWNERS, min(len(OWNERS), size.asked + size.distractors))
    sort = random.choice(list(FACTS))
    says, question, values = FACTS[sort]
    facts = {person: random.choice(values) for person in people}
    lines = [says.format(person=person, value=value) for person, value in facts.items()]
    person = people[0]
    if size.asked == 1:
        asks, answer = f"{question.format(person=person)} Reply in one or two words.", facts[person]
    else:
        shared, count = facts[person], random.randint(1, size.asked)
        for other in people[1:count]:
            facts[other] = shared
        for other in people[count:]:
            facts[other] = random.choice([value for value in values if value != shared])
        lines = [says.format(person=name, value=value) for name, value in facts.items()]
        same = says.format(person="it", value=shared).removeprefix("it ").rstrip(".")
        asks = f"Of how many people is it said that each {same}? Reply with the number only."
        answer = str(count)
    return task(f"{_hidden(random, lines, size.words)}\n\n{asks}", answer=answer)


KINDS: Mapping[str, tuple[Callable[[Random, Size], Task], str]] = {
    "needle": (needle, "codes hidden in a long text among others: one or several are asked for"),
    "variables": (variables, "a chain of assignments through a long text: the value at its end"),
    "document": (document, "a long report with planted facts: questions on one of them, or on several at once"),
}


def build(config: DomainConfig) -> Domain:
    """The domain of `long:KIND`. Raises ConfigError for an unknown kind or option, or a size that does not fit."""
    kind = config.source.partition(":")[2]
    if kind not in KINDS:
        raise ConfigError(
            f"there is no long-text domain {kind!r}{_near(kind, list(KINDS))}",
            where=f"domains.{config.name}.source",
            fix=f"one of: {', '.join(f'long:{name}' for name in KINDS)}",
        )
    make, says = KINDS[kind]
    size = _size(config)
    return Domain(
        name=config.name,
        source=MadeSource(partial(_made, make, size), config.name, f"long:{kind}"),
        grader=ExactGrader(config.extract or "whole"),
        max_new_tokens=config.max_new_tokens or MAX_NEW_TOKENS,
        description=says,
    )


def described() -> list[tuple[str, str]]:
    """Each source with one line on it."""
    return [(f"long:{name}", says) for name, (_, says) in KINDS.items()]


def _made(make: Callable[[Random, Size], Task], size: Size, random: Random) -> Task:
    return make(random, size)


def _size(config: DomainConfig) -> Size:
    where, asked = f"domains.{config.name}.options", {**DEFAULTS, **config.options}
    for key, value in asked.items():
        if key not in DEFAULTS:
            raise ConfigError(f"there is no option {key!r}{_near(key, list(DEFAULTS))}", where=where)
        if not isinstance(value, int) or isinstance(value, bool) or value < (1 if key == "asked" else 0):
            raise ConfigError(f"{key} must be a whole number, not {value!r}", where=where)
    size = Size(**asked)
    if size.asked + size.distractors > min(len(KEYS), len(OWNERS)):
        most = min(len(KEYS), len(OWNERS))
        raise ConfigError(
            "there are not so many things to tell apart", where=where, fix=f"asked + distractors <= {most}"
        )
    return size


def _hidden(random: Random, lines: Sequence[str], words: int, depths: Sequence[float] | None = None) -> str:
    """`lines` within prose of about `words` words in all, each at its depth in [0, 1) (random where none is given)."""
    rest = max(0, words - sum(len(line.split()) for line in lines))
    prose = filler(random, rest)
    places = [(random.random() if depths is None else depths[i]) for i in range(len(lines))]
    parts = [(i / max(1, len(prose)), sentence) for i, sentence in enumerate(prose)]
    parts += list(zip(places, lines, strict=True))
    return " ".join(sentence for _, sentence in sorted(parts, key=lambda part: part[0]))


def _near(name: str, known: list[str]) -> str:
    near: list[Any] = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f" (did you mean {near[0]!r}?)" if near else ""
