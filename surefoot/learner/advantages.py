"""Advantages: how much better a sample is than the others of its group."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from surefoot.learner.losses import Estimator
from surefoot.types import Reward

STD_FLOOR = 1e-4


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
