"""A child process that is asked in JSON lines over pipes: timeouts, garbage and death told apart, and never hung on."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

TOLD = 1500
"""Characters of what the child printed last that an error shows."""


class ChildFailed(RuntimeError):  # noqa: N818 - what happened
    """The child died, fell silent, or said something that is no answer. It is dead when this is raised."""


class ChildRefused(RuntimeError):  # noqa: N818 - what happened
    """The child lives, and answered that it could not do what it was asked."""


class Child:
    """One child. Requests are done in order; `ask` gives the lines of one of them."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        """Start `command` in a session of its own. Raises OSError if there is no such program."""
        self.log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - read until the child is closed
        self.process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env=dict(env),
            text=True,
            start_new_session=True,
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._calls = 0
        threading.Thread(target=self._read, daemon=True, name="surefoot-child").start()

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self.process.poll() is None and self.process.stdin is not None and not self.process.stdin.closed

    def ask(self, do: str, *, seconds: float, **said: Any) -> Iterator[dict[str, Any]]:
        """The lines of a request's answer; the last one has the key `end`.

        Args:
            do: What is asked.
            seconds: Longest silence between two lines.
            said: The rest of the request, JSON-ready.

        Raises:
            ChildRefused: it answered with an error.
            ChildFailed: it died, was silent for too long, or wrote a line that is no answer.
        """
        self._calls += 1
        call = self._calls
        try:
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps({"call": call, "do": do, **said}) + "\n")
            self.process.stdin.flush()
        except (OSError, ValueError) as broken:
            raise self._failed(f"could not be asked to {do}") from broken
        return self._answers(call, do, seconds)

    def _answers(self, call: int, do: str, seconds: float) -> Iterator[dict[str, Any]]:
        deadline = time.monotonic() + seconds
        while True:
            answer = self._next(do, seconds, deadline)
            if answer["call"] != call:  # what is left of a request that nobody reads any more
                deadline = time.monotonic() + seconds
                continue
            if "error" in answer:
                raise ChildRefused(f"{do}: {answer['error']}")
            yield answer
            if "end" in answer:
                return
            deadline = time.monotonic() + seconds

    def _next(self, do: str, seconds: float, deadline: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=max(0.01, deadline - time.monotonic()))
        except queue.Empty:
            raise self._failed(f"was silent for {seconds:g} s when asked to {do}") from None
        if line is None:
            raise self._failed(f"ended when asked to {do}")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or not isinstance(answer.get("call"), int):
            raise self._failed(f"wrote a line that is no answer: {line[:200]!r}")
        return answer

    def _failed(self, what: str) -> ChildFailed:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=0.2)
        code = self.process.returncode
        self.kill()
        how = "" if code is None else f" (exit code {code})"
        said = self.said()
        return ChildFailed(f"the child {what}{how}" + (f"; it printed last:\n{said}" if said else ""))

    def said(self) -> str:
        """The end of what it printed."""
        size = os.fstat(self.log.fileno()).st_size
        return os.pread(self.log.fileno(), TOLD, max(0, size - TOLD)).decode(errors="replace").strip()

    def kill(self) -> None:
        """End it and all that it started, at once."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()

    def close(self) -> None:
        """End it and forget what it printed."""
        self.kill()
        self.log.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with contextlib.suppress(ValueError, OSError), self.process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put(None)
