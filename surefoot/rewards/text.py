"""Graders that compare text: exact after normalisation, multiple choice, and numbers with a tolerance.

Each takes exactly one answer out of what the model wrote; where several are offered, none of them counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from surefoot.errors import GraderError
from surefoot.protocols import Sandbox
from surefoot.rewards.extract import extract
from surefoot.rewards.verdicts import no_answer, right, wrong
from surefoot.types import Rollout, Task, Verdict

_QUOTES = "\"'`“”‘’«»*"
_NUMBER = re.compile(r"[-+]?(?:\d[\d,_ ]*)?\.?\d+(?:[eE][-+]?\d{1,4})?|[-+]?\d+\.(?!\d)")
_UNITS = re.compile(r"^[$€£¥]\s*|\s*[%$€£¥°]$")
LONGEST_NUMBER = 400
"""Characters; longer strings of digits are no answer that a task has."""


@dataclass(frozen=True)
class ExactGrader:
    """Right if the answer reads the same as one of `checks["answer"]` (a string or a list of accepted ones).

    Case, spacing, surrounding quotes and a closing full stop do not count.
    """

    extract: str = "whole"

    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict:
        answer = extract(rollout.text, self.extract)
        if answer is None:
            return no_answer(self.extract)
        given = normalised(answer)
        same = given != "" and any(given == normalised(accepted) for accepted in references(task))
        return right("answer", answer) if same else wrong("answer", answer)


@dataclass(frozen=True)
class ChoiceGrader:
    """Right if the answer names the right option and no other one.

    `checks["answer"]` is the letter (or the text) of the right option; `checks["choices"]` may give the options, as a
    list (lettered A, B, ...) or letter -> text. Accepted are `B`, `(B)`, `B.`, `B) text`, `option B`, the text.
    """

    extract: str = "whole"

    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict:
        answer = extract(rollout.text, self.extract)
        if answer is None:
            return no_answer(self.extract)
        options = _options(task.checks.get("choices"))
        wanted = {letter for letter in (chosen(text, options) for text in references(task)) if letter}
        if not wanted:
            raise GraderError(f"the answer {task.checks.get('answer')!r} is none of the choices", where=task.id)
        return right("choice", answer) if chosen(answer, options) in wanted else wrong("choice", answer)


@dataclass(frozen=True)
class NumberGrader:
    """Right if the answer is one number within `checks["tolerance"]` (relative, default 1e-6) of `checks["answer"]`.

    Understands signs, thousands separators, decimals, exponents, fractions, currency and percent signs.
    """

    extract: str = "last_number"
    tolerance: float = 1e-6

    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict:
        answer = extract(rollout.text, self.extract)
        if answer is None:
            return no_answer(self.extract)
        tolerance = Decimal(repr(float(task.checks.get("tolerance", self.tolerance))))
        wanted = [number(text) for text in references(task)]
        if None in wanted:
            raise GraderError(f"the answer {task.checks.get('answer')!r} is not a number", where=task.id)
        given = number(answer)
        if given is None:
            return wrong("number", f"{answer!r} is not one number")
        near = any(abs(given - w) <= tolerance * max(abs(w), Decimal(1)) for w in wanted if w is not None)
        return right("number", answer) if near else wrong("number", answer)


def references(task: Task) -> list[str]:
    """The accepted answers of a task. Raises GraderError if it has none."""
    answer = task.checks.get("answer")
    accepted = answer if isinstance(answer, (list, tuple)) else [answer]
    texts = [str(a) for a in accepted if a is not None and str(a).strip()]
    if not texts:
        raise GraderError("the task has no answer to compare with", where=task.id)
    return texts


def normalised(text: str) -> str:
    """`text` without what does not count: case, spacing, quotes around it, a closing full stop."""
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    previous = None
    while folded != previous:
        previous = folded
        folded = folded.strip(_QUOTES).strip()
        if len(folded) > 1 and folded[-1] in ".!" and not folded.endswith(".."):
            folded = folded[:-1].rstrip()
    return folded


def number(text: str) -> Decimal | None:
    """The value of `text` if it is one number or one fraction and nothing else."""
    bare = _UNITS.sub("", _UNITS.sub("", normalised(text).replace("−", "-")))
    if len(bare) > LONGEST_NUMBER:
        return None
    above, slash, below = bare.partition("/")
    if slash:
        top, bottom = number(above) if "/" not in below else None, number(below)
        return top / bottom if top is not None and bottom else None
    if not _NUMBER.fullmatch(bare) or not _grouped(bare):
        return None
    try:
        value = Decimal(re.sub(r"[,_ ]", "", bare))
    except InvalidOperation:
        return None
    return value if value.is_finite() and abs(value.adjusted()) <= LONGEST_NUMBER else None


def _grouped(text: str) -> bool:
    """Whether separators stand between groups of three digits, so that `3, 4` is not read as 34."""
    whole = re.split(r"[.eE]", text.lstrip("+-"))[0]
    groups = re.split(r"[,_ ]", whole)
    return len(groups) == 1 or (0 < len(groups[0]) <= 3 and all(len(g) == 3 for g in groups[1:]))


def chosen(answer: str, options: Mapping[str, str]) -> str | None:
    """The letter that `answer` chooses; None if it chooses none or more than one."""
    text = normalised(answer)
    texts = {letter: normalised(option) for letter, option in options.items()}
    by_text = [letter for letter, option in texts.items() if option and option == text]
    if len(by_text) == 1:
        return by_text[0]
    match = re.match(r"(?:the )?(?:correct |final |right )?(?:answer|option|choice)(?: is)?:? *(.+)", text)
    text = match.group(1) if match else text
    lettered = re.fullmatch(r"\(?([a-z])\)?(?:[.:)]|$)\s*(.*)", text) or re.fullmatch(r"\(([a-z])\)\s+(.*)", text)
    if lettered is None:
        return None
    letter, rest = lettered.group(1).upper(), lettered.group(2)
    if options and letter not in options:
        return None
    if rest and (rest != texts.get(letter, rest) or re.search(r"(?:^|\s|\()[a-z]\)", rest)):
        return None
    return letter


def _options(choices: Any) -> dict[str, str]:
    if isinstance(choices, Mapping):
        return {str(letter).strip("()").upper(): str(text) for letter, text in choices.items()}
    if isinstance(choices, Sequence) and not isinstance(choices, str):
        return {chr(ord("A") + i): str(text) for i, text in enumerate(choices)}
    return {}
