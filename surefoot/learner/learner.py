"""The policy learner: groups of rollouts in, new weights out."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from surefoot.config import DomainLearning, LearnerConfig
from surefoot.errors import ConfigError, ResourceError
from surefoot.learner.adapters import AdapterWeights
from surefoot.learner.advantages import step_advantages
from surefoot.learner.backward import backward, score_pack
from surefoot.learner.losses import Clip, find_loss
from surefoot.learner.objective import (
    Algorithm,
    Correction,
    DomainMeasures,
    Gap,
    PolicyObjective,
    Tally,
    Totals,
    token_weights,
)
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

EVERY_DOMAIN = ""


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
        domains: Mapping[str, DomainLearning] | None = None,
        teacher: Decoder | None = None,
    ) -> None:
        """Take over a decoder.

        Args:
            decoder_fp32: The starting weights; they become the masters and change in place.
            config: The recipe's `[learner]`.
            total_steps: Updates of the whole run, for the schedule of the learning rate.
            temperature: Of the rollouts; log-probs are those of the distribution that was sampled.
            device: Where all tensors live.
            seed: Of the adapters' first values, if there are any.
            domains: What domains want otherwise than `config`, by name.
            teacher: Of the same vocabulary; what losses of distillation follow.
            longest_sample: Most tokens a sample may have: what losses averaged by a constant (Dr. GRPO) divide by.
        """
        self.config, self.total_steps, self.temperature = config, total_steps, temperature
        self.longest_sample, self.device = longest_sample, torch.device(device)
        self.algorithms = _algorithms(config, domains or {})
        if teacher is None and any(algorithm.loss.traits.teacher for algorithm in self.algorithms.values()):
            raise ConfigError("distillation has no teacher", where="learner.teacher", fix="name the teacher's model")
        self.correction = None if config.mismatch == "none" else Correction(config.mismatch, config.mismatch_cap)
        self.weights = _weights(decoder_fp32, config, self.device, seed)
        self.optimiser = self.weights.optimiser(config.lr, betas=config.betas, weight_decay=config.weight_decay)
        self.reference: Decoder | None = None
        self.teacher = teacher and cast_copy(teacher, self.compute.embedding.dtype).requires_grad_(False).to(
            self.device
        )
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
        if any(algorithm.kl > 0 for algorithm in self.algorithms.values()):
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
            grown = self._grow(groups)
            grown = [crop for crop in grown if crop.trees]
            reason = self._learn(grown, progress) if grown else "no signal: all rewards of every group are equal"
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
        return UpdateReport(self._version, metrics, reason, progress.domains.metrics())

    def _grow(self, groups: Sequence[Group]) -> list[_Crop]:
        """Each group's trees, none if it teaches nothing, and what is done with them."""
        algorithms = [self.algorithms.get(group.task.domain, self.algorithms[EVERY_DOMAIN]) for group in groups]
        estimators = [algorithm.loss.traits.advantage or self.config.advantage for algorithm in algorithms]
        crops = []
        for group, algorithm, worth in zip(groups, algorithms, step_advantages(groups, estimators), strict=True):
            teaches = not group.degenerate or algorithm.loss.traits.teacher
            crops.append(_Crop(algorithm, group_trees(group, worth) if teaches else []))
        return crops

    def _learn(self, grown: Sequence[_Crop], progress: _Progress) -> str:
        """Epochs over minibatches; returns why it stopped early, if it did."""
        count = min(self.config.minibatches, len(grown))
        minibatches = [self._lay_out(grown[index::count]) for index in range(count)]
        if self.correction and count * self.config.epochs > 1:  # before the first step moves the weights
            for _, parts in minibatches:
                for part in parts:
                    part.proximal = score_pack(self.compute, part.pack, temperature=self.temperature).logprobs
        for _ in range(self.config.epochs):
            for totals, parts in minibatches:
                if reason := self._minibatch(totals, parts, progress):
                    return reason
        return ""

    def _lay_out(self, grown: Sequence[_Crop]) -> tuple[Totals, list[_Part]]:
        """Packs of one minibatch: averages go over all of it, while a pack has one algorithm."""
        by_algorithm: dict[Algorithm, list[Tree]] = {}
        for crop in grown:
            by_algorithm.setdefault(crop.algorithm, []).extend(crop.trees)
        parts = [
            _Part(algorithm, packed.to(self.device))
            for algorithm, trees in by_algorithm.items()
            for packed in pack(trees, self.config.token_budget)
        ]
        return Totals.of([tree for crop in grown for tree in crop.trees], self.longest_sample), parts

    def _minibatch(self, totals: Totals, parts: Sequence[_Part], progress: _Progress) -> str:
        """One optimiser step; returns why none was taken, if none was."""
        before = progress.tally.sums.get("loss", 0.0)
        for part in parts:
            self._backward(part, totals, progress)
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

    def _backward(self, part: _Part, totals: Totals, progress: _Progress) -> None:
        algorithm, packed = part.algorithm, part.pack
        reference = self._scores(self.reference if algorithm.kl > 0 else None, packed)
        objective = PolicyObjective(
            packed,
            algorithm,
            token_weights(packed, algorithm.loss.traits.average, totals),
            progress.tally,
            reference=reference,
            teacher=self._scores(self.teacher if algorithm.loss.traits.teacher else None, packed),
            correction=self.correction,
            proximal=part.proximal,
        )
        kept = self.config.checkpoint_activations
        scores = backward(self.weights, packed, objective, temperature=self.temperature, kept=kept)
        progress.tally.add("entropy", scores.entropy)
        if not progress.steps:
            progress.gap.observe(packed.old_logprobs, scores.logprobs)
            progress.domains.observe(packed, scores.logprobs, scores.entropy, reference)

    def _scores(self, decoder: Decoder | None, packed: Pack) -> Tensor | None:
        return None if decoder is None else score_pack(decoder, packed, temperature=self.temperature).logprobs

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


@dataclass(frozen=True, slots=True)
class _Crop:
    """The trees of one group."""

    algorithm: Algorithm
    trees: list[Tree]


@dataclass(slots=True)
class _Part:
    """One forward-backward pass."""

    algorithm: Algorithm
    pack: Pack
    proximal: Tensor | None = None


def _algorithms(config: LearnerConfig, domains: Mapping[str, DomainLearning]) -> dict[str, Algorithm]:
    """By domain, the recipe's own under EVERY_DOMAIN."""

    def one(own: DomainLearning) -> Algorithm:
        low = config.clip_low if own.clip_low is None else own.clip_low
        high = config.clip_high if own.clip_high is None else own.clip_high
        kl = config.kl if own.kl is None else own.kl
        return Algorithm(find_loss(own.loss or config.loss), Clip(low, high), kl, config.kl_estimator)

    return {EVERY_DOMAIN: one(DomainLearning())} | {name: one(own) for name, own in domains.items()}


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
    domains: DomainMeasures = field(default_factory=DomainMeasures)
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
        if "mismatch" in tally.sums:
            found["mismatch"] = tally.mean("mismatch")
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
        fix=f"set learner.token_budget = {max(64, token_budget // 2)} or learner.checkpoint_activations = 'layer'",
    )
