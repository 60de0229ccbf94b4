"""A simulated learner over many domains: what it can do, how it learns, what it forgets, what each sample costs.

Assumptions, all of which `scenarios.py` varies:

* Ability in domain d is a private part plus what shared skills lend it: theta = u[d] + 2 sum_j load[d,j] skill[j]. Half
  of the domains share skills (transfer); all of it saturates at a capacity, so every domain has a ceiling.
* An item of level l is passed with chance g + (c-g) sigmoid(1.6 (theta - b - l delta - sigma e)), e ~ N(0,1): prompts
  of a level differ. g is the chance of guessing right, c < 1 the ceiling that wrong reference answers leave.
* A group of n with k passes teaches by its spread, 4 k (n-k) / n^2 (`signal`), scaled by the domain's slope. One
  without spread teaches nothing. Only true graders teach: a coin's groups are random gradients, a slow random walk.
* Signed interference of rank 4 between domains, and forgetting towards the starting point.
* A sample costs `cost[d]` tokens, a little more at higher levels.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
LEVELS, SKILLS, STEEP = 8, 12, 1.6
HONEST, COIN, DEAD, FLAKY = 0, 1, 2, 3


@dataclass(frozen=True)
class Settings:
    """What a world is made from."""

    domains: int = 100
    cost_spread: float = 0.9
    """Sigma of the lognormal cost per sample; 0 for equal costs."""
    coin: float = 0.0
    dead: float = 0.0
    flaky: float = 0.0
    unlearnable: float = 0.05
    solved: float = 0.05
    interference: float = 0.02
    forgetting: float = 2e-4
    """Of what was gained, lost in each step's worth of groups."""
    law: str = "spread"
    """How a group teaches: see `signal`."""
    transfer: float = 1.0
    """Strength of shared skills."""
    guess: float = 0.3
    """Share of domains that can be guessed at."""
    spread: tuple[float, float] = (0.4, 1.0)
    """Range of sigma, how much prompts of a level differ."""
    pace: float = 1.0
    """Learning rate; smaller where there are more domains than groups."""


