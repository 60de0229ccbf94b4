"""One group as a reader sees it: samples side by side, their tokens with log-probs and advantages, and the evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.errors import RunError, SurefootError
from surefoot.store.overview import store_of
from surefoot.store.rollouts import read_rows, rollout_file
from surefoot.types import Group, Reward, Task

if TYPE_CHECKING:
    from surefoot.learner.losses import Estimator

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
    folder = run / "rollouts"
    rows = read_rows(folder, step, task_id=task_id)
    if not rows:
        raise RunError(f"step {step} has no task {task_id!r}", where=str(rollout_file(folder, step)))
    rows.sort(key=lambda row: row["sample"])
    advantages: Sequence[float | None] = advantages_of(run, step, task_id) or [None] * len(rows)
    decode = _decoder(run)
    samples = [_sample(row, advantage, decode, everything) for row, advantage in zip(rows, advantages, strict=True)]
    return GroupView(step, task_id, rows[0]["domain"], rows[0]["messages"], samples)


def advantages_of(run: Path, step: int, task_id: str) -> list[float] | None:
    """As the learner computes them by the run's recipe, some on a scale of all groups of the step; None where the
    recipe can no longer be read."""
    from surefoot.learner.advantages import step_advantages

    rewards: dict[tuple[str, str], list[Reward]] = {}
    columns = ("task_id", "domain", "sample", "reward", "valid")
    for row in sorted(read_rows(run / "rollouts", step, columns), key=lambda row: row["sample"]):
        rewards.setdefault((row["task_id"], row["domain"]), []).append(Reward(row["reward"], row["valid"]))
    groups = [Group(Task(task, domain, ()), (), (), tuple(found)) for (task, domain), found in rewards.items()]
    try:
        estimators = _estimators(run / "config.toml", groups)
    except SurefootError:
        return None
    worth = step_advantages(groups, estimators)
    return next(found for group, found in zip(groups, worth, strict=True) if group.task.id == task_id)


def _estimators(config: Path, groups: Sequence[Group]) -> list[Estimator]:
    from surefoot.learner.losses import find_loss
    from surefoot.recipe import load_recipe

    recipe = load_recipe(config)
    own = {domain.name: domain.learner.loss for domain in recipe.domains}
    losses = [find_loss(own.get(group.task.domain) or recipe.learner.loss) for group in groups]
    return [loss.traits.advantage or recipe.learner.advantage for loss in losses]


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
