"""Where keys and values live while sampling: one shared prefix a group, and each sample's own suffix in a slot."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from surefoot.models import DecoderConfig

BLOCK = 16
"""Runners may lay out this many tokens of a head in an order of their own, never more."""
FIRST_ROOM = 128
"""Tokens that a slot has room for at first; it doubles when a sample outgrows it."""


@dataclass(frozen=True, eq=False, slots=True)
class Prefix:
    """The prompt of a group, encoded once for all its samples."""

    kv: Tensor
    """Keys and values [layers, 2, kv_heads, P or more, D], laid out as the runner that made it likes it."""
    length: int
    """Tokens of the prompt, P."""
    hidden: Tensor
    """Last hidden state of the prompt [width], from which every sample of the group draws its first token."""


class Slots:
    """Keys and values that the samples wrote themselves: `kv` [layers, 2, slots, kv_heads, room, D]."""

    def __init__(self, config: DecoderConfig, slots: int, like: Tensor) -> None:
        self.kv = like.new_empty(config.layers, 2, slots, config.kv_heads, FIRST_ROOM, config.head_dim)
        self.cleaned = 0

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

    def clean(self, tokens: int) -> None:
        """Make the first `tokens` places of every slot finite, for runners that read places never written."""
        if tokens > self.cleaned:
            self.kv[..., self.cleaned : tokens, :].zero_()
            self.cleaned = tokens

    def move(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` tokens of one slot to another."""
        whole = -(-length // BLOCK) * BLOCK
        self.kv[:, :, target, :, :whole] = self.kv[:, :, source, :, :whole]
