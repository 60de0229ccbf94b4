"""One forward-backward pass of a pack: decoder, head and objective, gradients into the float32 totals."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from surefoot.learner.attention import PrefixAttention
from surefoot.learner.layers import Kept, embed, hidden_states
from surefoot.learner.logprobs import CHUNK, Scores, score, score_and_backward
from surefoot.learner.packing import Pack
from surefoot.learner.weights import MixedWeights
from surefoot.models import Decoder


class Objective(Protocol):
    """A loss of the targets' log-probs, known by its slope."""

    @property
    def coupled(self) -> bool:
        """Whether the slope of a target depends on other targets: then all log-probs are computed first."""
        ...

    def slope(self, logprobs: Tensor, rows: slice) -> Tensor: ...


def backward(
    weights: MixedWeights, pack: Pack, objective: Objective, *, temperature: float, kept: Kept = "none"
) -> Scores:
    """Add the gradients of one pack to `weights` and return the scores of its targets."""
    decoder = weights.compute
    embedded = embed(decoder, pack.tokens)  # [N, width]
    hidden = hidden_states(decoder, embedded, pack.positions, PrefixAttention(pack), kept=kept)  # [N, width]
    sources = hidden.detach()[pack.source]  # [K, width]
    head = decoder.head.detach()
    slope = objective.slope
    if objective.coupled and len(pack.targets) > CHUNK:
        first = score(sources, head, pack.targets, temperature=temperature)
        slopes = objective.slope(first.logprobs, slice(None))  # [K]

        def slope(logprobs: Tensor, rows: slice) -> Tensor:
            return slopes[rows]

    scores, sources_grad = score_and_backward(
        sources,
        head,
        pack.targets,
        slope,
        None if (name := weights.head) is None else lambda part: weights.add_gradient(name, part),
        temperature=temperature,
    )
    # A prompt's last state predicts the first token of every sample: its shares are summed in float32.
    wide = torch.promote_types(hidden.dtype, torch.float32)
    grad = torch.zeros(hidden.shape, dtype=wide, device=hidden.device)
    grad.index_add_(0, pack.source, sources_grad.to(wide))
    hidden.backward(grad.to(hidden.dtype))  # type: ignore[no-untyped-call]
    if embedded.grad is not None:
        weights.add_rows("embedding", pack.tokens, embedded.grad)
    return scores


@torch.no_grad()
def score_pack(decoder: Decoder, pack: Pack, *, temperature: float) -> Scores:
    """Log-probs and entropies of a pack's targets under `decoder`."""
    embedded = embed(decoder, pack.tokens)  # [N, width]
    hidden = hidden_states(decoder, embedded, pack.positions, PrefixAttention(pack))  # [N, width]
    return score(hidden[pack.source], decoder.head, pack.targets, temperature=temperature)
