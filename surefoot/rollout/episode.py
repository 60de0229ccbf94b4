"""One episode of many turns while it is played: its tokens as they were sampled, and what may still be added."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surefoot.errors import RunError
from surefoot.models.templates import ChatTemplate
from surefoot.protocols import Environment, SessionLimits
from surefoot.types import Draw, Message, Rollout, StopReason, Task, Turn, stable_seed


@dataclass(eq=False)
class Episode:
    """Grows by turns: `hear` takes the policy's, `answer` the environment's."""

    draw: Draw
    sample: int
    seed: int
    limits: SessionLimits
    room: int
    """Most tokens of the whole episode."""
    prompt_room: int
    """Most tokens before a turn."""
    environment: Environment | None = None
    tokens: list[int] = field(default_factory=list)
    mask: list[bool] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    said: int = 0
    """Turns of the policy so far."""
    text: str = ""
    stop: StopReason = "stop"
    closed: bool = False
    """Whether the policy ended its last turn itself."""
    over: bool = False
    fault: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)
    version: int = 0

    @property
    def task(self) -> Task:
        return self.draw.task

    @property
    def turn_seed(self) -> int:
        """Of the next turn: the sample's own for the first one, as for a domain of single answers."""
        return self.seed if not self.said else stable_seed(self.seed, "turn", self.said)

    @property
    def turn_limit(self) -> int:
        """Most tokens of the next turn."""
        return min(self.draw.max_new_tokens, self.room - len(self.tokens))

    def open(self, prompt: Sequence[int]) -> None:
        """Take the tokens up to the first turn."""
        self._add("prompt", prompt)

    def hear(self, rollout: Rollout) -> Message:
        """Take the policy's turn, token by token as it was sampled; returns it as a message for the environment.

        Raises RunError if the engine did not go on from the episode's tokens.
        """
        before = len(self.tokens)
        if rollout.tokens[:before] != tuple(self.tokens):
            raise RunError("the engine changed the tokens that it was to go on from", where=f"task {self.task.id!r}")
        written = rollout.tokens[before:]
        self._add("assistant", written, rollout.logprobs[before:])
        self.said += 1
        self.text, self.version = rollout.text, rollout.policy_version
        self.closed = rollout.stop == "stop"
        message: Message = {"role": "assistant", "content": rollout.text}
        self.messages.append(message)
        if not self.closed and self.limits.on_cut == "end":
            self._end("length")
        return message

    def answer(self, said: Any, template: ChatTemplate) -> None:
        """Take what the environment said (None: it is done), or end the episode where there is no room for it."""
        if said is None:
            return self._end("stop")
        messages = checked_messages(said)
        if isinstance(messages, str):
            return self.fail(messages)
        if self.said >= self.limits.turns:
            return self._end("length")
        clean: list[Message] = [
            {
                "role": m["role"],
                "content": template.harmless(template.shortened(m["content"], self.limits.observation_tokens)),
            }
            for m in messages
        ]
        ends = self.closed and self.tokens[-1] in template.ends
        increment = template.increment(clean, closed=ends)
        if len(self.tokens) + len(increment) > min(self.prompt_room, self.room - 1):
            return self._end("length")
        self.messages += clean
        return self._add(messages[-1]["role"], increment)

    def fail(self, why: str) -> None:
        """The environment failed: the episode is over and cannot be graded."""
        self.fault, self.over = why, True

    def leave(self, state: Any) -> None:
        """Take what the environment leaves to the grader; what is no plain data is a fault of it."""
        try:
            if not isinstance(state, Mapping):
                raise TypeError(f"a {type(state).__name__}")
            json.dumps(state)
        except (TypeError, ValueError, RecursionError) as error:
            self.fail(f"what the environment leaves to the grader is no plain data: {error}")
            return
        self.state = state

    def rollout(self) -> Rollout:
        """The episode as one sequence."""
        return Rollout(
            task_id=self.task.id,
            domain=self.task.domain,
            sample=self.sample,
            tokens=tuple(self.tokens),
            mask=tuple(self.mask),
            logprobs=tuple(self.logprobs),
            text=self.text,
            stop=self.stop,
            policy_version=self.version,
            seed=self.seed,
            turns=tuple(self.turns),
            messages=tuple(self.messages),
            state=self.state,
            fault=self.fault,
        )

    def _end(self, stop: StopReason) -> None:
        self.stop, self.over = stop, True

    def _add(self, role: str, tokens: Sequence[int], logprobs: Sequence[float] | None = None) -> None:
        start = len(self.tokens)
        self.tokens += tokens
        self.mask += [logprobs is not None] * len(tokens)
        self.logprobs += logprobs if logprobs is not None else [0.0] * len(tokens)
        self.turns.append(Turn(role, start, start + len(tokens)))


def checked_messages(said: Any, *, examples: bool = False) -> tuple[Message, ...] | str:
    """Messages as an environment must give them, or what is wrong with them. Only an opening may have `examples`."""
    if isinstance(said, (str, bytes, Mapping)) or not isinstance(said, Sequence) or not said:
        return f"the environment gave {type(said).__name__!r}, not a list of messages or None"
    for m in said:
        if not isinstance(m, Mapping) or not all(isinstance(m.get(key), str) for key in ("role", "content")):
            return "the environment gave something that is no message of the form {'role': ..., 'content': ...}"
        if m["role"] == "assistant" and not examples:
            return "the environment spoke as the assistant, which is the policy's role"
    return tuple(Message(role=m["role"], content=m["content"]) for m in said)
