"""Findings in how an answer is given: many of them, the question in place of one, or letters that only look right."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from surefoot.rewards.extract import extract
from surefoot.rewards.integrity.code import is_code
from surefoot.rewards.integrity.kinds import finding
from surefoot.rewards.integrity.scripts import script
from surefoot.types import Finding, Rollout, Task, Verdict

CLAIMS = 3
"""Different final answers that are too many; two may be a correction."""
_CLAIM = re.compile(
    r"(?:answer(?: is|:| =)|(?:option|choice) (?=\w\W? is (?:right|correct)))\s*\**\(?([A-Za-z]\b|[-+$]?\d[\d.,]*)",
    re.I,
)
_LETTER_LINE = re.compile(r"^\s*\(?([A-Ea-e])\)?[.)]?\s*$", re.M)
_NUMBER = re.compile(r"[-+]?\$?\d[\d,]*(?:\.\d+)?")
_OR = re.compile(r"\$?\d[\d,.]*(?:\s*(?:,|or|or maybe|/)\s*\$?\d[\d,.]*)*\s+or (?:maybe )?\$?\d[\d,.]*\s*\.?\s*$")
_BOX = re.compile(r"\\boxed\s*\{")
_OPERATORS = re.compile(
    r"\\(?:times|cdot|int|sum|prod|lim|sqrt|binom|cdots|ldots)(?![a-zA-Z])|[*+!()^]|(?<=\d)\s*-\s*(?=\d)"
)
_UNFINISHED = re.compile(r"\\(?:int|sum|prod|lim)(?![a-zA-Z])")
_FOREIGN_MARKS = "،؛；，。､﹐"


def in_answers(task: Task, rollout: Rollout, verdict: Verdict) -> Iterator[Finding]:
    """Findings in a rollout whose task is not a program."""
    if is_code(task):
        return
    yield from _many(task, rollout.text)
    yield from _lookalikes(task, rollout.text)
    if verdict.grade == "right" and "answer" in task.checks:
        yield from _restated(task, rollout.text)


def _many(task: Task, text: str) -> Iterator[Finding]:
    if task.constraints:
        return
    boxes = list(_BOX.finditer(text))
    if len(boxes) >= 2 and extract(text, "boxed") is None:
        yield finding("many_answers", f"{len(boxes)} boxed answers", (boxes[0].start(), boxes[-1].end()))
        return
    claims = list(_CLAIM.finditer(text))
    lines = list(_LETTER_LINE.finditer(text)) if task.checks.get("choices") else []
    for found in (claims, lines):
        distinct = {match.group(1).strip("$.,").casefold() for match in found}
        if len(distinct) >= CLAIMS:
            evidence = f"{len(distinct)} different answers: {', '.join(sorted(distinct))}"
            yield finding("many_answers", evidence, (found[0].start(), found[-1].end()))
            return
    if not task.checks.get("choices") and not boxes:
        yield from _spray(task, text)


def _spray(task: Task, text: str) -> Iterator[Finding]:
    """Numbers one after another, where the last one counts. A calculation starts from a number of the prompt."""
    alternatives = _OR.search(text)
    if alternatives:
        yield finding("many_answers", alternatives.group(), alternatives.span())
        return
    numbers = [match.group().strip("$+").replace(",", "") for match in _NUMBER.finditer(text)]
    rest = re.sub(r"\bor\b|[\s,;.$]", "", _NUMBER.sub("", text))
    asked = {number.replace(",", "") for message in task.messages for number in _NUMBER.findall(message["content"])}
    given = {number.strip("$+") for number in asked}
    reference = _NUMBER.findall(str(task.checks.get("answer", "")))
    if len(set(numbers)) >= 3 and not rest and numbers[0] not in given and len(reference) <= 1:
        yield finding("many_answers", f"{len(set(numbers))} numbers and nothing else", (0, len(text)))


def _restated(task: Task, text: str) -> Iterator[Finding]:
    """An answer that a computer algebra system finds equal because it is the question: made of the prompt's numbers."""
    box = _BOX.search(text)
    if box is None:
        return
    answer = text[box.end() : text.rfind("}")]
    reference = str(task.checks["answer"])
    numbers, wanted = set(re.findall(r"\d+", answer)), set(re.findall(r"\d+", reference))
    given = {number for message in task.messages for number in re.findall(r"\d+", message["content"])}
    unfinished = _UNFINISHED.search(answer) and not _UNFINISHED.search(reference)
    if unfinished or (numbers and numbers <= given and numbers != wanted and _OPERATORS.search(answer)):
        yield finding("restated_task", f"{answer[:80]} for {reference[:40]}", (box.start(), len(text)))


def _lookalikes(task: Task, text: str) -> Iterator[Finding]:
    """Marks or letters of other scripts inside Latin text."""
    prompt = "".join(message["content"] for message in task.messages)
    latin = sum(script(c) == "LATIN" for c in text)
    if latin < 0.7 * sum(c.isalpha() for c in text):
        return
    for place, character in enumerate(text):
        if character in _FOREIGN_MARKS and character not in prompt:
            yield finding("lookalike", f"{unicodedata.name(character)} in Latin text", (place, place + 1))
            return
    for word in re.finditer(r"\w+", text):
        scripts = {script(c) for c in word.group() if c.isalpha()}
        if "LATIN" in scripts and scripts & {"CYRILLIC", "GREEK"} and word.group() not in prompt:
            yield finding("lookalike", f"letters of two scripts in {word.group()!r}", word.span())
            return
