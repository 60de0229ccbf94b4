"""Advantages: how much better a sample is than the others of its group, on a scale of its group, domain or step."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from surefoot.learner.losses import Estimator
from surefoot.types import Group, Reward

STD_FLOOR = 1e-4


def step_advantages(groups: Sequence[Group], estimators: Sequence[Estimator]) -> list[list[float]]:
    """Advantages of all groups of a step, one list a group, each by its own estimator.

    Besides those of `group_advantages`: `domain_std`: (r - mean of the group) / (std of that over the domain + 1e-4),
    so that the scale of a domain's rewards does not leak into the others; `batch_std`: the same over all groups of the
    step, REINFORCE++ with a group baseline (arXiv 2501.03262).
    """
    wide: dict[str, list[float]] = {}
    for group, estimator in zip(groups, estimators, strict=True):
        if estimator in ("domain_std", "batch_std"):
            wide.setdefault(_crowd(group, estimator), []).extend(_centred(group.rewards))
    scales = {crowd: 1 / (_deviation(values) + STD_FLOOR) for crowd, values in wide.items()}
    return [
        [value * scales[crowd] for value in group_advantages(group.rewards, "group_mean")]
        if (crowd := _crowd(group, estimator)) in scales
        else group_advantages(group.rewards, estimator)
        for group, estimator in zip(groups, estimators, strict=True)
    ]


def group_advantages(rewards: Sequence[Reward], estimator: Estimator) -> list[float]:
    """One advantage a sample of a group; 0.0 for samples that are not valid, which count for nothing.

    `group_std`: (r - mean) / (std + 1e-4), std with n - 1, GRPO (arXiv 2402.03300). `group_mean`: r - mean, Dr. GRPO
    (arXiv 2503.20783). `leave_one_out`: r - mean of the others, RLOO (arXiv 2402.14740).
    """
    values = [reward.value for reward in rewards if reward.valid]
    if len(values) < 2:
        return [0.0] * len(rewards)
    mean, scale = statistics.fmean(values), 1.0
    if estimator == "group_std":
        scale = 1 / (statistics.stdev(values) + STD_FLOOR)
    elif estimator == "leave_one_out":
        scale = len(values) / (len(values) - 1)  # r - (n mean - r) / (n - 1)
    return [(reward.value - mean) * scale if reward.valid else 0.0 for reward in rewards]


def _crowd(group: Group, estimator: Estimator) -> str:
    """Whom a group shares its scale with."""
    return f"domain {group.task.domain}" if estimator == "domain_std" else estimator


def _centred(rewards: Sequence[Reward]) -> list[float]:
    """What the samples of a group that has something to compare are above its mean."""
    values = [reward.value for reward in rewards if reward.valid]
    mean = statistics.fmean(values) if values else 0.0
    return [value - mean for value in values] if len(values) > 1 else []


def _deviation(centred: Sequence[float]) -> float:
    """Root of the mean square about 0, which every group's own mean is."""
    return math.sqrt(sum(value**2 for value in centred) / max(1, len(centred) - 1))
