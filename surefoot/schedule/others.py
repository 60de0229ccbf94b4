"""Other rules behind the same protocol: fixed shares, DAPO's oversampling, and two published bandits.

All of them get the level curriculum of `ladder`, which their papers leave open.
"""

from __future__ import annotations

import math

import numpy as np

from surefoot.schedule.apportion import pay_out, shares_within
from surefoot.schedule.ladder import Ladder
from surefoot.schedule.rule import Allocation, Arms, ArrayState, Floats, Outcomes, step_generator

RISES = 0.9


class FixedRule(ArrayState):
    """Shares in proportion to the weights, whatever happens: uniform, where all weights are equal."""

    ARRAYS: tuple[str, ...] = ("credit", "top", "tried", "passed")

    def __init__(self, arms: Arms, *, samples: int, seed: int, rises: float = RISES) -> None:
        self.arms, self.samples, self.seed = arms, samples, seed
        domains = len(arms)
        self.credit, self.tried, self.passed = np.zeros(domains), np.zeros(domains), np.zeros(domains)
        self.top = np.zeros(domains, dtype=np.int64)
        self.ladder = Ladder(arms.levels, self.top, self.tried, self.passed, rises=rises)

    def allocate(self, step: int, groups: int, available: Floats) -> Allocation:
        groups = self.wanted(groups)
        shares = shares_within(self.values(step) * available, self.arms.floors, self.arms.caps)
        self.credit += shares * groups
        counts = pay_out(self.credit, shares > 0, groups)
        self.credit -= counts
        domain = np.repeat(np.arange(len(self.arms)), counts)
        level = self.ladder.draw(domain, step_generator(self.seed, step))
        return Allocation(domain, level, np.full(len(domain), self.samples, dtype=np.int64))

    def values(self, step: int) -> Floats:
        """What shares are in proportion to, `[D]`."""
        return self.arms.weights

    def wanted(self, groups: int) -> int:
        """Groups to draw, where the step asks for `groups`."""
        return groups

    def observe(self, step: int, outcomes: Outcomes) -> None:
        self.ladder.observe(outcomes)


class FilteringRule(FixedRule):
    """DAPO's dynamic sampling (arXiv 2503.14476): enough groups are drawn that `groups` of them are mixed.

    DAPO draws batch after batch until it has them; here, where a step draws once, it is the number that the share of
    mixed groups so far says will do, at most `MOST` times as many. Groups that are not mixed teach nothing anyway.
    """

    ARRAYS = (*FixedRule.ARRAYS, "yielded")
    MOST = 3.0

    def __init__(self, arms: Arms, *, samples: int, seed: int, rises: float = RISES) -> None:
        super().__init__(arms, samples=samples, seed=seed, rises=rises)
        self.yielded = np.zeros((len(arms), 2))  # mixed groups, and all groups; faded

    def wanted(self, groups: int) -> int:
        mixed, drawn = self.yielded.sum(axis=0)
        return math.ceil(groups * min(self.MOST, float((drawn + 1) / (mixed + 1))))

    def observe(self, step: int, outcomes: Outcomes) -> None:
        super().observe(step, outcomes)
        self.yielded *= 0.9
        np.add.at(self.yielded[:, 0], outcomes.domain, outcomes.mixed.astype(np.float64))
        np.add.at(self.yielded[:, 1], outcomes.domain, 1.0)


def mean_advantage(outcomes: Outcomes) -> Floats:
    """Mean |A| of each group `[m]` with GRPO's normalisation: 2 sqrt(k (n-k)) / n for k of n passes."""
    valid = np.maximum(outcomes.valid, 1)
    share = np.clip(outcomes.passes / valid, 0.0, 1.0)
    found: Floats = 2 * np.sqrt(share * (1 - share))
    return found


class SecRule(FixedRule):
    """Self-evolving curriculum (arXiv 2505.14970): Q <- Q + alpha (mean |A| - Q), shares softmax(Q / tau)."""

    ARRAYS = (*FixedRule.ARRAYS, "quality")

    def __init__(
        self, arms: Arms, *, samples: int, seed: int, alpha: float = 0.5, tau: float = 0.4, rises: float = RISES
    ) -> None:
        super().__init__(arms, samples=samples, seed=seed, rises=rises)
        self.quality, self.alpha, self.tau = np.zeros(len(arms)), alpha, tau

    def values(self, step: int) -> Floats:
        return np.asarray(self.arms.weights * np.exp((self.quality - self.quality.max()) / self.tau))

    def observe(self, step: int, outcomes: Outcomes) -> None:
        super().observe(step, outcomes)
        total, drawn = np.zeros(len(self.arms)), np.zeros(len(self.arms))
        np.add.at(total, outcomes.domain, mean_advantage(outcomes))
        np.add.at(drawn, outcomes.domain, 1.0)
        seen = drawn > 0
        self.quality[seen] += self.alpha * (total[seen] / drawn[seen] - self.quality[seen])


class DumpRule(FixedRule):
    """DUMP (arXiv 2504.09710): mean |A| of recent groups + sqrt(2 ln(N+1) / (N_d+1)), shares softmax(. / tau)."""

    ARRAYS = (*FixedRule.ARRAYS, "total", "recent", "drawn")
    WINDOW = 32.0
    """Groups of a domain after which its mean has faded by a factor e, in place of a window of their last values."""

    def __init__(self, arms: Arms, *, samples: int, seed: int, tau: float = 0.1, rises: float = RISES) -> None:
        super().__init__(arms, samples=samples, seed=seed, rises=rises)
        self.total, self.recent, self.drawn, self.tau = (*(np.zeros(len(arms)) for _ in "123"), tau)

    def values(self, step: int) -> Floats:
        gain = self.total / np.maximum(self.recent, 1.0)
        bonus = np.sqrt(2 * math.log(float(self.drawn.sum()) + 1) / (self.drawn + 1))
        index = (gain + bonus) / self.tau
        return np.asarray(self.arms.weights * np.exp(index - index.max()))

    def observe(self, step: int, outcomes: Outcomes) -> None:
        super().observe(step, outcomes)
        drawn = np.zeros(len(self.arms))
        np.add.at(drawn, outcomes.domain, 1.0)
        fade = np.exp(-drawn / self.WINDOW)
        self.total *= fade
        self.recent *= fade
        np.add.at(self.total, outcomes.domain, mean_advantage(outcomes))
        self.recent += drawn
        self.drawn += drawn
