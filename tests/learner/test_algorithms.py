"""Algorithms by domain, corrections of the engine's log-probs, KL estimators and teachers, against float64."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from learner_stand_ins import make_group, make_models
from test_policy_learner import gradients_of, groups_of, learner_of, on_policy, plain_logprobs, plain_loss
from torch import Tensor

from surefoot.config import DomainLearning, LearnerConfig
from surefoot.errors import ConfigError
from surefoot.learner import PolicyLearner
from surefoot.learner.objective import Correction
from surefoot.learner.weights import cast_copy
from surefoot.models import Decoder
from surefoot.models.decoder import CausalAttention
from surefoot.types import Group


def in_domain(group: Group, domain: str) -> Group:
    return dataclasses.replace(group, task=dataclasses.replace(group.task, domain=domain))


def shaken(group: Group) -> Group:
    """The group as an engine would report it whose log-probs are off, both ways."""
    off = (-0.7, -0.2, 0.2, 0.7)
    rollouts = [
        dataclasses.replace(
            r, logprobs=tuple(p + off[i % 4] * w for i, (p, w) in enumerate(zip(r.logprobs, r.mask, strict=True)))
        )
        for r in group.rollouts
    ]
    return dataclasses.replace(group, rollouts=tuple(rollouts))


def assert_gradients(ours: dict[str, Tensor], exact: Decoder, tolerance: float = 1e-4) -> None:
    for name, parameter in exact.named_parameters():
        assert parameter.grad is not None
        assert (ours[name].double() - parameter.grad).norm() < tolerance * parameter.grad.norm(), name


def test_domains_of_one_batch_learn_by_their_own_losses() -> None:
    decoder, _ = make_models("llama", seed=1)
    start, _ = make_models("llama", seed=2)
    exact, reference = cast_copy(decoder, torch.float64), cast_copy(start, torch.float64)
    first, second = [in_domain(g, "a") for g in groups_of(2)], [in_domain(g, "b") for g in groups_of(3, start=2)]
    own = {"b": DomainLearning(loss="cispo", kl=0.3)}
    config = LearnerConfig(dtype="float32", warmup_steps=0)
    learner = PolicyLearner(decoder, config, total_steps=10, temperature=0.9, domains=own)
    learner.reference = cast_copy(start, torch.float32).requires_grad_(False)
    ours = gradients_of(learner, [first[0], second[0], first[1], second[1], second[2]])
    tokens = [
        sum(r.sampled for g in part for r, w in zip(g.rollouts, g.rewards, strict=True) if w.valid)
        for part in (first, second)
    ]
    share_a, share_b = tokens[0] / sum(tokens), tokens[1] / sum(tokens)
    (
        share_a * plain_loss(exact, first, "grpo", 0.0, None)
        + share_b * plain_loss(exact, second, "cispo", 0.3, reference)
    ).backward()
    assert_gradients(ours, exact)


@pytest.mark.parametrize("kind", ["truncated", "masked"])
def test_corrected_gradients_equal_the_plain_ones(kind: str) -> None:
    decoder, _ = make_models("llama", seed=1)
    exact = cast_copy(decoder, torch.float64)
    cap = 1.5
    learner = learner_of(decoder, mismatch=kind, mismatch_cap=cap, advantage="group_mean")
    group = shaken(on_policy(learner, make_group([1.0, 0.0, 0.5], seed=4)))
    ours = gradients_of(learner, [group])
    total, count, seen = torch.zeros((), dtype=torch.float64), 0, []
    for rollout, advantage in zip(group.rollouts, (0.5, -0.5, 0.0), strict=True):
        written = torch.tensor(rollout.mask[1:])
        new = plain_logprobs(exact, rollout.tokens, 0.9)[written]
        engine = torch.tensor(rollout.logprobs[1:], dtype=torch.float64)[written]
        weight = torch.exp(new.detach() - engine)
        seen += weight.tolist()
        weight = weight.clamp(max=cap) if kind == "truncated" else weight * ((weight <= cap) & (weight >= 1 / cap))
        total = total - (weight * advantage * torch.exp(new - new.detach())).sum()
        count += len(new)
    assert min(seen) < 1 / cap < cap < max(seen)  # both limits are reached
    (total / count).backward()
    assert_gradients(ours, exact)


def test_later_steps_hold_on_to_the_log_probs_from_before_the_update() -> None:
    """With an exact engine a correction changes nothing, however many steps an update takes."""
    results = []
    for mismatch in ("none", "truncated"):
        learner = learner_of(mismatch=mismatch, epochs=2, minibatches=2, lr=1e-3)
        report = learner.update([on_policy(learner, g) for g in groups_of(4)])
        results.append(learner.masters.layers[0].qkv.detach().clone())
    assert report.metrics["mismatch"] == pytest.approx(1, abs=1e-3)
    torch.testing.assert_close(*results, atol=2e-5, rtol=1e-3)


def test_the_mask_drops_what_the_cap_lets_pass() -> None:
    learner, engine = torch.log(torch.tensor([0.1, 0.4, 0.5, 0.9])), torch.log(torch.tensor([0.5, 0.4, 0.3, 0.1]))
    torch.testing.assert_close(Correction("masked", 2.0).weights(learner, engine), torch.tensor([0.0, 1.0, 5 / 3, 0.0]))
    torch.testing.assert_close(
        Correction("truncated", 2.0).weights(learner, engine), torch.tensor([0.2, 1.0, 5 / 3, 2.0])
    )


# --------------------------------------------------------------------------------------------------------- teachers


def distil(**settings: Any) -> tuple[PolicyLearner, Decoder]:
    teacher, _ = make_models("llama", seed=7)
    config = LearnerConfig(dtype="float32", warmup_steps=0, loss="distill", **settings)
    return PolicyLearner(make_models("llama")[0], config, total_steps=10, temperature=0.9, teacher=teacher), teacher


def test_distillation_follows_the_gap_to_the_teacher() -> None:
    learner, teacher = distil()
    group = on_policy(
        learner, make_group([0.0, 0.0, 0.0], seed=3)
    )  # equal rewards: there is much to learn all the same
    exact, wise = cast_copy(learner.masters, torch.float64), cast_copy(teacher, torch.float64)
    ours = gradients_of(learner, [group])
    parts = []
    for rollout in group.rollouts:
        written = torch.tensor(rollout.mask[1:])
        new = plain_logprobs(exact, rollout.tokens, 0.9)[written]
        gap = plain_logprobs(wise, rollout.tokens, 0.9)[written].detach() - new.detach()
        parts.append(-gap * new)
    torch.cat(parts).mean().backward()
    assert_gradients(ours, exact, 2e-4)


def test_distillation_brings_the_student_nearer() -> None:
    learner, teacher = distil(lr=1e-2)
    group = make_group([0.0] * 8, seed=5, prompt=3, longest=8)

    def gap() -> float:
        """KL of student to teacher at the group's positions."""
        total = []
        for rollout in group.rollouts:
            rows = []
            for decoder in (learner.compute, teacher):
                ids = torch.tensor(rollout.tokens)

                with torch.no_grad():
                    hidden = decoder(ids, torch.arange(len(ids)), CausalAttention([len(ids)]))
                    rows.append(torch.log_softmax(hidden @ decoder.head.T / 0.9, -1))
            total.append(float((rows[0].exp() * (rows[0] - rows[1])).sum(-1).mean()))
        return sum(total) / len(total)

    before = gap()
    generator = torch.Generator().manual_seed(0)
    for _ in range(25):  # fresh tokens from the student's own distribution at every step
        rollouts = []
        for rollout in group.rollouts:
            ids = list(rollout.tokens[: rollout.prompt_length])
            for _ in range(rollout.sampled):
                with torch.no_grad():
                    hidden = learner.compute(torch.tensor(ids), torch.arange(len(ids)), CausalAttention([len(ids)]))
                    chances = torch.softmax(hidden[-1] @ learner.compute.head.T / 0.9, -1)
                ids.append(int(torch.multinomial(chances, 1, generator=generator)))
            rollouts.append(dataclasses.replace(rollout, tokens=tuple(ids)))
        group = on_policy(learner, dataclasses.replace(group, rollouts=tuple(rollouts)))
        learner.update([group])
    assert gap() < 0.7 * before


def test_distillation_without_a_teacher_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no teacher"):
        learner_of(loss="distill")


def test_each_domain_is_measured_apart() -> None:
    decoder, _ = make_models("llama", seed=1)
    first, second = [in_domain(g, "a") for g in groups_of(2)], [in_domain(g, "b") for g in groups_of(3, start=2)]
    config = LearnerConfig(dtype="float32", kl=0.1, advantage="domain_std")
    report = PolicyLearner(decoder, config, total_steps=10).update([*first, *second])
    alone = {
        name: PolicyLearner(make_models("llama", seed=1)[0], config, total_steps=10).update(part).metrics
        for name, part in (("a", first), ("b", second))
    }
    assert set(report.domains) == {"a", "b"}
    for name, found in report.domains.items():
        assert found["entropy"] == pytest.approx(alone[name]["entropy"], rel=1e-4)
        assert found["gap"] == pytest.approx(alone[name]["gap/mean_abs"], rel=1e-4)
        assert found["kl"] == pytest.approx(0.0, abs=1e-5)  # the reference is the model itself
