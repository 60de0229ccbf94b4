"""Running a command: process 1 of the jail stays ours and tells how the command ended; the command is process 2."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import NoReturn

from . import kernel


def mount_proc() -> None:
    """An own /proc, which some runtimes need; containers that mask theirs forbid it, and then there is none."""
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    with contextlib.suppress(OSError):
        kernel.mount("proc", "/proc", "proc", flags, "subset=pid")


def main(argv: list[str], report: int) -> NoReturn:
    """Run `argv`, wait for it, and write its wait status to `report`. Without forks (no namespaces): just become it."""
    try:
        pid = os.fork()
    except OSError:
        os.close(report)
        _become(argv)
    if pid == 0:
        os.close(report)
        _become(argv)
    for fd in (0, 1, 2):
        os.close(fd)
    while True:
        ended, status = os.wait()
        if ended == pid:
            break
    os.write(report, str(status).encode())
    os._exit(0)


def _become(argv: list[str]) -> NoReturn:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores them, which other programs would inherit
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)
