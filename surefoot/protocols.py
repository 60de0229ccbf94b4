"""The small protocols through which the packages meet; `types.py` holds the data that passes between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from surefoot.types import (
    Check,
    Draw,
    Execution,
    Group,
    IsolationLevel,
    Message,
    Rollout,
    Sampling,
    Split,
    Task,
    UpdateReport,
    Verdict,
)

# --------------------------------------------------------------------------------------------------------- sandbox


@dataclass(frozen=True, slots=True)
class Limits:
    """What one sandboxed run may use. The verdict is taken on CPU time; wall time is the backstop."""

    cpu_seconds: float = 2.0
    wall_seconds: float = 20.0
    memory_mb: int = 512
    """Of the whole process tree."""
    processes: int = 16
    output_kb: int = 64
    """For stdout and stderr each; what exceeds it is cut and the outcome is `output_limit`."""
    disk_mb: int = 16
    """Size of the private work directory."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program for the sandbox: Python source (`code`) or a command (`argv`), exactly one of the two."""

    code: str | None = None
    argv: tuple[str, ...] | None = None
    stdin: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    """Relative path -> content, laid into the work directory before the run."""
    image: str = "python"
    limits: Limits | None = None
    """None for the sandbox's own."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a function of a solution, with plain data as arguments."""

    function: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallResult:
    """What a call gave back across the jail's wall: plain data, or the name of what it raised."""

    value: Any = None
    error: str | None = None
    """Exception type and message, `ExceptionType: message`; None if the call returned."""
    args_after: tuple[Any, ...] | None = None
    """The arguments as the call left them, where it changed any in place."""


@runtime_checkable
class Sandbox(Protocol):
    """Runs untrusted programs. Thread-safe; blocks while all workers are busy (that is the back-pressure)."""

    @property
    def level(self) -> IsolationLevel: ...

    def run(self, program: Program) -> Execution:
        """Run one program to its end."""
        ...

    def call(
        self, code: str, calls: Sequence[Call], *, image: str = "python", limits: Limits | None = None
    ) -> tuple[tuple[CallResult, ...], Execution]:
        """Load a solution and call its functions. The process that holds it never sees expected values.

        Returns as many results as calls that ended (fewer if the run was killed), and the execution.
        """
        ...

    def judge(
        self, code: str, tests: str, *, entry: str | None = None, image: str = "python", limits: Limits | None = None
    ) -> tuple[tuple[Check, ...], Execution]:
        """Run test code against a solution, each in a jail of its own, the tests calling it through proxies.

        Args:
            code: The solution.
            tests: Statements, each top-level `assert` one check; or a module that defines `check(candidate)`.
            entry: Name of the function that is passed to `check`; for assert-style tests it may be None.
        """
        ...

    def close(self) -> None: ...


# --------------------------------------------------------------------------------------------------------- domains


@runtime_checkable
class TaskSource(Protocol):
    """Where a domain's tasks come from: a pure function of (split, index), so that any draw can be repeated."""

    def task(self, split: Split, index: int) -> Task:
        """The task at `index`; raises IndexError past the end of a finite source."""
        ...

    def size(self, split: Split) -> int | None:
        """How many tasks there are; None if they are made without end."""
        ...


@runtime_checkable
class Grader(Protocol):
    """Turns a rollout into a verdict. Never raises for what a model wrote; raises GraderError for its own faults."""

    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict: ...


@runtime_checkable
class Environment(Protocol):
    """The other side of one episode of many turns: users, tools, games. One object an episode.

    Calls come from a thread of their own, one after the other. One that raises, hangs, or gives back something else
    makes the rollout ungradable and harms no other.
    """

    def reset(self, task: Task) -> Sequence[Message]:
        """Begin: the conversation up to the policy's first turn, most often the task's messages."""
        ...

    def step(self, message: Message) -> Sequence[Message] | None:
        """What is said to the policy's turn; None at the end of the episode."""
        ...

    def end(self) -> Mapping[str, Any]:
        """The episode is over, by `step` or by a budget: plain data for the grader, as `rollout.state`."""
        ...


EnvironmentMaker = Callable[[Sandbox], Environment]
"""Makes the environment of one episode; what it runs for the policy, it runs in the sandbox."""


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """How long an episode may be."""

    turns: int = 8
    """Most turns of the policy."""
    tokens: int | None = None
    """Most tokens, prompt and the environment's messages included; None for as many as the engine takes."""
    observation_tokens: int = 512
    """A longer message of the environment loses its middle."""
    on_cut: Literal["go_on", "end"] = "go_on"
    """What follows a turn that its token limit cut off."""


