"""The pool: a few slots of warm zygotes, handed to whoever has a program to run."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from surefoot.errors import SandboxError
from surefoot.sandbox.images import Image, Layout, resolve
from surefoot.sandbox.zygotes import Zygote
from surefoot.types import Execution, IsolationLevel

R = TypeVar("R")
RUNS_PER_ZYGOTE = 10_000
"""A zygote is replaced after so many runs, whatever the kernel or an allocator may have leaked in it."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """What a pool has done since it was opened."""

    runs: int
    waiting: int
    """Callers that wait for a slot now."""
    busy: int
    restarts: int
    """Zygotes that were replaced because they died or a run in them broke."""
    outcomes: Mapping[str, int]
    seconds: float

    @property
    def runs_per_second(self) -> float:
        return self.runs / self.seconds if self.seconds else 0.0


@dataclass
class Slot:
    """One place to run a program: its zygotes by image and role, started when first needed. Used by one thread."""

    level: IsolationLevel
    layouts: Mapping[str, Layout]
    handler: str | None = None
    core: int | None = None
    """The core on which a solution and its tests talk to each other."""
    zygotes: dict[tuple[str, str], Zygote] = field(default_factory=dict)

    def zygote(self, image: str, role: str = "solution") -> Zygote:
        """A live zygote for `image`; solutions and tests never share one. Raises SandboxError."""
        key = (image, role)
        found = self.zygotes.get(key)
        if found is not None and (found.runs >= RUNS_PER_ZYGOTE or not found.alive):
            self.drop(key)
            found = None
        if found is None:
            layout = self.layouts.get(image)
            if layout is None:
                known = ", ".join(sorted(self.layouts))
                raise SandboxError(f"there is no sandbox image {image!r}", fix=f"known images: {known}")
            found = self.zygotes[key] = Zygote(layout, self.level, self.handler)
        return found

    def drop(self, key: tuple[str, str]) -> None:
        if (zygote := self.zygotes.pop(key, None)) is not None:
            zygote.close()

    def reset(self) -> None:
        for key in list(self.zygotes):
            self.drop(key)


class Pool:
    """`workers` slots; `use` blocks until one is free, which is the back-pressure. Thread-safe."""

    def __init__(
        self, level: IsolationLevel, workers: int, images: Mapping[str, Image], handler: str | None = None
    ) -> None:
        if workers < 1:
            raise SandboxError(f"a sandbox needs at least one worker, not {workers}", where="sandbox.workers")
        layouts = {name: resolve(image, name) for name, image in images.items()}
        self.level: IsolationLevel = level
        cores = sorted(os.sched_getaffinity(0))
        self._slots = [Slot(level, layouts, handler, cores[i % len(cores)]) for i in range(workers)]
        self._free = list(self._slots)
        self._changed = threading.Condition()
        self._alone = threading.Lock()
        self._closed = False
        self._waiting = self._runs = self._restarts = 0
        self._outcomes: Counter[str] = Counter()
        self._opened = time.monotonic()

    @contextlib.contextmanager
    def use(self) -> Iterator[Slot]:
        """A free slot, for as long as the `with` lasts. Raises SandboxError once the pool is closed."""
        slot = self._take(1)[0]
        try:
            yield slot
        finally:
            self._give([slot])

    @contextlib.contextmanager
    def use_alone(self) -> Iterator[Slot]:
        """A slot while nothing else of this pool runs."""
        slots = self._take(len(self._slots))
        try:
            yield slots[0]
        finally:
            self._give(slots)

    def warm(self, images: Iterable[str], roles: Iterable[str] = ("solution",)) -> None:
        """Start the zygotes of `images` in every slot now. Raises SandboxError if one cannot be started."""
        slots = self._take(len(self._slots))
        try:
            for slot in slots:
                for image in images:
                    for role in roles:
                        slot.zygote(image, role)
        finally:
            self._give(slots)

    def _take(self, count: int) -> list[Slot]:
        if count == 1:
            return self._collect(1)
        with self._alone:  # two callers that each hold some slots would wait for each other
            return self._collect(count)

    def _collect(self, count: int) -> list[Slot]:
        taken: list[Slot] = []
        with self._changed:
            self._waiting += 1
            try:
                while len(taken) < count:
                    self._changed.wait_for(lambda: self._free or self._closed)
                    if self._closed:
                        self._free += taken
                        self._changed.notify_all()
                        raise SandboxError("the sandbox is closed")
                    taken.append(self._free.pop())
            finally:
                self._waiting -= 1
        return taken

    def _give(self, slots: list[Slot]) -> None:
        with self._changed:
            self._free += slots
            self._changed.notify_all()

    def attempt(self, work: Callable[[Slot], tuple[R, Execution]]) -> tuple[R, Execution]:
        """Do `work` in a slot. A sandbox error is tried once more in fresh zygotes; it is never the program's fault."""
        with self.use() as slot:
            result, execution = self.do(work, slot)
            if execution.outcome == "sandbox_error" and execution.detail != "cancelled":
                with self._changed:
                    self._restarts += 1
                slot.reset()
                result, execution = self.do(work, slot)
                if execution.outcome == "sandbox_error":
                    slot.reset()
        self.count(execution)
        return result, execution

    @staticmethod
    def do(work: Callable[[Slot], tuple[R, Execution]], slot: Slot) -> tuple[R, Execution]:
        """`work` in a slot that the caller has."""
        try:
            return work(slot)
        except BaseException:
            slot.reset()  # a run may have been left in a zygote, whose answer the next run would take for its own
            raise

    def count(self, execution: Execution) -> None:
        with self._changed:
            self._runs += 1
            self._outcomes[execution.outcome] += 1

    def metrics(self) -> Metrics:
        with self._changed:
            busy = len(self._slots) - len(self._free)
            seconds = time.monotonic() - self._opened
            return Metrics(self._runs, self._waiting, busy, self._restarts, dict(self._outcomes), seconds)

    def close(self, timeout: float = 30.0) -> None:
        """Wait for the runs in progress, then end every zygote. Safe to call twice."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: len(self._free) == len(self._slots), timeout)
        for slot in self._slots:
            slot.reset()
