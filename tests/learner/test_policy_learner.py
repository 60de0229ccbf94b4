"""Whole updates: against a plain float64 implementation, through a checkpoint, and when things go wrong."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
import torch
from learner_stand_ins import make_group, make_models, make_rollout
from torch import Tensor

from surefoot.config import LearnerConfig
from surefoot.errors import ResourceError
from surefoot.learner import PolicyLearner
from surefoot.learner import backward as backward_module
from surefoot.learner.losses import LOSSES
from surefoot.learner.weights import cast_copy
from surefoot.models import Decoder
from surefoot.models.decoder import CausalAttention
from surefoot.protocols import Learner
from surefoot.types import Group, Reward, Task

FP32 = {"dtype": "float32", "warmup_steps": 0}
REWARDED = sorted(set(LOSSES) - {"distill"})
REWARDS: list[float | None] = [0.0, 1.0, None, 0.5, 1.0]


def learner_of(decoder: Decoder | None = None, **settings: Any) -> PolicyLearner:
    config = LearnerConfig(**(FP32 | settings))
    return PolicyLearner(decoder or make_models("llama")[0], config, total_steps=10, temperature=0.9)


def groups_of(count: int = 3, start: int = 0) -> list[Group]:
    return [make_group(REWARDS, seed=i, prompt=4 + i) for i in range(start, start + count)]


# ----------------------------------------------------------------------------------- a plain float64 implementation


def plain_logprobs(decoder: Decoder, tokens: tuple[int, ...], temperature: float) -> Tensor:
    """Log-probs of tokens 1.. of one sequence [T - 1], with full logits."""
    ids = torch.tensor(tokens)
    hidden = decoder(ids, torch.arange(len(ids)), CausalAttention([len(ids)]))
    everything = torch.log_softmax(hidden[:-1] @ decoder.head.T / temperature, -1)
    return everything.gather(1, ids[1:, None])[:, 0]


def plain_loss(decoder: Decoder, groups: list[Group], name: str, kl: float, reference: Decoder | None) -> Tensor:
    """GRPO and its kin, sample by sample, with plain Python over the samples."""
    samples = []
    for group in groups:
        values = [r.value for r in group.rewards if r.valid]
        mean = sum(values) / len(values)
        std = math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))
        scale = {"dr_grpo": 1.0, "rloo": len(values) / (len(values) - 1)}.get(name, 1 / (std + 1e-4))
        pairs = zip(group.rollouts, group.rewards, strict=True)
        samples += [(rollout, (reward.value - mean) * scale) for rollout, reward in pairs if reward.valid]
    tokens = sum(rollout.sampled for rollout, _ in samples)
    total = torch.zeros((), dtype=torch.float64)
    for rollout, a in samples:
        written = torch.tensor(rollout.mask[1:])
        new = plain_logprobs(decoder, rollout.tokens, 0.9)[written]
        ratio = torch.exp(new - torch.tensor(rollout.logprobs[1:], dtype=torch.float64)[written])
        if name == "gspo":
            ratio = ratio.log().mean().exp() * torch.ones_like(new)
        each = -torch.minimum(ratio * a, ratio.clamp(0.8, 1.28 if name == "dapo" else 1.2) * a)
        if name in {"rloo", "reinforce"}:
            each = -a * new
        if name == "cispo":
            each = -ratio.detach().clamp(max=1.2) * a * new
        if reference is not None:
            ref = plain_logprobs(reference, rollout.tokens, 0.9)[written].detach()
            each = each + kl * (torch.exp(ref - new) - 1 - (ref - new))
        share = {"gspo": 1 / (len(each) * len(samples)), "dr_grpo": 1 / (len(samples) * 64)}
        share["rloo"] = share["dr_grpo"]
        total = total + each.sum() * share.get(name, 1 / tokens)
    return total


class CaughtError(Exception):
    """Ends an update before its step."""


def gradients_of(learner: PolicyLearner, groups: list[Group]) -> dict[str, Tensor]:
    """The gradients that an update would apply, before clipping."""

    def catch(*_: Any) -> float:
        raise CaughtError

    learner.weights.step = catch  # type: ignore[method-assign]
    with pytest.raises(CaughtError):
        learner.update(groups)
    return learner.weights.gradients()


@pytest.mark.parametrize("kl", [0.0, 0.3])
@pytest.mark.parametrize("budget", [64, 4096])
@pytest.mark.parametrize("name", REWARDED)
def test_gradients_equal_the_plain_float64_implementation(name: str, budget: int, kl: float) -> None:
    decoder, _ = make_models("llama", seed=1)
    start, _ = make_models("llama", seed=2)
    exact = cast_copy(decoder, torch.float64)
    learner = learner_of(decoder, loss=name, kl=kl, token_budget=budget)
    reference = None
    if kl:
        learner.reference = cast_copy(start, torch.float32).requires_grad_(False)
        reference = cast_copy(start, torch.float64)
    groups = groups_of()
    ours = gradients_of(learner, groups)
    plain_loss(exact, groups, name, kl, reference).backward()
    for parameter_name, parameter in exact.named_parameters():
        assert parameter.grad is not None
        error = (ours[parameter_name].double() - parameter.grad).norm() / parameter.grad.norm()
        assert error < 1e-4, parameter_name


@pytest.mark.parametrize("tied", [True, False])
def test_untied_heads_get_their_gradient(tied: bool) -> None:
    decoder, _ = make_models("qwen2", tied=tied)
    exact = cast_copy(decoder, torch.float64)
    groups = groups_of()
    ours = gradients_of(learner_of(decoder), groups)
    plain_loss(exact, groups, "grpo", 0.0, None).backward()
    for name, parameter in exact.named_parameters():
        assert parameter.grad is not None
        assert (ours[name].double() - parameter.grad).norm() < 1e-4 * parameter.grad.norm()


# ---------------------------------------------------------------------------------------------------- what it does


def chance_of(learner: PolicyLearner, group: Group) -> list[float]:
    with torch.no_grad():
        return [
            float(plain_logprobs(learner.compute, r.tokens, 0.9)[len(r.tokens) - r.sampled - 1 :].sum())
            for r in group.rollouts
        ]


@pytest.mark.parametrize("name", REWARDED)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rewarded_samples_become_likelier_than_the_others(name: str, dtype: str) -> None:
    learner = learner_of(loss=name, dtype=dtype, lr=1e-3)
    group = on_policy(learner, make_group([1.0, 0.0, 0.0, 1.0], longest=6))
    before = chance_of(learner, group)
    report = learner.update([group])
    gains = [b - a for a, b in zip(before, chance_of(learner, group), strict=True)]
    assert min(gains[0], gains[3]) > max(gains[1], gains[2])
    assert report.version == 1
    assert not report.skipped


def on_policy(learner: PolicyLearner, group: Group) -> Group:
    """The group as if the learner's own policy had sampled it: with its log-probs."""
    rollouts = []
    for rollout in group.rollouts:
        with torch.no_grad():
            found = plain_logprobs(learner.compute, rollout.tokens, 0.9).tolist()
        logprobs = [0.0, *found]
        kept = tuple(x if w else 0.0 for x, w in zip(logprobs, rollout.mask, strict=True))
        rollouts.append(dataclasses.replace(rollout, logprobs=kept))
    return dataclasses.replace(group, rollouts=tuple(rollouts))


