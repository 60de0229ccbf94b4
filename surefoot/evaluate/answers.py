"""Taking the final answer out of a model's text, so that answers can be compared and voted on."""

from __future__ import annotations

import re
from collections.abc import Callable

from surefoot.types import Rollout, Task

AnswerOf = Callable[[Task, Rollout], str | None]
"""How the answer of a rollout is found; None if there is none."""

_TAGGED = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)


def final_answer(task: Task, rollout: Rollout) -> str | None:
    """The last `<answer>...</answer>`, or else the last fenced block, or else the last line that is not empty.

    White space is collapsed, a full stop at the end dropped, and case ignored: `<answer>  Yes. </answer>` and `yes`
    agree. It serves agreement and majority only; whether a sample is right is the grader's word.
    """
    return answer_in(rollout.text)


def answer_in(text: str) -> str | None:
    """The rule of `final_answer` on a text."""
    if tagged := _TAGGED.findall(text):
        found = tagged[-1]
    elif fenced := _FENCED.findall(text):
        found = fenced[-1]
    else:
        found = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    return " ".join(found.split()).removesuffix(".").strip().casefold() or None
