"""Grades IFEval's tasks: `checks` holds `instruction_id_list` and `kwargs`, as its data does."""

from __future__ import annotations

from dataclasses import dataclass, field

from surefoot.errors import GraderError
from surefoot.protocols import Sandbox
from surefoot.rewards.extract import extract
from surefoot.rewards.ifeval import KINDS
from surefoot.rewards.jail import Jail
from surefoot.rewards.verdicts import no_answer, wrong
from surefoot.types import Check, Finding, Rollout, Task, Verdict

LONGEST = 50_000
"""Characters of an answer; a longer one keeps no instruction."""


@dataclass(frozen=True)
class IFEvalGrader:
    """Right if every instruction is kept (IFEval's strict accuracy); the score is the share of those kept."""

    extract: str = "whole"
    jail: Jail = field(default_factory=lambda: Jail("surefoot.rewards.ifeval:handle", seconds=5.0))

    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict:
        text = extract(rollout.text, self.extract)
        names = list(task.checks.get("instruction_id_list", ()))
        given = task.checks.get("kwargs", ())
        unknown = [name for name in names if name not in KINDS]
        if not names or unknown or len(given) != len(names):
            raise GraderError(f"the task's instructions are malformed: {unknown or names}", where=task.id)
        if text is None:
            return no_answer(self.extract)
        if len(text) > LONGEST:
            return wrong("instructions", f"answer of {len(text)} characters")
        arguments = [{key: value for key, value in one.items() if value is not None} for one in given]
        request = {"text": text, "instructions": list(zip(names, arguments, strict=True))}
        reply = self.jail.ask_about(request, {**request, "text": "A short text."}, sandbox)
        if reply is None:
            finding = Finding("breaks_grader", "warning", text[:200])
            return wrong("instructions", "checking this answer fails or takes too long", findings=(finding,))
        checks = tuple(
            Check(name, bool(kept), str(one)[:200], hidden=False, dimension="constraints")
            for name, one, kept in zip(names, arguments, reply["kept"], strict=True)
        )
        share = sum(check.passed for check in checks) / len(checks)
        broken = next((check.name for check in checks if not check.passed), "")
        return Verdict("right" if share == 1.0 else "wrong", share, checks=checks, reason=broken)
