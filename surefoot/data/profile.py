"""How hard the tasks of a file are for a model: pass rates from k samples, and what they cost.

The file that this makes warms a scheduler up (`profile` of a `[[domains]]` entry).
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from surefoot.protocols import ChecksPrompts, Domain, Engine, Graders
from surefoot.types import Draw, Sampling, Task, stable_seed

PRIOR = 0.5
"""Pseudo-counts on either side (Jeffreys)."""
GROUPS = (4, 8, 16)
"""Group sizes for which the share of mixed groups is told."""


@dataclass
class Prompt:
    """What is known of one task."""

    hash: str
    """`Task.prompt_hash`: what the model sees."""
    id: str
    passes: float = 0.0
    """Sum of the scores; a count where scores are 0 or 1."""
    valid: int = 0
    """Samples that could be graded."""
    asked: int = 0
    tokens: int = 0
    """Written in all samples."""
    seconds: float = 0.0
    """Of grading, in all samples."""

    def interval(self, level: float = 0.9) -> tuple[float, float, float]:
        """Mean and bounds of the pass rate's posterior Beta(0.5 + passes, 0.5 + fails)."""
        from scipy.stats import beta

        a, b = PRIOR + self.passes, PRIOR + self.valid - self.passes
        low, high = beta.ppf([0.5 - level / 2, 0.5 + level / 2], a, b)
        return a / (a + b), float(low), float(high)


@dataclass
class Profile:
    """The tasks in the order in which they were drawn, which is random."""

    file: str
    sha256: str
    model: str
    temperature: float
    samples: int
    shots: int
    max_new_tokens: int
    prompts: list[Prompt] = field(default_factory=list)
    refused: int = 0
    """Tasks whose prompts the engine cannot take."""
    seconds: float = 0.0
    """Wall time of all sampling and grading."""

    def summary(self) -> dict[str, Any]:
        """Pass rate with a 95% interval (clustered by task), shares of tasks, cost."""
        tried = [prompt for prompt in self.prompts if prompt.valid]
        rates = [prompt.passes / prompt.valid for prompt in tried]
        mean = fmean(rates) if rates else 0.0
        error = 1.96 * stdev(rates) / math.sqrt(len(rates)) if len(rates) > 1 else 0.0
        asked = sum(prompt.asked for prompt in self.prompts)
        return {
            "tasks": len(tried),
            "pass_rate": mean,
            "interval": [max(0.0, mean - error), min(1.0, mean + error)],
            "never_right": sum(rate == 0 for rate in rates),
            "always_right": sum(rate == 1 for rate in rates),
            "mixed_groups": {str(size): fmean(_mixed(p, size) for p in tried) if tried else 0.0 for size in GROUPS},
            "ungradable": asked - sum(prompt.valid for prompt in self.prompts),
            "tokens_a_sample": sum(prompt.tokens for prompt in self.prompts) / max(1, asked),
            "seconds_a_sample": self.seconds / max(1, asked),
        }

    def save(self, path: Path) -> None:
        """Write the profile as JSON."""
        told = [{**asdict(p), **dict(zip(("mean", "low", "high"), p.interval(), strict=True))} for p in self.prompts]
        whole = {**asdict(self), "summary": self.summary(), "prompts": told}
        path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def profile(
    into: Profile,
    domain: Domain,
    tasks: Sequence[Task],
    engine: Engine,
    graders: Graders,
    *,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Profile:
    """Sample every task `into.samples` times, grade the samples, and add what comes of it to `into`.

    Args:
        progress: Told how many samples are graded, of how many.
    """
    fit = [task for task in tasks if not (isinstance(engine, ChecksPrompts) and engine.refusal(task))]
    into.refused += len(tasks) - len(fit)
    by_id = {task.id: task for task in fit}
    found = {task.id: Prompt(task.prompt_hash, str(task.metadata.get("id", task.id))) for task in fit}
    began, total = time.monotonic(), len(fit) * into.samples
    rollouts = engine.rollout(list(_draws(into, domain, fit, seed)), Sampling(temperature=into.temperature))
    for done, (rollout, verdict) in enumerate(graders.grade(rollouts, by_id), 1):
        prompt = found[rollout.task_id]
        prompt.asked += 1
        prompt.tokens += rollout.sampled
        prompt.seconds += verdict.seconds
        if verdict.grade != "ungradable":
            prompt.valid += 1
            prompt.passes += verdict.grade == "right"
        if progress:
            progress(done, total)
    into.seconds += time.monotonic() - began
    into.prompts += found.values()
    return into


def drawn(domain: Domain, most: int, seed: int = 0) -> list[Task]:
    """At most `most` training tasks of a file, in random order, always the same."""
    size = domain.source.size("train") or 0
    order = sorted(range(size), key=lambda index: stable_seed("profile", seed, index))
    return [domain.source.task("train", index) for index in order[:most]]


def _draws(into: Profile, domain: Domain, tasks: Sequence[Task], seed: int) -> Iterator[Draw]:
    for task in tasks:
        seeds = tuple(stable_seed("profile", seed, task.id, sample) for sample in range(into.samples))
        yield Draw(task, into.samples, domain.max_new_tokens, seeds)


def _mixed(prompt: Prompt, size: int) -> float:
    """Expected share of groups of `size` samples with both outcomes, under the posterior."""
    a, b = PRIOR + prompt.passes, PRIOR + prompt.valid - prompt.passes
    right = math.prod((a + i) / (a + b + i) for i in range(size))
    wrong = math.prod((b + i) / (a + b + i) for i in range(size))
    return 1 - right - wrong
