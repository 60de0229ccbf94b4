"""What is minimised: a named loss plus an optional KL penalty, weighted per token, with running measures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from surefoot.learner.losses import KL_ESTIMATORS, Average, Clip, NamedLoss, TokenArrays
from surefoot.learner.packing import Pack, Tree


@dataclass(slots=True)
class Tally:
    """Sums over the tokens of an update."""

    sums: dict[str, float] = field(default_factory=dict)
    tokens: int = 0

    def add(self, name: str, values: Tensor) -> None:
        self.sums[name] = self.sums.get(name, 0.0) + float(values.sum(dtype=torch.float64))

    def maximum(self, name: str, values: Tensor) -> None:
        self.sums[name] = max(self.sums.get(name, 0.0), float(values.max()) if len(values) else 0.0)

    def mean(self, name: str) -> float:
        return self.sums.get(name, 0.0) / max(1, self.tokens)


@dataclass(frozen=True, slots=True)
class Totals:
    """Size of a minibatch: what per-token weights are divided by."""

    tokens: int
    samples: int
    longest: int
    """Most tokens that a sample may have: the constant of the average `constant`."""

    @classmethod
    def of(cls, trees: Sequence[Tree], longest: int) -> Totals:
        branches = [branch for tree in trees for branch in tree.branches]
        return cls(sum(sum(branch.mask) for branch in branches), len(branches), longest)


def token_weights(pack: Pack, average: Average, totals: Totals) -> Tensor:
    """Weight of each target [K]: over all packs of a minibatch the weights average the loss as `average` says."""
    if average == "sequences":
        lengths = torch.bincount(pack.sequence, minlength=pack.samples)  # [samples]
        return 1.0 / (lengths[pack.sequence] * totals.samples)
    each = totals.tokens if average == "tokens" else totals.samples * totals.longest
    return torch.full(pack.targets.shape, 1.0 / each, device=pack.targets.device)


@dataclass(frozen=True, slots=True)
class Algorithm:
    """What is done with a token, whatever domain it comes from."""

    loss: NamedLoss
    clip: Clip
    kl: float = 0.0
    estimator: str = "k3"
    """Of the KL penalty."""


@dataclass(frozen=True, slots=True)
class Correction:
    """Importance weights for samples of an engine whose log-probs are not quite the learner's own.

    w = pi_learner / pi_engine before the update, per token. `truncated`: min(w, cap), truncated importance
    sampling (fengyao.notion.site/off-policy-rl, 2025). `masked`: w where 1 / cap <= w <= cap, else 0 (IcePop,
    ringtech.notion.site/icepop, 2025).
    """

    kind: Literal["truncated", "masked"]
    cap: float

    def weights(self, learner: Tensor, engine: Tensor) -> Tensor:
        """From log-probs of the sampled tokens under both [k] -> [k]."""
        ratio = torch.exp(learner - engine)
        if self.kind == "truncated":
            return ratio.clamp(max=self.cap)
        return torch.where((ratio <= self.cap) & (ratio >= 1 / self.cap), ratio, 0.0)


@dataclass(frozen=True, slots=True)
class PolicyObjective:
    """The loss of one pack, as the slope that the head's pass asks for."""

    pack: Pack
    algorithm: Algorithm
    weights: Tensor
    """[K]"""
    tally: Tally
    reference: Tensor | None = None
    """Log-probs of the targets under the reference model [K], where there is a KL penalty."""
    teacher: Tensor | None = None
    """Log-probs of the targets under the teacher [K], where the loss needs them."""
    correction: Correction | None = None
    """None: the ratio is that to the engine's log-probs, with no other correction."""
    proximal: Tensor | None = None
    """With a correction: the learner's log-probs before the update [K]; None if the weights have not moved since."""

    @property
    def coupled(self) -> bool:
        return self.algorithm.loss.traits.coupled

    def slope(self, logprobs: Tensor, rows: slice) -> Tensor:
        """d loss / d log-prob of the targets in `rows` [k], whose log-probs are `logprobs` [k]."""
        with torch.enable_grad():
            leaf = logprobs.detach().requires_grad_()
            arrays = self._arrays(leaf, rows)
            loss, ratio, clipped = self.algorithm.loss.function(arrays, self.algorithm.clip)
            if self.correction is not None:
                weights = self.correction.weights(arrays.old_logprobs, self.pack.old_logprobs[rows])
                loss = loss * weights
                self.tally.add("mismatch", weights)
            if self.reference is not None:
                penalty = KL_ESTIMATORS[self.algorithm.estimator](leaf, self.reference[rows])
                loss = loss + self.algorithm.kl * penalty
                self.tally.add("kl", penalty.detach())
            total = (loss * self.weights[rows]).sum()
            (slope,) = torch.autograd.grad(total, leaf)
        self.tally.add("loss", total.detach()[None])
        self.tally.add("ratio", ratio)
        self.tally.add("clipped", clipped)
        self.tally.tokens += len(leaf)
        return slope

    def _arrays(self, logprobs: Tensor, rows: slice) -> TokenArrays:
        p = self.pack
        everything = torch.ones_like(p.targets[rows], dtype=torch.bool)  # targets are policy-written tokens already
        old = p.old_logprobs[rows]
        if self.correction is not None:
            old = logprobs.detach() if self.proximal is None else self.proximal[rows]
        teacher = None if self.teacher is None else self.teacher[rows]
        return TokenArrays(logprobs, old, p.advantages[rows], everything, p.sequence[rows], teacher)


