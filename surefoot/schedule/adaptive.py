"""Surefoot's rule: groups go where learning per cost is to be had, and nobody starves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefoot.schedule.apportion import pay_out, shares_within
from surefoot.schedule.learning import LearningRates
from surefoot.schedule.noise import NoiseStatistics
from surefoot.schedule.posterior import PRIOR, forget, mixed_probability
from surefoot.schedule.rule import Allocation, Arms, ArrayState, Flags, Floats, Ints, Outcomes, step_generator


@dataclass(frozen=True)
class Tuning:
    """The rule's constants. Their defaults are what the simulator settled on; a recipe shows only a few of them."""

    memory: float = 60.0
    """Steps after which evidence has faded by a factor e."""
    weight: float = 0.5
    """What one sample counts as: samples of one prompt are not independent."""
    opens: float = 0.35
    """Pass rate of every lower level at which a level opens."""
    headroom: float = 2.0
    """How strongly domains with much left to learn are preferred."""
    price: float = 1.0
    """Exponent of the cost per sample."""
    temperature: float = 1.0
    """1 is in proportion to value; larger evens shares out, smaller sharpens them."""
    most: float = 6.0
    """Largest share of a domain, in equal shares."""
    stale: int = 40
    """Steps after which a healthy domain is drawn again at the latest."""
    probes: float = 0.25
    """Largest part of a step that goes to domains because they are stale."""
    suspected: float = 0.03
    """What the share of a domain whose grader seems to flip coins is multiplied by."""
    rehearse: float = 2.0
    """What the share of a domain whose pass rate has fallen is multiplied by."""
    fallen: float = 0.05
    """How far a domain's score must be below its best to be rehearsed."""
    warm_up: int = 2
    """Groups that every domain gets before shares differ."""


