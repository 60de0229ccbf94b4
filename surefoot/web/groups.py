"""One group as a reader sees it: samples side by side, their tokens with log-probs and advantages, and the evidence."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from surefoot.errors import RunError, SurefootError
from surefoot.store.overview import store_of
from surefoot.types import Reward
from surefoot.web.index import file_of

SHADES = (0.9, 0.5, 0.2, 0.05, 0.01)
"""Probabilities that part the six shades of a token, from sure (0) to surprising (5)."""
TOKENS = 1500
"""Policy tokens a sample that are shown unless all are asked for."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token of a sample."""

    text: str
    written: bool
    """By the policy."""
    shade: int
    title: str


@dataclass(frozen=True, slots=True)
class Sample:
    """A rollout of the group: its row of the store, with the JSON columns read."""

    row: dict[str, Any]
    advantage: float | None
    tokens: list[Token]
    hidden: int
    """Tokens left out of `tokens`."""

    @property
    def lean(self) -> str:
        """For the colour of the advantage."""
        a = self.advantage
        return "none" if a is None or abs(a) < 1e-9 else ("up" if a > 0 else "down") + ("2" if abs(a) > 0.75 else "1")


@dataclass(frozen=True, slots=True)
class GroupView:
    """Everything on the page of a group."""

    step: int
    task_id: str
    domain: str
    messages: list[dict[str, str]]
    samples: list[Sample]


def read_group(run: Path, step: int, task_id: str, everything: bool = False) -> GroupView:
    """Read a group from the store. Raises RunError if there is none."""
    path = run / "rollouts" / file_of(step)
    try:
        rows = pq.read_table(path, filters=[("task_id", "=", task_id)]).to_pylist()
    except (OSError, ValueError) as broken:
        raise RunError(f"the rollouts of step {step} cannot be read", where=str(path)) from broken
    if not rows:
        raise RunError(f"step {step} has no task {task_id!r}", where=str(path))
    for row in rows:
        for name in ("messages", "checks", "findings", "executions", "dimensions"):
            row[name] = json.loads(row[name])
    rows.sort(key=lambda row: row["sample"])
    advantages = advantages_of(run, rows)
    decode = _decoder(run)
    samples = [_sample(row, advantage, decode, everything) for row, advantage in zip(rows, advantages, strict=True)]
    return GroupView(step, task_id, rows[0]["domain"], rows[0]["messages"], samples)


def advantages_of(run: Path, rows: Sequence[dict[str, Any]]) -> list[float | None]:
    """As the learner computes them by the run's recipe; None where the recipe can no longer be read."""
    estimator = _estimator(run / "config.toml", rows[0]["domain"])
    if estimator is None:
        return [None] * len(rows)
    from surefoot.learner.advantages import group_advantages

    return list(group_advantages([Reward(row["reward"], row["valid"]) for row in rows], estimator))


def _estimator(config: Path, domain: str) -> Any:
    from surefoot.learner.losses import find_loss
    from surefoot.recipe import load_recipe

    try:
        recipe = load_recipe(config)
        own = next((d.learner.loss for d in recipe.domains if d.name == domain), None)
        return find_loss(own or recipe.learner.loss).traits.advantage or recipe.learner.advantage
    except SurefootError:
        return None


def _sample(row: dict[str, Any], advantage: float | None, decode: Any, everything: bool) -> Sample:
    first = next((i for i, written in enumerate(row["mask"]) if written), 0)
    end = len(row["tokens"]) if everything else min(len(row["tokens"]), first + TOKENS)
    shown = range(first, end)
    tokens = [_token(i, row["tokens"][i], row["mask"][i], row["logprobs"][i], decode) for i in shown]
    return Sample(row, advantage, tokens, len(row["tokens"]) - end)


def _token(place: int, number: int, written: bool, logprob: float, decode: Any) -> Token:
    text = decode(number)
    if not written:
        return Token(text, False, 0, f"token {place}, id {number}: not written by the policy, not trained on")
    chance = math.exp(min(0.0, logprob))
    shade = sum(chance < limit for limit in SHADES)
    return Token(text, True, shade, f"token {place}, id {number}: log-prob {logprob:.3f}, probability {chance:.2%}")


def _decoder(run: Path) -> Any:
    """From token ids to text, by the tokenizer of a checkpoint; without one, the ids themselves."""
    for checkpoint in reversed(store_of(run).paths()):
        if (checkpoint / "tokenizer.json").is_file():
            return _decoder_of(checkpoint / "tokenizer.json")
    return lambda number: f"[{number}]"


@cache
def _decoder_of(path: Path) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))

    @cache
    def decode(number: int) -> str:
        return str(tokenizer.decode([number], skip_special_tokens=False))

    return decode
