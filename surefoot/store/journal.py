"""Metrics, draws and events: JSON lines a person can read; trackers may follow what is written."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from surefoot.store import atomic


class Follower(Protocol):
    """Is told of what a journal records; must neither raise nor take its time."""

    def metrics(self, step: int, values: Mapping[str, float]) -> None: ...

    def event(self, kind: str, text: str) -> None: ...

    def forget_after(self, step: int) -> None: ...

    def close(self) -> None: ...


class Journal:
    """Appends a line of metrics and one of draws a step, and one an event; forgets steps that a resumed run redoes."""

    def __init__(self, run: Path) -> None:
        self.metrics_file, self.events_file = run / "metrics.jsonl", run / "events.jsonl"
        self.draws_file = run / "draws.jsonl"
        self.followers: Sequence[Follower] = ()

    def metrics(self, step: int, values: Mapping[str, Any]) -> None:
        """Record one step. Nested mappings become `a/b` for followers."""
        self._append(self.metrics_file, {"step": step, **values})
        flat = flatten(values) if self.followers else {}
        for follower in self.followers:
            follower.metrics(step, flat)

    def draws(self, line: Mapping[str, Any]) -> None:
        """Record what the scheduler drew in a step and how it ended; `schedule.replay` rebuilds its state from that."""
        self._append(self.draws_file, line)

    def event(self, kind: str, **details: Any) -> None:
        """Record something that happened, with the time of day."""
        self._append(self.events_file, {"time": datetime.now(UTC).isoformat(), "event": kind, **details})
        for follower in self.followers:
            follower.event(kind, str(details.get("text", "")))

    def forget_after(self, step: int) -> None:
        """Drop the lines of steps after `step` (and a torn last line), as the resumed run writes them again."""
        for file in (self.metrics_file, self.draws_file):
            kept = [line for line in read_lines(file) if line["step"] <= step]
            atomic.write_text(file, "".join(json.dumps(line) + "\n" for line in kept))
        if self.events_file.exists():
            whole = [json.dumps(line) for line in read_lines(self.events_file)]
            atomic.write_text(self.events_file, "".join(line + "\n" for line in whole))
        for follower in self.followers:
            follower.forget_after(step)

    def recent_mean(self, key: str, step: int, steps: int) -> float | None:
        """Mean of a metric (`a/b` for a nested one) over the last `steps` steps up to `step`; None if none has it."""
        if not key:
            return None
        lines = [line for line in read_lines(self.metrics_file) if step - steps < line["step"] <= step]
        values = [value for line in lines if (value := flatten(line).get(key)) is not None and math.isfinite(value)]
        return sum(values) / len(values) if values else None

    def close(self) -> None:
        """Let the followers finish."""
        for follower in self.followers:
            follower.close()

    def _append(self, path: Path, line: Mapping[str, Any]) -> None:
        with atomic.clear_disk_errors(path), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a JSONL file; a torn last line, as a kill leaves it, is left out."""
    if not path.exists():
        return []
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except ValueError:
            break
    return lines


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """`{"a": {"b": 1}}` -> `{"a/b": 1.0}`; what is not a number is left out."""
    flat: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{name}/")
        elif isinstance(value, int | float):
            flat[f"{prefix}{name}"] = float(value)
    return flat
