"""Long sequences: memory linear in their length, chunked MLPs, longer windows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from learner_stand_ins import make_group, make_models, make_rollout
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig

from surefoot.config import LearnerConfig, RopeConfig
from surefoot.errors import ModelError
from surefoot.learner import PolicyLearner, recompute
from surefoot.learner.attention import PrefixAttention
from surefoot.learner.layers import Kept, embed, hidden_states
from surefoot.learner.packing import group_trees, lay_out
from surefoot.models import load_model, save_model
from surefoot.models.decoder import CausalAttention
from surefoot.models.weights import load_decoder
from surefoot.rollout import LocalEngine
from surefoot.types import Draw, Group, Reward, Sampling, Task

VOCAB = 97


class Largest(TorchDispatchMode):
    """The most numbers in any tensor that an operation made."""

    def __init__(self) -> None:
        super().__init__()
        self.most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else (out,):
            if isinstance(tensor, torch.Tensor):
                self.most = max(self.most, tensor.untyped_storage().nbytes() // tensor.element_size())
        return out


def long_group(prompt: int, answer: int, samples: int = 2) -> Group:
    generator = torch.Generator().manual_seed(0)
    start = torch.randint(VOCAB, (prompt,), generator=generator).tolist()
    rollouts = tuple(
        make_rollout(start, torch.randint(VOCAB, (answer,), generator=generator).tolist(), i) for i in range(samples)
    )
    return Group(Task("d/0", "d", ()), rollouts, (), tuple(Reward(float(i % 2)) for i in range(samples)))


@pytest.mark.parametrize("shape", ["long prompt", "long answer"])
def test_no_array_of_a_training_step_grows_with_the_square_of_the_length(shape: str) -> None:
    """Scores of one head at 4,096 tokens would be 17 million numbers; an MLP's activations are 0.8 million."""
    learner = PolicyLearner(
        make_models("llama")[0],
        LearnerConfig(dtype="float32", checkpoint_activations="layer", token_budget=64),
        total_steps=1,
    )
    most = []
    for length in (2048, 4096):
        group = long_group(length, 32) if shape == "long prompt" else long_group(32, length)
        with Largest() as seen:
            report = learner.update([group])
        assert not report.skipped
        most.append(seen.most)
    assert most[1] <= 2.1 * most[0]
    assert most[1] < 4096 * 4096 // 4


def test_the_plain_attention_of_other_devices_is_as_sparing(monkeypatch: pytest.MonkeyPatch) -> None:
    from surefoot.learner import tiles

    monkeypatch.setattr(tiles, "FLASH_DEVICES", ())
    packed = lay_out(group_trees(long_group(4000, 20), [1.0, -1.0]))
    q, k, v = (torch.randn(len(packed.tokens), heads, 16, requires_grad=True) for heads in (4, 2, 2))
    with Largest() as seen:
        PrefixAttention(packed)(0, q, k, v).sum().backward()
    assert seen.most < 4000 * 4000 // 4


@pytest.mark.parametrize("kept", ["layer", "offload"])
def test_chunked_layers_give_the_same_gradients(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    group = make_group([0.0] * 4, longest=12)
    packed = lay_out(group_trees(group, [0.0] * 4))
    decoders = []
    for chunk, how in ((4096, "none"), (7, kept)):
        monkeypatch.setattr(recompute, "MLP_CHUNK", chunk)
        decoder = make_models("qwen3")[0].double()
        embedded = embed(decoder, packed.tokens)
        hidden_states(decoder, embedded, packed.positions, PrefixAttention(packed), kept=how).square().sum().backward()
        decoders.append((embedded.grad, *(p.grad for p in decoder.layers.parameters())))
    for one, two in zip(*decoders, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-9, atol=1e-9)


def test_layers_above_a_frozen_embedding_are_trained_all_the_same() -> None:
    packed = lay_out(group_trees(make_group([0.0] * 2), [0.0] * 2))
    decoder = make_models("llama")[0]
    decoder.embedding.requires_grad_(False)
    embedded = embed(decoder, packed.tokens)
    hidden_states(decoder, embedded, packed.positions, PrefixAttention(packed), kept="layer").sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in decoder.layers.parameters())


