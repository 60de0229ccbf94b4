"""From a verdict to the number that the learner sees. Correctness gates everything else.

    wrong       value in [0, PARTIAL_CEILING]: 0, or with `partial` its degree of correctness scaled below a right one
    right       value in [1, 1 + bonus_cap]: 1 and the bonuses of the weighted dimensions
    ungradable  not valid: takes no part in advantages or loss

So no combination of dimensions lifts a wrong answer to a right one.

Bonus dimensions have scales of their own: readability may lie between 0.8 and 0.9 where efficiency goes from 0 to 1,
and the sum would be about efficiency alone. In a group, each is therefore normalised for itself among the right answers
before it is weighted, after GDPO's decoupled normalisation (arXiv 2601.05242); here the standard score is also mapped
to [0, 1], so that bonuses stay bounded.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from surefoot.config import RewardConfig
from surefoot.errors import ConfigError
from surefoot.rewards.integrity import Inspector
from surefoot.types import Group, Reward, Verdict

PARTIAL_CEILING = 0.5
"""What a wrong answer that passes nearly all its checks is worth."""
SPREAD_FLOOR = 0.05
"""Standard deviation of a dimension among right answers below which it is taken for noise."""


@dataclass(frozen=True)
class Rewarder:
    """Composes rewards as `[reward]` of the recipe says. Raises ConfigError for a weight that is no number."""

    config: RewardConfig

    def __post_init__(self) -> None:
        _ = self._inspector  # bad settings are told of at once
        for name, weight in self.config.weights.items():
            if not (math.isfinite(weight) and weight >= 0):
                fix = "give a number of 0 or more; correctness needs no weight"
                raise ConfigError(f"the weight of {name!r} is {weight}", where=f"reward.weights.{name}", fix=fix)

    @cached_property
    def _inspector(self) -> Inspector:
        return Inspector(self.config.integrity)

    def score(self, verdict: Verdict) -> Reward:
        """The reward of one verdict; bounded, never NaN."""
        actions = {finding.action for finding in verdict.findings}
        correct = 1.0 if verdict.grade == "right" else _unit(verdict.score)
        dimensions = {name: _unit(value) for name, value in verdict.dimensions.items()} | {"correctness": correct}
        if verdict.grade == "ungradable" or "quarantine" in actions:
            return Reward(0.0, valid=False, dimensions=dimensions)
        if "zero" in actions:
            return Reward(0.0, dimensions=dimensions)
        if verdict.grade == "right":
            return Reward(1.0 + self._bonus(verdict), dimensions=dimensions)
        return Reward(PARTIAL_CEILING * correct if self.config.partial else 0.0, dimensions=dimensions)

    def score_all(self, verdicts: Iterable[Verdict]) -> tuple[Reward, ...]:
        """The reward of each verdict, in order."""
        return tuple(self.score(verdict) for verdict in verdicts)

    def score_group(self, group: Group) -> Group:
        """The group, inspected, with a reward for each of its verdicts, bonuses normalised as the recipe says."""
        group = self._inspector.examine(group)
        if self.config.normalise == "none" or not self.config.weights:
            return replace(group, rewards=self.score_all(group.verdicts))
        levelled = _levelled(group.verdicts, tuple(self.config.weights))
        rewards = tuple(
            replace(self.score(level), dimensions=self.score(verdict).dimensions)
            for level, verdict in zip(levelled, group.verdicts, strict=True)
        )
        return replace(group, rewards=rewards)

    def _bonus(self, verdict: Verdict) -> float:
        """Sum of weight x dimension, scaled down if need be so that full marks in all of them earn `bonus_cap`."""
        weights = self.config.weights
        total = math.fsum(weights.values())
        if total == 0:
            return 0.0
        earned = math.fsum(w / total * _unit(verdict.dimensions.get(name, 0.0)) for name, w in weights.items())
        return min(self.config.bonus_cap, total) * min(1.0, earned)


def _levelled(verdicts: Sequence[Verdict], names: Sequence[str]) -> tuple[Verdict, ...]:
    """The verdicts with each dimension as its place among the right answers, 0.5 for the mean of them.

    A standard score of n values is at most (n - 1) / sqrt(n), which is mapped to 1. Differences below `SPREAD_FLOOR`
    are not blown up: what is nearly equal stays nearly equal.
    """
    right = [verdict for verdict in verdicts if verdict.grade == "right"]
    if len(right) < 2:
        return tuple(verdicts)
    level: dict[str, tuple[float, float]] = {}
    for name in names:
        values = [_unit(verdict.dimensions.get(name, 0.0)) for verdict in right]
        spread = max(statistics.stdev(values), SPREAD_FLOOR)
        level[name] = statistics.fmean(values), 2 * spread * (len(values) - 1) / math.sqrt(len(values))

    def place(verdict: Verdict, name: str) -> float:
        mean, width = level[name]
        return _unit(0.5 + (_unit(verdict.dimensions.get(name, 0.0)) - mean) / width)

    return tuple(replace(v, dimensions={n: place(v, n) for n in names}) if v.grade == "right" else v for v in verdicts)


def _unit(value: float) -> float:
    """`value` held within [0, 1]; 0 for NaN."""
    return 0.0 if math.isnan(value) else min(1.0, max(0.0, value))
