"""Log-probabilities of chosen tokens without the [tokens, vocabulary] logits.

Logits are computed a chunk of tokens at a time, turned in place into their own gradient where gradients are wanted,
and used at once for the two backward products. With

    log p(y) = z_y - log sum_j exp(z_j),  z = head h / T,      d log p(y) / dz = onehot(y) - p,

one chunk needs three products of [chunk, width, vocabulary] in all, the same as full logits, and its memory does not
grow with the number of tokens. Products take the weights' dtype; sums of exponentials are float32 (float64 for float64
weights).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

CHUNK = 512
"""Tokens whose logits exist at the same time: 50 MB in bfloat16 for a vocabulary of 49,152."""
ROWS = 16
"""Rows of a chunk made into probabilities at a time, in float32: few enough to stay in the CPU's cache."""

Slope = Callable[[Tensor, slice], Tensor]
"""From the log-probs of the targets in a slice, d loss / d log-prob of each."""


class Scores(NamedTuple):
    """Per target, without gradient."""

    logprobs: Tensor
    """[K], float32 or wider"""
    entropy: Tensor
    """Of the whole distribution, in nats [K]."""


class HeadGradient(NamedTuple):
    """What one pass over the head gives."""

    scores: Scores
    hidden: Tensor
    """d loss / d hidden [K, width]."""


@torch.no_grad()
def score(hidden: Tensor, head: Tensor, targets: Tensor, *, temperature: float = 1.0, chunk: int = CHUNK) -> Scores:
    """Log-probs of `targets` [K] and entropies, from hidden states [K, width] and head [vocab, width]."""
    parts = [_to_errors(hidden[rows] @ head.T, targets[rows], temperature) for rows in _slices(len(targets), chunk)]
    return _join(parts, hidden)


@torch.no_grad()
def score_and_backward(
    hidden: Tensor,
    head: Tensor,
    targets: Tensor,
    slope: Slope,
    head_grad: Callable[[Tensor], None] | None,
    *,
    temperature: float = 1.0,
    chunk: int = CHUNK,
) -> HeadGradient:
    """Forward and backward of a loss of the targets' log-probs, in one pass over chunks of targets.

    Args:
        hidden: States that predict the targets [K, width].
        head: Output head [vocab, width].
        targets: Token ids [K].
        slope: Asked once a chunk, in order.
        head_grad: Takes the share of the head's gradient [vocab, width] that a chunk gives; None if it is not trained.
        temperature: Logits are divided by it.
        chunk: Targets at a time.
    """
    parts: list[Scores] = []
    hidden_grad = torch.empty_like(hidden)  # [K, width]
    for rows in _slices(len(targets), chunk):
        logits = hidden[rows] @ head.T  # [k, vocab]
        scores = _to_errors(logits, targets[rows], temperature)  # logits are now p - onehot
        parts.append(scores)
        # The slopes scale the narrow side of both products, not the wide [k, vocab] one.
        slopes = (-slope(scores.logprobs, rows) / temperature)[:, None].to(hidden.dtype)  # [k, 1]
        torch.mm(logits, head, out=hidden_grad[rows]).mul_(slopes)
        if head_grad is not None:
            head_grad(logits.T @ (hidden[rows] * slopes))
    return HeadGradient(_join(parts, hidden), hidden_grad)


def chosen_logprobs(
    hidden: Tensor, head: Tensor, targets: Tensor, *, temperature: float = 1.0, chunk: int = CHUNK
) -> Tensor:
    """Differentiable log-probs [K] of `targets` [K]: `score` with a backward pass that computes each chunk again."""
    values: Tensor = _ChosenLogprobs.apply(hidden, head, targets, temperature, chunk)  # type: ignore[no-untyped-call]
    return values


class _ChosenLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, head: Tensor, targets: Tensor, temperature: float, chunk: int) -> Tensor:
        ctx.save_for_backward(hidden, head, targets)
        ctx.settings = {"temperature": temperature, "chunk": chunk}
        return score(hidden, head, targets, **ctx.settings).logprobs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        hidden, head, targets = ctx.saved_tensors
        head_grad = torch.zeros_like(head)
        result = score_and_backward(
            hidden, head, targets, lambda _, rows: grad[rows], lambda part: _add(head_grad, part), **ctx.settings
        )
        return result.hidden, head_grad, None, None, None


def _add(total: Tensor, part: Tensor) -> None:
    total += part


def _slices(length: int, chunk: int) -> Iterator[slice]:
    return (slice(i, min(i + chunk, length)) for i in range(0, length, chunk))


def _join(parts: list[Scores], hidden: Tensor) -> Scores:
    if not parts:
        return Scores(hidden.new_zeros(0), hidden.new_zeros(0))
    return Scores(torch.cat([p.logprobs for p in parts]), torch.cat([p.entropy for p in parts]))


def _to_errors(logits: Tensor, targets: Tensor, temperature: float) -> Scores:
    """Score `targets` [k] and overwrite `logits` [k, vocab] by p - onehot(target), a cache-sized block at a time."""
    wide = torch.promote_types(logits.dtype, torch.float32)
    logprobs, entropy = (torch.empty(len(logits), dtype=wide, device=logits.device) for _ in range(2))  # [k] each
    rows_at_once = ROWS if logits.device.type == "cpu" else max(1, len(logits))
    for rows in _slices(len(logits), rows_at_once):
        shifted = logits[rows].to(wide, copy=True)  # [r, vocab]
        if temperature != 1.0:
            shifted /= temperature
        shifted -= shifted.amax(-1, keepdim=True)
        chances = torch.exp(shifted)  # [r, vocab], not yet divided by their sum
        total = chances.sum(-1)  # [r]
        log_total = total.log()
        target = targets[rows, None]  # [r, 1]
        logprobs[rows] = shifted.gather(1, target)[:, 0] - log_total
        entropy[rows] = log_total - shifted.mul_(chances).sum(-1) / total
        torch.div(chances, total[:, None], out=chances)
        # p - 1 straight from the log-prob: exact where p is near 1.
        chances.scatter_(1, target, torch.expm1(logprobs[rows, None]))
        logits[rows] = chances
    return Scores(logprobs, entropy)
