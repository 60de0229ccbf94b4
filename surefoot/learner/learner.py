"""The policy learner: groups of rollouts in, new weights out."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from surefoot.config import LearnerConfig
from surefoot.errors import ResourceError
from surefoot.learner.adapters import AdapterWeights
from surefoot.learner.advantages import group_advantages
from surefoot.learner.backward import backward, score_pack
from surefoot.learner.losses import Clip, find_loss
from surefoot.learner.objective import Gap, PolicyObjective, Tally, Totals, token_weights
from surefoot.learner.packing import Pack, Tree, group_trees, pack
from surefoot.learner.weights import (
    MixedWeights,
    cast_copy,
    moment_tensors,
    restore_moments,
    restore_weights,
    weight_tensors,
)
from surefoot.models import Decoder, LoadedModel, save_model
from surefoot.models.compute import pick_dtype
from surefoot.types import NOT_FINITE, Group, UpdateReport


class PolicyLearner:
    """Policy-gradient updates of one decoder; implements `protocols.Learner`.

    `compute` is the decoder that samples and learns, in the recipe's dtype: hand it to the engine. Its tensors are
    updated in place, so the engine always samples from the newest weights.
    """

    def __init__(
        self,
        decoder_fp32: Decoder,
        config: LearnerConfig,
        *,
        total_steps: int,
        temperature: float = 1.0,
        device: torch.device | str = "cpu",
        longest_sample: int = 64,
        seed: int = 0,
    ) -> None:
        """Take over a decoder.

        Args:
            decoder_fp32: The starting weights; they become the masters and change in place.
            config: The recipe's `[learner]`.
            total_steps: Updates of the whole run, for the schedule of the learning rate.
            temperature: Of the rollouts; log-probs are those of the distribution that was sampled.
            device: Where all tensors live.
            seed: Of the adapters' first values, if there are any.
            longest_sample: Most tokens a sample may have: what losses averaged by a constant (Dr. GRPO) divide by.
        """
        self.config, self.total_steps, self.temperature = config, total_steps, temperature
        self.longest_sample, self.device = longest_sample, torch.device(device)
        self.loss = find_loss(config.loss)
        self.weights = _weights(decoder_fp32, config, self.device, seed)
        self.optimiser = self.weights.optimiser(config.lr, betas=config.betas, weight_decay=config.weight_decay)
        self.reference: Decoder | None = None
        self._version = self._updates = self._optimiser_steps = 0
        self.reset_reference()

    @property
    def version(self) -> int:
        """Number of updates that changed the weights."""
        return self._version

    @property
    def compute(self) -> Decoder:
        """The decoder in the compute type, shared with the engine."""
        return self.weights.compute

    @property
    def masters(self) -> Decoder:
        """The float32 weights: what is saved and exported."""
        return self.weights.master

    def reset_reference(self) -> None:
        """Make the present weights the reference of the KL penalty (nothing if there is none)."""
        if self.config.kl > 0:
            self.reference = cast_copy(self.masters, self.compute.embedding.dtype).requires_grad_(False)

    def learning_rate(self, update: int) -> float:
        """Of update number `update`, counted from 0: a rise over `warmup_steps`, then constant or linear."""
        c = self.config
        if update < c.warmup_steps:
            return c.lr * (update + 1) / (c.warmup_steps + 1)
        if c.schedule == "constant":
            return c.lr
        done = (update - c.warmup_steps) / max(1, self.total_steps - 1 - c.warmup_steps)
        return c.lr * (1 - 0.9 * min(1.0, done))

    # ------------------------------------------------------------------------------------------------------ update

    def update(self, groups: Sequence[Group]) -> UpdateReport:
        """Learn from one step's groups.

        Groups whose valid rewards are all equal teach nothing and are not computed; samples that are not valid take
        no part. If nothing is left, or a loss or gradient is not finite, no step is taken and `skipped` says why.

        Raises:
            ResourceError: out of memory; the weights are those of the last completed optimiser step.
        """
        started = time.perf_counter()
        try:
            progress = _Progress(self.learning_rate(self._updates))
            trees = [self._trees(group) for group in groups if not group.degenerate]
            trees = [grown for grown in trees if grown]
            reason = self._learn(trees, progress) if trees else "no signal: all rewards of every group are equal"
        except (MemoryError, RuntimeError) as failed:
            self.weights.discard_gradients()
            if not is_out_of_memory(failed):
                raise
            raise out_of_memory_error(self.config.token_budget) from failed
        self._updates += 1
        self._version += progress.steps > 0
        degenerate = sum(group.degenerate for group in groups) / max(1, len(groups))
        seconds = time.perf_counter() - started
        metrics = progress.metrics(self.reference is not None) | {"degenerate": degenerate, "seconds": seconds}
        return UpdateReport(self._version, metrics, reason)

    def _trees(self, group: Group) -> list[Tree]:
        estimator = self.loss.traits.advantage or self.config.advantage
        return group_trees(group, group_advantages(group.rewards, estimator))

    def _learn(self, trees: Sequence[list[Tree]], progress: _Progress) -> str:
        """Epochs over minibatches; returns why it stopped early, if it did."""
        count = min(self.config.minibatches, len(trees))
        for _ in range(self.config.epochs):
            for index in range(count):
                part = [tree for grown in trees[index::count] for tree in grown]
                if reason := self._minibatch(part, progress):
                    return reason
        return ""

    def _minibatch(self, trees: Sequence[Tree], progress: _Progress) -> str:
        """One optimiser step on `trees`; returns why none was taken, if none was."""
        totals = Totals.of(trees, self.longest_sample)
        before = progress.tally.sums.get("loss", 0.0)
        for packed in pack(trees, self.config.token_budget):
            self._backward(packed.to(self.device), totals, progress)
        if not math.isfinite(progress.tally.sums["loss"]):
            self.weights.discard_gradients()
            progress.tally.sums["loss"] = before
            return f"the loss {NOT_FINITE}"
        norm = self.weights.step(self.optimiser, progress.lr, self.config.max_grad_norm)
        progress.norms.append(norm)
        if not math.isfinite(norm):
            return f"the gradient {NOT_FINITE}"
        self._optimiser_steps += 1
        progress.steps += 1
        return ""

    def _backward(self, packed: Pack, totals: Totals, progress: _Progress) -> None:
        c = self.config
        reference = None
        if self.reference is not None:
            reference = score_pack(self.reference, packed, temperature=self.temperature).logprobs
        weights = token_weights(packed, self.loss.traits.average, totals)
        clip = Clip(c.clip_low, c.clip_high)
        objective = PolicyObjective(packed, self.loss, clip, weights, progress.tally, c.kl, reference)
        scores = backward(
            self.weights, packed, objective, temperature=self.temperature, recompute=c.checkpoint_activations
        )
        progress.tally.add("entropy", scores.entropy)
        if not progress.steps:
            progress.gap.observe(packed.old_logprobs, scores.logprobs)

    # ------------------------------------------------------------------------------------------------- checkpoints

    def tensors(self) -> dict[str, Tensor]:
        """All state that is tensors: masters, moments, reference. Views: copy or write them before the next update."""
        state = self.weights.tensors() | moment_tensors(self.weights, self.optimiser)
        return state | (weight_tensors(self.reference, "reference") if self.reference is not None else {})

    def counters(self) -> dict[str, int]:
        """All state that is plain numbers."""
        return {"version": self._version, "updates": self._updates, "optimiser_steps": self._optimiser_steps}

    def restore(self, tensors: Mapping[str, Tensor], counters: Mapping[str, float]) -> None:
        """Put back what `tensors` and `counters` gave; goes on bit for bit on CPU.

        Raises:
            RunError: a tensor is missing or has another shape.
        """
        self.weights.discard_gradients()
        self.weights.restore(tensors)
        restore_moments(self.weights, self.optimiser, tensors, int(counters["optimiser_steps"]))
        if self.reference is not None:
            restore_weights(self.reference, "reference", tensors)
        self._version, self._updates = int(counters["version"]), int(counters["updates"])
        self._optimiser_steps = int(counters["optimiser_steps"])

    def save(self, directory: Path, model: LoadedModel, base: str) -> None:
        """Write the model as a Hugging Face directory, and adapters, if there are any, into its folder `adapter`.

        `base` is what the adapters' configuration names as the model that they belong to.
        """
        save_model(self.masters, model.hf_config, model.tokenizer, directory)
        if isinstance(self.weights, AdapterWeights):
            self.weights.save_adapter(directory / "adapter", base)


def _weights(decoder: Decoder, config: LearnerConfig, device: torch.device, seed: int) -> MixedWeights:
    dtype = pick_dtype(config.dtype, device)
    if config.lora.rank:
        return AdapterWeights(decoder, config.lora, dtype, device, seed)
    return MixedWeights(decoder, dtype, device)


@dataclass(slots=True)
class _Progress:
    """What one update has done so far."""

    lr: float
    tally: Tally = field(default_factory=Tally)
    gap: Gap = field(default_factory=Gap)
    norms: list[float] = field(default_factory=list)
    steps: int = 0

    def metrics(self, with_kl: bool) -> dict[str, float]:
        tally = self.tally
        if not tally.tokens:
            return {"lr": self.lr, "tokens": 0.0}
        found = {
            "loss": tally.sums["loss"] / max(1, len(self.norms)),
            "grad_norm": sum(self.norms) / max(1, len(self.norms)),
            "lr": self.lr,
            "clip_fraction": tally.mean("clipped"),
            "ratio": tally.mean("ratio"),
            "entropy": tally.mean("entropy"),
            "tokens": float(tally.tokens),
        }
        return found | self.gap.metrics() | ({"kl": tally.mean("kl")} if with_kl else {})


def is_out_of_memory(error: BaseException) -> bool:
    """Whether `error` is one of the ways in which torch says that memory ran out."""
    text = str(error).lower()
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        "not enough memory" in text or "out of memory" in text
    )


def out_of_memory_error(token_budget: int) -> ResourceError:
    """What the user is told."""
    return ResourceError(
        f"out of memory in the learner with token_budget = {token_budget}",
        where="learner.token_budget",
        fix=f"set learner.token_budget = {max(64, token_budget // 2)} or learner.checkpoint_activations = true",
    )