@dataclass(frozen=True, slots=True)
class Domain:
    """A named source of tasks, its grader and its limits."""

    name: str
    source: TaskSource
    grader: Grader
    max_new_tokens: int = 64
    weight: float = 1.0
    """Share of samples relative to the other domains, before the scheduler adapts it."""
    chance: float = 0.0
    """Pass rate of an answer chosen blindly in the right format: what a lift must be measured against."""
    description: str = ""
    levels: tuple[TaskSource, ...] = ()
    """The same domain by level of difficulty, the easiest first; empty for a domain without levels."""
    grader_seconds: float | None = None
    """Time of one grading, as the domain's card says; None without a card."""
    environment: EnvironmentMaker | None = None
    """Makes what answers the policy's turns; None for a domain whose answers are single ones."""
    session: SessionLimits = SessionLimits()
    """Of episodes, where there is an environment; `max_new_tokens` is the longest turn then."""

    @property
    def longest_sample(self) -> int:
        """Most tokens that the policy may write in a rollout."""
        return self.max_new_tokens * (self.session.turns if self.environment else 1)


# ------------------------------------------------------------------------------------------------ engine and learner


@runtime_checkable
class Engine(Protocol):
    """Samples from the policy."""

    @property
    def version(self) -> int:
        """Version of the weights that it samples from."""
        ...

    def rollout(self, draws: Sequence[Draw], sampling: Sampling) -> Iterator[Rollout]:
        """All samples of all draws, each given back as soon as it is finished (so in no fixed order)."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class ChecksPrompts(Protocol):
    """What an engine may have besides: it tells beforehand which prompts it cannot take."""

    def refusal(self, task: Task) -> str:
        """Why nothing can be sampled for this task (its prompt is too long); empty if it can."""
        ...


@runtime_checkable
class TrainingEngine(Engine, Protocol):
    """An engine over weights that change between rollouts."""

    def refresh(self, version: int) -> None:
        """The weights were changed in place and have this version now."""
        ...

    def rest(self) -> None:
        """Give up what is derived from the weights until the next `rollout`: memory for the learner."""
        ...


@runtime_checkable
class Graders(Protocol):
    """Grades rollouts while others are still being sampled; gives each back with its verdict, in any order."""

    def grade(self, rollouts: Iterable[Rollout], tasks: Mapping[str, Task]) -> Iterator[tuple[Rollout, Verdict]]: ...


@runtime_checkable
class Learner(Protocol):
    """Owns the policy's weights and its optimiser."""

    @property
    def version(self) -> int: ...

    def update(self, groups: Sequence[Group]) -> UpdateReport: ...


@runtime_checkable
class Scheduler(Protocol):
    """Owns which tasks are drawn, how many samples each gets, and what was learnt from where."""

    def draw(self, step: int, available: Mapping[str, float] | None = None) -> list[Draw]:
        """The draws of a step; `available` multiplies shares of domains (0: shut off), 1 where it says nothing."""
        ...

    @property
    def failures(self) -> Mapping[str, str]:
        """Domains that had no task to give in the last draw because their source failed, and why."""
        ...

    @property
    def opened(self) -> Mapping[str, int]:
        """Domains that the last draw took to a harder level than any before, and the level, counted from 0."""
        ...

    @property
    def refused(self) -> Mapping[str, Mapping[str, str]]:
        """Tasks that the last draw left out because their prompt is too long: why, by domain and task id."""
        ...

    def exclude(self, name: str, prompt_hash: str) -> None:
        """Never draw this prompt of a domain again."""
        ...

    def skip(self, cursors: Mapping[str, Sequence[int]]) -> None:
        """Go on behind tasks that were used before the first step: a cursor for each level of each domain."""
        ...

    def observe(self, groups: Sequence[Group], update: UpdateReport) -> None: ...

    def scale(self, name: str, factor: float) -> None:
        """Multiply a domain's share of the prompts, from now on."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything that its next draw depends on, as JSON-ready data."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None: ...


GraderFunction = Callable[[Task, Rollout], "Verdict | float | bool"]
"""What a user may write as a grader: a verdict, a score in [0, 1], or whether the answer is right."""

Rollouts = Iterable[Rollout]
