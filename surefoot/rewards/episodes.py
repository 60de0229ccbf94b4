"""What an episode is worth that ran out of turns or tokens before its environment ended it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from surefoot.protocols import Grader, Sandbox
from surefoot.types import Check, Finding, Rollout, Task, Verdict

OUT_OF_BUDGET = "the episode ran out of turns or tokens"


@dataclass(frozen=True)
class EpisodeGrader:
    """Another grader, and what `session.on_full` says of episodes without an end.

    `leave_out` gives them the finding `unfinished_episode` with the action `quarantine`: they are kept and counted, and
    nothing is learnt from them.
    """

    inner: Grader
    on_full: Literal["grade", "wrong", "leave_out"] = "grade"

    @property
    def extract(self) -> str:
        """How the inner grader finds an answer."""
        return str(getattr(self.inner, "extract", "whole"))

    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict:
        unfinished = rollout.stop == "length" and bool(rollout.messages)
        if unfinished and self.on_full == "wrong":
            return Verdict("wrong", checks=(Check("ended", False, OUT_OF_BUDGET),), reason=OUT_OF_BUDGET)
        verdict = self.inner.grade(task, rollout, sandbox)
        if unfinished and self.on_full == "leave_out":
            found = Finding("unfinished_episode", "info", OUT_OF_BUDGET, "quarantine")
            verdict = replace(verdict, findings=(*verdict.findings, found))
        return verdict
