"""The sandbox: runs programs, calls functions of solutions, judges solutions by tests, each in a jail of its own."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from types import TracebackType
from typing import Any, Self, TypeVar

from surefoot.errors import SandboxError
from surefoot.protocols import Call, CallResult, Limits, Program
from surefoot.sandbox import verdict
from surefoot.sandbox.images import DEFAULT_IMAGES, Image
from surefoot.sandbox.pool import Metrics, Pool, Slot
from surefoot.sandbox.runs import NEAR, Run, drive
from surefoot.types import Check, Execution, IsolationLevel

R = TypeVar("R")
DEFAULT_LIMITS = Limits()


class Sandbox:
    """Runs untrusted programs, at one isolation level, `workers` at a time. Thread-safe.

    `open_sandbox` is the usual way to get one: it also attacks the level before it trusts it.
    """

    def __init__(
        self,
        level: IsolationLevel,
        workers: int = 2,
        images: Mapping[str, Image] | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._pool = Pool(level, workers, {**DEFAULT_IMAGES, **(images or {})})
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="surefoot-sandbox")
        self._workers, self._limits = workers, limits

    @property
    def level(self) -> IsolationLevel:
        return self._pool.level

    def warm(self, *images: str, judge: bool = False) -> None:
        """Start the zygotes of `images` (default: `python`) now and not when first needed; with `judge`, those of tests
        as well. About 0.1 s each, longer for large packages."""
        self._pool.warm(images or ("python",), ("solution", "tests") if judge else ("solution",))

    def metrics(self) -> Metrics:
        return self._pool.metrics()

    # ------------------------------------------------------------------------------------------------------ programs

    def run(self, program: Program, *, cancel: threading.Event | None = None) -> Execution:
        """Run one program to its end. Setting `cancel` ends it early, as `sandbox_error` with detail `cancelled`.

        Raises SandboxError for a program that is malformed, or if no zygote can be started.
        """
        limits = program.limits or self._limits
        kind, payload = _payload(program, limits)

        def work(slot: Slot) -> tuple[None, Execution]:
            zygote = slot.zygote(program.image)
            run = Run(zygote, kind, payload, limits, stdin=program.stdin)
            drive([run], cancel)
            return None, run.execution()

        return self._attempt(work, limits)[1]

    def map(self, programs: Iterable[Program]) -> Iterator[Execution]:
        """Run `programs`, `workers` at a time; results in their order, programs taken only as fast as they run."""
        waiting: list[Future[Execution]] = []
        try:
            for program in programs:
                waiting.append(self._threads.submit(self.run, program))
                if len(waiting) > 2 * self._workers:
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        finally:
            for future in waiting:
                future.cancel()

    async def stream(self, programs: Sequence[Program]) -> AsyncIterator[tuple[int, Execution]]:
        """Run `programs`; gives (index, execution) as each ends, in no fixed order."""
        loop = asyncio.get_running_loop()
        cancel = threading.Event()

        def one(index: int, program: Program) -> tuple[int, Execution]:
            return index, self.run(program, cancel=cancel)

        tasks = [loop.run_in_executor(self._threads, one, i, program) for i, program in enumerate(programs)]
        try:
            for task in asyncio.as_completed(tasks):
                yield await task
        finally:
            cancel.set()
            for pending in tasks:
                pending.cancel()

    # ----------------------------------------------------------------------------------------------------- solutions

    def call(
        self, code: str, calls: Sequence[Call], *, image: str = "python", limits: Limits | None = None
    ) -> tuple[tuple[CallResult, ...], Execution]:
        """Load a solution and call its functions, all in one run; see `protocols.Sandbox.call`.

        A name that the module does not define is looked for in a class `Solution` (LeetCode style).
        Raises SandboxError if an argument is not plain data.
        """
        payload, bounds = {"code": code, "calls": verdict.encode_calls(calls)}, limits or self._limits

        def work(slot: Slot) -> tuple[tuple[CallResult, ...], Execution]:
            run = Run(slot.zygote(image), "calls", payload, bounds, reply=True)
            drive([run])
            assert run.reply is not None
            return verdict.decode_results(bytes(run.reply.data), calls), run.execution()

        return self._attempt(work, bounds)

    def judge(
        self, code: str, tests: str, *, entry: str | None = None, image: str = "python", limits: Limits | None = None
    ) -> tuple[tuple[Check, ...], Execution]:
        """Run tests against a solution, each in a jail of its own; see `protocols.Sandbox.judge`.

        All checks passed means: every assert that ran held, at least one ran, and the tests came to their end.
        """
        return self.judge_apart({"code": code}, "checker", {"tests": tests, "entry": entry}, image=image, limits=limits)

    def judge_apart(
        self, solution: Mapping[str, Any], kind: str, tests: Mapping[str, Any], *, image: str, limits: Limits | None
    ) -> tuple[tuple[Check, ...], Execution]:
        """Have a process of `kind` judge a solution that is in another jail; what `judge` and `judge_project` share."""

        bounds = limits or self._limits

        def work(slot: Slot) -> tuple[tuple[Check, ...], Execution]:
            return _judge_once(slot, solution, kind, tests, image, bounds)

        return self._attempt(work, bounds)

    def _attempt(self, work: Callable[[Slot], tuple[R, Execution]], limits: Limits) -> tuple[R, Execution]:
        result, execution = self._pool.attempt(work)
        low, high = (bound * limits.cpu_seconds for bound in NEAR)
        if low <= execution.cpu_seconds <= high and execution.outcome in ("ok", "failed", "timeout", "crashed"):
            with self._pool.use_alone() as slot:
                again, second = self._pool.do(work, slot)
            if second.outcome != "sandbox_error":
                note = "near the CPU limit, so run again alone"
                detail = f"{second.detail}; {note}" if second.detail else note
                return again, replace(second, detail=detail)
        return result, execution

    # ------------------------------------------------------------------------------------------------------- the end

    def close(self) -> None:
        """Wait for what is running, then end every process of this sandbox. Safe to call twice."""
        self._pool.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _payload(program: Program, limits: Limits) -> tuple[str, dict[str, Any]]:
    if (program.code is None) == (program.argv is None):
        raise SandboxError("a program is either code or argv: give exactly one of the two")
    if sum(len(content) for content in program.files.values()) > limits.disk_mb << 20:
        raise SandboxError(f"the program's files are larger than its disk limit of {limits.disk_mb} MiB")
    for path in program.files:
        if path.startswith("/") or ".." in path.split("/"):
            raise SandboxError(f"the path {path!r} leaves the work directory", fix="use a relative path")
    files = dict(program.files)
    if program.argv is not None:
        return "argv", {"argv": list(program.argv), "files": files}
    return "python", {"code": program.code, "files": files}


def _judge_once(
    slot: Slot, solution: Mapping[str, Any], kind: str, tests: Mapping[str, Any], image: str, limits: Limits
) -> tuple[tuple[Check, ...], Execution]:
    nonce = secrets.token_hex(16)
    judge_image = image if kind == "checker" else "pytest"
    solver, checker = slot.zygote(image), slot.zygote(judge_image, "tests")
    theirs, ours = socket.socketpair()
    with theirs, ours:
        solving = Run(solver, "solution", {**solution, "core": slot.core}, limits, pass_fds=[theirs.fileno()])
        checking = Run(
            checker,
            kind,
            {**tests, "nonce": nonce, "core": slot.core},
            verdict.checker_limits(limits),
            pass_fds=[ours.fileno()],
            reply=True,
        )
    drive([solving, checking])
    assert checking.reply is not None
    execution, judged = solving.execution(), checking.execution()
    if judged.outcome == "sandbox_error":
        execution = replace(execution, outcome="sandbox_error", detail=f"the tests' jail: {judged.detail}")
    return verdict.checks(bytes(checking.reply.data), nonce, judged), execution
