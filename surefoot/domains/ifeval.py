"""IFEval's instructions (arXiv 2311.07911) as constraints of ours, where there is a kind that asks for the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from surefoot.errors import DataError
from surefoot.rewards.constraint_kinds import KINDS

Arguments = Mapping[str, Any]
Constraint = dict[str, Any]


def _counted(kind: str, key: str) -> Callable[[Arguments], Constraint]:
    def translate(a: Arguments) -> Constraint:
        if a.get("relation") == "less than":
            return {"kind": f"{kind}_at_most", "n": int(a[key]) - 1}
        return {"kind": f"{kind}_at_least", "n": int(a[key])}

    return translate


def _keywords(a: Arguments) -> list[Constraint]:
    return [{"kind": "keyword", "word": word, "n": 1} for word in a["keywords"]]


def _frequency(a: Arguments) -> Constraint | None:
    if a["relation"] == "less than":
        return None  # there is no kind for an upper bound on a word
    return {"kind": "keyword", "word": a["keyword"], "n": int(a["frequency"])}


def _letters(a: Arguments) -> Constraint:
    if a["let_relation"] == "less than":
        return {"kind": "letter_at_most", "letter": a["letter"], "n": int(a["let_frequency"]) - 1}
    return {"kind": "letter_at_least", "letter": a["letter"], "n": int(a["let_frequency"])}


TRANSLATIONS: Mapping[str, Callable[[Arguments], Constraint | list[Constraint] | None]] = {
    "punctuation:no_comma": lambda a: {"kind": "no_commas"},
    "change_case:english_lowercase": lambda a: {"kind": "lowercase"},
    "change_case:english_capital": lambda a: {"kind": "uppercase"},
    "length_constraints:number_words": _counted("words", "num_words"),
    "length_constraints:number_sentences": _counted("sentences", "num_sentences"),
    "keywords:existence": _keywords,
    "keywords:frequency": _frequency,
    "keywords:forbidden_words": lambda a: {"kind": "forbidden", "words": list(a["forbidden_words"])},
    "keywords:letter_frequency": _letters,
    "startend:end_checker": lambda a: {"kind": "ends_with", "end": a["end_phrase"]},
    "startend:quotation": lambda a: {"kind": "quoted"},
    "detectable_format:number_bullet_lists": lambda a: {"kind": "bullets", "n": int(a["num_bullets"])},
    "detectable_format:title": lambda a: {"kind": "title"},
    "detectable_format:json_format": lambda a: {"kind": "json"},
    "detectable_content:number_placeholders": lambda a: {"kind": "placeholders", "n": int(a["num_placeholders"])},
    "detectable_content:postscript": lambda a: {"kind": "postscript", "marker": a["postscript_marker"]},
}


def translate(instruction: str, arguments: Arguments) -> list[Constraint] | None:
    """The constraints that together ask what one instruction asks; None if there are none."""
    given = {key: value for key, value in arguments.items() if value is not None}
    found = TRANSLATIONS[instruction](given) if instruction in TRANSLATIONS else None
    listed = found if isinstance(found, list) else [found] if found else None
    return listed if listed and all(c["kind"] in KINDS for c in listed) else None


def constraints_of(ids: Sequence[str], arguments: Sequence[Arguments], place: str) -> tuple[Constraint, ...]:
    """All constraints of a row. Raises DataError for an instruction that has no kind here."""
    found: list[Constraint] = []
    for instruction, given in zip(ids, arguments, strict=True):
        made = translate(instruction, given)
        if made is None:
            raise DataError(
                f"there is no constraint for the instruction {instruction!r}",
                where=place,
                fix='leave such rows out: options.missing = "skip"',
            )
        found += made
    return tuple(found)
