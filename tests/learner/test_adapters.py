"""LoRA and DoRA against peft itself, through checkpoints, and beside full fine-tuning."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from learner_stand_ins import make_group, make_models

from surefoot.config import LearnerConfig, LoraConfig
from surefoot.learner import PolicyLearner
from surefoot.learner.adapters import AdapterWeights
from surefoot.learner.weights import weight_tensors
from surefoot.models import Decoder
from surefoot.models.decoder import CausalAttention
from surefoot.types import Group

peft = pytest.importorskip("peft")
TOKENS = torch.tensor([5, 17, 3, 88, 41, 9, 60])


def learner_of(decoder: Decoder, **lora: Any) -> PolicyLearner:
    config = LearnerConfig(
        dtype="float32", warmup_steps=0, lr=1e-2, lora=LoraConfig(**{"rank": 4, "alpha": 8.0, **lora})
    )
    return PolicyLearner(decoder, config, total_steps=10, seed=3)


def groups_of(seed: int) -> list[Group]:
    return [make_group([0.0, 1.0, 0.5, 1.0], seed=seed + i) for i in range(3)]


def logits(decoder: Decoder) -> torch.Tensor:
    with torch.no_grad():
        return decoder(TOKENS, torch.arange(len(TOKENS)), CausalAttention([len(TOKENS)])) @ decoder.head.T


@pytest.mark.parametrize("dora", [False, True], ids=["lora", "dora"])
def test_peft_reads_a_trained_adapter_and_computes_the_same(family: str, dora: bool, tmp_path: Path) -> None:
    decoder, plain = make_models(family)
    learner = learner_of(copy.deepcopy(decoder), dora=dora)
    before = logits(learner.compute)
    for step in range(3):
        assert not learner.update(groups_of(step)).skipped
    assert isinstance(learner.weights, AdapterWeights)
    learner.weights.save_adapter(tmp_path, "base")
    loaded = peft.PeftModel.from_pretrained(plain, tmp_path)
    with torch.no_grad():
        theirs = loaded(TOKENS[None]).logits[0]
    ours = logits(learner.compute)
    assert (ours - before).abs().max() > 0.05  # it learnt something
    torch.testing.assert_close(ours, theirs, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("dora", [False, True], ids=["lora", "dora"])
def test_gradients_are_those_of_peft(dora: bool, tmp_path: Path) -> None:
    decoder, plain = make_models("llama")
    learner = learner_of(copy.deepcopy(decoder), dora=dora)
    learner.update(groups_of(0))  # so that B is not zero and A has a gradient
    weights = learner.weights
    assert isinstance(weights, AdapterWeights)
    weights.save_adapter(tmp_path, "base")
    loaded = peft.PeftModel.from_pretrained(plain, tmp_path, is_trainable=True)
    loaded(TOKENS[None]).logits.square().mean().backward()
    (
        learner.compute(TOKENS, torch.arange(len(TOKENS)), CausalAttention([len(TOKENS)])) @ learner.compute.head.T
    ).square().mean().backward()
    found, checked = weights.gradients(), 0
    for name, parameter in loaded.named_parameters():
        if parameter.grad is None:
            continue
        ours = name.removeprefix("base_model.model.").replace(".default", "").replace("lora_A.weight", "a")
        ours = ours.replace("lora_B.weight", "b").replace("lora_magnitude_vector.weight", "magnitude")
        torch.testing.assert_close(found[ours], parameter.grad, rtol=1e-3, atol=1e-6)
        checked += 1
    assert checked == len(found) == 2 * 7 * (3 if dora else 2)


def test_only_adapters_move_and_the_model_is_base_plus_adapter() -> None:
    decoder, _ = make_models("llama")
    before = {name: value.clone() for name, value in weight_tensors(decoder, "w").items()}
    learner = learner_of(decoder, targets=("q_proj", "down_proj"))
    learner.update(groups_of(1))
    after = weight_tensors(learner.masters, "w")
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved == {f"w.layers.{i}.{part}" for i in (0, 1) for part in ("qkv", "down")}
    heads = learner.compute.config.heads * learner.compute.config.head_dim
    assert torch.equal(before["w.layers.0.qkv"][heads:], after["w.layers.0.qkv"][heads:])  # k and v stay


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_restored_learner_goes_on_bit_for_bit(dtype: str) -> None:
    config = LearnerConfig(dtype=dtype, warmup_steps=0, lr=1e-2, lora=LoraConfig(rank=4, dora=True))  # type: ignore[arg-type]
    first = PolicyLearner(make_models("llama")[0], config, total_steps=10)
    first.update(groups_of(0))
    kept = {name: value.clone() for name, value in first.tensors().items()}
    merged = copy.deepcopy(first.masters)
    counters = first.counters()
    first.update(groups_of(5))
    second = PolicyLearner(merged, config, total_steps=10, seed=99)  # as after a crash: from the checkpoint's model
    second.restore(kept, counters)
    second.update(groups_of(5))
    for name, value in second.tensors().items():
        assert torch.equal(value, first.tensors()[name]), name
    ours, theirs = weight_tensors(second.compute, ""), weight_tensors(first.compute, "")
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_what_is_kept_is_small() -> None:
    full = PolicyLearner(make_models("llama")[0], LearnerConfig(dtype="float32"), total_steps=10)
    small = learner_of(make_models("llama")[0], rank=2)
    for learner in (full, small):
        learner.update(groups_of(2))

    def moments(learner: PolicyLearner) -> int:
        return sum(v.numel() for name, v in learner.tensors().items() if name.startswith("exp_avg"))

    assert moments(small) < moments(full) / 5


def test_unknown_targets_are_refused() -> None:
    with pytest.raises(ValueError, match="targets must be among q_proj"):
        LoraConfig(rank=4, targets=("attention",))
