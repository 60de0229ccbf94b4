"""Every rollout of every step, with its verdict and reward, as Parquet: one file a step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from surefoot.errors import RunError
from surefoot.store import atomic
from surefoot.types import Group, Reward, Rollout, Task, Verdict

SCHEMA = pa.schema(
    [
        ("step", pa.int32()),
        ("domain", pa.string()),
        ("task_id", pa.string()),
        ("sample", pa.int32()),
        ("messages", pa.string()),
        ("text", pa.string()),
        ("grade", pa.string()),
        ("score", pa.float32()),
        ("reward", pa.float32()),
        ("valid", pa.bool_()),
        ("reason", pa.string()),
        ("stop", pa.string()),
        ("policy_version", pa.int32()),
        ("seed", pa.int64()),
        ("tokens", pa.list_(pa.int32())),
        ("mask", pa.list_(pa.bool_())),
        ("logprobs", pa.list_(pa.float32())),
        ("checks", pa.string()),
        ("findings", pa.string()),
        ("executions", pa.string()),
        ("dimensions", pa.string()),
        ("transcript", pa.string()),
    ]
)
"""Columns of a file."""
JSON_COLUMNS = frozenset({"messages", "checks", "findings", "executions", "dimensions", "transcript"})
"""Columns that hold JSON."""


def write_rollouts(directory: Path, step: int, groups: Sequence[Group]) -> Path:
    """Write the rollouts of one step to `step-000007.parquet`, whole or not at all."""
    rows = [
        _row(step, group.task, rollout, verdict, reward)
        for group in groups
        for rollout, verdict, reward in zip(group.rollouts, group.verdicts, group.rewards, strict=True)
    ]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), sink, compression="zstd")
    path = rollout_file(directory, step)
    atomic.write_bytes(path, sink.getvalue().to_pybytes())
    return path


def rollout_file(directory: Path, step: int) -> Path:
    """Where the rollouts of a step are."""
    return directory / f"step-{step:06d}.parquet"


def read_rows(directory: Path, step: int, columns: Sequence[str] | None = None, **wanted: Any) -> list[dict[str, Any]]:
    """The rollouts of a step whose columns have the wanted values, their JSON read.

    Args:
        columns: Those that are read; None for all.

    Raises:
        RunError: There is no such file, or it is damaged.
    """
    path = rollout_file(directory, step)
    filters = [(name, "=", value) for name, value in wanted.items()] or None
    try:
        rows = pq.read_table(path, columns=None if columns is None else list(columns), filters=filters).to_pylist()
    except (OSError, ValueError) as broken:
        raise RunError(f"the rollouts of step {step} cannot be read", where=str(path)) from broken
    return [{n: json.loads(value) if n in JSON_COLUMNS else value for n, value in row.items()} for row in rows]


def forget_after(directory: Path, step: int) -> None:
    """Delete the files of steps after `step`, which a resumed run writes again."""
    for path in directory.glob("step-*.parquet"):
        if int(path.stem.removeprefix("step-")) > step:
            path.unlink()


def _row(step: int, task: Task, rollout: Rollout, verdict: Verdict, reward: Reward) -> dict[str, Any]:
    return {
        "step": step,
        "domain": task.domain,
        "task_id": task.id,
        "sample": rollout.sample,
        "messages": _json(task.messages),
        "text": _storable(rollout.text),
        "grade": verdict.grade,
        "score": verdict.score,
        "reward": reward.value,
        "valid": reward.valid,
        "reason": _storable(verdict.reason),
        "stop": rollout.stop,
        "policy_version": rollout.policy_version,
        "seed": rollout.seed,
        "tokens": rollout.tokens,
        "mask": rollout.mask,
        "logprobs": rollout.logprobs,
        "checks": _json([asdict(check) for check in verdict.checks]),
        "findings": _json([asdict(finding) for finding in verdict.findings]),
        "executions": _json([asdict(execution) for execution in verdict.executions]),
        "transcript": _json(rollout.messages),
        "dimensions": _json({**verdict.dimensions, **reward.dimensions}),
    }


def _json(value: Any) -> str:
    return json.dumps(value)  # ASCII, so that lone surrogates in what a model wrote survive as escapes


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
