"""Rules that need one row and run nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import ftfy
from ftfy import badness

from surefoot.data.lint.rules import Problem
from surefoot.data.tasks import Line
from surefoot.domains.published import UNLISTED
from surefoot.rewards.extract import extract
from surefoot.rewards.text import normalised
from surefoot.types import Task

Tokens = Callable[[Task], int]
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff\u200b\u2060]")
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|nbsp|#\d{2,5});")
_STATED = (
    r"(?:\banswer(?:\s+is)?|\bsolution(?:\s+is)?|\bresult(?:\s+is)?)\s*[:=]?\s*[\"'(]?{}(?![\w.]*\w)"
    r"|####\s*{}(?!\w)|\\boxed\{{{}\}}"
)
LONG_ANSWER = 25
"""Characters from which an answer in the prompt is no coincidence."""


def row_problems(line: Line, task: Task, grader: str, tokens: Tokens | None, budget: int) -> Iterator[Problem]:
    """What is wrong with a row that is a task.

    Args:
        tokens: Counts the tokens of a prompt; None to leave the budget alone.
    """

    def problem(rule: str, message: str, evidence: str = "") -> Problem:
        return Problem(rule, line.number, str(line.row.get("id", "")), message, evidence[:400])

    text = line.text
    for message, evidence in _encoding(text, task):
        yield problem("encoding", message, evidence)
    if stated := _stated(text, task, grader):
        yield problem(*stated)
    if grader == "choice" and (wrong := _choices(task)):
        yield problem("bad-choices", wrong)
    if tokens is not None and (count := tokens(task)) > budget:
        yield problem("prompt-too-long", f"{count:,} tokens, the budget is {budget:,}")


def repaired(text: str) -> str:
    """The text with mojibake decoded and without characters that nobody can see."""
    return _UNSEEN.sub("", ftfy.fix_encoding(text) if badness.is_bad(text) else text)


def _encoding(text: str, task: Task) -> Iterator[tuple[str, str]]:
    answer = task.checks.get("answer")
    for where, part in (("prompt", text), ("answer", answer if isinstance(answer, str) else "")):
        if "\ufffd" in part:
            yield f"{where}: a character was lost (U+FFFD)", _around(part, part.index("\ufffd"))
        elif found := _UNSEEN.search(part):
            yield f"{where}: U+{ord(found[0]):04X}, which nobody can see", _around(part, found.start())
        elif badness.is_bad(part) and ftfy.fix_encoding(part) != part:
            at = next(i for i, (a, b) in enumerate(zip(part, ftfy.fix_encoding(part) + "\0", strict=False)) if a != b)
            yield f"{where}: decoded wrongly", _around(part, at)
        elif found := _ENTITY.search(part):
            yield f"{where}: escaped HTML {found[0]}", _around(part, found.start())


def _stated(text: str, task: Task, grader: str) -> tuple[str, str, str] | None:
    if grader == "code":
        body = _solution_body(task)
        if len(body) >= 2 and all(line in text for line in body):
            return "answer-leaked", "the prompt shows the reference solution", "\n".join(body[:5])
        return None
    answer = task.checks.get("answer")
    for value in answer if isinstance(answer, list) else [answer]:
        if not isinstance(value, str) or not value.strip():
            continue
        escaped = re.escape(value.strip())
        if found := re.search(_STATED.format(escaped, escaped, escaped), text, re.IGNORECASE):
            return "answer-leaked", "the prompt states the answer", _around(text, found.start())
        if grader != "choice" and len(value) >= LONG_ANSWER and normalised(value) in normalised(text):
            return "answer-in-prompt", "the answer stands in the prompt word for word", value
    return None


def _solution_body(task: Task) -> list[str]:
    """The lines of the reference solution that are not in the head which the prompt gives."""
    code = extract(str(task.metadata.get("answer", "")), "code") or ""
    given = {line.strip() for line in str(task.checks.get("prefix", "")).splitlines()}
    lines = [line.strip() for line in code.splitlines()]
    return [
        line for line in lines if line and line not in given and not line.startswith(("def ", "import ", "from ", "#"))
    ]


def _choices(task: Task) -> str:
    options = task.checks.get("choices")
    if not isinstance(options, dict):
        return ""
    if UNLISTED in options:
        return f"the answer {task.checks['answer']!r} is none of the options"
    texts = [normalised(str(value)) for value in options.values()]
    twice = next((text for text in texts if texts.count(text) > 1), None)
    return f"two options read {twice!r}" if twice is not None else ""


def _around(text: str, at: int) -> str:
    return text[max(0, at - 30) : at + 50]
