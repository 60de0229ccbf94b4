"""Grades made-up answers as if a model had written them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from surefoot.protocols import Domain
from surefoot.rewards.grading import GradingPool
from surefoot.types import Rollout, Task, Verdict


class Trial:
    """Grades texts with a domain's own grader, and keeps count of what could not be graded and of the time."""

    def __init__(self, graders: GradingPool) -> None:
        self._graders = graders
        self.ungradable = 0
        self.reasons: Counter[str] = Counter()
        self.seconds: list[float] = []
        """Of each grading."""

    def warm(self, task: Task) -> None:
        """Let the grader start its jail, so that the time of that is not taken for the time of a grading."""
        self._graders.grade_all([written(task, "0", 0)], {task.id: task})

    def verdicts(self, answers: Sequence[tuple[Task, str]]) -> list[Verdict]:
        """The verdict on each text, in order."""
        rollouts = [written(task, text, number) for number, (task, text) in enumerate(answers)]
        verdicts = self._graders.grade_all(rollouts, {task.id: task for task, _ in answers})
        self.seconds += [v.seconds for v in verdicts]
        failed = [v.reason for v in verdicts if v.grade == "ungradable"]
        self.ungradable += len(failed)
        self.reasons.update(failed)
        return verdicts


def extraction(domain: Domain) -> str:
    """How the domain's grader finds answers."""
    return str(getattr(domain.grader, "extract", "whole"))


def written(task: Task, text: str, sample: int) -> Rollout:
    """`text` as a rollout of one token."""
    return Rollout(
        task_id=task.id,
        domain=task.domain,
        sample=sample,
        tokens=(0,),
        mask=(True,),
        logprobs=(0.0,),
        text=text,
        stop="stop",
    )
