"""What the engine asks of the machine, and the answer in plain torch operations for any device and dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from surefoot.models import Decoder
from surefoot.models.decoder import CausalAttention
from surefoot.rollout.attention import DecodeAttention, SharedPrefixes
from surefoot.rollout.cache import Prefix, Slots
from surefoot.rollout.sampler import sample
from surefoot.types import Sampling


class Runner(Protocol):
    """Runs the decoder for the engine: prompts once a group, then one token a row at a time."""

    def refresh(self) -> None:
        """The decoder's weights were changed in place."""
        ...

    def encode(self, prompts: Sequence[Sequence[int]]) -> list[Prefix]:
        """Run prompts of any lengths through the decoder together, flat and without padding."""
        ...

    def decode(self, tokens: Tensor, written: Tensor, prefixes: Sequence[Prefix], slots: Slots) -> Tensor:
        """Append one token to every row and return the hidden states that it leads to.

        Args:
            tokens: One a row, on the CPU [n] int64.
            written: Tokens that each row's slot already holds, on the CPU [n] int64.
            prefixes: What each row continues, n of them, the same object for rows of the same group.
            slots: Row r owns slot r.

        Returns:
            [n, width].
        """
        ...

    def draw(self, hidden: Tensor, uniform: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor]:
        """Next token of each row [n] int64 and its log-probability [n] float32, on the CPU."""
        ...


class TorchRunner:
    """Nothing but torch operations: the reference, and what runs on a GPU."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder
        self.shared: SharedPrefixes | None = None

    def refresh(self) -> None:
        """Nothing is derived from the weights but the prefixes of a rollout, which end with it."""
        self.shared = None

    def encode(self, prompts: Sequence[Sequence[int]]) -> list[Prefix]:
        """See Runner."""
        c, like = self.decoder.config, self.decoder.embedding
        lengths = [len(prompt) for prompt in prompts]
        kept = [like.new_empty(c.layers, 2, c.kv_heads, length, c.head_dim) for length in lengths]
        tokens, positions, ends = flat_prompts(prompts)
        attend = _Recorder(lengths, kept)
        hidden = self.decoder(tokens.to(like.device), positions.to(like.device), attend)  # [N, width]
        last = hidden[ends.to(like.device)]  # [prompts, width]
        return [Prefix(kv, length, row) for kv, length, row in zip(kept, lengths, last, strict=True)]

    def decode(self, tokens: Tensor, written: Tensor, prefixes: Sequence[Prefix], slots: Slots) -> Tensor:
        """See Runner."""
        distinct = list(dict.fromkeys(prefixes))
        if self.shared is None or self.shared.prefixes != distinct:
            self.shared = SharedPrefixes(distinct)
        place = {prefix: i for i, prefix in enumerate(distinct)}
        group = torch.tensor([place[prefix] for prefix in prefixes])  # [n]
        positions = written + torch.tensor([prefix.length for prefix in prefixes])  # [n]
        device = self.decoder.embedding.device
        attend = DecodeAttention(self.shared, slots, group, written)
        hidden: Tensor = self.decoder(tokens.to(device), positions.to(device), attend)
        return hidden

    def draw(self, hidden: Tensor, uniform: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor]:
        """See Runner."""
        logits = hidden @ self.decoder.head.T  # [n, vocab]
        tokens, logprobs = sample(logits, uniform.to(logits.device), sampling)  # [n] each
        return tokens.cpu(), logprobs.cpu()


def flat_prompts(prompts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens and positions of prompts laid end to end, [N] each, and where each one's last token is [prompts]."""
    lengths = [len(prompt) for prompt in prompts]
    tokens = torch.tensor([token for prompt in prompts for token in prompt])
    positions = torch.cat([torch.arange(length) for length in lengths])
    return tokens, positions, torch.tensor(lengths).cumsum(0) - 1


class _Recorder:
    """Causal attention that keeps every layer's keys and values, [layers, 2, kv_heads, P, D] a prompt."""

    def __init__(self, lengths: list[int], kept: Sequence[Tensor]) -> None:
        self.lengths, self.kept, self.attend = lengths, kept, CausalAttention(lengths)

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        for kind, flat in enumerate((k, v)):
            for kv, part in zip(self.kept, torch.split(flat.transpose(0, 1), self.lengths, dim=1), strict=True):
                kv[layer, kind] = part  # [kv_heads, P, D]
        return self.attend(layer, q, k, v)
