"""Jailed grader processes, started when first needed and shared by all graders that use the same handler.

A grader that parses what a model wrote (reasoning-gym's scorers, math-verify, a user's function) can be made to hang,
to exhaust memory or to execute text. It therefore runs in a jail, in a fork of its own for each answer.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Mapping
from typing import Any

from surefoot.errors import GraderError, SandboxError
from surefoot.protocols import Sandbox
from surefoot.sandbox import JailedWorker
from surefoot.types import IsolationLevel

RETRY_SECONDS = 30.0
Key = tuple[str, IsolationLevel, tuple[tuple[str, str], ...], tuple[str, ...]]

_workers: dict[Key, JailedWorker | GraderError] = {}
_retry: dict[Key, float] = {}
"""When a jail that did not start may be tried again."""
_lock = threading.Lock()
_owner = os.getpid()


class Jail:
    """A handler `module:function` that answers requests inside the sandbox's jail.

    Args:
        handler: `package.module:function`, a function from a JSON object to a JSON object.
        seconds: CPU time that one answer may take.
        env: Additions to the jail's environment, by which a handler is told what to load.
        paths: Host paths that the handler may read.
    """

    def __init__(
        self, handler: str, *, seconds: float = 5.0, env: Mapping[str, str] | None = None, paths: tuple[str, ...] = ()
    ) -> None:
        self.handler, self.seconds = handler, seconds
        self._env, self._paths = dict(env or {}), paths

    def ask(self, data: Mapping[str, Any], sandbox: Sandbox) -> dict[str, Any]:
        """The handler's answer to `data`, from a jail of `sandbox`'s level. Raises GraderError."""
        return self._worker(sandbox.level).request(data, self.seconds)

    def ask_about(
        self, data: Mapping[str, Any], harmless: Mapping[str, Any] | None, sandbox: Sandbox
    ) -> dict[str, Any] | None:
        """Like `ask`, but tells a fault of the answer from one of the grader.

        Returns None if the handler fails on `data` and yet answers `harmless`: then it is what the model wrote that
        breaks it. Raises GraderError if it fails on both, or where there is nothing harmless to ask about.
        """
        try:
            return self.ask(data, sandbox)
        except GraderError:
            if harmless is None:
                raise
            self.ask(harmless, sandbox)
            return None

    def _worker(self, level: IsolationLevel) -> JailedWorker:
        key: Key = (self.handler, level, tuple(sorted(self._env.items())), self._paths)
        with _lock:
            worker = _workers.get(key)
            if worker is None or (isinstance(worker, GraderError) and time.monotonic() > _retry.get(key, 0.0)):
                worker = _workers[key] = self._start(level)
                _retry[key] = time.monotonic() + RETRY_SECONDS
        if isinstance(worker, GraderError):
            raise worker
        return worker

    def _start(self, level: IsolationLevel) -> JailedWorker | GraderError:
        try:
            workers = max(1, min(8, os.cpu_count() or 1))
            return JailedWorker(self.handler, level=level, env=self._env, workers=workers, paths=self._paths)
        except SandboxError as error:
            return GraderError(f"the grader's jail does not start: {error.what}", where=error.where, fix=error.fix)


def close_jails() -> None:
    """End all jailed graders of this process; later requests start new ones."""
    with _lock:
        workers = list(_workers.values())
        _workers.clear()
    if os.getpid() == _owner:
        for worker in workers:
            if isinstance(worker, JailedWorker):
                worker.close()


atexit.register(close_jails)
