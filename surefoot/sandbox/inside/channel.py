"""Length-prefixed messages over the socket between a solution and the tests that call it."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any

from . import codec

_HEADER = struct.Struct(">I")


class Channel:
    """Reads with `recv` only, never `recvmsg`: a descriptor sent along is dropped by the kernel."""

    def __init__(self, fd: int, nan: Callable[[], float] = lambda: float("nan")) -> None:
        self._read = codec.reader(nan)
        self._socket = socket.socket(fileno=fd)
        self._buffer = b""

    def send(self, message: Any) -> None:
        """Raises CodecError for what cannot be written, OSError if the other side is gone."""
        data = codec.dumps(message)
        self._socket.sendall(_HEADER.pack(len(data)) + data)

    def receive(self) -> Any:
        """The next message. Raises EOFError if the other side is gone, CodecError if the message is malformed."""
        (length,) = _HEADER.unpack(self._take(_HEADER.size))
        if length > codec.MAX_MESSAGE:
            raise codec.CodecError(f"a message of {length} bytes")
        return codec.loads(self._take(length), self._read)

    def _take(self, count: int) -> bytes:
        if len(self._buffer) < count:
            parts, have = [self._buffer], len(self._buffer)
            while have < count:
                part = self._socket.recv(max(4096, min(count - have, 1 << 20)))
                if not part:
                    raise EOFError("the other side is gone")
                parts.append(part)
                have += len(part)
            self._buffer = b"".join(parts)
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken
