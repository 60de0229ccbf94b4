"""The data that flows through Surefoot: frozen dataclasses of plain values, serialisable as JSON.

One training step turns `Task` into `Rollout` (what the policy wrote), `Verdict` (what the checks say), `Reward`
(what it is worth) and `Group` (all of these for the samples of one task, the unit of advantage estimation).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter
from typing_extensions import TypedDict

T = TypeVar("T")

Split = Literal["train", "heldout"]
StopReason = Literal["stop", "length", "aborted"]
Outcome = Literal["ok", "failed", "crashed", "timeout", "out_of_memory", "output_limit", "sandbox_error"]
IsolationLevel = Literal["namespaces", "landlock", "rlimits"]
Grade = Literal["right", "wrong", "ungradable"]
Severity = Literal["info", "warning", "severe"]
Action = Literal["flag", "zero", "quarantine"]
NOT_FINITE = "is not finite"
"""How the reason of an update ends that was skipped because of NaN or infinity."""


class Message(TypedDict):
    """One chat message, as in the Hugging Face and OpenAI formats."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Task:
    """One problem.

    `messages` is all that the model sees. `checks` is what the grader needs (answers, hidden tests) and never
    reaches the model nor the process that runs the model's code.
    """

    id: str
    """Unique within a run and stable between runs, for example `gcd/train/17`."""
    domain: str
    messages: tuple[Message, ...]
    checks: Mapping[str, Any] = field(default_factory=dict)
    constraints: tuple[Mapping[str, Any], ...] = ()
    """Instructions that the answer must keep, besides being right: `{"kind": ..., **arguments}`."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Anything worth logging (difficulty, source, reference answer for demonstrations under `answer`)."""

    @property
    def prompt_hash(self) -> str:
        """Hash of what the model sees: equal for tasks that read the same, whatever their id."""
        seen = json.dumps([[m["role"], m["content"].strip()] for m in self.messages], ensure_ascii=False)
        return hashlib.sha256(seen.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Turn:
    """A stretch `[start, end)` of a rollout's tokens, written by one role."""

    role: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Rollout:
    """One sampled trajectory, token in, token out: its text is never re-tokenised for training."""

    task_id: str
    domain: str
    sample: int
    """Index within the group, from 0."""
    tokens: tuple[int, ...]
    """Prompt and everything after it, exactly as sampled. Length T."""
    mask: tuple[bool, ...]
    """True where the policy wrote the token. Length T."""
    logprobs: tuple[float, ...]
    """Natural log-probability of each token under the sampling distribution; 0.0 where `mask` is false. Length T."""
    text: str
    """What the policy wrote in its last turn, decoded, without special tokens."""
    stop: StopReason
    policy_version: int = 0
    seed: int = 0
    turns: tuple[Turn, ...] = ()
    messages: tuple[Message, ...] = ()
    """All that was said after the task's messages, in an episode of many turns; empty for a single answer."""
    state: Mapping[str, Any] = field(default_factory=dict)
    """What the environment of an episode leaves to the grader: plain data."""
    fault: str = ""
    """Why the rollout cannot be graded: its environment failed. Empty if nothing did."""

    @property
    def prompt_length(self) -> int:
        """Number of tokens before the first one that the policy wrote."""
        return next((i for i, written in enumerate(self.mask) if written), len(self.mask))

    @property
    def sampled(self) -> int:
        """Number of tokens that the policy wrote."""
        return sum(self.mask)


@dataclass(frozen=True, slots=True)
class Execution:
    """What the sandbox saw of one run. Every field is filled for every run, a killed one included."""

    outcome: Outcome
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    """None if the program was ended by a signal or never started."""
    signal: int | None = None
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    """User + system time of the whole process tree."""
    peak_memory_mb: float = 0.0
    """Peak resident memory of the whole process tree, MiB."""
    level: IsolationLevel = "namespaces"
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    detail: str = ""
    """Why the outcome is what it is, for a person: which limit, which kernel refusal."""
    image: str = ""
    """`name@digest` of the sandbox image: equal digests mean the same interpreter, packages and environment."""


@dataclass(frozen=True, slots=True)
class Check:
    """One test, constraint or comparison and how it ended."""

    name: str
    passed: bool
    evidence: str = ""
    hidden: bool = True
    """Whether the model could not see it in its prompt."""
    dimension: str = "correctness"
    turn: int = 0
    """Turn of the policy that it is about, from 1; 0 for the whole answer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A sign that a rollout games its reward, with the evidence a reviewer needs."""

    kind: str
    severity: Severity
    evidence: str = ""
    action: Action = "flag"
    span: tuple[int, int] | None = None
    """Place of the evidence in the rollout's text, characters `[start, end)`; None for the whole or none of it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the checks say of one rollout.

    `ungradable` means that the grader or the infrastructure failed: such a rollout is masked out of advantages and
    loss and counted; it is never a silent 0.
    """

    grade: Grade
    score: float = 0.0
    """Degree of correctness in [0, 1]; 1 for `right`. Partial credit only where the domain asks for it."""
    checks: tuple[Check, ...] = ()
    executions: tuple[Execution, ...] = ()
    findings: tuple[Finding, ...] = ()
    dimensions: Mapping[str, float] = field(default_factory=dict)
    """Measures besides correctness (format, efficiency, ...), each in [0, 1]."""
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Reward:
    """The scalar that the learner sees, and the named dimensions it came from."""

    value: float
    valid: bool = True
    """False for an ungradable or quarantined rollout: it takes no part in advantages or loss."""
    dimensions: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Group:
    """The rollouts of one task with their verdicts and rewards."""

    task: Task
    rollouts: tuple[Rollout, ...]
    verdicts: tuple[Verdict, ...] = ()
    rewards: tuple[Reward, ...] = ()

    @property
    def degenerate(self) -> bool:
        """Whether all valid rewards are equal, so that the group teaches nothing."""
        return len({r.value for r in self.rewards if r.valid}) <= 1


@dataclass(frozen=True, slots=True)
class Draw:
    """What the scheduler asks of the engine: `samples` rollouts of one task."""

    task: Task
    samples: int
    max_new_tokens: int
    seeds: tuple[int, ...] = ()
    """One per sample, derived from (run, step, task, sample)."""
    prompt: tuple[int, ...] = ()
    """Token ids to go on from, in place of those of the task's messages; empty for the messages."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample: the usual parameters, with their usual meaning."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    """0 for all."""
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What one learner update did. All values are plain floats, ready for a metrics line."""

    version: int
    """Policy version after the update."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    skipped: str = ""
    """Why no step was taken (no signal, non-finite gradient); empty if one was."""
    domains: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Entropy, log-prob gap and KL of each domain whose tokens were learnt from."""

    @property
    def diverged(self) -> bool:
        """Whether no step was taken because a loss or gradient was not finite."""
        return self.skipped.endswith(NOT_FINITE)


def stable_seed(*parts: object) -> int:
    """A 63-bit seed that depends on all `parts` and on nothing else (not on the hash seed or the platform)."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def dump(value: Any) -> dict[str, Any]:
    """A dataclass of this module as plain JSON-ready data."""
    return asdict(value)


def load(cls: type[T], data: Mapping[str, Any] | Sequence[Any]) -> T:
    """The inverse of `dump`. Raises pydantic.ValidationError where `data` does not fit `cls`."""
    key: Any = cls
    value: T = _adapter(key).validate_python(data)
    return value


@cache
def _adapter(cls: Any) -> TypeAdapter[Any]:
    return TypeAdapter(cls)
