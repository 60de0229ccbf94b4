"""Messages on the control socket between supervisor and zygote: one JSON object a packet, descriptors beside it."""

from __future__ import annotations

import array
import json
import os
import socket
from collections.abc import Sequence
from typing import Any

MAX_PACKET = 1 << 16
_MAX_FDS = 16


def send(sock: socket.socket, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
    """Send `message` with copies of `fds`. Raises OSError if the other end is gone."""
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    sock.sendmsg([json.dumps(message).encode()], rights)


def receive(sock: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The next message and its descriptors (the caller's to close). Raises EOFError if the other end is gone."""
    space = socket.CMSG_SPACE(_MAX_FDS * array.array("i").itemsize)
    data, ancillary, _, _ = sock.recvmsg(MAX_PACKET, space, socket.MSG_CMSG_CLOEXEC)
    fds = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    if not data:
        for fd in fds:
            os.close(fd)
        raise EOFError("the other end of the control socket is gone")
    message: dict[str, Any] = json.loads(data)
    return message, list(fds)
