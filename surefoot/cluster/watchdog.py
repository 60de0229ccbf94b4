"""Names the stage that is stuck, keeps the stacks of all processes, and ends the run instead of letting it hang."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from surefoot.cluster.crew import Tell
from surefoot.cluster.workers import all_stacks
from surefoot.errors import ResourceError

GRACE_SECONDS = 20.0
"""The driver's own thread may be inside a library and never look: then the process is ended from here."""
EXIT_CODE = 70


class Watchdog:
    """Told of stages and of progress; asked, wherever the driver waits, whether to give up.

    Args:
        folder: Where `stuck-STAGE.txt` is written.
        seconds: A stage may go on for so long without progress.
        tell: Told once, from the watchdog's own thread.
        stacks: Of the actors, by name.
        end: Ends the process where its main thread does not; takes the exit code.
    """

    def __init__(
        self,
        folder: Path,
        seconds: float,
        tell: Tell,
        stacks: Callable[[], Mapping[str, str]],
        end: Callable[[int], object] = os._exit,
    ) -> None:
        self._folder, self._seconds, self._tell, self._stacks, self._end = folder, seconds, tell, stacks, end
        self._stage, self._since, self._stuck = "", time.monotonic(), ""
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="surefoot-watchdog", daemon=True)
        self._thread.start()

    def stage(self, name: str) -> None:
        """A stage begins; an empty name: nothing that could hang. Going on with the same stage is no progress."""
        if name != self._stage:
            self._stage, self._since = name, time.monotonic()

    def progress(self) -> None:
        """Something was achieved."""
        self._since = time.monotonic()

    def check(self) -> None:
        """Raise ResourceError if the run is stuck."""
        if self._stuck:
            self._closed.set()
            raise ResourceError(
                f"{self._stuck} is stuck: no progress for {self._seconds:g} s",
                where=str(self._folder / f"stuck-{self._stuck}.txt"),
                fix="the file has the stacks of all processes; what was checkpointed is safe: continue with --resume, "
                "with a larger cluster.stuck_seconds if the stage only was slow",
            )

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(1.0)

    def _watch(self) -> None:
        while not self._closed.wait(min(1.0, self._seconds / 4)):
            stage, silent = self._stage, time.monotonic() - self._since
            if stage and silent > self._seconds:
                self._bite(stage)
                return

    def _bite(self, stage: str) -> None:
        path = self._folder / f"stuck-{stage}.txt"
        parts = {"driver": all_stacks()}
        path.write_text(_page(parts))  # first what is at hand: actors may not answer
        path.write_text(_page(parts | dict(self._stacks())))
        self._tell("stuck", f"{stage} is stuck; stacks are in {path.name}", stage=stage, file=path.name)
        self._stuck = stage
        if not self._closed.wait(GRACE_SECONDS):
            print(f"error: {stage} is stuck and cannot be stopped; stacks are in {path}", file=sys.stderr, flush=True)
            self._end(EXIT_CODE)


def _page(parts: Mapping[str, str]) -> str:
    return "\n".join(f"==== {name}\n{stacks}" for name, stacks in parts.items())
