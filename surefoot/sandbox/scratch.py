"""Temporary folders that do not outlive their process for long: whoever makes the next one clears away the orphans."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

PREFIX = "surefoot-scratch-"
"""Of no folder that a person would make: what is swept is deleted."""
YOUNG = 60.0
"""Seconds for which a folder is left alone, since its maker may not have locked it yet."""


class Scratch:
    """A private folder, locked while its process lives: a process that was killed holds no lock."""

    def __init__(self, kind: str) -> None:
        sweep()
        self.path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{kind}-"))
        self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Delete the folder. Safe to call twice."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


def sweep(young: float = YOUNG) -> list[Path]:
    """Delete the folders of processes that are gone; returns them."""
    gone = []
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            if time.time() - path.lstat().st_mtime < young:
                continue
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # not ours, no folder, or deleted by somebody else meanwhile
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
            gone.append(path)
        except OSError:
            pass
        finally:
            os.close(lock)
    return gone
