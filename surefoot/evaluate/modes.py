"""In which way a sample failed: a few named modes that each call for a different remedy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal

from surefoot.evaluate.records import Sample
from surefoot.types import Rollout, Verdict

Mode = Literal[
    "right",
    "wrong answer",
    "wrong format",
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


def mode_of(rollout: Rollout, verdict: Verdict) -> Mode:
    """The mode of one graded rollout: the first cause that explains it.

    A text that was cut off is `truncated` whatever its fragment did; then what the sandbox saw of its code; then what
    the text itself says. `wrong format` is a failed check of the dimension `format`, or one named `answer found`.
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
    return "wrong answer"


def modes(samples: Iterable[Sample]) -> Counter[str]:
    """How many samples failed in which way; right ones are not counted."""
    return Counter(sample.mode or sample.grade for sample in samples if not sample.right)


def smallest(samples: Iterable[Sample], mode: str) -> Sample | None:
    """The shortest sample that failed in this way: the one to read first."""
    return min((s for s in samples if s.mode == mode), key=lambda s: (len(s.text), s.text), default=None)
