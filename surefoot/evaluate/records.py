"""What an evaluation saw: every sample of every task, as plain data that can be written, read and counted."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from surefoot.errors import DataError
from surefoot.evaluate.files import write_atomically
from surefoot.types import Grade, Message, Sampling, StopReason, dump, load

SCHEMA = 1
"""Version of the JSON form. It goes up when a reader of the old form would misread the new one."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One graded sample of a task."""

    sample: int
    """Index among the samples of its task, from 0."""
    seed: int
    grade: Grade
    score: float
    text: str
    answer: str | None
    """The answer taken from the text, for agreement and majority; None if there is none."""
    tokens: int
    """How many tokens the policy wrote."""
    stop: StopReason
    reason: str = ""
    """Why it is wrong or ungradable, for a person."""
    mode: str = ""
    """In which way it failed, one of `modes.Mode`."""
    context: int = 0
    """Tokens of the prompt that it was written in; 0 if they were not counted."""

    @property
    def right(self) -> bool:
        return self.grade == "right"

    @property
    def truncated(self) -> bool:
        """Whether the token limit cut it off."""
        return self.stop == "length"


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """One task and its samples."""

    id: str
    prompt_hash: str
    messages: tuple[Message, ...]
    samples: tuple[Sample, ...]
    reference: str | None = None
    variant_of: str | None = None
    """Id of the task that this one is a changed copy of."""

    @property
    def graded(self) -> tuple[Sample, ...]:
        """The samples that could be graded: ungradable ones count nowhere but in their own total."""
        return tuple(s for s in self.samples if s.grade != "ungradable")

    @property
    def rate(self) -> float:
        """Share of right samples among the graded ones; NaN if none was."""
        graded = self.graded
        return sum(s.right for s in graded) / len(graded) if graded else math.nan


@dataclass(frozen=True, slots=True)
class Skipped:
    """A task that nothing could be sampled for, because its prompt is too long. It is in no figure."""

    id: str
    prompt_hash: str
    reason: str


@dataclass(frozen=True, slots=True)
class DomainRecord:
    """The tasks of one domain."""

    name: str
    chance: float
    """Pass rate of a blind answer in the right format."""
    max_new_tokens: int
    tasks: tuple[TaskRecord, ...]
    skipped: tuple[Skipped, ...] = ()
    """Tasks that are left out of `tasks`."""

    @property
    def is_variant(self) -> bool:
        """Whether its tasks are changed copies of another domain's."""
        return any(task.variant_of for task in self.tasks)

    def __iter__(self) -> Iterator[Sample]:
        return (sample for task in self.tasks for sample in task.samples)

    @property
    def drawn(self) -> int:
        """Number of samples, ungradable ones included."""
        return sum(len(task.samples) for task in self.tasks)

    @property
    def ungradable(self) -> int:
        return sum(sample.grade == "ungradable" for sample in self)

    @property
    def truncated(self) -> int:
        return sum(sample.truncated for sample in self)


@dataclass(frozen=True, slots=True)
class Conversation:
    """A scripted conversation with the model; see `conversations`."""

    script: str
    sample: int
    constraints: tuple[dict[str, Any], ...]
    """The rules that were given in the first turn."""
    questions: tuple[str, ...]
    replies: tuple[Sample, ...]
    """One a turn; fewer than questions where the context was full."""
    kept: tuple[tuple[bool, ...], ...]
    """For each reply, whether it keeps each of the rules."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All that one evaluation of one model saw."""

    model: str
    domains: tuple[DomainRecord, ...]
    samples: int
    """Samples that were asked for per task."""
    sampling: Sampling = field(default_factory=Sampling)
    seed: int = 0
    policy_version: int = 0
    label: str = ""
    """Stage of the model, as a column's head: base, warm start, after RL."""
    schema: int = SCHEMA
    conversations: tuple[Conversation, ...] = ()

    @property
    def title(self) -> str:
        return self.label or self.model or "model"

    @property
    def originals(self) -> Evaluation:
        """The evaluation without changed copies of tasks, and without conversations."""
        return replace(self, domains=tuple(d for d in self.domains if not d.is_variant), conversations=())

    def domain(self, name: str) -> DomainRecord | None:
        return next((d for d in self.domains if d.name == name), None)


def to_json(evaluation: Evaluation) -> str:
    """The evaluation as JSON text, ASCII only."""
    return json.dumps(dump(evaluation), separators=(",", ":"), allow_nan=False)


def from_json(text: str, *, where: str = "evaluation") -> Evaluation:
    """The inverse of `to_json`. Raises DataError that says what does not fit, and where."""
    try:
        data: Any = json.loads(text)
    except ValueError as error:
        raise DataError(f"this is not JSON: {error}", where=where) from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        raise DataError(
            f"the evaluation has schema {schema!r}, this version reads {SCHEMA}",
            where=where,
            fix="evaluate the model again, or use the Surefoot version that wrote the file",
        )
    try:
        return load(Evaluation, data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise DataError(f"{place}: {first['msg']}", where=where, fix="evaluate the model again") from error


def save(evaluation: Evaluation, path: Path) -> None:
    """Write `evaluation.json`: all of it or nothing."""
    write_atomically(path, to_json(evaluation) + "\n")


def read(path: Path) -> Evaluation:
    """Read what `save` wrote; a directory stands for the `evaluation.json` in it."""
    file = path / "evaluation.json" if path.is_dir() else path
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise DataError("there is no such evaluation", where=str(file), fix="make one with `surefoot eval`") from error
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"the evaluation cannot be read: {error}", where=str(file)) from error
    return from_json(text, where=str(file))
