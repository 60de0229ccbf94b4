"""The proof that an engine samples from the learner's weights: a digest of them, and log-probs of a fixed prompt.

The digest shows that the weights arrived; the log-probs, which come out of the engine's own kernels, that it uses them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from surefoot.cluster.pieces import digest
from surefoot.models import Decoder
from surefoot.models.decoder import CausalAttention
from surefoot.rollout import LocalEngine

PROMPT_TOKENS = 24
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.25, torch.float16: 0.05}
"""Largest difference of a log-prob (nats) that rounding explains, by compute type."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What an engine, or the learner, has to show."""

    version: int
    digest: str
    logprobs: tuple[float, ...]
    """Of the fixed tokens [PROMPT_TOKENS] to follow the fixed prompt, natural logarithms."""


def fixed_prompt(vocabulary: int) -> list[int]:
    """Tokens all over the vocabulary, always the same."""
    return [(i * 7919 + 13) % vocabulary for i in range(PROMPT_TOKENS)]


@torch.inference_mode()
def proof_of_decoder(decoder: Decoder, version: int) -> Proof:
    """By the reference attention, in the caller's thread."""
    prompt, device = fixed_prompt(decoder.config.vocab), decoder.embedding.device
    tokens, positions = (torch.tensor(values, device=device) for values in (prompt, range(len(prompt))))
    hidden = decoder(tokens, positions, CausalAttention([len(prompt)]))[-1]  # [width]
    return Proof(version, digest(decoder), _logprobs(decoder, hidden))


@torch.inference_mode()
def proof_of_engine(engine: LocalEngine) -> Proof:
    """By the kernels and derived weights that it samples with."""
    [prefix] = engine.runner.encode([fixed_prompt(engine.decoder.config.vocab)])
    return Proof(engine.version, digest(engine.decoder), _logprobs(engine.decoder, prefix.hidden))


def fault(shown: Proof, wanted: Proof, dtype: torch.dtype) -> str:
    """What is wrong with a proof, empty if nothing is."""
    if shown.version != wanted.version:
        return f"it is at version {shown.version}, not {wanted.version}"
    if shown.digest != wanted.digest:
        return f"its weights have the digest {shown.digest[:12]}, the learner's {wanted.digest[:12]}"
    gap = max(abs(a - b) for a, b in zip(shown.logprobs, wanted.logprobs, strict=True))
    if not gap <= TOLERANCE.get(dtype, 0.05):  # also where it is not a number
        return f"log-probs of the fixed prompt differ by {gap:.3g} though the weights are equal"
    return ""


def _logprobs(decoder: Decoder, hidden: torch.Tensor) -> tuple[float, ...]:
    logits = (decoder.head @ hidden.to(decoder.head.dtype)).float()  # [vocab]
    chosen = torch.log_softmax(logits, dim=-1)[fixed_prompt(decoder.config.vocab)]  # [PROMPT_TOKENS]
    return tuple(chosen.tolist())
