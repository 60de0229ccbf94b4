"""All 25 instruction kinds of IFEval (Zhou et al., arXiv 2311.07911), with the meaning that its own checker gives them.

Runs inside the jail: several of the patterns are quadratic in what a model wrote, and language detection is slow.
Sentences and words in capitals are counted by simple rules here, where the original uses NLTK's tokenizers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

_SENTENCE = re.compile(r"[^.!?]*[^\s.!?][^.!?]*(?:[.!?]+[\"')\]]*(?=\s|$)|$|[.!?])")
_ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|e\.g|i\.e|No)\.", re.IGNORECASE)
_FENCE = re.compile(r"^```(?:json|JSON|Json)?\s*|\s*```$")
_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def handle(request: dict[str, Any]) -> dict[str, Any]:
    """`{"kept": [bool, ...]}` for `text` and `instructions`, a list of `[id, arguments]`."""
    text = request["text"]
    said = bool(text.strip())
    return {"kept": [said and KINDS[name](text, **arguments) for name, arguments in request["instructions"]]}


def _holds(count: int, relation: str, bound: int) -> bool:
    if relation not in ("at least", "less than"):
        raise ValueError(f"the relation {relation!r} is neither 'at least' nor 'less than'")
    return count >= bound if relation == "at least" else count < bound


def _existence(text: str, keywords: list[str]) -> bool:
    return all(re.search(keyword, text, re.IGNORECASE) for keyword in keywords)


def _frequency(text: str, keyword: str, frequency: int, relation: str) -> bool:
    return _holds(len(re.findall(keyword, text, re.IGNORECASE)), relation, frequency)


def _forbidden(text: str, forbidden_words: list[str]) -> bool:
    return not any(re.search(rf"\b{word}\b", text, re.IGNORECASE) for word in forbidden_words)


def _letters(text: str, letter: str, let_frequency: int, let_relation: str) -> bool:
    return _holds(text.lower().count(letter.lower()), let_relation, let_frequency)


def _language(text: str, language: str) -> bool:
    """A text whose language cannot be told (digits only) counts as kept, as in the original."""
    import langdetect

    langdetect.DetectorFactory.seed = 0  # otherwise it draws, and one text has two verdicts
    try:
        return bool(langdetect.detect(text) == language)
    except langdetect.LangDetectException:
        return True


def _sentences(text: str, num_sentences: int, relation: str) -> bool:
    plain = _ABBREVIATION.sub(lambda found: found.group().replace(".", ""), text)
    return _holds(len(_SENTENCE.findall(re.sub(r"(\d)\.(\d)", r"\1\2", plain))), relation, num_sentences)


def _parted(text: str, mark: str) -> list[str] | None:
    """The parts between marks; None if one in the middle is blank."""
    parts = re.split(mark, text)
    if any(not part.strip() for part in parts[1:-1]):
        return None
    return [part for part in parts if part.strip()]


def _paragraphs(text: str, num_paragraphs: int) -> bool:
    parts = _parted(text, r"\s?\*\*\*\s?")
    return parts is not None and len(parts) == num_paragraphs


def _words(text: str, num_words: int, relation: str) -> bool:
    return _holds(len(re.findall(r"\w+", text)), relation, num_words)


def _nth_first_word(text: str, first_word: str, num_paragraphs: int, nth_paragraph: int) -> bool:
    parts = re.split(r"\n\n", text)
    count = sum(1 for part in parts if part.strip())
    if nth_paragraph > count or not (paragraph := parts[nth_paragraph - 1].strip()):
        return False
    word = re.split(r"[.,?!'\"]", paragraph.split()[0].lstrip("'").lstrip('"'), maxsplit=1)[0]
    return count == num_paragraphs and word.lower() == first_word.lower()


def _placeholders(text: str, num_placeholders: int) -> bool:
    return len(re.findall(r"\[.*?\]", text)) >= num_placeholders


def _postscript(text: str, postscript_marker: str) -> bool:
    known = {"P.P.S": r"\s*p\.\s?p\.\s?s.*$", "P.S.": r"\s*p\.\s?s\..*$"}
    pattern = known.get(postscript_marker, rf"\s*{postscript_marker.lower()}.*$")
    return re.search(pattern, text.lower(), re.MULTILINE) is not None


def _bullets(text: str, num_bullets: int) -> bool:
    stars, dashes = (re.findall(p, text, re.MULTILINE) for p in (r"^\s*\*[^\*].*$", r"^\s*-.*$"))
    return len(stars) + len(dashes) == num_bullets


def _constrained(text: str) -> bool:
    return any(answer in text for answer in _ANSWERS)


def _highlights(text: str, num_highlights: int) -> bool:
    found = [*re.findall(r"\*[^\n\*]*\*", text), *re.findall(r"\*\*[^\n\*]*\*\*", text)]
    return sum(1 for part in found if part.strip("*").strip()) >= num_highlights


def _sections(text: str, section_spliter: str, num_sections: int) -> bool:
    return len(re.split(rf"\s?{section_spliter}\s?\d+\s?", text)) - 1 >= num_sections


def _json(text: str) -> bool:
    try:
        json.loads(_FENCE.sub("", text.strip()))
    except (ValueError, RecursionError):
        return False
    return True


def _title(text: str) -> bool:
    return any(part.lstrip("<").rstrip(">").strip() for part in re.findall(r"<<[^\n]+>>", text))


def _two_responses(text: str) -> bool:
    parts = _parted(text, r"\*{6}")
    return parts is not None and len(parts) == 2 and parts[0].strip() != parts[1].strip()


def _repeat(text: str, prompt_to_repeat: str) -> bool:
    return text.strip().lower().startswith(prompt_to_repeat.strip().lower())


def _end(text: str, end_phrase: str) -> bool:
    return text.strip().strip('"').lower().endswith(end_phrase.strip().lower())


def _capital_words(text: str, capital_frequency: int, capital_relation: str) -> bool:
    words = re.findall(r"[^\W_]+(?:[-'.][^\W_]+)*", text)
    return _holds(sum(1 for word in words if word.isupper()), capital_relation, capital_frequency)


def _quotation(text: str) -> bool:
    bare = text.strip()
    return len(bare) > 1 and bare[0] == bare[-1] == '"'


KINDS: Mapping[str, Callable[..., bool]] = {
    "keywords:existence": _existence,
    "keywords:frequency": _frequency,
    "keywords:forbidden_words": _forbidden,
    "keywords:letter_frequency": _letters,
    "language:response_language": _language,
    "length_constraints:number_sentences": _sentences,
    "length_constraints:number_paragraphs": _paragraphs,
    "length_constraints:number_words": _words,
    "length_constraints:nth_paragraph_first_word": _nth_first_word,
    "detectable_content:number_placeholders": _placeholders,
    "detectable_content:postscript": _postscript,
    "detectable_format:number_bullet_lists": _bullets,
    "detectable_format:constrained_response": _constrained,
    "detectable_format:number_highlighted_sections": _highlights,
    "detectable_format:multiple_sections": _sections,
    "detectable_format:json_format": _json,
    "detectable_format:title": _title,
    "combination:two_responses": _two_responses,
    "combination:repeat_prompt": _repeat,
    "startend:end_checker": _end,
    "change_case:capital_word_frequency": _capital_words,
    "change_case:english_capital": lambda text: text.isupper() and _language(text, "en"),
    "change_case:english_lowercase": lambda text: text.islower() and _language(text, "en"),
    "punctuation:no_comma": lambda text: "," not in text,
    "startend:quotation": _quotation,
}
