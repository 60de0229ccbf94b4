"""From what a model wrote to a verdict (right, wrong, ungradable), and from a verdict to a reward.

with GradingPool(domains, sandbox) as graders:
    for rollout, verdict in graders.grade(rollouts, tasks):
        reward = rewarder.score(verdict)
"""

from __future__ import annotations

from surefoot.rewards.compose import Rewarder
from surefoot.rewards.grading import GradingPool

__all__ = ["GradingPool", "Rewarder"]
