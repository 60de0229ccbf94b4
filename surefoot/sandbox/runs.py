"""One run, seen from the supervisor: start it in a zygote, watch it, end it, and say how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from surefoot.protocols import Limits
from surefoot.sandbox import sampler
from surefoot.sandbox.endings import Ending, Stop, outcome_of
from surefoot.sandbox.inside import wire
from surefoot.sandbox.streams import Capture, empty_file, memory_file
from surefoot.sandbox.zygotes import Zygote, pid_of
from surefoot.types import Execution

SAMPLE_SECONDS = 0.02
"""How often a run's use is read. A run that ends sooner is never sampled: that is most of them."""
NEAR = (0.8, 1.25)
"""A run may go on until the second times its CPU limit; one that ends between the two is run again, alone."""
HARD_WALL = 10.0
"""The wall limit is held against wall time without the time spent waiting for a core. A machine that gives none within
this many times the limit is at fault, not the program."""
MAX_REPLY = 16 << 20
_STUCK_SECONDS = 20.0
"""A zygote that cannot say within this time that a killed run is gone is given up."""


class Run:
    """A run in progress: call `drive` to see it through, then `execution`. Not thread-safe.

    Args:
        kind: What the child is to do; see `inside.child`.
        payload: What only the child reads (code, tests, files).
        pass_fds: Descriptors that the child gets as 3, 4, ...; the caller keeps its own.
        reply: Whether the child also gets a pipe, after `pass_fds`, whose content is kept in `reply`.
    """

    def __init__(
        self,
        zygote: Zygote,
        kind: str,
        payload: Mapping[str, Any],
        limits: Limits,
        *,
        stdin: str = "",
        pass_fds: Sequence[int] = (),
        reply: bool = False,
    ) -> None:
        self.zygote, self.limits = zygote, limits
        self.stop: Stop | None = None
        self.ending: Ending | None = None
        self.fault = ""
        """Why the sandbox itself failed, if it did."""
        self._started = self._sampled = time.monotonic()
        self._forked = 0.0
        self._wall = self._sampled_cpu = self._peak_mb = 0.0
        self._pidfd, self._pid, self._killed_at = -1, -1, 0.0
        self.out, self.err = Capture(limits.output_kb * 1024), Capture(limits.output_kb * 1024)
        self.reply = Capture(MAX_REPLY) if reply else None
        self._captures = [self.out, self.err, *([self.reply] if self.reply else [])]
        self._begin(kind, payload, stdin, pass_fds)

    def _begin(self, kind: str, payload: Mapping[str, Any], stdin: str, pass_fds: Sequence[int]) -> None:
        files = [memory_file(json.dumps(payload).encode())]
        files.append(memory_file(stdin.encode("utf-8", "surrogateescape")) if stdin else empty_file())
        theirs = [*files, self.out.theirs, self.err.theirs, *pass_fds]
        if self.reply:
            theirs.append(self.reply.theirs)
        job = {
            "kind": kind,
            "cpu_seconds": self.limits.cpu_seconds,
            "space_mb": int(self.limits.memory_mb + self.zygote.space_mb) + 1,
            "disk_mb": self.limits.disk_mb,
            "processes": self.limits.processes,
        }
        try:
            self.zygote.send(job, theirs)
        except OSError as error:
            self._break(f"the zygote is gone ({error})")
        finally:
            for fd in [*files, *(capture.theirs for capture in self._captures)]:
                os.close(fd)

    @property
    def over(self) -> bool:
        return self.ending is not None or bool(self.fault)

    def kill(self, stop: Stop) -> None:
        """End the run and all that it started. The first reason counts."""
        self.stop = self.stop or stop
        self._killed_at = self._killed_at or time.monotonic()
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def register(self, poll: select.poll) -> dict[int, Capture | None]:
        """Everything that can have news: the zygote (None) and the open pipes."""
        sources: dict[int, Capture | None] = {self.zygote.control.fileno(): None}
        sources.update({capture.fd: capture for capture in self._captures if capture.open})
        for fd in sources:
            poll.register(fd, select.POLLIN)
        return sources

    def on_news(self, source: Capture | None) -> None:
        if source is not None:
            source.read()
            if source.truncated:
                self.kill(Stop("output_limit", f"more than {source.cap // 1024} KiB of output"))
            return
        try:
            message, fds = wire.receive(self.zygote.control)
        except (OSError, EOFError, ValueError):
            self._break("the zygote died")
            return
        if fds:
            self._pidfd, self._pid, self._forked = fds[0], pid_of(fds[0]), time.monotonic()
            if self.stop:
                self.kill(self.stop)
        elif "failed" in message:
            self._break(message["failed"])
        else:
            self._wall = time.monotonic() - self._started
            self.ending = Ending(message["status"], message["cpu"], message["rss_kib"] / 1024)

    def _break(self, fault: str) -> None:
        self.fault = fault
        self._wall = time.monotonic() - self._started

    # ----------------------------------------------------------------------------------------------------- watching

    def pause(self) -> float:
        """Seconds until the next look: short of the CPU limit, so that it is not overrun by much."""
        left = self.limits.cpu_seconds * NEAR[1] - self._sampled_cpu
        return min(SAMPLE_SECONDS, max(left / 2, 0.002)) if self._sampled_cpu else SAMPLE_SECONDS

    def held_up(self, now: float) -> float:
        """Seconds for which it was ready to run but had no core; those before its fork are the zygote's."""
        return (self._forked or now) - self._started + (sampler.delay(self._pid) if self._pid > 0 else 0.0)

    def watch(self, others: Sequence[Run] = ()) -> None:
        """Read the run's use, and end the run if it is past a limit. `others` are those that it may be waiting for."""
        now = time.monotonic()
        if now - self._sampled < self.pause() * 0.9 or self.over:
            return
        self._sampled = now
        if self._killed_at:
            if now - self._killed_at > _STUCK_SECONDS:
                self._break("a killed run did not end")
            return
        self._judge_wall(now, others)
        if (use := sampler.usage(self._pid, self.zygote.rss_mb) if self._pid > 0 else None) is not None:
            self._judge(use)

    def _judge_wall(self, now: float, others: Sequence[Run]) -> None:
        """Time counts as idle while neither it nor what it may be waiting for is waiting for a core."""
        wall, limit = now - self._started, self.limits.wall_seconds
        if wall <= limit:
            return
        if wall - sum(run.held_up(now) for run in (self, *others)) > limit:
            self.kill(Stop("timeout", f"{wall:.1f} s of wall time, the limit is {limit:g} s"))
        elif wall > limit * HARD_WALL:
            self.kill(Stop("sandbox_error", f"hardly any processor time to be had within {wall:.1f} s"))

    def _judge(self, use: sampler.Usage) -> None:
        limits = self.limits
        self._sampled_cpu = max(self._sampled_cpu, use.cpu_seconds)
        if use.memory_mb > limits.memory_mb + self.zygote.rss_mb:
            exact = sampler.proportional_mb(self._pid) if use.processes > 1 else None
            memory = use.memory_mb if exact is None else exact
            if memory > limits.memory_mb + self.zygote.rss_mb:
                self._peak_mb = max(self._peak_mb, memory)
                self.kill(Stop("out_of_memory", f"{memory:.0f} MiB in use, the limit is {limits.memory_mb} MiB"))
        else:
            self._peak_mb = max(self._peak_mb, use.memory_mb)
        if use.cpu_seconds > limits.cpu_seconds * NEAR[1]:
            self.kill(Stop("timeout", f"{use.cpu_seconds:.2f} s of CPU time, the limit is {limits.cpu_seconds:g} s"))
        if (base := self.zygote.base) is not None and sampler.folder_mb(base) > limits.disk_mb:
            self.kill(Stop("output_limit", f"more than {limits.disk_mb} MiB in the work directory"))

    # --------------------------------------------------------------------------------------------------- afterwards

    def close(self) -> None:
        """Let go of every descriptor; what is still in the pipes is read first."""
        for capture in self._captures:
            capture.drain()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    def execution(self) -> Execution:
        """What was seen of the run. Call after `drive`."""
        ending = self.ending
        common: dict[str, Any] = {
            "stdout": self.out.text(),
            "stderr": self.err.text(),
            "stdout_truncated": self.out.truncated,
            "stderr_truncated": self.err.truncated,
            "wall_seconds": self._wall,
            "level": self.zygote.level,
            "image": f"{self.zygote.layout.name}@{self.zygote.layout.digest}",
        }
        if ending is None:
            return Execution("sandbox_error", peak_memory_mb=self._peak_mb, detail=self.fault, **common)
        peak = max(self._peak_mb, ending.rss_mb)
        outcome, detail = outcome_of(ending, self.stop, self.limits, peak, common["stderr"])
        if outcome in ("ok", "failed") and (self.out.truncated or self.err.truncated):
            outcome, detail = "output_limit", f"more than {self.limits.output_kb} KiB of output"
        flooded = outcome == "output_limit"  # how far it got before it was killed is chance: always told alike
        return Execution(
            outcome,
            exit_code=None if flooded else ending.exit_code,
            signal=signal.SIGKILL if flooded else ending.signal,
            cpu_seconds=max(ending.cpu_seconds, self._sampled_cpu if self.stop else 0.0),
            peak_memory_mb=peak,
            detail=detail,
            **common,
        )


def drive(runs: Sequence[Run], cancel: threading.Event | None = None) -> None:
    """See `runs` through to their ends, and close them. When one breaks or is cancelled, all are ended."""
    try:
        while waiting := [run for run in runs if not run.over]:
            poll = select.poll()
            sources = {fd: (run, source) for run in waiting for fd, source in run.register(poll).items()}
            for fd, _ in poll.poll(min(run.pause() for run in waiting) * 1000):
                run, source = sources[fd]
                run.on_news(source)
            for run in waiting:
                run.watch([other for other in waiting if other is not run])
            if cancel is not None and cancel.is_set():
                for run in waiting:
                    run.kill(Stop("sandbox_error", "cancelled"))
    finally:
        for run in runs:
            run.close()
