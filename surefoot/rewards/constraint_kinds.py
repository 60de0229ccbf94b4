"""What an instruction can ask of a text's form, wording and length: pure functions of the text and a few arguments.

A constraint is plain data, `{"kind": "words_at_most", "n": 12}`; `KINDS` has the check and the words for each kind.
Letter case does not count where words are looked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’)\]>]*(?=\s|$)")
_BULLET = re.compile(r"^[ \t]*[*•-][ \t]+(?=\S)", re.MULTILINE)
_QUOTES = " \t\n\"'“”‘’*<>`"


@dataclass(frozen=True)
class Kind:
    """A kind of constraint: `check(text, **arguments)`, and how to ask for it."""

    check: Callable[..., bool]
    says: str
    """A sentence with the arguments as `{name}`."""


def words(text: str) -> list[str]:
    """The words of a text, case folded."""
    return [word.casefold() for word in _WORD.findall(text)]


def sentences(text: str) -> int:
    """How many sentences a text has; a rest without a full stop counts if it holds a word."""
    parts = _SENTENCE_END.split(text)
    return sum(1 for part in parts if _WORD.search(part))


def items(text: str) -> list[str]:
    """The entries of an enumeration by commas or by lines: without bullets, numbers, `and`, and closing marks."""
    parts = re.split(r"[,\n]", text.strip())
    bare = (re.sub(r"^\s*(?:[*•-]|\d+[.)])?\s*(?:and\s+)?", "", part, flags=re.IGNORECASE) for part in parts)
    return [entry for entry in (part.strip(_QUOTES + ".!;").casefold() for part in bare) if entry]


def occurrences(text: str, phrase: str) -> int:
    """How often a word or phrase occurs as a whole."""
    return len(re.findall(rf"(?<!\w){re.escape(phrase)}(?!\w)", text, re.IGNORECASE))


def words_at_least(text: str, n: int) -> bool:
    return len(words(text)) >= n


def words_at_most(text: str, n: int) -> bool:
    return 0 < len(words(text)) <= n


def words_exactly(text: str, n: int) -> bool:
    return len(words(text)) == n


def sentences_exactly(text: str, n: int) -> bool:
    return sentences(text) == n


def sentences_at_least(text: str, n: int) -> bool:
    return sentences(text) >= n


def sentences_at_most(text: str, n: int) -> bool:
    return 0 < sentences(text) <= n


def paragraphs(text: str, n: int) -> bool:
    """Paragraphs stand apart by blank lines."""
    return sum(1 for part in re.split(r"\n\s*\n", text) if part.strip()) == n


def lowercase(text: str) -> bool:
    return text.islower()


def uppercase(text: str) -> bool:
    return text.isupper()


def no_commas(text: str) -> bool:
    return "," not in text and "，" not in text and text.strip() != ""


def no_digits(text: str) -> bool:
    return not any(c.isdigit() for c in text) and text.strip() != ""


def keyword(text: str, word: str, n: int = 1) -> bool:
    return occurrences(text, word) >= n


def keyword_exactly(text: str, word: str, n: int) -> bool:
    return occurrences(text, word) == n


def forbidden(text: str, words: Sequence[str]) -> bool:
    return text.strip() != "" and not any(occurrences(text, word) for word in words)


def starts_with(text: str, start: str) -> bool:
    bare = text.lstrip(_QUOTES).casefold()
    return re.match(rf"{re.escape(start.casefold())}(?!\w)", bare) is not None


def ends_with(text: str, end: str) -> bool:
    bare, wanted = text.rstrip(_QUOTES).casefold(), end.casefold()
    return bare.endswith(wanted) or bare.rstrip(".!?").endswith(wanted)


def bullets(text: str, n: int) -> bool:
    """Lines that start with `* `, `- ` or `•`."""
    return len(_BULLET.findall(text)) == n


def only_bullets(text: str, n: int) -> bool:
    """As `bullets`, and no line is anything else."""
    return bullets(text, n) and sum(1 for line in text.splitlines() if line.strip()) == n


def listed(text: str, n: int) -> bool:
    """Entries on one line, with commas between them."""
    return "\n" not in text.strip() and len(items(text)) == n and text.strip().rstrip(".").count(",") == n - 1


def alphabetical(text: str) -> bool:
    entries = items(text)
    return len(entries) > 1 and entries == sorted(entries)


def is_json(text: str, keys: Sequence[str] | None = None) -> bool:
    """One JSON object or array, maybe in a fence; with `keys`, an object of exactly those."""
    bare = text.strip()
    if bare.startswith("```") and bare.endswith("```"):
        bare = bare[3:-3].removeprefix("json").removeprefix("JSON")
    try:
        value = json.loads(bare)
    except (ValueError, RecursionError):
        return False
    if keys is not None:
        return isinstance(value, dict) and sorted(value) == sorted(keys)
    return isinstance(value, (dict, list))


def quoted(text: str) -> bool:
    bare = text.strip()
    return len(bare) > 2 and bare[0] in '"“' and bare[-1] in '"”' and not re.search(r'["“”]', bare[1:-1])


def title(text: str) -> bool:
    return any(re.search(r"\w", inner) for inner in re.findall(r"<<([^<>\n]*)>>", text))


def letter_at_least(text: str, letter: str, n: int) -> bool:
    return text.casefold().count(letter.casefold()) >= n


def letter_at_most(text: str, letter: str, n: int) -> bool:
    return text.strip() != "" and text.casefold().count(letter.casefold()) <= n


def postscript(text: str, marker: str = "P.S.") -> bool:
    """A last part that begins on a line of its own with the marker, after some text."""
    found = re.search(rf"\n[ \t]*{re.escape(marker)}\s*\S", text, re.IGNORECASE)
    return found is not None and text[: found.start()].strip() != ""


def placeholders(text: str, n: int) -> bool:
    return sum(1 for inner in re.findall(r"\[([^\[\]\n]*)\]", text) if re.search(r"\w", inner)) >= n


KINDS: Mapping[str, Kind] = {
    "words_at_least": Kind(words_at_least, "Use at least {n} word(s)."),
    "words_at_most": Kind(words_at_most, "Use at most {n} word(s)."),
    "words_exactly": Kind(words_exactly, "Use exactly {n} word(s)."),
    "sentences_exactly": Kind(sentences_exactly, "Write exactly {n} sentence(s)."),
    "sentences_at_least": Kind(sentences_at_least, "Write at least {n} sentence(s)."),
    "sentences_at_most": Kind(sentences_at_most, "Write at most {n} sentence(s)."),
    "paragraphs": Kind(paragraphs, "Write {n} paragraphs with a blank line between them."),
    "lowercase": Kind(lowercase, "Use only lowercase letters."),
    "uppercase": Kind(uppercase, "Use only capital letters."),
    "no_commas": Kind(no_commas, "Do not use any commas."),
    "no_digits": Kind(no_digits, "Do not use any digits."),
    "keyword": Kind(keyword, 'Use the word "{word}" at least {n} time(s).'),
    "keyword_exactly": Kind(keyword_exactly, 'Use the word "{word}" exactly {n} time(s).'),
    "forbidden": Kind(forbidden, "Do not use the word(s) {words}."),
    "starts_with": Kind(starts_with, 'Start with "{start}".'),
    "ends_with": Kind(ends_with, 'End with "{end}".'),
    "bullets": Kind(bullets, 'Write {n} bullet points, each on a line that starts with "* ".'),
    "only_bullets": Kind(only_bullets, 'Write {n} bullet points and nothing else, each line starting with "* ".'),
    "listed": Kind(listed, "Give {n} items on one line, separated by commas."),
    "alphabetical": Kind(alphabetical, "Put them in alphabetical order."),
    "json": Kind(is_json, "Reply with JSON only."),
    "quoted": Kind(quoted, "Put your whole answer in double quotes."),
    "title": Kind(title, "Give a title in double angular brackets, such as <<title>>."),
    "letter_at_least": Kind(letter_at_least, 'Use the letter "{letter}" at least {n} time(s).'),
    "letter_at_most": Kind(letter_at_most, 'Use the letter "{letter}" at most {n} time(s).'),
    "postscript": Kind(postscript, 'At the end, add a postscript on its own line that starts with "{marker}".'),
    "placeholders": Kind(placeholders, "Use at least {n} placeholders in square brackets, such as [name]."),
}
