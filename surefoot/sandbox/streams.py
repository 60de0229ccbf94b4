"""Descriptors of one run: captured output, and payloads as sealed memory files."""

from __future__ import annotations

import fcntl
import os

_F_ADD_SEALS, _ALL_SEALS = 1033, 0x0F


class Capture:
    """The supervisor's end of a pipe; keeps at most `cap` bytes."""

    def __init__(self, cap: int) -> None:
        self.fd, self.theirs = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.fd, False)
        self.cap = cap
        self.data = bytearray()
        self.truncated = False
        self.open = True

    def read(self) -> bool:
        """Take what is there. Returns whether there was anything; closes itself at the end or past the cap."""
        try:
            data = os.read(self.fd, 65536)
        except BlockingIOError:
            return False
        room = self.cap - len(self.data)
        self.data += data[:room]
        self.truncated = len(data) > room
        if not data or self.truncated:
            self.close()
        return bool(data)

    def drain(self) -> None:
        """Take all that is left, without waiting."""
        while self.open and self.read():
            pass
        self.close()

    def close(self) -> None:
        if self.open:
            self.open = False
            os.close(self.fd)

    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


def memory_file(content: bytes) -> int:
    """A sealed in-memory file: the other side can read it and neither change nor grow it."""
    fd = os.memfd_create("payload", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    fcntl.fcntl(fd, _F_ADD_SEALS, _ALL_SEALS)
    return fd


def empty_file() -> int:
    return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
