"""Weights as a stream of bytes, cut into pieces with checksums, and put together again."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from surefoot.errors import ResourceError
from surefoot.models import Decoder

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the stream of all parameters, in the order of `named_parameters`."""

    offset: int
    data: Bytes
    checksum: int
    """CRC-32 of `data`."""


def size_of(decoder: Decoder) -> int:
    """Bytes of all parameters."""
    return sum(p.numel() * p.element_size() for p in decoder.parameters())


def raw(parameter: torch.Tensor) -> Bytes:
    """A tensor's bytes, flat; shares memory where it can."""
    flat: Bytes = parameter.detach().contiguous().view(-1).view(torch.uint8).cpu().numpy()
    return flat


def cut(decoder: Decoder, piece_bytes: int) -> Iterator[Piece]:
    """All weights, in pieces of `piece_bytes`, the last one shorter; a piece may hold parts of several tensors."""
    offset, parts, held = 0, list[Bytes](), 0

    def piece() -> Piece:
        data = np.concatenate(parts)  # a copy: the weights may change before it is sent
        return Piece(offset, data, zlib.crc32(data.data))

    for parameter in decoder.parameters():
        rest = raw(parameter)
        while len(rest):
            part, rest = rest[: piece_bytes - held], rest[piece_bytes - held :]
            parts.append(part)
            held += len(part)
            if held == piece_bytes:
                yield piece()
                offset, parts, held = offset + held, [], 0
    if held:
        yield piece()


class Staging:
    """Pieces of one version, gathered beside the weights that are in use."""

    def __init__(self, version: int, size: int) -> None:
        self.version, self.room, self.missing = version, np.zeros(size, dtype=np.uint8), size
        self.seen: set[int] = set()

    def take(self, piece: Piece) -> None:
        """Raises ResourceError for a piece that was damaged on its way or does not fit."""
        if zlib.crc32(piece.data.data) != piece.checksum:
            raise ResourceError(f"a piece of the weights was damaged on its way (at byte {piece.offset})")
        if piece.offset + len(piece.data) > len(self.room):
            raise ResourceError("the weights are larger than this engine's model")
        if piece.offset not in self.seen:
            self.seen.add(piece.offset)
            self.room[piece.offset : piece.offset + len(piece.data)] = piece.data
            self.missing -= len(piece.data)

    @torch.no_grad()
    def install(self, decoder: Decoder) -> None:
        """Overwrite a decoder's weights in place. Raises ResourceError if a piece has not come."""
        if self.missing:
            raise ResourceError(f"{self.missing} bytes of the weights of version {self.version} have not come")
        offset = 0
        for parameter in decoder.parameters():
            count = parameter.numel() * parameter.element_size()
            part = torch.from_numpy(self.room[offset : offset + count].copy()).view(parameter.dtype)
            parameter.copy_(part.view(parameter.shape))
            offset += count


def digest(decoder: Decoder) -> str:
    """SHA-256 over names, types and bytes of all parameters: equal exactly where the weights are, bit for bit."""
    found = hashlib.sha256()
    for name, parameter in decoder.named_parameters():
        found.update(f"{name} {parameter.dtype} {tuple(parameter.shape)}\n".encode())
        found.update(raw(parameter).data)
    return found.hexdigest()
