"""Lets a grader that reads the whole text see only the answer in it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from surefoot.protocols import Grader, Sandbox
from surefoot.rewards.extract import extract
from surefoot.rewards.verdicts import no_answer
from surefoot.types import Rollout, Task, Verdict


@dataclass(frozen=True)
class ExtractingGrader:
    """Hands `inner` what `extract` finds in the text, in place of the text; wrong where it finds nothing."""

    inner: Grader
    extract: str

    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict:
        answer = extract(rollout.text, self.extract)
        if answer is None:
            return no_answer(self.extract)
        return self.inner.grade(task, replace(rollout, text=answer), sandbox)
