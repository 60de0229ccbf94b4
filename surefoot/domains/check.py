"""Tries a domain offline, before any step is spent on it: can its grader and its tasks be trusted?"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from surefoot.domains.audit.measure import first_tasks, straight
from surefoot.domains.audit.trial import Trial
from surefoot.domains.audit.twin import digest
from surefoot.domains.pool import DEMONSTRATED, TaskPool
from surefoot.protocols import Domain, Sandbox
from surefoot.rewards.grading import GradingPool
from surefoot.types import Task, Verdict, dump

GARBAGE = ("", " ", "xyzzy", "0", "I don't know.", "<answer></answer>", "9" * 5000)
"""Answers that no task should accept from everyone."""
CONSTANTS = ("yes", "no", "True", "False", "Yes", "No", "A", "B", "0", "1", "2", "None", "[]")
MARGIN = 0.2
"""By how much a constant answer may beat the stated chance level before it is a problem."""


@dataclass(frozen=True)
class Report:
    """What a check of a domain found. Rates are shares of the tasks that were tried."""

    domain: str
    tasks: int
    references: int
    """Tasks that have a reference answer."""
    references_right: int
    garbage_right: int
    """Pairs of a task and a garbage answer that were graded right, blind hits on the reference aside."""
    ungradable: int
    best_constant: str
    best_constant_rate: float
    chance: float
    prompt_characters: tuple[int, int, int]
    """Shortest, median, longest; worked examples included."""
    distinct_prompts: int
    heldout: int
    heldout_in_train: int
    """Held-out prompts that the training tasks tried here show all the same."""
    unstable: int
    """Tasks that read differently when they were made again."""
    shots_shown: int
    """Tasks whose own question is among the worked examples; they are never drawn."""
    mean_milliseconds: float
    """Of one grading."""
    problems: tuple[str, ...] = ()

    def rows(self) -> list[tuple[str, str]]:
        """The findings for a table, (what, value)."""
        low, middle, high = self.prompt_characters
        return [
            ("tasks tried", str(self.tasks)),
            ("reference answers accepted", f"{self.references_right} of {self.references}"),
            ("garbage answers accepted", str(self.garbage_right)),
            ("ungradable", str(self.ungradable)),
            ("best constant answer", f"{self.best_constant_rate:.0%} with {self.best_constant[:40]!r}"),
            ("stated chance level", f"{self.chance:.0%}"),
            ("prompt length, characters", f"{low} to {high}, median {middle}"),
            ("distinct prompts", f"{self.distinct_prompts} of {self.tasks}"),
            ("held-out tasks", str(self.heldout)),
            ("held-out prompts in training", str(self.heldout_in_train)),
            ("tasks that change when made again", str(self.unstable)),
            ("tasks that are worked examples", str(self.shots_shown)),
            ("time of one grading", f"{self.mean_milliseconds:.1f} ms"),
        ]


def check(domain: Domain, sandbox: Sandbox, tasks: int = 20) -> Report:
    """Try a domain with its real grader. What is wrong with it is in the report's `problems`, in words.

    Raises ConfigError or DataError only where there is no task to try.
    """
    pool = TaskPool(domain, heldout=tasks)
    heldout = pool.heldout
    train, bare = first_tasks(pool, tasks), list(straight(domain, "train", tasks))
    with GradingPool([domain], sandbox, workers=2, seconds=60.0) as graders:
        tried = Trial(graders)
        references = [(task, str(task.metadata["answer"])) for task in train if task.metadata.get("answer") is not None]
        accepted = tried.verdicts(references)
        garbage = [(task, text) for task in train for text in GARBAGE if not _is_reference(task, text)]
        fooled = tried.verdicts(garbage)
        best, rate = _best_constant(tried, train, references)
    lengths = sorted(sum(len(m["content"]) for m in task.messages) for task in train)
    report = Report(
        domain=domain.name,
        tasks=len(train),
        references=len(references),
        references_right=sum(v.grade == "right" for v in accepted),
        garbage_right=sum(v.grade == "right" for v in fooled),
        ungradable=tried.ungradable,
        best_constant=best,
        best_constant_rate=rate,
        chance=domain.chance,
        prompt_characters=(lengths[0], int(statistics.median(lengths)), lengths[-1]),
        distinct_prompts=len({task.prompt_hash for task in train}),
        heldout=len(heldout),
        heldout_in_train=len({task.prompt_hash for task in train} & pool.hashes),
        unstable=sum(_changes(domain, task, index) for index, task in enumerate(bare)),
        shots_shown=sum(bool(task.metadata.get(DEMONSTRATED)) for task in bare),
        mean_milliseconds=1000 * statistics.fmean(tried.seconds or [0.0]),
    )
    return replace(report, problems=tuple(_problems(report, tried, references, accepted, garbage, fooled)))


def describe(task: Task) -> str:
    """A task as a person reads it: what the model sees, and below it what the grader knows."""
    turns = "\n".join(f"[{m['role']}] {m['content']}" for m in task.messages)
    known = {"checks": dict(task.checks), "constraints": list(task.constraints), "metadata": dict(task.metadata)}
    lines = [f"  {key}: {_short(value)}" for key, value in known.items() if value]
    return "\n".join([f"--- {task.id}", turns, *lines])


def _problems(
    report: Report,
    tried: Trial,
    references: Sequence[tuple[Task, str]],
    accepted: Sequence[Verdict],
    garbage: Sequence[tuple[Task, str]],
    fooled: Sequence[Verdict],
) -> Iterator[str]:
    for (task, text), verdict in zip(references, accepted, strict=True):
        if verdict.grade == "wrong":
            yield f"{task.id}: its own reference answer is graded wrong: {text[:80]!r}"
            break
    taken = Counter(text for (_, text), verdict in zip(garbage, fooled, strict=True) if verdict.grade == "right")
    for text, count in taken.most_common():
        if count / report.tasks > max(report.chance, 0.05) + MARGIN:
            yield f"the answer {text[:20]!r} is accepted by {count} of {report.tasks} tasks"
    if report.best_constant_rate > report.chance + MARGIN and report.tasks >= 5:
        yield (
            f"always answering {report.best_constant[:40]!r} is right for {report.best_constant_rate:.0%} of tasks; "
            f"set chance = {report.best_constant_rate:.2f} in the recipe (it is {report.chance:.2f})"
        )
    if report.ungradable:
        reason, _ = tried.reasons.most_common(1)[0]
        yield f"{report.ungradable} answers could not be graded: {reason[:200]}"
    if report.unstable:
        yield f"{report.unstable} tasks change when they are made again, so a run cannot be repeated"
    if report.heldout_in_train:
        yield f"{report.heldout_in_train} held-out prompts are trained on"
    if report.tasks >= 5 and report.distinct_prompts < 0.5 * report.tasks:
        yield f"only {report.distinct_prompts} of {report.tasks} training prompts are distinct"


def _changes(domain: Domain, task: Task, index: int) -> bool:
    return digest(dump(task)) != digest(dump(domain.source.task("train", index)))


def _best_constant(tried: Trial, tasks: Sequence[Task], references: Sequence[tuple[Task, str]]) -> tuple[str, float]:
    """The one answer that is right most often, of the usual ones and of the commonest references."""
    common = [text for text, _ in Counter(text for _, text in references).most_common(5)]
    candidates = list(dict.fromkeys([*CONSTANTS, *common]))
    verdicts = tried.verdicts([(task, text) for text in candidates for task in tasks])
    hits = [sum(v.grade == "right" for v in verdicts[i * len(tasks) :][: len(tasks)]) for i in range(len(candidates))]
    best = max(range(len(candidates)), key=lambda i: hits[i])
    return candidates[best], hits[best] / len(tasks)


def _is_reference(task: Task, text: str) -> bool:
    return text.strip() != "" and text.strip() == str(task.metadata.get("answer", "")).strip()


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 600 else f"{text[:600]} ..."
