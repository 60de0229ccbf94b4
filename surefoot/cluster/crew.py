"""The actors of one kind: started, counted, lost, replaced, dismissed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from surefoot.cluster.ray_calls import POLL_SECONDS, is_loss, result, the_ray
from surefoot.errors import ResourceError


class Tell(Protocol):
    """Says something to the user and writes it into the run's events."""

    def __call__(self, kind: str, text: str, **details: Any) -> None: ...


@dataclass(slots=True)
class Budget:
    """Replacements that are left, for engines and graders together."""

    left: int


@dataclass(eq=False)
class Crew:
    """Members can be called; those that are joining are still being started."""

    kind: str
    """`engine` or `grader`."""
    worker: type
    arguments: tuple[Any, ...]
    resources: Mapping[str, float]
    """`num_cpus`, `num_gpus`."""
    budget: Budget
    tell: Tell
    members: dict[str, Any] = field(default_factory=dict)
    joining: dict[Any, tuple[str, Any]] = field(default_factory=dict)
    """By the reference of its first call: name and handle."""
    wanted: int = 0
    number: int = 0
    failure: str = ""
    """Why the last one that was to join did not."""

    def resize(self, wanted: int) -> None:
        """Start or dismiss actors, so that there are `wanted` in the end. Only while none of them is at work."""
        if self.wanted and wanted != self.wanted:
            text = f"{self.kind}s: {self.wanted} -> {wanted}"
            self.tell(f"{self.kind}s_resized", text, before=self.wanted, now=wanted)
        self.wanted = wanted
        while len(self.members) + len(self.joining) < wanted:
            self._start()
        while len(self.members) + len(self.joining) > wanted and self.joining:
            self._dismiss(self.joining.popitem()[1][1])
        while len(self.members) > wanted:
            self._dismiss(self.members.popitem()[1])

    def arrivals(self, seconds: float = 0.0) -> dict[str, Any]:
        """Those that have just become ready, waited for up to `seconds`. The caller makes them members."""
        if not self.joining:
            return {}
        finished, _ = the_ray().wait(list(self.joining), num_returns=1, timeout=seconds)
        arrived = {}
        for reference in finished:
            name, handle = self.joining.pop(reference)
            try:
                place = result(reference)
            except Exception as failed:
                self.failure = str(failed)
                self._replace(name, failed, "could not be started")
            else:
                arrived[name] = handle
                where = f"{name} is ready on {place['host']}"
                self.tell(f"{self.kind}_started", where, name=name, **place)
        return arrived

    def lose(self, name: str, failed: BaseException, doing: str) -> None:
        """A member is gone: another one is started. Raises ResourceError when too many were lost.

        An error that is not the loss of an actor is the member's own: it is ended.
        """
        handle = self.members.pop(name, None)
        if handle is not None and not is_loss(failed):
            self._dismiss(handle)
        self._replace(name, failed, f"was lost while {doing}")

    def wait_for_first(self, seconds: float, check: Callable[[], None]) -> dict[str, Any]:
        """All that were asked for, or those that are there when time is up. Raises ResourceError if there are none."""
        until, arrived = time.monotonic() + seconds, dict[str, Any]()
        while self.joining and time.monotonic() < until:
            arrived |= self.arrivals(POLL_SECONDS)
            check()
        if not arrived:
            has = {name: count for name, count in the_ray().cluster_resources().items() if name in ("CPU", "GPU")}
            raise ResourceError(
                f"no {self.kind} could be started within {seconds:g} s; one asks for {dict(self.resources)}, "
                f"the cluster has {has}. {self.failure}",
                where=f"cluster.{self.kind}s",
                fix="see `ray status`; lower the CPUs or GPUs of one, or add nodes",
            )
        return arrived

    def stacks(self) -> dict[str, str]:
        """What the members are doing, of those that answer within some seconds."""
        found = {}
        for name, handle in list(self.members.items()):
            try:
                call = handle.stacks.options(concurrency_group="control").remote()
                found[name] = str(the_ray().get(call, timeout=5))
            except Exception as failed:
                found[name] = f"{name} does not answer: {type(failed).__name__}"
        return found

    def close(self) -> None:
        """Dismiss everybody."""
        for handle in [*self.members.values(), *(handle for _, handle in self.joining.values())]:
            self._dismiss(handle)
        self.members.clear()
        self.joining.clear()

    def _start(self) -> None:
        self.number += 1
        name = f"{self.kind}-{self.number}"
        remote = the_ray().remote(concurrency_groups={"control": 1})(self.worker)
        options = {"max_restarts": 0, "scheduling_strategy": "SPREAD", **self.resources}
        handle = remote.options(**options).remote(*self.arguments)
        self.joining[handle.ready.remote()] = (name, handle)

    def _replace(self, name: str, failed: BaseException, what: str) -> None:
        why = (str(failed).strip().splitlines() or [""])[0][:300]
        self.tell(f"{self.kind}_lost", f"{name} {what} ({type(failed).__name__}: {why})", name=name, why=why)
        if self.budget.left <= 0:
            raise ResourceError(
                f"too many engines and graders were lost, the last was {name}: it {what} ({why})",
                where="cluster.replacements",
                fix="what was checkpointed is safe: find the cause, then continue with --resume",
            ) from failed
        self.budget.left -= 1
        if len(self.members) + len(self.joining) < self.wanted:
            self._start()

    def _dismiss(self, handle: Any) -> None:
        with contextlib.suppress(Exception):
            the_ray().kill(handle)