def test_without_gradients_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = make_models("llama")[0]
    packed = lay_out(group_trees(make_group([0.0] * 4), [0.0] * 4))
    found = []
    for chunk in (4096, 5):
        monkeypatch.setattr(recompute, "MLP_CHUNK", chunk)
        with torch.no_grad():
            embedded = embed(decoder, packed.tokens)
            found.append(hidden_states(decoder, embedded, packed.positions, PrefixAttention(packed)))
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)


def test_yes_and_no_are_still_understood() -> None:
    assert LearnerConfig(checkpoint_activations=True).checkpoint_activations == "layer"
    assert LearnerConfig(checkpoint_activations=False).checkpoint_activations == "none"


# ------------------------------------------------------------------------------------------------------ longer windows

ROPES = {
    "linear": RopeConfig(type="linear", factor=4.0),
    "dynamic": RopeConfig(type="dynamic", factor=4.0),
    "yarn": RopeConfig(type="yarn", factor=4.0),
    "llama3": RopeConfig(type="llama3", factor=4.0),
}
SHAPE = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
}


@pytest.mark.parametrize("kind", ROPES)
def test_extended_windows_equal_transformers(kind: str, tmp_path: Path) -> None:
    """A model of window 32 extended to 128: what is saved runs in plain transformers with the same logits."""
    torch.manual_seed(1)
    plain = AutoModelForCausalLM.from_config(LlamaConfig(**SHAPE))
    for parameter in plain.parameters():
        torch.nn.init.normal_(parameter, 0.0, 0.3)
    plain.save_pretrained(tmp_path / "short")
    tokenizer = load_model("tiny").tokenizer
    tokenizer.save_pretrained(tmp_path / "short")
    model = load_model(str(tmp_path / "short"), rope=ROPES[kind])
    assert model.decoder.config.max_positions == 128
    save_model(model.decoder, model.hf_config, tokenizer, tmp_path / "long")

    reference: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "long").eval()
    assert reference.config.rope_parameters["rope_type"] == kind
    tokens = torch.randint(0, VOCAB, (128,))
    again = load_model(str(tmp_path / "long"), rope=ROPES[kind])  # a checkpoint's window is not extended twice
    assert again.decoder.config.max_positions == 128
    with torch.no_grad():
        expected = reference(tokens[None]).logits[0]
        short = plain(tokens[None]).logits[0]
        for decoder in (model.decoder, again.decoder, load_decoder(tmp_path / "long")[0]):
            logits = decoder(tokens, torch.arange(128), CausalAttention([128])) @ decoder.head.T
            torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)
    assert (expected - short).abs().max() > 0.1  # the setting does something


@pytest.mark.parametrize("kind", ROPES)
def test_engine_and_learner_turn_by_the_same_angles(kind: str) -> None:
    """Samples beyond the original window: the engine's log-probs are the learner's."""
    model = load_model("tiny", seed=1)
    assert model.decoder.config.max_positions == 4096
    model.decoder.config = type(model.decoder.config)(
        **{name: getattr(model.decoder.config, name) for name in model.decoder.config.__dataclass_fields__}
        | {"max_positions": 64}
    )
    model.hf_config.max_position_embeddings = 64
    from surefoot.models.rope import extend

    extend(model.decoder, model.hf_config, ROPES[kind])
    learner = PolicyLearner(model.decoder, LearnerConfig(dtype="float32"), total_steps=1)
    engine = LocalEngine(learner.compute, model.tokenizer, (), batch=4, max_prompt_tokens=256)
    task = Task("d/0", "d", ({"role": "user", "content": "x" * 90},))
    rollouts = sorted(engine.rollout([Draw(task, 4, 60)], Sampling()), key=lambda r: r.sample)
    assert all(len(rollout.tokens) > 150 for rollout in rollouts)
    group = Group(task, tuple(rollouts), (), tuple(Reward(float(i)) for i in range(4)))
    assert learner.update([group]).metrics["gap/max"] < 1e-3


def test_a_model_that_is_scaled_already_is_not_scaled_again(tmp_path: Path) -> None:
    from surefoot.models.rope import extended

    config = LlamaConfig(**SHAPE, rope_parameters={"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0})
    config.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="scaled already"):
        extended(AutoConfig.from_pretrained(tmp_path), ROPES["yarn"])