@dataclass(eq=False)
class World:
    """The learner's state and the domains' true properties; arrays `[D]` unless said otherwise."""

    settings: Settings
    kind: Ints
    base: Floats
    delta: Floats
    spread: Floats
    guess: Floats
    ceiling: Floats
    slope: Floats
    capacity: Floats
    load: Floats
    """[D, SKILLS]"""
    cost: Floats
    mixing: Floats
    """[D, 4], signed"""
    size: Floats
    """Tasks a domain has: what proportional sampling goes by."""
    private: Floats
    skill: Floats
    """[SKILLS]"""
    rng: np.random.Generator
    harshness: Floats = field(default_factory=lambda: np.zeros(0))
    """What is taken off the ceiling while a grader drifts."""

    @classmethod
    def make(cls, settings: Settings, seed: int) -> World:
        """A world drawn at random."""
        s, rng = settings, np.random.default_rng([seed, 77])
        d = s.domains
        kind = np.full(d, HONEST)
        order, at = rng.permutation(d), 0
        for code, share in ((COIN, s.coin), (DEAD, s.dead), (FLAKY, s.flaky)):
            count = round(share * d)
            kind[order[at : at + count]] = code
            at += count
        load = rng.random((d, SKILLS)) * (rng.random((d, SKILLS)) < 0.25) * (rng.random((d, 1)) < 0.5)
        load /= np.maximum(load.sum(axis=1, keepdims=True), 1.0)
        slope = rng.lognormal(0.0, 0.5, d)
        capacity = rng.uniform(1.5, 5.5, d)
        stuck, done = rng.random(d) < s.unlearnable, rng.random(d) < s.solved
        base = np.where(done, rng.uniform(-6, -4, d), rng.uniform(0.0, 2.5, d))
        capacity[stuck], slope[stuck], load[stuck] = 0.05, 0.05, 0.0
        return cls(
            settings=s,
            kind=kind,
            base=base,
            delta=rng.uniform(0.3, 0.8, d),
            spread=rng.uniform(*s.spread, d),
            guess=np.where(rng.random(d) < s.guess, rng.uniform(0.1, 0.5, d), 0.0),
            ceiling=np.where(rng.random(d) < 0.25, rng.uniform(0.6, 0.95, d), rng.uniform(0.95, 1.0, d)),
            slope=slope,
            capacity=capacity,
            load=load * s.transfer,
            cost=rng.lognormal(0.0, s.cost_spread, d) if s.cost_spread else np.ones(d),
            mixing=rng.normal(0, 1, (d, 4)) / np.sqrt(4 * d),
            size=rng.lognormal(0.0, 1.0, d),
            private=np.zeros(d),
            skill=np.zeros(SKILLS),
            rng=np.random.default_rng([seed, 78]),
            harshness=np.zeros(d),
        )

    @property
    def honest(self) -> npt.NDArray[np.bool_]:
        """Domains whose pass rate means something: those that count for the score."""
        found: npt.NDArray[np.bool_] = (self.kind == HONEST) | (self.kind == FLAKY)
        return found

    def scores(self) -> Floats:
        """True mean pass rate of each domain over its levels, `[D]`."""
        return self._scores(self.private, self.skill)

    def reachable(self) -> Floats:
        """The same, were everything learnt to its capacity."""
        return self._scores(self.capacity, np.full(SKILLS, 2.0))

    def group_cost(self, domain: Ints, level: Ints, samples: Ints) -> Floats:
        """Cost of each group, `[m]`."""
        return self.cost[domain] * (1 + 0.1 * level) * samples

    def sample(self, domain: Ints, level: Ints, samples: Ints) -> Ints:
        """What the graders say: passes of each group, `[m]`."""
        logit = self._ability()[domain] - self.base[domain] - level * self.delta[domain]
        logit = STEEP * (logit - self.spread[domain] * self.rng.normal(size=len(domain)))
        guess, ceiling = self.guess[domain], np.maximum(self.ceiling - self.harshness, 0)[domain]
        chance = guess + np.maximum(ceiling - guess, 0) / (1 + np.exp(-logit))
        chance = np.where(self.kind[domain] == COIN, 0.5, np.where(self.kind[domain] == DEAD, 0.0, chance))
        return self.rng.binomial(samples, chance)

    def learn(self, domain: Ints, passes: Ints, valid: Ints) -> None:
        """One update from groups that could be graded."""
        s, d = self.settings, len(self.base)
        taught = signal(passes, valid, s.law) * valid / 8 * (valid > 1)
        true = np.bincount(domain, taught * (self.kind[domain] != COIN), minlength=d)
        false = np.bincount(domain, taught * (self.kind[domain] == COIN), minlength=d)
        if s.law == "normalised":  # as with Adam: what matters of a step is its direction, not its length
            length = max(1.0, float(np.sqrt((true**2).sum() + (false**2).sum())))
            true, false = 4 * true / length, 4 * false / length
        rate = s.pace * self.slope
        gain = 0.06 * rate * true * (1 - self.private / self.capacity)
        harm = s.interference * (self.mixing @ (self.mixing.T @ (true * self.slope)))
        self.private = np.minimum(self.private * (1 - s.forgetting) + gain - harm, self.capacity)
        push = self.load.T @ (rate * true)
        walk = 0.002 * np.sqrt(false.sum()) * self.rng.normal(size=SKILLS)
        self.skill = self.skill * (1 - s.forgetting) + 0.12 / d**0.5 * push * (1 - self.skill / 2) + walk

    def _ability(self) -> Floats:
        found: Floats = self.private + 2 * self.load @ self.skill
        return found

    def _scores(self, private: Floats, skill: Floats) -> Floats:
        ability = private + 2 * self.load @ skill
        logit = STEEP * (ability - self.base)[:, None] - STEEP * np.arange(LEVELS) * self.delta[:, None]
        logit /= np.sqrt(1 + np.pi * (STEEP * self.spread[:, None]) ** 2 / 8)  # probit-logit mean over prompts
        high = np.maximum(self.ceiling, self.guess)[:, None]
        low = self.guess[:, None]
        found: Floats = (low + (high - low) / (1 + np.exp(-logit))).mean(axis=1)
        return found


def signal(passes: Ints, valid: Ints, law: str) -> Floats:
    """What each group teaches, in [0, 1]: 0 where all samples fared alike.

    `spread` (and `normalised`, before its step is): 4 k (n-k) / n^2; `rare`: sqrt(p) (1-p), scaled to 1, so that rare
    successes teach most; `mixed`: 1 for every group with spread; `std`: 2 sqrt(k (n-k)) / n, GRPO's sum of |A|.
    """
    share = passes / np.maximum(valid, 1)
    variance: Floats = 4 * share * (1 - share)
    if law in ("spread", "normalised"):
        return variance
    if law == "rare":
        rare: Floats = np.sqrt(share) * (1 - share) * 2.598
        return rare
    if law == "mixed":
        return np.asarray(variance > 0, dtype=np.float64)
    if law == "std":
        root: Floats = np.sqrt(variance)
        return root
    raise ValueError(law)
