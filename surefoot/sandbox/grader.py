"""A long-lived jailed process for trusted grader code that handles untrusted text."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from surefoot.errors import GraderError, SandboxError
from surefoot.protocols import Limits
from surefoot.sandbox.images import Image
from surefoot.sandbox.pool import Pool, Slot
from surefoot.sandbox.runs import Run, drive
from surefoot.types import Execution, IsolationLevel

GRADER_LIMITS = Limits(cpu_seconds=10.0, wall_seconds=60.0, memory_mb=1024, processes=16, output_kb=64, disk_mb=16)


class JailedWorker:
    """Runs a handler over requests, in the same jail that programs get.

    The handler is loaded once; each request is handled by a fork of its own, so that text that turns out to be a
    program can neither stay nor see the next request. It can still spoil the reply to its own request: the handler
    must not give hostile text a say (such as `eval`) where the answer matters more than its containment.

    Args:
        setup: `package.module:function` or `/path/file.py:function`, a `handler(request: dict) -> dict`.
        python: Interpreter; its site packages and this process's import paths are visible, read-only.
        limits: Of one request; `request` may ask for less time.
        level: Isolation level.
        env: Additions to the fixed environment.
        workers: Requests handled at the same time; more wait.
        paths: More host paths that the handler may read.
    """

    def __init__(
        self,
        setup: str,
        *,
        python: str = sys.executable,
        limits: Limits = GRADER_LIMITS,
        level: IsolationLevel = "namespaces",
        env: Mapping[str, str] | None = None,
        workers: int = 1,
        paths: tuple[str, ...] = (),
    ) -> None:
        if ":" not in setup:
            raise SandboxError(f"{setup!r} does not name a handler", fix="write package.module:function")
        folders = (str(Path(entry).resolve()) for entry in sys.path if entry and Path(entry).is_dir())
        search = tuple(dict.fromkeys(folders))
        image = Image(python=python, search=search, paths=paths, env=env or {})
        self._setup, self._limits = setup, limits
        self._pool = Pool(level, workers, {"grader": image}, handler=setup)
        with self._pool.use() as slot:
            slot.zygote("grader")  # a handler that cannot be loaded is reported now

    def request(self, data: Mapping[str, Any], seconds: float | None = None) -> dict[str, Any]:
        """Have the handler answer `data` (plain JSON). Thread-safe; waits for a free worker.

        Args:
            seconds: CPU time that the answer may take; wall time is held to ten times that. None for the limits'.

        Raises GraderError for a timeout, a crash, an exception of the handler, or a reply that is not a JSON object.
        """
        limits = self._limits
        if seconds is not None:
            limits = Limits(
                cpu_seconds=seconds,
                wall_seconds=min(limits.wall_seconds, 10 * seconds + 5),
                memory_mb=limits.memory_mb,
                processes=limits.processes,
                output_kb=limits.output_kb,
                disk_mb=limits.disk_mb,
            )
        try:
            payload = {"request": json.loads(json.dumps(data))}
        except (TypeError, ValueError, RecursionError) as error:
            raise GraderError(f"the request is not plain JSON: {error}", where=self._setup) from None
        try:
            reply, execution = self._pool.attempt(lambda slot: _ask(slot, payload, limits))
        except SandboxError as error:
            raise GraderError(f"the grader's jail failed: {error}", where=self._setup) from None
        return self._believe(reply, execution)

    def _believe(self, raw: bytes, execution: Execution) -> dict[str, Any]:
        if execution.outcome not in ("ok", "output_limit"):
            last = execution.stderr.strip().splitlines()[-1:] or [""]
            why = f"{execution.outcome}: {execution.detail} {last[0]}".strip()
            raise GraderError(f"the grader did not answer ({why})", where=self._setup)
        try:
            answer = json.loads(raw)
        except (ValueError, RecursionError):
            raise GraderError("the grader's reply is malformed", where=self._setup) from None
        if isinstance(answer, dict) and isinstance(answer.get("error"), str):
            raise GraderError(f"the grader raised {answer['error']}", where=self._setup)
        if not isinstance(answer, dict) or not isinstance(answer.get("reply"), dict):
            raise GraderError("the grader's reply is not a JSON object", where=self._setup)
        reply: dict[str, Any] = answer["reply"]
        return reply

    def close(self) -> None:
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._pool.close(timeout=0.0)


def _ask(slot: Slot, payload: Mapping[str, Any], limits: Limits) -> tuple[bytes, Execution]:
    run = Run(slot.zygote("grader"), "request", payload, limits, reply=True)
    drive([run])
    assert run.reply is not None
    return bytes(run.reply.data), run.execution()
