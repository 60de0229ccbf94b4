"""Supervised warm start on the tiny model."""

from __future__ import annotations

import pytest
import torch
from learner_stand_ins import make_group, make_models

from surefoot.config import LearnerConfig, WarmStartConfig
from surefoot.learner import Example, PolicyLearner, warm_start
from surefoot.models import load_model


def tiny_learner(**settings: object) -> PolicyLearner:
    return PolicyLearner(load_model("tiny").decoder, LearnerConfig(**settings), total_steps=5, temperature=1.0)


def demonstrations(count: int = 40) -> list[Example]:
    tokenizer = load_model("tiny").tokenizer
    return [
        Example(tuple(tokenizer.encode(f"double {i}:")), tuple(tokenizer.encode(f" {2 * i}<|im_end|>")))
        for i in range(count)
    ]


def test_loss_falls_and_progress_is_told() -> None:
    learner = tiny_learner()
    seen: list[tuple[int, int, float]] = []
    config = WarmStartConfig(epochs=4, lr=3e-3, batch_tokens=128)
    result = warm_start(learner, demonstrations(), config, 0, lambda *args: seen.append(args))
    assert result["loss_last"] < 0.7 * result["loss_first"]
    assert [done for done, _, _ in seen] == list(range(1, int(result["steps"]) + 1))
    assert seen[-1][2] == result["loss_last"]
    assert learner.version == 0
    assert result["tokens"] == 4 * sum(len(e.answer) for e in demonstrations())


def test_order_depends_on_the_seed_alone() -> None:
    weights = []
    for seed in (1, 1, 2):
        learner = tiny_learner()
        warm_start(learner, demonstrations(), WarmStartConfig(batch_tokens=64), seed)
        weights.append(learner.masters.embedding.detach().clone())
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_gradient_is_that_of_the_mean_answer_nll() -> None:
    """One step over one batch: the loss is transformers' own with the prompt's labels masked."""
    decoder, plain = make_models("llama")
    learner = PolicyLearner(decoder, LearnerConfig(dtype="float32"), total_steps=1, temperature=0.5)
    examples = [Example((1, 2, 3), (4, 5)), Example((9,), (8, 7, 6))]
    result = warm_start(learner, examples, WarmStartConfig(), 0)
    total = 0.0
    for example in examples:
        labels = torch.tensor([[-100] * len(example.prompt) + list(example.answer)])
        ids = torch.tensor([[*example.prompt, *example.answer]])
        total += plain(ids, labels=labels).loss.item() * len(example.answer)
    assert result["loss_first"] == pytest.approx(total / 5, rel=1e-5)


def test_reference_of_the_penalty_is_the_warm_started_model() -> None:
    learner = tiny_learner(kl=0.1, dtype="float32")
    warm_start(learner, demonstrations(10), WarmStartConfig(), 0)
    assert learner.reference is not None
    assert torch.equal(learner.reference.embedding, learner.masters.embedding)
    report = learner.update([make_group([0.0, 1.0], vocab=200)])
    assert report.metrics["kl"] == pytest.approx(0, abs=1e-6)


def test_nothing_to_learn_is_no_step() -> None:
    learner = tiny_learner()
    result = warm_start(learner, [Example((1, 2), ())], WarmStartConfig(), 0)
    assert result["steps"] == 0
