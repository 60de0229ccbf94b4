"""Grades rollouts while others are still generated."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from surefoot.errors import SurefootError
from surefoot.protocols import Domain, Sandbox
from surefoot.rewards.verdicts import sound, ungradable
from surefoot.types import Rollout, Task, Verdict, stable_seed

Graded = tuple[Rollout, Verdict]
FIRST_PAUSE = 0.05
"""Seconds, on average, before a grader that raised is asked again."""


@dataclass
class Counts:
    """What became of the rollouts of one domain."""

    right: int = 0
    wrong: int = 0
    ungradable: int = 0
    overdue: int = 0
    """Of the ungradable: those whose grader did not answer in time."""
    seconds: float = 0.0
    """Time that graders took, summed over threads."""
    findings: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    """Why rollouts were ungradable; the first line of each reason."""


@dataclass(eq=False)
class _Job:
    rollout: Rollout
    task: Task | None
    thread: threading.Thread | None = None
    """The one that grades it, once one does."""
    started: float = 0.0
    given_up: bool = False
    """Nobody waits for its verdict any more; the thread that still grades it ends afterwards."""
    overdue: bool = False


class GradingPool:
    """Threads that grade; what a model wrote is run and parsed in jailed processes, so threads are enough.

    A grader that raises or is overdue makes its rollout ungradable, with the reason, and harms no other.

    Args:
        domains: Whose graders to use.
        sandbox: What the graders may use.
        workers: Rollouts graded at the same time.
        seconds: Longest that one rollout may take. An overdue thread cannot be killed; it is left behind and replaced,
            and while a domain has `workers` such threads, its rollouts are ungradable at once.
        waiting: Most rollouts that wait or are graded; beyond it `grade` takes no more from the engine.
        retries: How often a grader that raised is asked again, after a pause.
    """

    def __init__(
        self,
        domains: Iterable[Domain],
        sandbox: Sandbox,
        workers: int = 2,
        *,
        seconds: float = 120.0,
        waiting: int = 256,
        retries: int = 0,
    ) -> None:
        self._domains = {domain.name: domain for domain in domains}
        self._sandbox, self._workers, self._seconds, self._waiting = sandbox, max(1, workers), seconds, max(1, waiting)
        self._retries = retries
        self._todo: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[_Job, Verdict]] = queue.SimpleQueue()
        self._open: dict[int, _Job] = {}
        self._stuck: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self.counts: defaultdict[str, Counts] = defaultdict(Counts)
        """By domain, since the pool was opened."""

    def grade(self, rollouts: Iterable[Rollout], tasks: Mapping[str, Task]) -> Iterator[Graded]:
        """Each rollout with its verdict, as soon as it has one, so in no fixed order.

        `rollouts` is advanced in the caller's thread, between verdicts. One call at a time.
        """
        self._start()
        try:
            for rollout in rollouts:
                self._submit(rollout, tasks.get(rollout.task_id))
                yield from self._finished(wait=len(self._open) >= self._waiting)
            while self._open:
                yield from self._finished(wait=True)
        finally:
            self._forget()

    def grade_all(self, rollouts: Sequence[Rollout], tasks: Mapping[str, Task]) -> list[Verdict]:
        """The verdicts of `rollouts`, in their order."""
        places = {id(rollout): place for place, rollout in enumerate(rollouts)}
        verdicts: list[Verdict] = [ungradable("not graded")] * len(rollouts)
        for rollout, verdict in self.grade(rollouts, tasks):
            verdicts[places[id(rollout)]] = verdict
        return verdicts

    def close(self) -> None:
        """Stop the threads. Waits a moment for those that grade; safe to call twice, also after Ctrl-C."""
        self._closed = True
        self._forget()
        for _ in self._threads:
            self._todo.put(None)
        deadline = time.monotonic() + 1.0
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._threads.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------------------------- the caller's thread

    def _start(self) -> None:
        if self._closed:
            raise RuntimeError("the grading pool is closed")
        while len(self._threads) < self._workers:
            thread = threading.Thread(target=self._work, name="surefoot-grader", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _submit(self, rollout: Rollout, task: Task | None) -> None:
        job = _Job(rollout, task)
        self._open[id(job)] = job
        self._todo.put(job)

    def _finished(self, wait: bool) -> Iterator[Graded]:
        """Verdicts that are there; with `wait`, at least one unless nothing is open."""
        while self._open:
            try:
                job, verdict = self._done.get(timeout=0.05) if wait else self._done.get_nowait()
            except queue.Empty:
                late = self._overdue()
                yield from late
                if late or not wait:
                    return
                continue
            if self._open.pop(id(job), None) is not None:
                wait = False
                yield self._count(job, verdict)

    def _overdue(self) -> list[Graded]:
        limit = time.monotonic() - self._seconds
        graded: list[Graded] = []
        for job in list(self._open.values()):
            if job.thread is not None and job.started < limit:
                self._give_up(job, overdue=True)
                self.counts[job.rollout.domain].overdue += 1
                graded.append(self._count(job, ungradable(f"the grader did not answer within {self._seconds:g} s")))
        if graded:
            self._start()
        return graded

    def _forget(self) -> None:
        """Give up whatever is open: the caller will not hear of it."""
        for job in list(self._open.values()):
            self._give_up(job)

    def _give_up(self, job: _Job, overdue: bool = False) -> None:
        with self._lock:
            self._open.pop(id(job), None)
            if job.thread is not None and job.thread in self._threads:
                self._threads.remove(job.thread)
            job.given_up, job.overdue = True, overdue
            self._stuck[job.rollout.domain] += overdue

    def _count(self, job: _Job, verdict: Verdict) -> Graded:
        counts = self.counts[job.rollout.domain]
        setattr(counts, verdict.grade, getattr(counts, verdict.grade) + 1)
        counts.seconds += verdict.seconds
        counts.findings.update(finding.kind for finding in verdict.findings)
        if verdict.grade == "ungradable":
            counts.reasons[(verdict.reason.splitlines() or ["no reason given"])[0][:200]] += 1
        return job.rollout, verdict

    # ------------------------------------------------------------------------------------------ the worker threads

    def _work(self) -> None:
        while (job := self._todo.get()) is not None:
            with self._lock:
                if job.given_up:
                    continue
                job.thread, job.started = threading.current_thread(), time.monotonic()
                stuck = self._stuck[job.rollout.domain] >= self._workers
            verdict = ungradable("the domain's grader hangs") if stuck else self._judge(job)
            with self._lock:
                if job.given_up:
                    self._stuck[job.rollout.domain] -= job.overdue
                    return
                job.thread = None
            self._done.put((job, replace(verdict, seconds=time.monotonic() - job.started)))

    def _judge(self, job: _Job) -> Verdict:
        if job.rollout.fault:
            return ungradable(job.rollout.fault)
        domain = self._domains.get(job.rollout.domain)
        if domain is None or job.task is None:
            missing = "domain" if domain is None else "task"
            return ungradable(f"there is no {missing} for rollout {job.rollout.task_id!r} of {job.rollout.domain!r}")
        for attempt in range(self._retries + 1):
            if attempt:
                time.sleep(_pause(job.rollout, attempt))
                if job.given_up:
                    break
            try:
                verdict = domain.grader.grade(job.task, job.rollout, self._sandbox)
            except SurefootError as error:
                failure = str(error)
            except (Exception, SystemExit) as error:  # sys.exit in a grader would end this thread without a word
                failure = f"the grader raised {type(error).__name__}: {error}"
            else:
                return _believed(verdict)
        return ungradable(failure)


def _believed(verdict: Verdict) -> Verdict:
    """The verdict, or that it makes no sense: nothing that asking again would change."""
    try:
        return sound(verdict)
    except SurefootError as error:
        return ungradable(str(error))
    except Exception as error:
        return ungradable(f"the grader gave back something that is no verdict ({type(error).__name__}: {error})")


def _pause(rollout: Rollout, attempt: int) -> float:
    """Seconds before another attempt: twice as long each time, and spread by chance, so that not all come at once."""
    chance = stable_seed(rollout.task_id, rollout.sample, rollout.seed, attempt) / 2**63
    return float(FIRST_PAUSE * 2 ** (attempt - 1) * (0.5 + chance))