@dataclass(frozen=True, slots=True)
class AnswerObjective:
    """Mean negative log-likelihood of the targets, for supervised fine-tuning."""

    scale: float
    tally: Tally
    coupled: bool = False

    def slope(self, logprobs: Tensor, rows: slice) -> Tensor:
        self.tally.add("loss", -logprobs)
        self.tally.tokens += len(logprobs)
        return torch.full_like(logprobs, -self.scale)


@dataclass(slots=True)
class DomainMeasures:
    """Entropy, gap and KL of each domain, before any step of the update moved the weights."""

    tallies: dict[str, Tally] = field(default_factory=dict)

    def observe(self, pack: Pack, logprobs: Tensor, entropy: Tensor, reference: Tensor | None) -> None:
        """Take in a pack: log-probs and entropy of its targets, and log-probs under the reference, all [K]."""
        for name in set(pack.domains):
            samples = torch.tensor(
                [domain == name for domain in pack.domains], device=pack.sequence.device
            )  # [samples]
            rows = samples[pack.sequence]  # [K]
            tally = self.tallies.setdefault(name, Tally())
            tally.add("entropy", entropy[rows])
            tally.add("gap", (logprobs - pack.old_logprobs)[rows].abs())
            if reference is not None:
                tally.add("kl", KL_ESTIMATORS["k3"](logprobs[rows], reference[rows]))
            tally.tokens += int(rows.sum())

    def metrics(self) -> dict[str, dict[str, float]]:
        """Means over the tokens of each domain."""
        return {
            name: {key: tally.mean(key) for key in ("entropy", "gap", "kl") if key in tally.sums}
            for name, tally in sorted(self.tallies.items())
        }


@dataclass(slots=True)
class Gap:
    """How far the sampling engine's log-probs are from the learner's, before any step moved the weights."""

    tally: Tally = field(default_factory=Tally)

    def observe(self, engine: Tensor, learner: Tensor) -> None:
        """Log-probs of the same tokens under both [K]."""
        difference = learner - engine
        self.tally.add("abs", difference.abs())
        self.tally.maximum("max", difference.abs())
        self.tally.add("kl", torch.expm1(difference) - difference)  # k3 estimate of KL(engine, learner)
        self.tally.tokens += len(difference)

    def metrics(self) -> dict[str, float]:
        worst = self.tally.sums.get("max", math.nan)
        return {"gap/mean_abs": self.tally.mean("abs"), "gap/max": worst, "gap/kl": self.tally.mean("kl")}
