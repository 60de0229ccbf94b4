"""Calling environments from threads of their own, so that one that hangs costs a deadline and not the run."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

WORKERS = 8


@dataclass(eq=False, slots=True)
class Call:
    """A call that was handed in: `wait` gives its end."""

    domain: str
    work: Callable[[], Any]
    over: threading.Event = field(default_factory=threading.Event)
    started: float = 0.0
    """0 while it waits for a thread."""
    value: Any = None
    fault: str = ""
    given_up: bool = False


class Stepper:
    """Daemon threads that run calls, each with a deadline in seconds.

    A thread cannot be killed: one whose call is overdue is left behind and replaced; while a domain has `workers` of
    these, its calls fail at once.
    """

    def __init__(self, seconds: float, workers: int = WORKERS) -> None:
        self.seconds, self.workers = seconds, workers
        self._todo: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._stuck: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._threads = 0

    def submit(self, domain: str, work: Callable[[], Any]) -> Call:
        """Have `work` called soon."""
        call = Call(domain, work)
        with self._lock:
            if self._stuck[domain] >= self.workers:
                call.fault = "the domain's environment hangs"
                call.over.set()
                return call
            new, self._threads = self._threads < self.workers, min(self.workers, self._threads + 1)
        if new:
            threading.Thread(target=self._work, name="surefoot-environment", daemon=True).start()
        self._todo.put(call)
        return call

    def wait(self, call: Call) -> Any:
        """What the call gave; its `fault` says why there is nothing, if it raised or was overdue."""
        while not call.over.wait(0.05 if call.started else 0.2):
            with self._lock:
                if call.started and not call.over.is_set() and time.monotonic() - call.started > self.seconds:
                    call.given_up, call.fault = True, f"the environment did not answer within {self.seconds:g} s"
                    self._stuck[call.domain] += 1
                    self._threads -= 1
                    return None
                if not call.started and self._stuck[call.domain] >= self.workers:
                    call.given_up, call.fault = True, "the domain's environment hangs"
                    return None
                new = self._threads < self.workers and not call.started
                self._threads += new
            if new:
                threading.Thread(target=self._work, name="surefoot-environment", daemon=True).start()
        return call.value

    def close(self) -> None:
        """Let the threads end once they are free."""
        with self._lock:
            count, self._threads = self._threads, 0
        for _ in range(count):
            self._todo.put(None)

    def _work(self) -> None:
        while (call := self._todo.get()) is not None:
            with self._lock:
                if call.given_up:
                    continue
                call.started = time.monotonic()
            value, fault = None, ""
            try:
                value = call.work()
            except (Exception, SystemExit) as error:  # sys.exit would end this thread without a word
                fault = f"the environment raised {type(error).__name__}: {error}"
            with self._lock:
                if call.given_up:
                    self._stuck[call.domain] -= 1
                    return
                call.value, call.fault = value, fault
                call.over.set()
