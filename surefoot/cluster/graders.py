"""Graders for the loop that are many: batches of rollouts are spread over grading actors."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.cluster.crew import Crew
from surefoot.cluster.ray_calls import POLL_SECONDS, is_loss, result, the_ray
from surefoot.cluster.watchdog import Watchdog
from surefoot.rewards.verdicts import ungradable
from surefoot.types import Rollout, Task, Verdict

ATTEMPTS = 3
"""Workers that may be lost over a rollout before it is taken for the cause."""
BATCHES = 2
"""That a worker has at a time: one that it grades and one that is there when it has done so."""


@dataclass(eq=False, slots=True)
class _Job:
    rollout: Rollout
    task: Task | None
    losses: int = 0


@dataclass(eq=False, slots=True)
class _Batch:
    worker: str
    jobs: list[_Job]


class ClusterGraders:
    """Implements `protocols.Graders`. One call of `grade` at a time.

    Args:
        crew: Of `GradingWorker`s.
        threads: Rollouts that one worker grades at the same time.
        wanted: How many workers there should be now; asked before every call.
    """

    def __init__(self, crew: Crew, *, watchdog: Watchdog, threads: int, wanted: Callable[[], int]) -> None:
        self.crew, self.watchdog, self.threads, self.wanted = crew, watchdog, threads, wanted
        self.waiting: deque[_Job] = deque()
        self.flying: dict[Any, _Batch] = {}

    def open(self, seconds: float) -> None:
        """Start the first workers. Raises ResourceError if none can be had."""
        self.crew.resize(self.wanted())
        self.crew.members.update(self.crew.wait_for_first(seconds, self.watchdog.check))

    def close(self) -> None:
        """End all workers with their sandboxes."""
        self.crew.close()

    def grade(self, rollouts: Iterable[Rollout], tasks: Mapping[str, Task]) -> Iterator[tuple[Rollout, Verdict]]:
        """Each rollout with its verdict, as soon as it has one, so in no fixed order.

        What a lost worker had is graded again elsewhere, rollout by rollout; one over which three workers were lost is
        ungradable.

        Raises ResourceError when too many workers were lost, or grading is stuck.
        """
        self.crew.resize(self.wanted())
        self.waiting.clear()
        self.flying.clear()  # of a call that was given up; its verdicts come to nobody
        try:
            for rollout in rollouts:
                self.waiting.append(_Job(rollout, tasks.get(rollout.task_id)))
                yield from self._finished(0.0)
                while len(self.waiting) > self._room:
                    yield from self._finished(POLL_SECONDS)
            while self.waiting or self.flying:
                yield from self._finished(POLL_SECONDS)
        finally:
            self.watchdog.stage("")

    @property
    def _room(self) -> int:
        """Most rollouts that wait here; beyond it no more are taken from the engines."""
        return 128 * max(1, len(self.crew.members))

    def _finished(self, seconds: float) -> Iterator[tuple[Rollout, Verdict]]:
        if seconds:
            self.watchdog.stage("grading")
        self.crew.members.update(self.crew.arrivals(0.0 if self.crew.members else seconds))
        self._hand_out()
        ready, _ = the_ray().wait(list(self.flying), timeout=seconds) if self.flying else ([], [])
        self.watchdog.check()
        for reference in ready:
            batch = self.flying.pop(reference)
            try:
                verdicts = result(reference)
            except Exception as failed:
                if not is_loss(failed):
                    raise
                yield from self._lost(batch, failed)
            else:
                self.watchdog.progress()
                for job, verdict in zip(batch.jobs, verdicts, strict=True):
                    yield job.rollout, verdict

    def _hand_out(self) -> None:
        load = dict.fromkeys(self.crew.members, 0)
        for batch in self.flying.values():
            if batch.worker in load:
                load[batch.worker] += 1
        while self.waiting and load and min(load.values()) < BATCHES:
            name = min(load, key=lambda worker: load[worker])
            jobs = self._next_jobs()
            call = self.crew.members[name].grade.remote([(job.rollout, job.task) for job in jobs])
            self.flying[call] = _Batch(name, jobs)
            load[name] += 1

    def _next_jobs(self) -> list[_Job]:
        """As many as a worker grades at once; a suspect goes alone, so that the guilty one is found."""
        jobs = [self.waiting.popleft()]
        while self.waiting and len(jobs) < self.threads and not jobs[0].losses and not self.waiting[0].losses:
            jobs.append(self.waiting.popleft())
        return jobs

    def _lost(self, batch: _Batch, failed: BaseException) -> Iterator[tuple[Rollout, Verdict]]:
        if batch.worker in self.crew.members:  # else its other batch has told so before
            self.crew.lose(batch.worker, failed, f"grading; {len(batch.jobs)} rollouts are graded again")
        for job in reversed(batch.jobs):
            job.losses += 1
            if job.losses >= ATTEMPTS:
                yield job.rollout, ungradable(f"{job.losses} grading workers were lost over it")
            else:
                self.waiting.appendleft(job)