def test_metrics_are_floats_and_the_gap_is_nil_on_policy() -> None:
    learner = learner_of()
    report = learner.update([on_policy(learner, g) for g in groups_of()])
    assert all(type(value) is float for value in report.metrics.values())
    wanted = {"loss", "grad_norm", "lr", "clip_fraction", "ratio", "entropy", "tokens", "degenerate", "seconds"}
    assert wanted <= set(report.metrics)
    assert report.metrics["gap/mean_abs"] < 1e-5
    assert report.metrics["gap/max"] < 1e-4
    assert report.metrics["gap/kl"] < 1e-6
    assert report.metrics["ratio"] == pytest.approx(1, abs=1e-5)
    assert report.metrics["entropy"] > 0


def test_gap_measures_the_engine_before_any_step() -> None:
    learner = learner_of(epochs=3, minibatches=2, lr=1e-2)
    report = learner.update([on_policy(learner, g) for g in groups_of(4)])
    assert report.metrics["gap/max"] < 1e-4
    assert report.metrics["ratio"] != pytest.approx(1, abs=1e-3)


def test_budget_does_not_change_the_update() -> None:
    results = []
    for budget in (64, 4096):
        learner = learner_of(token_budget=budget)
        learner.update(groups_of(5))
        results.append(learner.masters.layers[0].qkv.detach().clone())
    # AdamW's first step is the gradient's sign times lr: compare where the gradient is not about 0.
    torch.testing.assert_close(*results, atol=2e-5, rtol=1e-4)


