"""A run's steps as a trace that Chrome's `about:tracing` and ui.perfetto.dev open: what ran when, and what waited.

Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (complete events, microseconds).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

LANES = ("engine", "graders", "learner", "disk")


def chrome_trace(metrics: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """From the lines of `metrics.jsonl`; steps of runs from before there were times of day are laid end to end."""
    names = [
        {"name": "thread_name", "ph": "M", "pid": 1, "tid": lane, "args": {"name": name}}
        for lane, name in enumerate(LANES)
    ]
    events: list[dict[str, Any]] = []
    at = 0.0
    for line in metrics:
        timing = line["timing"]
        at = timing.get("began", at)
        events += [_event(line["step"], lane, name, at + start, long) for lane, name, start, long in spans(timing)]
        at += timing["step"]
    return {"traceEvents": names + events, "displayTimeUnit": "ms"}


def spans(timing: Mapping[str, float]) -> Iterator[tuple[str, str, float, float]]:
    """Lane, name, start and length in seconds from the step's begin.

    Grading runs beside sampling from the first finished sample on; only what it takes beyond the last sample is on the
    step's critical path.
    """
    both, learn = timing["generate_and_grade"], timing["learn"]
    sampled, first = timing.get("generate", both), timing.get("first_rollout", 0.0)
    yield "engine", "sample", 0.0, sampled
    yield "graders", "grade", first, both - first
    yield "learner", "learn", both, learn
    yield "disk", "record", both + learn, timing["record"]


def critical_path(timing: Mapping[str, float]) -> dict[str, float]:
    """Seconds that each stage adds to a step."""
    both = timing["generate_and_grade"]
    sampled = min(both, timing.get("generate", both))
    path = {"sample": sampled, "grade": both - sampled, "learn": timing["learn"], "record": timing["record"]}
    return {name: round(seconds, 6) for name, seconds in path.items()}


def _event(step: int, lane: str, name: str, start: float, seconds: float) -> dict[str, Any]:
    times = {"ts": round(start * 1e6), "dur": round(max(0.0, seconds) * 1e6)}
    return {"name": name, "ph": "X", "pid": 1, "tid": LANES.index(lane), **times, "args": {"step": step}}
