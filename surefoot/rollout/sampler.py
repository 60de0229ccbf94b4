"""From logits to tokens: temperature, truncation, and one uniform number a token, searched in the cumulative sum.

On CPU this is some thirty times faster than `torch.multinomial`, and the token depends on nothing but the row's logits
and its number.
"""

from __future__ import annotations

import torch
from torch import Tensor

from surefoot.errors import ModelError
from surefoot.types import Sampling

COLDEST = 1e-6
"""Lower temperatures, 0 included, sample as this one: greedily, short of exact ties."""


def sample(logits: Tensor, uniform: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor]:
    """Draw one token a row.

    Args:
        logits: [n, vocab].
        uniform: One number in [0, 1) a row, float32 [n].

    Returns:
        Token ids [n] int64, and their log-probabilities [n] float32 under the distribution that was sampled from.

    Raises ModelError if logits are not finite.
    """
    scaled = logits.float() / max(sampling.temperature, COLDEST)  # [n, vocab]
    weight = truncate(scaled.sub_(scaled.amax(-1, keepdim=True)), sampling).exp_()  # [n, vocab], largest is 1
    cumulative = weight.cumsum(-1)  # [n, vocab]
    total = cumulative[:, -1:]  # [n, 1]
    if not bool(total.isfinite().all()):
        raise not_finite()
    # Strictly below the total, so that the search always ends on a token of positive weight.
    target = torch.minimum(uniform[:, None] * total, torch.nextafter(total, torch.zeros_like(total)))  # [n, 1]
    tokens = torch.searchsorted(cumulative, target, right=True)  # [n, 1]
    logprobs = weight.gather(1, tokens).log_() - total.log()  # [n, 1]
    return tokens[:, 0], logprobs[:, 0]


def not_finite() -> ModelError:
    """The error for logits from which nothing can be drawn."""
    return ModelError("the model's logits are not finite", fix="its weights have diverged: lower learner.lr")


def truncate(scaled: Tensor, sampling: Sampling) -> Tensor:
    """Set what top-k and top-p (arXiv 1904.09751) exclude to minus infinity, in place; top-k first."""
    if 0 < sampling.top_k < scaled.shape[-1]:
        least = scaled.topk(sampling.top_k, dim=-1).values[:, -1:]  # [n, 1]
        scaled.masked_fill_(scaled < least, -torch.inf)
    if sampling.top_p < 1:
        ordered, places = scaled.sort(dim=-1, descending=True, stable=True)  # [n, vocab] each
        chance = ordered.softmax(-1)  # [n, vocab]
        # A token stays if the more likely ones do not reach top_p without it; the likeliest always does.
        excluded = chance.cumsum(-1) - chance >= sampling.top_p  # [n, vocab]
        excluded[:, 0] = False
        scaled.masked_fill_(torch.zeros_like(excluded).scatter_(1, places, excluded), -torch.inf)
    return scaled