def test_degenerate_groups_and_invalid_samples_change_nothing() -> None:
    useful = groups_of(1)
    idle = [make_group([1.0, 1.0, None], seed=9), make_group([None, None], seed=10), make_group([0.5], seed=11)]
    one, two = learner_of(), learner_of()
    one.update(useful)
    report = two.update([*useful, *idle])
    torch.testing.assert_close(one.masters.embedding, two.masters.embedding, rtol=0, atol=0)
    assert report.metrics["degenerate"] == pytest.approx(3 / 4)
    kept = sum(r.sampled for r, w in zip(useful[0].rollouts, useful[0].rewards, strict=True) if w.valid)
    assert report.metrics["tokens"] == kept


def test_no_signal_is_no_step() -> None:
    learner = learner_of()
    before = learner.masters.embedding.detach().clone()
    report = learner.update([make_group([1.0, 1.0]), make_group([None, 0.0], seed=1)])
    assert "no signal" in report.skipped
    assert report.version == learner.version == 0
    assert torch.equal(before, learner.masters.embedding)
    assert learner.update([]).skipped


def test_masked_turns_do_not_change_the_gradient_of_what_comes_before() -> None:
    """What the environment says after the last written token is not learnt from."""
    task = Task("t/0", "d", ())
    rewards = (Reward(1.0), Reward(0.0))
    short = tuple(make_rollout([1, 2, 3], [4 + i, 5], i) for i in range(2))
    long = tuple(make_rollout([1, 2, 3], [4 + i, 5, 60, 61], i, mask=[True, True, False, False]) for i in range(2))
    one, two = (gradients_of(learner_of(), [Group(task, r, (), rewards)]) for r in (short, long))
    for name in one:
        torch.testing.assert_close(one[name], two[name], rtol=0, atol=0)


