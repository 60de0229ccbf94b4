"""The engine and its decoder against transformers, for every family of models."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from made_models import MadeModel, draw, engine, logits_of, run

from surefoot.models import load_model
from surefoot.rollout import LocalEngine
from surefoot.types import Rollout


def greedy_by_transformers(model: Any, prompt: tuple[int, ...], new: int, end: int) -> list[int]:
    ids = torch.tensor([prompt])
    out = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=new,
        eos_token_id=end,
        pad_token_id=end,
    )
    return out[0].tolist()


def prompt_of(rollout: Rollout) -> tuple[int, ...]:
    return rollout.tokens[: rollout.prompt_length]


def test_decoder_logits_equal_transformers(made: MadeModel) -> None:
    tokens = list(range(3, 60))
    with torch.inference_mode():
        expected = made.reference(torch.tensor([tokens])).logits[0]
    torch.testing.assert_close(logits_of(made.loaded.decoder, tokens), expected, atol=2e-4, rtol=1e-4)


def test_greedy_rollouts_equal_transformers_generate(made: MadeModel) -> None:
    draws = [draw("a", 1, 24), draw("bcd", 1, 24), draw("efghi", 2, 17)]
    for rollout in run(engine(made.loaded, batch=3), draws, temperature=0.0).values():
        prompt, new = prompt_of(rollout), 17 if rollout.task_id == "efghi" else 24
        expected = greedy_by_transformers(made.reference, prompt, new, made.loaded.end_tokens[0])
        assert list(rollout.tokens) == expected


@pytest.mark.slow
def test_greedy_rollouts_of_the_embedded_model_equal_transformers_generate() -> None:
    from transformers import AutoModelForCausalLM

    from surefoot.models.embedded import EMBEDDED, convert_embedded
    from surefoot.models.library import cache_directory

    model = load_model(EMBEDDED)
    reference = AutoModelForCausalLM.from_pretrained(convert_embedded(cache_directory() / "models"))
    own = LocalEngine(
        model.decoder.requires_grad_(False), model.tokenizer, model.end_tokens, batch=4, max_prompt_tokens=256
    )
    draws = [draw("a", 1, 16, "What is the capital of France?"), draw("b", 1, 16, "Count from one to five.")]
    for rollout in run(own, draws, temperature=0.0).values():
        assert list(rollout.tokens) == greedy_by_transformers(reference, prompt_of(rollout), 16, model.end_tokens[0])
