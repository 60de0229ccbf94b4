"""The decoder against plain transformers, and models on their way in and out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    MistralConfig,
    Qwen2Config,
    Qwen3Config,
)

from surefoot.errors import ModelError
from surefoot.models import load_model, save_model
from surefoot.models.decoder import CausalAttention
from surefoot.models.weights import load_decoder

SHAPE = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 32}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
CONFIGS = {
    "llama-tied": LlamaConfig(**SHAPE, tie_word_embeddings=True),
    "llama-untied": LlamaConfig(**SHAPE, tie_word_embeddings=False),
    "llama-wide-heads": LlamaConfig(**SHAPE, head_dim=16),
    "llama3-rope": LlamaConfig(**SHAPE, rope_parameters=LLAMA3),
    "yarn-rope": LlamaConfig(**SHAPE, rope_parameters=YARN),
    "mistral": MistralConfig(**SHAPE, sliding_window=None),
    "qwen2": Qwen2Config(**SHAPE),
    "qwen3": Qwen3Config(**SHAPE, head_dim=8),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_logits_equal_transformers(name: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    reference = AutoModelForCausalLM.from_config(CONFIGS[name]).float().eval()
    for parameter in reference.parameters():
        torch.nn.init.normal_(parameter, 0.0, 0.3)
    reference.save_pretrained(tmp_path)
    decoder, _ = load_decoder(tmp_path)
    first, second = torch.randint(0, 97, (40,)), torch.randint(0, 97, (13,))
    with torch.no_grad():
        expected = torch.cat([reference(first[None]).logits[0], reference(second[None]).logits[0]])  # [53, vocab]
        positions = torch.cat([torch.arange(40), torch.arange(13)])
        hidden = decoder(torch.cat([first, second]), positions, CausalAttention([40, 13]))  # [53, width]
    torch.testing.assert_close(hidden @ decoder.head.T, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["llama-tied", "qwen2", "qwen3"])
def test_a_saved_model_loads_in_transformers_unchanged(name: str, tmp_path: Path) -> None:
    torch.manual_seed(2)
    reference = AutoModelForCausalLM.from_config(CONFIGS[name]).float().eval()
    reference.save_pretrained(tmp_path / "a")
    decoder, hf_config = load_decoder(tmp_path / "a")
    save_model(decoder, hf_config, load_model("tiny").tokenizer, tmp_path / "b")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "b")
    for (key, left), (_, right) in zip(reference.state_dict().items(), again.state_dict().items(), strict=True):
        assert torch.equal(left, right), key


def test_recomputing_activations_changes_nothing() -> None:
    model = load_model("tiny", seed=3)
    tokens = torch.randint(0, 200, (20,))

    def gradient(recompute: bool) -> torch.Tensor:
        model.decoder.zero_grad()
        hidden = model.decoder(tokens, torch.arange(20), CausalAttention([20]), recompute=recompute)
        hidden.square().sum().backward()
        return model.decoder.embedding.grad.clone()

    torch.testing.assert_close(gradient(True), gradient(False))


def test_the_tiny_model_is_tiny_and_depends_on_its_seed_alone(tmp_path: Path) -> None:
    one, same, other = load_model("tiny", seed=1), load_model("tiny", seed=1), load_model("tiny", seed=2)
    assert sum(p.numel() for p in one.decoder.parameters()) < 500_000
    assert torch.equal(one.decoder.embedding, same.decoder.embedding)
    assert not torch.equal(one.decoder.embedding, other.decoder.embedding)
    save_model(one.decoder, one.hf_config, one.tokenizer, tmp_path)
    again = load_model(str(tmp_path))
    assert torch.equal(again.decoder.layers[0].qkv, one.decoder.layers[0].qkv)
    assert again.tokenizer.decode(again.tokenizer.encode("é ☃ ok", add_special_tokens=False)) == "é ☃ ok"


class TestUnusableModels:
    def test_neither_a_name_nor_a_directory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        with pytest.raises(ModelError, match="no such directory"):
            load_model("./nowhere")

    def test_an_empty_directory(self, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match=r"no config\.json"):
            load_model(str(tmp_path))

    def test_no_tokenizer(self, tmp_path: Path) -> None:
        AutoModelForCausalLM.from_config(CONFIGS["llama-tied"]).save_pretrained(tmp_path)
        with pytest.raises(ModelError, match="tokenizer"):
            load_model(str(tmp_path))

    def test_no_chat_template(self, tmp_path: Path) -> None:
        model = load_model("tiny")
        save_model(model.decoder, model.hf_config, model.tokenizer, tmp_path)
        (tmp_path / "chat_template.jinja").unlink(missing_ok=True)
        with pytest.raises(ModelError, match="chat template"):
            load_model(str(tmp_path))

    def test_a_missing_tensor(self, tmp_path: Path) -> None:
        model = load_model("tiny")
        save_model(model.decoder, model.hf_config, model.tokenizer, tmp_path)
        config = json.loads((tmp_path / "config.json").read_text())
        (tmp_path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 4}))
        with pytest.raises(ModelError, match="missing"):
            load_model(str(tmp_path))

    def test_an_unknown_family(self, tmp_path: Path) -> None:
        (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
        with pytest.raises(ModelError, match="gpt2"):
            load_model(str(tmp_path))


@pytest.mark.slow
def test_the_embedded_model_equals_transformers() -> None:
    from surefoot.models.library import cache_directory

    model = load_model("smollm2-135m-instruct")
    directory = cache_directory() / "models" / "smollm2-135m-instruct"
    reference = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(directory)
    ids = torch.tensor(tokenizer.encode("The capital of France is", add_special_tokens=False))
    with torch.no_grad():
        expected = reference(ids[None]).logits[0]
        hidden = model.decoder(ids, torch.arange(len(ids)), CausalAttention([len(ids)]))
    torch.testing.assert_close(hidden @ model.decoder.head.T, expected, rtol=1e-4, atol=1e-3)
    assert "Paris" in tokenizer.decode(expected[-1].topk(3).indices)