def test_learning_rate_rises_then_falls_to_a_tenth() -> None:
    learner = learner_of(lr=1.0, warmup_steps=3, schedule="linear")
    rates = [learner.learning_rate(i) for i in range(10)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert rates == sorted(rates[:4]) + sorted(rates[4:], reverse=True)
    assert rates[-1] == pytest.approx(0.1)


def test_compute_copy_is_updated_in_place_and_rounds_the_masters() -> None:
    learner = learner_of(dtype="bfloat16")
    held = learner.compute.layers[0].qkv
    learner.update(groups_of())
    assert learner.compute.layers[0].qkv is held
    assert torch.equal(held.detach(), learner.masters.layers[0].qkv.detach().bfloat16())
    assert learner.masters.layers[0].qkv.dtype is torch.float32
    assert isinstance(learner, Learner)


def test_recomputing_activations_changes_nothing() -> None:
    one, two = learner_of(), learner_of(checkpoint_activations="layer")
    one.update(groups_of())
    two.update(groups_of())
    assert torch.equal(one.masters.embedding, two.masters.embedding)


# -------------------------------------------------------------------------------------------------------- resuming


@pytest.mark.parametrize("settings", [{}, {"kl": 0.1, "epochs": 2, "minibatches": 2}, {"schedule": "linear"}])
def test_resumed_run_is_bit_identical(settings: dict[str, Any]) -> None:
    settings = {"dtype": "bfloat16", "warmup_steps": 2} | settings
    steps = [groups_of(3, start=10 * i) for i in range(4)]
    whole = learner_of(**settings)
    whole_reports = [whole.update(groups) for groups in steps]

    first = learner_of(**settings)
    for groups in steps[:2]:
        first.update(groups)
    saved = {name: tensor.clone() for name, tensor in first.tensors().items()}
    counters = dict(first.counters())
    first.update(steps[2])  # what came after the checkpoint is lost in the crash

    other, _ = make_models("llama", seed=5)
    resumed = learner_of(other, **settings)
    resumed.restore(saved, counters)
    reports = [resumed.update(groups) for groups in steps[2:]]
    for (name, ours), theirs in zip(resumed.tensors().items(), whole.tensors().values(), strict=True):
        assert torch.equal(ours, theirs), name
    assert torch.equal(resumed.compute.embedding, whole.compute.embedding)
    assert resumed.counters() == whole.counters()
    for ours, theirs in zip(reports, whole_reports[2:], strict=True):
        assert {**ours.metrics, "seconds": 0} == {**theirs.metrics, "seconds": 0}


def test_a_checkpoint_before_the_first_step_can_be_restored() -> None:
    first, second = learner_of(), learner_of()
    first.update(groups_of())
    first.restore({n: t.clone() for n, t in second.tensors().items()}, second.counters())
    first.update(groups_of())
    second.update(groups_of())
    assert torch.equal(first.masters.embedding, second.masters.embedding)


# --------------------------------------------------------------------------------------------------------- trouble


def test_non_finite_loss_is_skipped_and_harmless() -> None:
    learner = learner_of()
    before = learner.masters.embedding.detach().clone()
    group = make_group([1.0, 0.0])
    broken = [dataclasses.replace(r, logprobs=tuple(float("-inf") for _ in r.logprobs)) for r in group.rollouts]
    report = learner.update([dataclasses.replace(group, rollouts=tuple(broken))])
    assert "not finite" in report.skipped
    assert report.version == 0
    assert torch.equal(before, learner.masters.embedding)
    assert not learner.update(groups_of()).skipped


def test_non_finite_gradient_is_skipped_and_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = learner_of()
    learner.update(groups_of())
    before = {name: tensor.clone() for name, tensor in learner.tensors().items()}
    collect = learner.weights.add_gradient
    monkeypatch.setattr(learner.weights, "add_gradient", lambda name, part: collect(name, part * float("nan")))
    report = learner.update(groups_of(start=5))
    assert report.skipped == "the gradient is not finite"
    assert report.version == 1
    assert all(torch.equal(before[name], tensor) for name, tensor in learner.tensors().items())


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate")]
)
def test_running_out_of_memory_gives_advice_and_loses_nothing(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = learner_of(token_budget=64)
    calls = 0
    forward = backward_module.hidden_states

    def fail_later(*args: Any, **kwargs: Any) -> Tensor:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise error
        return forward(*args, **kwargs)

    monkeypatch.setattr(backward_module, "hidden_states", fail_later)
    with pytest.raises(ResourceError, match=r"learner\.token_budget"):
        learner.update(groups_of())
    monkeypatch.undo()
    fresh = learner_of(token_budget=64)
    learner.update(groups_of())
    fresh.update(groups_of())
    assert torch.equal(learner.masters.embedding, fresh.masters.embedding)


def test_other_errors_are_not_disguised(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = learner_of()

    def fail(*_: Any, **__: Any) -> Tensor:
        raise RuntimeError("shape mismatch")

    monkeypatch.setattr(backward_module, "hidden_states", fail)
    with pytest.raises(RuntimeError, match="shape mismatch"):
        learner.update(groups_of())
