"""What a person sees while a run goes on: one live view in a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from surefoot.store.trace import critical_path


class Progress(Protocol):
    """Told of everything worth seeing; never asked anything."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...

    def say(self, text: str) -> None:
        """A sentence that stays on the screen."""
        ...

    def stage(self, name: str, done: int = 0, total: int = 0) -> None:
        """What is being done right now, and how much of it is done."""
        ...

    def step(self, step: int, steps: int, metrics: Mapping[str, Any]) -> None:
        """A training step has ended with these metrics."""
        ...


def open_progress(console: Console | None = None) -> Progress:
    """The live view if the console is a terminal, plain lines if not."""
    console = console or Console()
    return LiveProgress(console) if console.is_terminal else PlainProgress(console)


QUIET_SECONDS = 10.0
"""A stage that is still going on after this long since the last line gets a line of its own."""


class PlainProgress:
    """One line a step, and one now and then during long stages: fit for a log file."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._eta = Eta()
        self._told = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        return None

    def say(self, text: str) -> None:
        self._print(text)

    def stage(self, name: str, done: int = 0, total: int = 0) -> None:
        if time.monotonic() - self._told > QUIET_SECONDS:
            self._print(f"{name} {done}/{total}" if total else name)

    def step(self, step: int, steps: int, metrics: Mapping[str, Any]) -> None:
        domains = "  ".join(f"{name} {part['pass_rate']:.2f}" for name, part in metrics["domains"].items())
        remaining = self._eta.after(step, steps)
        self._print(f"step {step}/{steps}  {headline(metrics)}  eta {remaining}  | {domains}")

    def _print(self, text: str) -> None:
        self._told = time.monotonic()
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


class LiveProgress:
    """One view that is redrawn in place: step, time left, speed, and a bar for each domain."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._eta = Eta()
        self._stage = Text("")
        self._head = Text("starting")
        self._bar: RenderableType = Text("")
        self._domains: dict[str, Smoothed] = {}
        self._live = Live(self, console=console, refresh_per_second=8, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stage = Text("")
        self._live.stop()

    def say(self, text: str) -> None:
        self._live.console.print(text, highlight=False, markup=False)

    def stage(self, name: str, done: int = 0, total: int = 0) -> None:
        self._stage = Text(f"{name} {done}/{total}" if total else name, style="dim")

    def step(self, step: int, steps: int, metrics: Mapping[str, Any]) -> None:
        self._head = Text(f"step {step}/{steps}  {headline(metrics)}  eta {self._eta.after(step, steps)}", style="bold")
        self._bar = ProgressBar(total=steps, completed=step)
        for name, part in metrics["domains"].items():
            self._domains.setdefault(name, Smoothed()).add(float(part["pass_rate"]), int(part["rollouts"]))

    def __rich__(self) -> RenderableType:
        table = Table.grid(padding=(0, 2))
        for name, rate in sorted(self._domains.items()):
            bar = ProgressBar(total=1.0, completed=rate.value, width=30)
            table.add_row(name, bar, f"{rate.value:.2f}", Text(f"{rate.count} samples", style="dim"))
        return Group(self._head, self._bar, table, self._stage)


class Smoothed:
    """Exponential mean of a rate, for the eye only."""

    def __init__(self) -> None:
        self.value, self.count = 0.0, 0

    def add(self, rate: float, samples: int) -> None:
        keep = 0.7 if self.count else 0.0
        self.value, self.count = keep * self.value + (1 - keep) * rate, self.count + samples


class Eta:
    """Time left, from the pace of this process (a resumed run does not count what was done before)."""

    def __init__(self) -> None:
        self._began, self._first = time.monotonic(), -1

    def after(self, step: int, steps: int) -> str:
        if self._first < 0:
            self._began, self._first = time.monotonic(), step
            return "?"
        pace = (time.monotonic() - self._began) / max(1, step - self._first)
        return clock(pace * (steps - step))


def clock(seconds: float) -> str:
    """`1:02:03` or `2:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def headline(metrics: Mapping[str, Any]) -> str:
    """The numbers that a person watches; of the stages, those that the step waited for."""
    speed, gap = metrics["timing"], metrics.get("learner", {}).get("gap/mean_abs", float("nan"))
    longest = [f"{name} {taken:.1f}" for name, taken in critical_path(speed).items() if taken >= 0.05]
    parts = [
        f"reward {metrics['reward']:.3f}",
        f"pass {metrics['pass_rate']:.2f}",
        f"{speed['tokens_per_second']:.0f} tok/s",
        f"{speed['gradings_per_second']:.0f} graded/s",
        f"gap {gap:.4f}",
        f"{speed['step']:.1f} s/step ({' + '.join(longest)})",
    ]
    if metrics["ungradable"]:
        parts.append(f"UNGRADABLE {metrics['ungradable']}")
    return "  ".join(parts)
