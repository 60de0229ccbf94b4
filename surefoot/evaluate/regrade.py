"""Grading samples that were drawn already for other tasks than they were drawn for: the boundary inputs of code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from surefoot.evaluate.modes import mode_of
from surefoot.evaluate.records import DomainRecord, Sample, TaskRecord
from surefoot.evaluate.variants import OF
from surefoot.protocols import Domain, Graders
from surefoot.types import Rollout, Task, Verdict


def regrade(
    boundary: Sequence[tuple[Domain, Sequence[Task]]], records: Sequence[DomainRecord], graders: Graders
) -> list[DomainRecord]:
    """Records of domains whose tasks are variants of tasks in `records`, with the very samples of those.

    A sample that could not be graded for its own task is not graded here either.
    """
    originals = {task.id: task for record in records for task in record.tasks}
    tasks = {task.id: task for _, drawn in boundary for task in drawn if task.metadata[OF] in originals}
    pairs = [(task, sample) for task in tasks.values() for sample in originals[task.metadata[OF]].graded]
    texts = {(task.id, sample.sample): sample for task, sample in pairs}
    graded: dict[str, list[Sample]] = {id_: [] for id_ in tasks}
    for rollout, verdict in graders.grade((_rollout(task, sample) for task, sample in pairs), tasks):
        old = texts[rollout.task_id, rollout.sample]
        graded[rollout.task_id].append(
            replace(
                old,
                grade=verdict.grade,
                score=verdict.score,
                reason=printable(verdict.reason or first_failure(verdict)),
                mode=mode_of(rollout, verdict, tasks[rollout.task_id]),
            )
        )
    return [
        DomainRecord(
            domain.name,
            0.0,
            domain.max_new_tokens,
            tuple(_record(task, originals[task.metadata[OF]], graded[task.id]) for task in drawn if task.id in tasks),
        )
        for domain, drawn in boundary
    ]


def first_failure(verdict: Verdict) -> str:
    """The first failed check, for a person; empty for a right answer."""
    failed = next((check for check in verdict.checks if not check.passed), None)
    if verdict.grade == "right" or failed is None:
        return ""
    return f"{failed.name}: {failed.evidence}" if failed.evidence else failed.name


def printable(text: str) -> str:
    """The text without lone surrogates, which no file could hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _rollout(task: Task, sample: Sample) -> Rollout:
    return Rollout(task.id, task.domain, sample.sample, (), (), (), sample.text, sample.stop, seed=sample.seed)


def _record(task: Task, original: TaskRecord, samples: list[Sample]) -> TaskRecord:
    ordered = tuple(sorted(samples, key=lambda sample: sample.sample))
    return replace(original, id=task.id, samples=ordered, variant_of=original.id)
