"""Log-probabilities of text that is given, not sampled: what `echo` answers and lm_eval's `loglikelihood` needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from surefoot.models import Decoder
from surefoot.models.decoder import CausalAttention

ROWS = 512
"""Positions whose logits are held at a time: `[ROWS, vocabulary]` and never more."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A token under the model, given all tokens before it."""

    token: int
    logprob: float | None
    """Natural logarithm; None for the first token, which nothing comes before."""
    top: tuple[tuple[int, float], ...] = ()
    """The likeliest tokens at its place, best first."""


@torch.inference_mode()
def score(decoder: Decoder, tokens: Sequence[int], top: int = 0) -> list[Scored]:
    """Score every token of a text, at temperature 1.

    Args:
        tokens: Length T, at least 1.
        top: How many of the likeliest tokens to give at each place.
    """
    device = decoder.embedding.device
    flat = torch.tensor(list(tokens), device=device)  # [T]
    hidden = decoder(flat, torch.arange(len(tokens), device=device), CausalAttention([len(tokens)]))  # [T, width]
    found = [Scored(int(tokens[0]), None)]
    for start in range(0, len(tokens) - 1, ROWS):
        rows = hidden[start : min(start + ROWS, len(tokens) - 1)]  # [R, width]
        logprobs = (rows @ decoder.head.T).float().log_softmax(-1)  # [R, vocab]
        following = flat[start + 1 : start + 1 + len(rows)]  # [R]
        chosen = logprobs.gather(1, following[:, None])[:, 0].tolist()
        best = logprobs.topk(top, dim=-1) if top else None
        for row, (token, value) in enumerate(zip(following.tolist(), chosen, strict=True)):
            likeliest = zip(best.indices[row].tolist(), best.values[row].tolist(), strict=True) if best else ()
            found.append(Scored(token, value, tuple(likeliest)))
    return found
