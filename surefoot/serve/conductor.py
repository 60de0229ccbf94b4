"""One thread that owns the engine: requests that wait and sample alike go through it together.

The engine samples a batch to its end; what arrives meanwhile makes the next batch.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from surefoot.errors import SurefootError
from surefoot.models import LoadedModel
from surefoot.rollout import LocalEngine
from surefoot.serve.scoring import Scored, score
from surefoot.types import Draw, Rollout, Sampling, Task


@dataclass(eq=False)
class Job:
    """One prompt to go on from, or to score.

    `tell` is called in the conductor's thread: with ("text", sample, tokens so far), ("done", sample, Rollout),
    ("scored", 0, list[Scored]) or ("failed", 0, exception).
    """

    prompt: tuple[int, ...]
    tell: Callable[[str, int, Any], None]
    samples: int = 1
    limit: int = 16
    sampling: Sampling = field(default_factory=Sampling)
    seeds: tuple[int, ...] = ()
    top: int | None = None
    """Not None: score `prompt`, giving so many of the likeliest tokens at each place."""


class Conductor:
    """Runs jobs in their order; those that sample with the same parameters at the same time."""

    def __init__(self, model: LoadedModel, engine: LocalEngine) -> None:
        self.model, self.engine = model, engine
        self._jobs: queue.Queue[Job | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, name="surefoot-serve", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Have a job done; returns at once."""
        self._jobs.put(job)

    def close(self) -> None:
        """End after what is being sampled."""
        self._jobs.put(None)
        self._thread.join(timeout=60)

    def _work(self) -> None:
        held: list[Job] = []
        while True:
            if not held:
                first = self._jobs.get()
                if first is None:
                    return
                held = [first]
            held += self._waiting()
            alike = [job for job in held if _kind(job) == _kind(held[0])]
            held = [job for job in held if job not in alike]
            try:
                self._score(alike) if alike[0].top is not None else self._sample(alike)
            except Exception as error:  # one bad prompt must not end the server; each client is told
                self._fail(alike, error)

    def _waiting(self) -> list[Job]:
        found: list[Job] = []
        while True:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return found
            if job is None:
                self._jobs.put(None)
                return found
            found.append(job)

    def _sample(self, jobs: Sequence[Job]) -> None:
        by_id = {str(number): job for number, job in enumerate(jobs)}
        draws = [
            Draw(Task(id_, "serve", ()), job.samples, job.limit, job.seeds, job.prompt) for id_, job in by_id.items()
        ]

        def watch(id_: str, sample: int, tokens: list[int]) -> None:
            by_id[id_].tell("text", sample, tokens)

        rollout: Rollout
        for rollout in self.engine.rollout(draws, jobs[0].sampling, watch):
            by_id[rollout.task_id].tell("done", rollout.sample, rollout)

    def _score(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            scored: list[Scored] = score(self.engine.decoder, job.prompt, job.top or 0)
            job.tell("scored", 0, scored)

    def _fail(self, jobs: Sequence[Job], error: Exception) -> None:
        """Try each by itself where several failed together, so that only the one at fault is refused."""
        if len(jobs) == 1 or not isinstance(error, SurefootError):
            for job in jobs:
                job.tell("failed", 0, error)
            return
        for job in jobs:
            try:
                self._score([job]) if job.top is not None else self._sample([job])
            except Exception as own:
                job.tell("failed", 0, own)


def _kind(job: Job) -> object:
    return "score" if job.top is not None else job.sampling
