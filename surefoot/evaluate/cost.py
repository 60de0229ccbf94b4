"""What an evaluation will cost, said before it begins: samples, tokens, and time if this model was measured before."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from surefoot.evaluate.conversations import LOG_FILE
from surefoot.evaluate.evaluator import SAMPLES_FILE, HeldOut, Progress, plan
from surefoot.evaluate.files import write_atomically
from surefoot.evaluate.suite import ConversationSection
from surefoot.protocols import Domain

PACE_FILE = "pace.json"


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast samples came, grading included, when this model was last evaluated with these parameters."""

    samples_per_second: float
    tokens_per_sample: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What is still to be drawn."""

    tasks: int
    samples: int
    recorded: int
    """Samples that are on the disk already, at most."""
    max_tokens: int
    pace: Pace | None

    def __str__(self) -> str:
        missing = max(0, self.samples - self.recorded)
        told = [f"{self.tasks} tasks, {self.samples} samples, at most {self.max_tokens:,} tokens"]
        if self.recorded:
            told.append(f"{min(self.recorded, self.samples)} samples are recorded already")
        if self.pace and missing:
            seconds = missing / self.pace.samples_per_second
            told.append(
                f"about {_span(seconds)} and {missing * self.pace.tokens_per_sample:,.0f} tokens at the last pace"
            )
        elif missing:
            told.append("time unknown until the first samples")
        return "; ".join(told)


def estimate_cost(
    domains: Sequence[Domain],
    *,
    tasks: int,
    samples: int,
    heldout: HeldOut,
    directory: Path | None,
    conversations: ConversationSection | None = None,
) -> Cost:
    """Count what an evaluation would draw, and look up what `directory` holds from before."""
    planned = plan(domains, tasks=tasks, samples=samples, heldout=heldout)
    talks = conversations
    replies = talks.scripts * talks.turns * talks.samples if talks else 0
    return Cost(
        tasks=planned.tasks + (talks.scripts if talks else 0),
        samples=planned.samples + replies,
        recorded=_recorded(directory, SAMPLES_FILE) + (_recorded(directory, LOG_FILE) if talks else 0),
        max_tokens=planned.max_tokens + (replies * talks.max_new_tokens if talks else 0),
        pace=_pace(directory),
    )


class Pacemaker:
    """Watches an evaluation and writes down its pace, for the estimate before the next one."""

    def __init__(self, directory: Path | None) -> None:
        self._file = directory / PACE_FILE if directory else None
        self._last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        self._last = progress

    def close(self) -> None:
        """Write the pace, unless too few samples were drawn to tell one."""
        last = self._last
        if self._file is None or last is None or last.done - last.reused < 16 or last.seconds <= 0:
            return
        fresh = last.done - last.reused
        pace = {"samples_per_second": fresh / last.seconds, "tokens_per_sample": last.tokens / fresh}
        write_atomically(self._file, json.dumps(pace) + "\n")


def remaining(progress: Progress) -> str:
    """`, about 2 min left`, once it can be told."""
    left = progress.remaining_seconds
    return f", about {_span(left)} left" if left else ""


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def _recorded(directory: Path | None, name: str) -> int:
    file = directory / name if directory else None
    return max(0, file.read_bytes().count(b"\n") - 1) if file and file.is_file() else 0


def _pace(directory: Path | None) -> Pace | None:
    file = directory / PACE_FILE if directory else None
    try:
        return Pace(**json.loads(file.read_text())) if file else None
    except (OSError, ValueError, TypeError):
        return None
