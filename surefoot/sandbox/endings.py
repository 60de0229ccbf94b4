"""How a run ended: from what the kernel and the monitor say to one of the outcomes."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

from surefoot.protocols import Limits
from surefoot.types import Outcome


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the supervisor ended a run."""

    outcome: Outcome
    detail: str


@dataclass(frozen=True, slots=True)
class Ending:
    """What the zygote reports of a run that ended."""

    status: int
    """As wait(2) has it."""
    cpu_seconds: float
    """Of the process tree, to the microsecond."""
    rss_mb: float
    """Peak of its largest process."""

    @property
    def exit_code(self) -> int | None:
        return os.WEXITSTATUS(self.status) if os.WIFEXITED(self.status) else None

    @property
    def signal(self) -> int | None:
        return os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else None


def outcome_of(ending: Ending, stop: Stop | None, limits: Limits, peak_mb: float, stderr: str) -> tuple[Outcome, str]:
    """The outcome and its reason. CPU time comes first: it alone does not depend on how busy the machine is."""
    if ending.cpu_seconds > limits.cpu_seconds:
        return "timeout", f"{ending.cpu_seconds:.2f} s of CPU time, the limit is {limits.cpu_seconds:g} s"
    if stop is not None:
        return stop.outcome, stop.detail
    if ending.signal is not None:
        return _signalled(ending.signal, limits, peak_mb)
    if ending.exit_code:
        if _ran_out_of_memory(stderr):
            return "out_of_memory", f"an allocation beyond the limit of {limits.memory_mb} MiB failed"
        return "failed", f"exit code {ending.exit_code}"
    return "ok", ""


def _signalled(number: int, limits: Limits, peak_mb: float) -> tuple[Outcome, str]:
    name = signal.Signals(number).name if number in {s.value for s in signal.Signals} else str(number)
    if number == signal.SIGXCPU:
        return "timeout", f"the kernel's CPU limit ({name})"
    if number in (signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV) and peak_mb >= 0.95 * limits.memory_mb:
        return "out_of_memory", f"ended by {name} at {peak_mb:.0f} of {limits.memory_mb} MiB"
    return "crashed", f"ended by {name}"


def _ran_out_of_memory(stderr: str) -> bool:
    """Whether the last line that the program wrote to stderr is Python's or C++'s word for it."""
    lines = stderr.rstrip().splitlines()
    return bool(lines) and (lines[-1].startswith("MemoryError") or "std::bad_alloc" in lines[-1])
