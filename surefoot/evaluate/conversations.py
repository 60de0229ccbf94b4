"""Holding scripted conversations with a model: its replies become the history, and every reply is checked.

All conversations advance together, a turn at a time, so that the engine has a full batch. Each reply is on the disk
before the next turn is asked for: a killed evaluation goes on in the middle of its conversations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.errors import DataError
from surefoot.evaluate.evaluator import Progress
from surefoot.evaluate.log import SampleLog, header_of, key_of
from surefoot.evaluate.records import Conversation, Sample
from surefoot.evaluate.regrade import printable
from surefoot.evaluate.scripts import Script
from surefoot.protocols import ChecksPrompts, Engine
from surefoot.rewards.constraints import describe, keeps
from surefoot.types import Draw, Message, Rollout, Sampling, Task, stable_seed

LOG_FILE = "conversations.jsonl"
DOMAIN = "conversations"


@dataclass
class _Talk:
    """One conversation that is being held."""

    script: Script
    sample: int
    messages: tuple[Message, ...] = ()
    replies: tuple[Sample, ...] = ()

    def ask(self) -> Task:
        """The next turn as a task whose prompt is the whole conversation so far."""
        turn = len(self.replies)
        question: Message = {"role": "user", "content": self.script.questions[turn]}
        self.messages = (*self.messages, question)
        return Task(f"{self.script.id}#{self.sample}/turn-{turn}", DOMAIN, self.messages)

    def hear(self, reply: Sample) -> None:
        self.replies = (*self.replies, reply)
        self.messages = (*self.messages, {"role": "assistant", "content": reply.text})

    def fits(self, most: int) -> bool:
        """Whether the next prompt surely has room; letters are counted double, since tokens are not known yet."""
        last = self.replies[-1]
        return last.context + last.tokens + len(self.script.questions[len(self.replies)]) // 2 + 16 <= most


def converse(
    scripts: Sequence[Script],
    engine: Engine,
    *,
    samples: int,
    sampling: Sampling,
    seed: int,
    max_new_tokens: int,
    max_context: int,
    model: str = "",
    directory: Path | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[Conversation, ...]:
    """Hold every script `samples` times and check each reply against its rules.

    Args:
        max_context: Tokens of a prompt beyond which a conversation ends early (and is censored in the statistics).
        directory: Where `conversations.jsonl` grows; replies already there are not sampled again.

    Raises RunError where the directory holds conversations of another model or way to sample, DataError where not even
    the first turn fits.
    """
    talks = [_Talk(script, sample) for script in scripts for sample in range(samples)]
    total, done, reused, tokens, began = sum(len(t.script.questions) for t in talks), 0, 0, 0, time.monotonic()
    header = header_of(model, engine, sampling, seed)
    with SampleLog(directory / LOG_FILE if directory else None, header) as log:
        for turn in range(max((len(script.questions) for script in scripts), default=0)):
            live = [talk for talk in talks if turn < len(talk.script.questions) and len(talk.replies) == turn]
            asked = {
                task.id: (talk, task) for talk in live if not turn or talk.fits(max_context) for task in [talk.ask()]
            }
            draws = []
            refused = {name: why for name, (_, task) in asked.items() if (why := _refusal(engine, task))}
            for name, (talk, task) in asked.items():
                if name in refused:  # the conversation ends here, as one that `fits` ends
                    continue
                key = key_of(task, max_new_tokens, _seed(seed, talk, turn))
                if key in log.samples:
                    talk.hear(log.samples[key])
                    done, reused = done + 1, reused + 1
                else:
                    draws.append(Draw(task, 1, max_new_tokens, (key[-1],)))
            for rollout in engine.rollout(draws, sampling) if draws else ():
                if rollout.stop == "aborted":
                    refused[rollout.task_id] = rollout.text
                    continue
                talk, task = asked[rollout.task_id]
                reply = _checked(rollout, talk, _seed(seed, talk, turn))
                log.append(key_of(task, max_new_tokens, reply.seed), reply)
                talk.hear(reply)
                done, tokens = done + 1, tokens + reply.tokens
                if progress:
                    progress(Progress(done, total, reused, tokens, time.monotonic() - began))
            if refused and not turn:
                name, why = next(iter(refused.items()))
                raise DataError(f"a conversation cannot even begin: {why}", where=name)
    return tuple(_conversation(talk) for talk in talks)


def _refusal(engine: Engine, task: Task) -> str:
    return engine.refusal(task) if isinstance(engine, ChecksPrompts) else ""


def broken(text: str, constraints: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The rules that a reply does not keep."""
    return [constraint for constraint in constraints if not keeps(text, constraint)]


def _seed(seed: int, talk: _Talk, turn: int) -> int:
    return stable_seed("conversation", seed, talk.script.id, talk.sample, turn)


def _checked(rollout: Rollout, talk: _Talk, seed: int) -> Sample:
    text = printable(rollout.text)
    failed = broken(text, talk.script.constraints)
    kept = 1 - len(failed) / len(talk.script.constraints)
    return Sample(
        sample=talk.sample,
        seed=seed,
        grade="wrong" if failed else "right",
        score=kept,
        text=text,
        answer=None,
        tokens=rollout.sampled,
        stop=rollout.stop,
        reason="; ".join(describe(constraint) for constraint in failed),
        mode="constraint dropped" if failed else "right",
        context=rollout.prompt_length,
    )


def _conversation(talk: _Talk) -> Conversation:
    constraints = tuple(dict(constraint) for constraint in talk.script.constraints)
    kept = tuple(tuple(keeps(reply.text, c) for c in constraints) for reply in talk.replies)
    return Conversation(talk.script.id, talk.sample, constraints, talk.script.questions, talk.replies, kept)
