"""In which way a sample failed: a few named modes that each call for a different remedy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal

from surefoot.evaluate.answers import answer_in
from surefoot.evaluate.records import Sample
from surefoot.types import Rollout, Task, Verdict

Mode = Literal[
    "right",
    "wrong answer",
    "wrong format",
    "off by one",
    "constraint dropped",
    "invented input",
    "truncated",
    "empty",
    "refusal",
    "timeout",
    "crash",
    "out of memory",
    "too much output",
    "ungradable",
]

_OUTCOMES: dict[str, Mode] = {
    "timeout": "timeout",
    "crashed": "crash",
    "out_of_memory": "out of memory",
    "output_limit": "too much output",
}
_REFUSAL = re.compile(
    r"\b(i['’]?m sorry|as an ai\b|i (?:can(?:no|['’])t|am unable to|won['’]?t) "
    r"(?:help(?! but)|assist|do|answer|provide|comply|fulfil))",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"-?\d+")
_GAVE = re.compile(r"gave (-?\d+), expected (-?\d+)(?![\d.])")
_WORD = re.compile(r"[^\W\d_]+")


def mode_of(rollout: Rollout, verdict: Verdict, task: Task | None = None) -> Mode:
    """The mode of one graded rollout: the first cause that explains it.

    A text that was cut off is `truncated` whatever its fragment did; then what the sandbox saw of its code; then what
    the text itself says. `wrong format` is a failed check of the dimension `format`, or one named `answer found`;
    `constraint dropped` one of the dimension `constraints`. `off by one` is a whole number next to the right one;
    `invented input` an answer with words that are not in the question, where the right one has none.
    """
    if verdict.grade != "wrong":
        return "right" if verdict.grade == "right" else "ungradable"
    if rollout.stop == "length":
        return "truncated"
    for execution in verdict.executions:
        if execution.outcome in _OUTCOMES:
            return _OUTCOMES[execution.outcome]
    if not rollout.text.strip():
        return "empty"
    if _REFUSAL.search(rollout.text):
        return "refusal"
    if any(not c.passed and (c.dimension == "format" or c.name == "answer found") for c in verdict.checks):
        return "wrong format"
    if any(not c.passed and c.dimension == "constraints" for c in verdict.checks):
        return "constraint dropped"
    if _off_by_one(rollout, verdict, task):
        return "off by one"
    return "invented input" if task and _invented(rollout, task) else "wrong answer"


def _off_by_one(rollout: Rollout, verdict: Verdict, task: Task | None) -> bool:
    """Whether the whole answer is an integer next to the right one, or every wrong result of its code is."""
    failed = [check.evidence for check in verdict.checks if not check.passed]
    results = [_GAVE.search(evidence) for evidence in failed]
    if results and all(results):
        return all(abs(int(found[1]) - int(found[2])) == 1 for found in results if found)
    answer, reference = answer_in(rollout.text), str(task.metadata.get("answer", "")) if task else ""
    wanted = answer_in(reference)
    if not answer or not wanted or not _NUMBER.fullmatch(answer) or not _NUMBER.fullmatch(wanted):
        return False
    return abs(int(answer[:20]) - int(wanted[:20])) == 1


def _invented(rollout: Rollout, task: Task) -> bool:
    """Whether the answer uses words that the question lacks although the right answer uses none but the question's."""
    known = {word.casefold() for word in _WORD.findall(task.messages[-1]["content"])}
    wanted = {word.casefold() for word in _WORD.findall(str(task.metadata.get("answer", "")))}
    given = {word.casefold() for word in _WORD.findall(answer_in(rollout.text) or "")}
    return bool(wanted) and wanted <= known and not given <= known


def modes(samples: Iterable[Sample]) -> Counter[str]:
    """How many samples failed in which way; right ones are not counted."""
    return Counter(sample.mode or sample.grade for sample in samples if not sample.right)


def smallest(samples: Iterable[Sample], mode: str) -> Sample | None:
    """The shortest sample that failed in this way: the one to read first."""
    return min((s for s in samples if s.mode == mode), key=lambda s: (len(s.text), s.text), default=None)
