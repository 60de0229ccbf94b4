"""What is minimised: a named loss plus an optional KL penalty, weighted per token, with running measures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from surefoot.learner.losses import Average, Clip, NamedLoss, TokenArrays, kl_k3
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
class PolicyObjective:
    """The loss of one pack, as the slope that the head's pass asks for."""

    pack: Pack
    loss: NamedLoss
    clip: Clip
    weights: Tensor
    """[K]"""
    tally: Tally
    kl: float = 0.0
    reference: Tensor | None = None
    """Log-probs of the targets under the reference model [K], where `kl` is above 0."""

    @property
    def coupled(self) -> bool:
        return self.loss.traits.coupled

    def slope(self, logprobs: Tensor, rows: slice) -> Tensor:
        """d loss / d log-prob of the targets in `rows` [k], whose log-probs are `logprobs` [k]."""
        with torch.enable_grad():
            leaf = logprobs.detach().requires_grad_()
            arrays = self._arrays(leaf, rows)
            loss, ratio, clipped = self.loss.function(arrays, self.clip)
            if self.reference is not None:
                penalty = kl_k3(leaf, self.reference[rows])
                loss = loss + self.kl * penalty
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
        return TokenArrays(logprobs, p.old_logprobs[rows], p.advantages[rows], everything, p.sequence[rows])


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
