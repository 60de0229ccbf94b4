"""The sections of a recipe that say how the policy learns."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from surefoot.config_section import Section


class DomainLearning(Section):
    """`learner` of a domain: what it wants otherwise than the recipe's `[learner]`."""

    loss: str | None = None
    """Name of its policy loss."""
    clip_low: float | None = Field(default=None, ge=0)
    """Its lower clip."""
    clip_high: float | None = Field(default=None, ge=0)
    """Its upper clip."""
    kl: float | None = Field(default=None, ge=0)
    """Its weight of the KL penalty."""


class LoraConfig(Section):
    """`[learner.lora]`: low-rank adapters in place of full fine-tuning."""

    rank: int = Field(default=0, ge=0)
    """Rank of the adapters (LoRA, arXiv 2106.09685); 0 trains all weights. Adapters want about ten times the learning
    rate of full fine-tuning."""
    alpha: float = Field(default=32.0, gt=0)
    """What an adapter adds is scaled by alpha / rank."""
    dora: bool = False
    """Whether each row's magnitude is trained apart from its direction (DoRA, arXiv 2402.09353)."""
    targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    """Matrices that get an adapter, by their Hugging Face names; all of them by default."""

    @field_validator("targets")
    @classmethod
    def _targets_are_known(cls, targets: tuple[str, ...]) -> tuple[str, ...]:
        known = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
        if not targets or set(targets) - set(known):
            raise ValueError(f"targets must be among {', '.join(known)}")
        return targets


class LearnerConfig(Section):
    """`[learner]`: the policy-gradient update."""

    loss: str = "grpo"
    """Name of the policy loss; see `surefoot.learner.losses`."""
    advantage: Literal["group_std", "group_mean", "domain_std", "batch_std"] = "group_std"
    """`group_std`: (r - mean) / (std + 1e-4), GRPO (arXiv 2402.03300); `group_mean`: r - mean, Dr. GRPO
    (arXiv 2503.20783); `domain_std` and `batch_std`: r - mean of the group, divided by the deviation over its domain or
    over the step (REINFORCE++ with a group baseline, arXiv 2501.03262)."""
    lr: float = Field(default=2e-5, gt=0)
    """Peak learning rate of AdamW."""
    warmup_steps: int = Field(default=3, ge=0)
    """Steps over which the learning rate rises linearly to `lr`."""
    schedule: Literal["constant", "linear"] = "constant"
    """What the learning rate does after warm-up: stays, or falls linearly to a tenth at the last step."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Decoupled weight decay; norms are exempt."""
    betas: tuple[float, float] = (0.9, 0.95)
    """AdamW's moment decay rates."""
    clip_low: float = Field(default=0.2, ge=0)
    """Lower clip of the ratio: 1 - clip_low."""
    clip_high: float = Field(default=0.2, ge=0)
    """Upper clip of the ratio: 1 + clip_high; larger than `clip_low` is DAPO's clip-higher (arXiv 2503.14476)."""
    kl: float = Field(default=0.0, ge=0)
    """Weight of the KL penalty to the starting model; 0 keeps no reference model in memory."""
    kl_estimator: Literal["k1", "k2", "k3"] = "k3"
    """How the penalty is estimated from sampled tokens (joschu.net/blog/kl-approx.html): `k3` never negative and
    unbiased in value, `k2` unbiased in gradient, `k1` the plain log-ratio, whose gradient is zero on average."""
    mismatch: Literal["none", "truncated", "masked"] = "none"
    """What is done where the engine's log-probs differ from the learner's: `none`: the policy ratio is taken to the
    engine's own, which corrects exactly but is clipped; `truncated` and `masked`: the ratio is taken to the learner's
    and each token weighted by learner over engine, cut at `mismatch_cap` or dropped beyond it."""
    mismatch_cap: float = Field(default=2.0, gt=1)
    """Largest importance weight of a token."""
    teacher: str | None = None
    """Model of the same vocabulary that `loss = "distill"` follows: a directory or a hub id."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradients are scaled down to this norm."""
    epochs: int = Field(default=1, ge=1)
    """Passes over each step's rollouts."""
    minibatches: int = Field(default=1, ge=1)
    """Optimiser steps a pass; groups are split among them."""
    token_budget: int = Field(default=2048, ge=64)
    """Most tokens in one forward-backward pass; more are accumulated. Lower it if memory runs out."""
    dtype: Literal["auto", "bfloat16", "float32"] = "auto"
    """Compute type of matrix products in learner and engine; `auto` is bfloat16 where the machine has instructions for
    it. Master weights and optimiser state are always fp32."""
    lora: LoraConfig = LoraConfig()
    """Low-rank adapters in place of full fine-tuning."""
    checkpoint_activations: Literal["none", "layer", "offload"] = "none"
    """What is kept for the backward pass: `none`: all that it needs; `layer`: each layer's input alone, for long
    sequences, the rest computed again, a third slower; `offload`: as `layer`, with those inputs in the CPU's memory
    until they are wanted (on a CPU the same as `layer`)."""

    @field_validator("checkpoint_activations", mode="before")
    @classmethod
    def _yes_and_no(cls, value: object) -> object:
        return {True: "layer", False: "none"}.get(value, value) if isinstance(value, bool) else value


class RopeConfig(Section):
    """`[rope]`: a longer window than the model was trained with, by other rotary frequencies."""

    type: Literal["none", "linear", "dynamic", "yarn", "llama3"] = "none"
    """`linear`: positions divided by the factor (arXiv 2306.15595); `dynamic`: NTK-aware frequencies of the whole
    window; `yarn`: by wavelength, with a temperature (arXiv 2309.00071); `llama3`: by wavelength, as Llama 3.1; `none`:
    the model's own. All as transformers computes them."""
    factor: float = Field(default=2.0, gt=1)
    """How many times as long the window becomes."""


class WarmStartConfig(Section):
    """`[warm_start]`: supervised fine-tuning on the domains' own demonstrations before reinforcement learning."""

    examples: int = Field(default=0, ge=0)
    """Demonstrations in all, spread over the domains; 0 for no warm start."""
    epochs: int = Field(default=1, ge=1)
    """Passes over the demonstrations."""
    lr: float = Field(default=5e-5, gt=0)
    """Peak learning rate."""
    batch_tokens: int = Field(default=2048, ge=64)
    """Tokens an optimiser step."""
