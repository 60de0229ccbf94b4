"""What the engine was asked for: draws turned into groups with their prompt's tokens, and into samples with a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.errors import DataError
from surefoot.models.chat import prompt_tokens
from surefoot.rollout.cache import Prefix
from surefoot.types import Draw, Task, stable_seed


@dataclass(eq=False, slots=True)
class PromptGroup:
    """One draw: its prompt, and the keys and values of it while samples need them."""

    task: Task
    prompt: tuple[int, ...]
    limit: int
    """Most tokens that a sample may write."""
    unfinished: int
    """Samples still to be finished; the prefix is dropped with the last one."""
    prefix: Prefix | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Request:
    """One sample of a group, still to be written."""

    group: PromptGroup
    index: int
    seed: int


def too_long(prompt: int, max_prompt_tokens: int, max_positions: int) -> str:
    """Why a prompt of so many tokens cannot be sampled from; empty if it can."""
    if prompt > max_prompt_tokens:
        return f"the prompt has {prompt} tokens, rollout.max_prompt_tokens is {max_prompt_tokens}"
    if prompt >= max_positions:
        return f"a prompt of {prompt} tokens leaves no room for an answer: the model ends at {max_positions}"
    return ""


def requests(draws: Sequence[Draw], tokenizer: Any, *, max_prompt_tokens: int, max_positions: int) -> list[Request]:
    """All samples of all draws, in order.

    Raises DataError for a prompt that is empty or too long, or seeds that do not fit the number of samples.
    """
    asked: list[Request] = []
    for draw in draws:
        prompt, task = draw.prompt or prompt_tokens(tokenizer, draw.task.messages), draw.task
        where = f"task {task.id!r} of domain {task.domain!r}"
        if not prompt:
            raise DataError("the prompt is empty", where=where)
        if long := too_long(len(prompt), max_prompt_tokens, max_positions):
            raise DataError(
                long,
                where=where,
                fix="shorten the task, give the domain fewer shots, or raise rollout.max_prompt_tokens",
            )
        limit = min(draw.max_new_tokens, max_positions - len(prompt))
        if limit < 1:
            raise DataError("there is nothing to be written", where=where, fix="let max_new_tokens be at least 1")
        if draw.seeds and len(draw.seeds) != draw.samples:
            raise DataError(f"{draw.samples} samples but {len(draw.seeds)} seeds", where=where)
        seeds = draw.seeds or tuple(stable_seed(task.id, i) for i in range(draw.samples))
        group = PromptGroup(task, prompt, limit, draw.samples)
        asked += [Request(group, i, seed) for i, seed in enumerate(seeds)]
    return asked