class AdaptiveRule(ArrayState):
    """Shares in proportion to priority x expected mixed groups x headroom / cost, under floors and caps.

    For domain d with levels l, and groups of n samples:

        mixed  M[d,l] = expected share of groups with differing outcomes under the cell's faded Beta posterior
        value  V[d]   = max over open levels of M[d,l]
        score  S[d]   = mean over levels of the pass rate, closed levels counting 0
        share  q[d]  ~ w[d] V[d] (1.05 - S[d])^headroom f[d] r[d] x[d] / c[d]^price

    with priority w, cost c per valid sample, f = observed by expected rise of the score (`learning`), r = `rehearse`
    where the score has fallen below its best, x = `suspected` where the grader seems to flip coins. A level opens when
    all levels below it pass often enough, and closes again.
    """

    ARRAYS = (
        *("hits", "misses", "seen", "last", "credit", "tokens", "graded", "asked", "groups"),
        *("best", "count", "rate", "square", "coin", "slow", "expected", "passes", "tried"),
    )

    def __init__(self, arms: Arms, *, samples: int, seed: int, tuning: Tuning | None = None) -> None:
        """`samples` is the group size; `seed` decides the draws of levels."""
        self.arms, self.samples, self.seed, self.tuning = arms, samples, seed, tuning or Tuning()
        domains, cells = len(arms), arms.exists.shape
        self.hits, self.misses = np.zeros(cells), np.zeros(cells)
        self.seen = np.zeros(cells, dtype=np.int64)
        self.last = np.zeros(domains, dtype=np.int64)
        self.credit, self.tokens, self.graded, self.asked, self.groups, self.best = (
            np.zeros(domains) for _ in "123456"
        )
        self.count, self.rate, self.square, self.coin = (np.zeros(cells) for _ in "1234")
        self.slow, self.expected = np.zeros(domains), np.zeros(domains)
        self.passes, self.tried = np.zeros(cells), np.zeros(cells)
        self.learning = LearningRates(self.passes, self.tried, self.slow, self.expected, arms.levels)
        self.noise = NoiseStatistics(self.count, self.rate, self.square, self.coin)

    # ------------------------------------------------------------------------------------------------- what it says

    def allocate(self, step: int, groups: int, available: Floats) -> Allocation:
        view = self._view(step)
        shares = self.shares(step, available, view)
        self.credit = np.clip(self.credit + shares * groups, -groups, groups)
        self.credit[shares == 0] = 0.0
        overdue = self._overdue(step, groups, available)
        self.credit[overdue] -= 1.0
        counts = pay_out(self.credit, shares > 0, groups - len(overdue))
        self.credit -= counts
        counts[overdue] += 1
        domain = np.repeat(np.arange(len(self.arms)), counts)
        self.last[counts > 0] = step
        return Allocation(domain, self._levels(domain, view, step), np.full(len(domain), self.samples, dtype=np.int64))

    def shares(self, step: int, available: Floats, view: View | None = None) -> Floats:
        """The part of the groups that each domain should get at `step`, `[D]`, before staleness is looked at."""
        view, t, arms = view or self._view(step), self.tuning, self.arms
        wanted = arms.weights * available
        if (self.groups[wanted > 0] < t.warm_up).any():
            wanted = wanted * (self.groups < t.warm_up)
            return np.asarray(wanted / wanted.sum())
        weights = self._promise(view) * self.learning.factors() / self.costs() ** t.price
        weights = weights * np.where(self._fallen(view), t.rehearse, 1.0)
        weights = weights * np.where(self.noise.suspects(), t.suspected, 1.0)
        weights = wanted * np.maximum(weights, 1e-9) ** (1 / t.temperature)
        return shares_within(weights, arms.floors, np.minimum(arms.caps, t.most / len(arms)))

    def costs(self) -> Floats:
        """Cost of a sample that can be graded, `[D]`, in units of the domains' mean; where samples fail, it rises."""
        known = self.asked > 0
        cost = np.where(known, self.tokens / np.maximum(self.asked, 1e-9), 0.0)
        typical = float(cost[known].mean()) if known.any() else 1.0
        relative = np.where(known, cost, typical) / max(typical, 1e-9)
        validity = np.where(known, (self.graded + 0.1) / (self.asked + 0.1), 1.0)
        found: Floats = np.maximum(relative, 0.02) / np.maximum(validity, 0.02)
        return found

    # -------------------------------------------------------------------------------------------------- what it hears

    def observe(self, step: int, outcomes: Outcomes) -> None:
        o, t = outcomes, self.tuning
        here, valid = o.valid > 0, o.valid.astype(np.float64)
        cells = (o.domain, o.level)
        touched = np.zeros(self.hits.shape, dtype=bool)
        touched[cells] = True
        for evidence, scored in ((self.hits, o.passes), (self.misses, valid - o.passes)):
            evidence[touched] = forget(evidence[touched], self.seen[touched], step, t.memory)
            np.add.at(evidence, cells, t.weight * scored)
        self.seen[touched] = step
        for total, amount in ((self.tokens, o.cost), (self.asked, o.asked.astype(np.float64)), (self.graded, valid)):
            total[touched.any(axis=1)] *= 0.9
            np.add.at(total, o.domain, amount)
        np.add.at(self.groups, o.domain, 1.0)
        self.noise.add(o.domain[here], o.level[here], o.passes[here] / valid[here], valid[here])
        view = self._view(step)
        self.learning.add(o.domain, o.level, o.passes, valid, self._promise(view))
        drawn = touched.any(axis=1)
        self.best[drawn] = np.maximum(self.best[drawn] * 0.999, view.score[drawn])

    # ------------------------------------------------------------------------------------------------------- inside

    def _view(self, step: int) -> View:
        a = forget(self.hits, self.seen, step, self.tuning.memory) + PRIOR
        b = forget(self.misses, self.seen, step, self.tuning.memory) + PRIOR
        mean = a / (a + b)
        passed = np.ones_like(mean, dtype=bool)
        passed[:, 1:] = np.logical_and.accumulate(mean[:, :-1] >= self.tuning.opens, axis=1)
        usable = passed & self.arms.exists
        mixed = np.where(usable, mixed_probability(a, b, self.samples), 0.0)
        score = np.where(usable, mean, 0.0).sum(axis=1) / self.arms.levels
        return View(mixed, score, a + b)

    def _promise(self, view: View) -> Floats:
        """What a group of each domain may teach: expected mixed groups at the best level x what is left to learn."""
        promise: Floats = view.mixed.max(axis=1) * (1.05 - view.score) ** self.tuning.headroom
        return promise

    def _fallen(self, view: View) -> Flags:
        evidence = np.maximum(view.evidence.max(axis=1), 1.0)
        error = 0.5 / np.sqrt(evidence * self.arms.levels)
        fallen: Flags = view.score < self.best - np.maximum(self.tuning.fallen, 3 * error)
        return fallen

    def _overdue(self, step: int, groups: int, available: Floats) -> Ints:
        """Domains that must be drawn now for none to be left alone longer than the bound; the longest unseen first."""
        most = max(1, int(self.tuning.probes * groups))
        bound = max(self.tuning.stale, -(-len(self.arms) // most))
        waited = step - self.last
        due = np.flatnonzero((waited >= bound) & (available > 0) & (self.arms.weights > 0))
        return due[np.argsort(-waited[due], kind="stable")][:most]

    def _levels(self, domain: Ints, view: View, step: int) -> Ints:
        """A level a group, in proportion to the square of its value."""
        weights = np.cumsum(view.mixed[domain] ** 2, axis=1)
        point = step_generator(self.seed, step).random(len(domain)) * weights[:, -1]
        levels: Ints = np.minimum((weights <= point[:, None]).sum(axis=1), self.arms.levels[domain] - 1)
        return levels


@dataclass(frozen=True, eq=False)
class View:
    """What the posterior says at one step."""

    mixed: Floats
    """Expected share of mixed groups `[D, L]`; 0 for closed levels."""
    score: Floats
    """Mean pass rate over the levels `[D]`, closed ones counting 0."""
    evidence: Floats
    """Pseudo-counts behind each cell `[D, L]`."""
