"""Mathematical answers: equal as text or number here, else equal as mathematics (math-verify) in the jail."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from surefoot.protocols import Sandbox
from surefoot.rewards.extract import extract
from surefoot.rewards.jail import Jail
from surefoot.rewards.text import number, references
from surefoot.rewards.verdicts import no_answer, right, wrong
from surefoot.types import Finding, Rollout, Task, Verdict

LONGEST = 1000
"""Characters of an answer; longer ones are no answer that a task has."""
_DRESS = re.compile(r"\\(?:left|right|displaystyle|!|,|;|:|quad|qquad)(?![a-zA-Z])|\\ |~")
_WRAPPED = re.compile(r"\\(?:text|mathrm|textbf|mbox)\{([^{}]*)\}")


@dataclass(frozen=True)
class MathGrader:
    """Right if the answer equals `checks["answer"]` (LaTeX or plain) mathematically."""

    extract: str = "boxed"
    jail: Jail = field(default_factory=lambda: Jail("surefoot.rewards.maths_jail:handle", seconds=2.5))

    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict:
        answer = extract(rollout.text, self.extract)
        if answer is None:
            return no_answer(self.extract)
        answer = answer.strip().removeprefix("$").removesuffix("$").strip()
        if not answer:
            return wrong("mathematically equal", "empty answer")
        if len(answer) > LONGEST:
            return wrong("mathematically equal", f"answer of {len(answer)} characters")
        for reference in references(task):
            verdict = self._compare(answer, reference, sandbox)
            if verdict.grade == "right":
                break
        return verdict

    def _compare(self, answer: str, reference: str, sandbox: Sandbox) -> Verdict:
        if plain(answer) == plain(reference):
            return right("mathematically equal", answer)
        numbers = number(answer), number(reference)
        if None not in numbers:
            same = numbers[0] == numbers[1]
            return right("mathematically equal", answer) if same else wrong("mathematically equal", answer)
        request = {"answer": answer, "reference": reference}
        reply = self.jail.ask_about(request, {**request, "answer": reference}, sandbox)
        if reply is None:
            finding = Finding("breaks_grader", "warning", f"math-verify fails on {answer[:200]!r} only")
            return wrong("mathematically equal", answer, findings=(finding,))
        return right("mathematically equal", answer) if reply["equal"] else wrong("mathematically equal", answer)


def plain(latex: str) -> str:
    """`latex` without dress that has no mathematical meaning."""
    text = _WRAPPED.sub(r"\1", _DRESS.sub("", latex)).replace("dfrac", "frac").replace("tfrac", "frac")
    return re.sub(r"\s+", "", text).rstrip(".")
