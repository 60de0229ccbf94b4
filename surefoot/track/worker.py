"""A tracker in a thread of its own, so that a slow or dead server never holds up a run."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from surefoot.track.tracker import About, Tracker

Say = Callable[[str], None]
Call = Callable[[], None]
WAITING = 10_000
"""Calls that may wait for a tracker before it is left out."""
CLOSING_SECONDS = 30.0
"""How long the end of a run waits for a tracker."""


class Worker:
    """Hands on what the journal records; after the first failure it warns once and does nothing any more."""

    def __init__(self, name: str, tracker: Tracker, about: About, memory: Memory, say: Say, warn: Say) -> None:
        self.name, self.failed = name, False
        self._tracker, self._about, self._memory, self._say, self._warn = tracker, about, memory, say, warn
        self._step = 0
        self._calls: queue.Queue[Call | None] = queue.Queue(WAITING)
        self._thread = threading.Thread(target=self._work, name=f"tracker-{name}", daemon=True)
        self._thread.start()

    def forget_after(self, step: int) -> None:
        """The run was resumed after `step`."""
        self._step = step
        self._put(lambda: self._tracker.forget_after(step))

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers of a step."""
        self._step = step
        self._put(lambda: self._metrics(step, values))

    def event(self, kind: str, text: str) -> None:
        """Something happened."""
        step = self._step
        self._put(lambda: self._tracker.event(step, kind, text))

    def close(self) -> None:
        """Wait until all is handed on, but not for ever."""
        self._put(None)
        self._thread.join(CLOSING_SECONDS)
        if self._thread.is_alive() and not self.failed:
            self._fail(f"did not end within {CLOSING_SECONDS:.0f} s")

    def _metrics(self, step: int, values: Mapping[str, float]) -> None:
        if self._tracker.keeps_steps:
            if step <= self._memory.step:
                return  # told before the run was killed; on CPU the figures are the same bit for bit
            self._memory.keep(step)  # first: a kill right here leaves a step out rather than have it twice
        self._tracker.metrics(step, values)

    def _put(self, call: Call | None) -> None:
        if self.failed:
            return
        try:
            self._calls.put_nowait(call)
        except queue.Full:
            self._fail(f"is {WAITING} calls behind")

    def _work(self) -> None:
        try:
            self._say(f"{self.name}: {self._tracker.open(self._about)}")
            while (call := self._calls.get()) is not None and not self.failed:
                call()
            self._tracker.close()
        except (Exception, SystemExit) as error:  # whatever a library of others thinks of raising
            self._fail(f"failed: {type(error).__name__}: {' '.join(str(error).split())[:300]}")

    def _fail(self, what: str) -> None:
        if not self.failed:
            self.failed = True
            self._warn(f"tracker {self.name} {what}. The run goes on without it; metrics.jsonl has all the figures")


class Memory:
    """What must be known of a tracker after a crash: the last step that it was told of. A small file of the run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.step = int(json.loads(path.read_text(encoding="utf-8"))["step"])
        except (OSError, ValueError, KeyError, TypeError):
            self.step = 0

    def keep(self, step: int) -> None:
        """Write down that `step` was told; not to the disk's platter, which would take a while."""
        self.step = step
        scratch = self.path.with_suffix(".new")
        scratch.write_text(json.dumps({"step": step}), encoding="utf-8")
        scratch.replace(self.path)
