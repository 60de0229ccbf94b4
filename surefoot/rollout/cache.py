"""Where keys and values live while sampling: one shared prefix a group, and each sample's own suffix in a slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from surefoot.models import Decoder, DecoderConfig
from surefoot.models.decoder import CausalAttention

FIRST_ROOM = 128
"""Tokens a slot has room for at first; it doubles when a sample outgrows it."""


@dataclass(eq=False, slots=True)
class Prefix:
    """The prompt of a group, encoded once for all its samples."""

    kv: Tensor
    """Keys and values [layers, 2, kv_heads, P, D]."""
    hidden: Tensor
    """Last hidden state of the prompt [width], from which every sample of the group draws its first token."""

    @property
    def length(self) -> int:
        return int(self.kv.shape[3])


def encode_prompts(decoder: Decoder, prompts: Sequence[Sequence[int]]) -> list[Prefix]:
    """Run prompts of any lengths through the decoder together, flat and without padding."""
    c, device, dtype = decoder.config, decoder.embedding.device, decoder.embedding.dtype
    lengths = [len(prompt) for prompt in prompts]
    tokens = torch.tensor([token for prompt in prompts for token in prompt], device=device)  # [N]
    positions = torch.cat([torch.arange(length, device=device) for length in lengths])  # [N]
    kept = [torch.empty(c.layers, 2, c.kv_heads, n, c.head_dim, dtype=dtype, device=device) for n in lengths]
    hidden = decoder(tokens, positions, _Recorder(lengths, kept))  # [N, width]
    ends = torch.tensor(lengths, device=device).cumsum(0) - 1  # [prompts]
    return [Prefix(kv, last) for kv, last in zip(kept, hidden[ends], strict=True)]


class _Recorder:
    """Causal attention that keeps every layer's keys and values."""

    def __init__(self, lengths: list[int], kept: Sequence[Tensor]) -> None:
        self.lengths, self.kept, self.attend = lengths, kept, CausalAttention(lengths)

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        for kind, flat in enumerate((k, v)):
            for kv, part in zip(self.kept, torch.split(flat.transpose(0, 1), self.lengths, dim=1), strict=True):
                kv[layer, kind] = part  # [kv_heads, P, D]
        return self.attend(layer, q, k, v)


class Slots:
    """Keys and values that the samples wrote themselves: `kv` [layers, 2, slots, kv_heads, room, D]."""

    def __init__(self, config: DecoderConfig, slots: int, like: Tensor) -> None:
        c = config
        self.kv = like.new_empty(c.layers, 2, slots, c.kv_heads, FIRST_ROOM, c.head_dim)

    @property
    def room(self) -> int:
        """Tokens that each slot has room for."""
        return int(self.kv.shape[4])

    def make_room(self, tokens: int) -> None:
        """Double the room until `tokens` fit."""
        if tokens <= self.room:
            return
        room = self.room
        while room < tokens:
            room *= 2
        wider = self.kv.new_empty(*self.kv.shape[:4], room, self.kv.shape[5])
        wider[..., : self.room, :] = self.kv
        self.kv = wider

    def move(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` tokens of one slot to another."""
        self.kv[:, :, target, :, :length] = self.kv[:, :, source, :, :length]
