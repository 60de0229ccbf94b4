"""Small random models of every supported family, written to disk as transformers writes them; and short-hands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

from surefoot.models import Decoder, load_model
from surefoot.models.decoder import CausalAttention
from surefoot.models.library import LoadedModel
from surefoot.rollout import LocalEngine
from surefoot.types import Draw, Rollout, Sampling, Task

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
CONFIGS = {"llama": LlamaConfig, "mistral": MistralConfig, "qwen2": Qwen2Config, "qwen3": Qwen3Config}


@dataclass(frozen=True)
class MadeModel:
    reference: Any
    """The transformers model, float32."""
    loaded: LoadedModel


def make_model(family: str, directory: Path) -> MadeModel:
    tokenizer = load_model("tiny").tokenizer
    config = CONFIGS[family](
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4 if family != "mistral" else 6,
        num_key_value_heads=2 if family != "mistral" else 1,
        head_dim=16 if family != "qwen3" else 64,
        max_position_embeddings=512,
        tie_word_embeddings=family != "llama",
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        pad_token_id=None,
        sliding_window=None,
    )
    reference = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for _, parameter in sorted(reference.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator) * 0.2
            parameter.copy_(1 + noise if parameter.ndim == 1 and parameter.mean() == 1 else noise)
    reference.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    loaded = load_model(str(directory))
    loaded.decoder.requires_grad_(False)
    return MadeModel(reference, loaded)


def engine(model: LoadedModel, decoder: Decoder | None = None, *, batch: int = 64) -> LocalEngine:
    return LocalEngine(decoder or model.decoder, model.tokenizer, model.end_tokens, batch=batch, max_prompt_tokens=256)


def draw(name: str, samples: int, max_new_tokens: int, words: str | None = None) -> Draw:
    task = Task(name, "words", ({"role": "user", "content": words or f"say {name} " * (1 + len(name) % 3)},))
    return Draw(task, samples, max_new_tokens)


def by_sample(rollouts: Sequence[Rollout]) -> dict[tuple[str, int], Rollout]:
    return {(r.task_id, r.sample): r for r in rollouts}


def run(made: LocalEngine, draws: Sequence[Draw], **sampling: Any) -> dict[tuple[str, int], Rollout]:
    return by_sample(list(made.rollout(draws, Sampling(**sampling))))


@torch.inference_mode()
def logits_of(decoder: Decoder, tokens: Sequence[int]) -> Tensor:
    """Logits after each token of one sequence [T, vocab], by one full forward pass."""
    hidden = decoder(torch.tensor(tokens), torch.arange(len(tokens)), CausalAttention([len(tokens)]))
    return (hidden @ decoder.head.T).float()
