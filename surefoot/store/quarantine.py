"""What a run set aside for a person to look at: tasks that cannot be graded, and batches that no update came of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from surefoot.store import atomic
from surefoot.store.journal import read_lines
from surefoot.store.rollouts import forget_after, write_rollouts
from surefoot.types import Group

SHOWN = 4
"""Rollouts of a quarantined task that are kept as evidence."""


class Quarantine:
    """`quarantine.jsonl`, one task a line with its evidence, and `skipped/`, one Parquet file of rollouts a step."""

    def __init__(self, run: Path) -> None:
        self.file, self.batches = run / "quarantine.jsonl", run / "skipped"

    def add(self, step: int, found: Mapping[str, Any]) -> None:
        """Keep the `evidence` against a task that is not drawn again after `step`."""
        with atomic.clear_disk_errors(self.file), self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, **found}) + "\n")

    def keep_batch(self, step: int, groups: Sequence[Group]) -> Path:
        """Keep the batch of an update that was skipped; its columns are those of `rollouts/`."""
        self.batches.mkdir(exist_ok=True)
        return write_rollouts(self.batches, step, groups)

    def forget_after(self, step: int) -> None:
        """Drop what steps after `step` left, as the resumed run takes them again."""
        if self.file.exists():
            kept = [line for line in read_lines(self.file) if line["step"] <= step]
            atomic.write_text(self.file, "".join(json.dumps(line) + "\n" for line in kept))
        forget_after(self.batches, step)


def evidence(step: int, group: Group) -> dict[str, Any]:
    """A task that could not be graded at `step`, as plain data: enough to ask the grader again by hand."""
    pairs = list(zip(group.rollouts, group.verdicts, strict=True))[:SHOWN]
    return {
        "drawn": step,
        "domain": group.task.domain,
        "task": group.task.id,
        "prompt": group.task.prompt_hash,
        "messages": list(group.task.messages),
        "rollouts": [{"text": rollout.text, "seed": rollout.seed, "reason": v.reason} for rollout, v in pairs],
    }
