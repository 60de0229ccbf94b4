"""The embedded model in the learner's arithmetic against plain transformers."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForCausalLM

from surefoot.learner.attention import PrefixAttention
from surefoot.learner.logprobs import score
from surefoot.learner.packing import Tree, branch, lay_out
from surefoot.learner.weights import cast_copy
from surefoot.models import load_model
from surefoot.models.library import cache_directory

PROMPT = "<|im_start|>user\nName three colours of the rainbow.<|im_end|>\n<|im_start|>assistant\n"
ANSWERS = ("Red, green and blue.<|im_end|>", "Violet, indigo, and orange are three of them.<|im_end|>", "No.")


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "mean", "worst"), [(torch.float32, 2e-5, 3e-4), (torch.bfloat16, 0.06, 0.5)])
def test_logprobs_equal_those_of_transformers(dtype: torch.dtype, mean: float, worst: float) -> None:
    loaded = load_model("smollm2-135m-instruct")
    directory = cache_directory() / "models" / "smollm2-135m-instruct"
    plain = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    prompt = tuple(loaded.tokenizer.encode(PROMPT))
    answers = [tuple(loaded.tokenizer.encode(answer)) for answer in ANSWERS]
    branches = tuple(branch(a, [True] * len(a), [0.0] * len(a), 0.0) for a in answers)
    packed = lay_out([Tree(prompt, branches)])
    decoder = cast_copy(loaded.decoder, dtype)
    with torch.no_grad():
        hidden = decoder(packed.tokens, packed.positions, PrefixAttention(packed))
        ours = score(hidden[packed.source], decoder.head, packed.targets).logprobs
        theirs = []
        for answer in answers:
            logits = plain(torch.tensor([[*prompt, *answer]])).logits[0, len(prompt) - 1 : -1]
            theirs.append(torch.log_softmax(logits, -1).gather(1, torch.tensor(answer)[:, None])[:, 0])
    gap = (ours.float() - torch.cat(theirs)).abs()
    assert gap.mean() < mean
    assert gap.max() < worst
