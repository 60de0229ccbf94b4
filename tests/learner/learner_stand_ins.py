"""Small packs, groups and models for the learner's tests."""

from __future__ import annotations

import random
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

from surefoot.models import Decoder
from surefoot.models.weights import build_decoder, hf_names
from surefoot.types import Group, Reward, Rollout, Task

VOCAB = 97
SHAPE = {
    "vocab_size": VOCAB,
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "head_dim": 16,
}


def make_rollout(
    prompt: list[int], answer: list[int], sample: int = 0, mask: list[bool] | None = None, logprob: float = -2.0
) -> Rollout:
    written = [False] * len(prompt) + (mask or [True] * len(answer))
    logprobs = tuple(logprob if w else 0.0 for w in written)
    return Rollout("t/0", "d", sample, (*prompt, *answer), tuple(written), logprobs, "", "stop")


def make_group(
    rewards: list[float | None], *, seed: int = 0, prompt: int = 7, longest: int = 9, vocab: int = VOCAB
) -> Group:
    """Random tokens; a reward of None is an invalid one."""
    rng = random.Random(seed)
    start = [rng.randrange(vocab) for _ in range(prompt)]
    rollouts = tuple(
        make_rollout(
            start, [rng.randrange(vocab) for _ in range(rng.randint(1, longest))], i, logprob=-rng.random() * 3
        )
        for i in range(len(rewards))
    )
    graded = tuple(Reward(0.0, valid=False) if r is None else Reward(r) for r in rewards)
    return Group(Task(f"d/{seed}", "d", ()), rollouts, (), graded)


def make_models(family: str, *, tied: bool = True, seed: int = 0) -> tuple[Decoder, Any]:
    """The same random weights as a decoder and as a transformers model, both float32."""
    kinds = {"llama": LlamaConfig, "qwen2": Qwen2Config, "qwen3": Qwen3Config}
    config = kinds[family](**SHAPE, tie_word_embeddings=tied)
    torch.manual_seed(seed)
    plain: Any = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    for parameter in plain.parameters():
        torch.nn.init.normal_(parameter, 0.0 if parameter.ndim > 1 else 1.0, 0.08)
    decoder = build_decoder(config)
    weights = dict(plain.named_parameters())
    with torch.no_grad():
        for name, parameter in decoder.named_parameters():
            parameter.copy_(torch.cat([weights[n] for n in hf_names(name)]))
    return decoder, plain
