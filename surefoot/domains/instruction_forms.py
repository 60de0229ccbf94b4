"""The forms of instruction tasks: what is asked, which constraints go with it, and an answer that keeps them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from surefoot.domains.instruction_topics import CATEGORIES, FILLERS, KEYWORDS, TOPICS, forms, members
from surefoot.rewards.constraints import keeps

Constraint = Mapping[str, Any]
Constraints = tuple[Constraint, ...]
LEVELS = (0, 1, 2)


@dataclass(frozen=True)
class Form:
    """A kind of request.

    Args:
        asks: Ways to put it; `{subject}`, `{n}` and `{key}` are filled in.
        base: Constraints that the request itself makes.
        extras: By level, sets of further constraints, each told in a sentence of its own.
        subjects: Topics or categories.
        content: What an answer on a subject must hold.
        demonstrate: An answer, from (subject, all constraints, source of chance).
    """

    name: str
    asks: tuple[str, ...]
    base: Constraints
    extras: Mapping[int, Sequence[Constraints]]
    subjects: tuple[str, ...]
    content: Callable[[str], dict[str, Any]]
    demonstrate: Callable[[str, Constraints, Random], str]

    def requests(self) -> Iterator[tuple[int, str, Constraints]]:
        """Every (level, subject, further constraints) of this form."""
        for level, sets in self.extras.items():
            for extra in sets:
                for subject in self.subjects:
                    yield level, subject, extra


def c(kind: str, **arguments: Any) -> Constraint:
    return {"kind": kind, **arguments}


CASES: tuple[Constraint, ...] = (c("lowercase"), c("uppercase"))
LENGTHS: tuple[Constraint, ...] = (
    *(c("words_at_most", n=n) for n in (8, 10, 12)),
    *(c("words_at_least", n=n) for n in (6, 8, 10)),
)
EXACT: tuple[Constraint, ...] = tuple(c("words_exactly", n=n) for n in (8, 9, 10, 12))
STARTS: tuple[Constraint, ...] = tuple(c("starts_with", start=start) for start in ("Today", "Sometimes", "I think"))
ENDS: tuple[Constraint, ...] = tuple(c("ends_with", end=end) for end in ("!", "every day", "after all"))
WORDS: tuple[Constraint, ...] = tuple(c("keyword", word=word, n=1) for word in KEYWORDS)
MARKS: tuple[Constraint, ...] = (
    c("quoted"),
    c("no_commas"),
    c("forbidden", words=["the"]),
    c("forbidden", words=["is", "are"]),
    c("forbidden", words=["a", "and"]),
    c("letter_at_least", letter="e", n=3),
)
ONE = tuple((x,) for x in (*CASES, *LENGTHS, *STARTS, *ENDS, *WORDS, *MARKS))
TWO = (
    *((x, y) for x in CASES for y in (*LENGTHS[::2], *STARTS, *ENDS, *WORDS[:2])),
    *((x, y) for x in LENGTHS[1::3] for y in (*STARTS, *WORDS[2:6], *MARKS)),
    *((x, y) for x in STARTS for y in ENDS),
)
HARD = (
    *((x,) for x in EXACT),
    *((x, y) for x in EXACT for y in (*CASES, *STARTS[:2], *WORDS[:3])),
    *((x, y) for x in MARKS for y in (*ENDS[1:], *WORDS[5:])),
)


def sentence(subject: str, constraints: Constraints, random: Random) -> str:
    """A sentence on a topic that keeps the constraints: the first of some that does."""
    cores = random.sample(TOPICS[subject], len(TOPICS[subject]))
    lengths = random.sample(range(3), 3) + list(range(3, len(FILLERS)))
    tried = [_sentence(core, FILLERS[length], constraints) for length in lengths for core in cores]
    return next((text for text in tried if all(keeps(text, x) for x in constraints)), tried[0])


def _sentence(core: str, filler: str, constraints: Constraints) -> str:
    found = {str(x["kind"]): x for x in constraints}
    start = found["starts_with"]["start"] if "starts_with" in found else ""
    end = found["ends_with"]["end"] if "ends_with" in found else ""
    word = KEYWORDS[found["keyword"]["word"]] if "keyword" in found else ""
    core = core[0].lower() + core[1:] if start else core
    text = " ".join(part for part in (start, core, filler, word, end if end != "!" else "") if part)
    return _finished(f"{text}!" if end == "!" else f"{text}.", found)


def _finished(text: str, found: Mapping[str, Any]) -> str:
    text = text.lower() if "lowercase" in found else text.upper() if "uppercase" in found else text
    return f'"{text}"' if "quoted" in found else text


def _kinds(constraints: Constraints) -> dict[str, Any]:
    return {str(x["kind"]): x for x in constraints}


def _title(subject: str, constraints: Constraints, random: Random) -> str:
    names = [f"My {subject.title()}", f"{subject.title()} at Night", f"Why I Love {subject.title()}"]
    tried = [_finished(f"<<{name}>>", _kinds(constraints)) for name in random.sample(names, 3)]
    return next((text for text in tried if all(keeps(text, x) for x in constraints)), tried[0])


def _note(subject: str, constraints: Constraints, random: Random) -> str:
    core = random.choice(TOPICS[subject])
    last = random.choice(("See you soon", "Write me back", "I miss you"))
    return _finished(f"{core}.\nP.S. {last}.", _kinds(constraints))


def _invitation(subject: str, constraints: Constraints, random: Random) -> str:
    opening = random.choice(("Dear [name]", "Hello [name]"))
    return _finished(f"{opening}, come to our party about {subject} on [date].", _kinds(constraints))


def _entries(subject: str, constraints: Constraints, random: Random) -> list[str]:
    found = _kinds(constraints)
    count = next(x["n"] for x in constraints if "n" in x)
    chosen = random.sample(members(subject)[:12], count)
    entries = sorted(chosen) if "alphabetical" in found else chosen
    return [entry if "lowercase" in found else entry.capitalize() for entry in entries]


def _list(subject: str, constraints: Constraints, random: Random) -> str:
    return _finished(", ".join(_entries(subject, constraints, random)), _kinds(constraints))


def _bullets(subject: str, constraints: Constraints, random: Random) -> str:
    lines = "\n".join(f"* {entry}" for entry in _entries(subject, constraints, random))
    return _finished(lines, _kinds(constraints))


def _object(subject: str, constraints: Constraints, random: Random) -> str:
    return json.dumps({CATEGORIES[subject][0]: random.choice(members(subject)[:12])})


def _about(least: int) -> Callable[[str], dict[str, Any]]:
    return lambda subject: {"mentions": list(forms(subject)), "least_words": least}


def _of(subject: str) -> dict[str, Any]:
    return {"members": list(members(subject))}


def _one_of(subject: str) -> dict[str, Any]:
    return {"mentions": list(members(subject))}


CASE_ONLY = tuple((x,) for x in CASES)
ORDERED = ((c("alphabetical"),), *((x, c("alphabetical")) for x in CASES))
SUBJECTS, GROUPS = tuple(TOPICS), tuple(CATEGORIES)


def _enumerations() -> Iterator[Form]:
    extras: dict[int, Sequence[Constraints]] = {0: ((),), 1: CASE_ONLY, 2: ORDERED}
    for n, count in ((2, "two"), (3, "three"), (4, "four"), (5, "five")):
        asks = (
            f"Name {count} {{subject}}, separated by commas.",
            f"Give me {count} {{subject}} with commas between them.",
        )
        yield Form(f"list {n}", asks, (c("listed", n=n),), extras, GROUPS, _of, _list)
        asks = (
            f'List {count} {{subject}} as bullet points. Start each line with "* ".',
            f'Write {count} {{subject}}, each on a line that starts with "* ".',
        )
        yield Form(f"bullets {n}", asks, (c("only_bullets", n=n),), extras, GROUPS, _of, _bullets)


FORMS: tuple[Form, ...] = (
    Form(
        "sentence",
        ("Write one sentence about {subject}.", "Tell me about {subject} in a single sentence."),
        (c("sentences_exactly", n=1),),
        {0: ONE, 1: TWO, 2: HARD},
        SUBJECTS,
        _about(4),
        sentence,
    ),
    Form(
        "title",
        ("Write a title for a story about {subject}. Put it in double angular brackets, such as <<title>>.",),
        (c("title"),),
        {1: ((), *CASE_ONLY), 2: tuple((x, c("words_at_most", n=5)) for x in CASES)},
        SUBJECTS,
        _about(2),
        _title,
    ),
    Form(
        "note",
        ('Write a short note about {subject}. End it with a line that starts with "P.S.".',),
        (c("postscript", marker="P.S."), c("words_at_most", n=40)),
        {1: ((),), 2: CASE_ONLY},
        SUBJECTS,
        _about(6),
        _note,
    ),
    Form(
        "invitation",
        ("Invite someone to a party about {subject}. Use at least 2 placeholders in square brackets, such as [name].",),
        (c("placeholders", n=2),),
        {1: ((),), 2: CASE_ONLY},
        SUBJECTS,
        _about(6),
        _invitation,
    ),
    Form(
        "json",
        ('Name one of the {subject} as a JSON object with the single key "{key}". Reply with JSON only.',),
        (),
        {1: ((),)},
        GROUPS,
        _one_of,
        _object,
    ),
    *_enumerations(),
)
