"""Ctrl-C and SIGTERM: the first asks for a clean end, the second ends at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

EXIT_CODE = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(Exception):  # noqa: N818 - not an error
    """The user asked for the end, and everything is saved."""


class Interrupter:
    """While open, the first signal sets `asked`; a second one ends the process without further ado."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.asked = False
        self._tell = tell
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def check(self) -> None:
        """Raise Interrupted if the end was asked for. Call it where nothing would be lost."""
        if self.asked:
            raise Interrupted

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            os._exit(EXIT_CODE)
        self.asked = True
        self._tell("stopping: finishing this step and saving (once more stops at once, losing the unfinished step)")
