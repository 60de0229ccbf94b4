"""Running a Python program the way `python main.py` would, in a process that was forked from a warm zygote."""

from __future__ import annotations

import atexit
import contextlib
import datetime
import gc
import json
import linecache
import os
import random
import sys
import threading
import time
import traceback
import types
from typing import Any, NoReturn

FILE = "main.py"


def main(code: str) -> NoReturn:
    """Run `code` as `__main__` and exit with the status that the interpreter would give."""
    module = new_main(code)
    status = run_guarded(code, module)
    finish(status, module)


def new_main(code: str, name: str = "__main__", file: str = FILE) -> types.ModuleType:
    """An empty module for `code`, whose source tracebacks and `inspect` can find."""
    module = types.ModuleType(name)
    module.__file__ = file
    module.__dict__["__builtins__"] = __builtins__
    sys.modules[name] = module
    sys.path.insert(0, os.getcwd())
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    return module


def run_guarded(code: str, module: types.ModuleType) -> int:
    """Run `code` in `module`; print what it raises. Returns the exit status."""
    try:
        exec(compile(code, module.__file__ or FILE, "exec", dont_inherit=True), module.__dict__)
        return 0
    except SystemExit as stop:
        return exit_status(stop)
    except BaseException as error:
        trace = error.__traceback__.tb_next if error.__traceback__ else None  # without this function's own line
        error.with_traceback(trace)
        if sys.excepthook is sys.__excepthook__:
            traceback.print_exception(error)  # finds the source, which is in no file, where the built-in hook does not
        else:
            sys.excepthook(type(error), error, trace)
        return 1


def exit_status(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    print(stop.code, file=sys.stderr)
    return 1


def finish(status: int, module: types.ModuleType | None = None) -> NoReturn:
    """The end of an interpreter without its slow teardown: threads, exit functions, destructors, flushed output."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        if module is not None:
            module.__dict__.clear()
    except SystemExit as stop:
        status = exit_status(stop)
    except BaseException:
        status = status or 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            status = status or 120  # as the interpreter does
    os._exit(status)


def make_deterministic(config: dict[str, Any]) -> None:
    """Fix what differs between two runs of one program, as the image asks. Done in the zygote: its forks inherit it."""
    if config.get("deterministic", True):
        _seed(0)
        os.urandom = random._urandom = random.Random(0).randbytes  # type: ignore[attr-defined]
    if config.get("clock") is not None:
        _freeze_clock(float(config["clock"]))


def start(config: dict[str, Any]) -> None:
    """The little that is left to do in each run."""
    gc.enable()
    if not config.get("deterministic", True):
        _seed(None)  # from the system, and not what the zygote had


def stay_on(core: int | None) -> None:
    """Run on one core, if it can be had: of two processes that wait for each other all the time, a call then takes half
    as long as across two cores."""
    if core is not None:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {core})


def _seed(seed: int | None) -> None:
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed)


def _freeze_clock(now: float) -> None:
    """Let `time` and `datetime` say `now` (seconds since 1970) for ever; monotonic clocks go on."""

    class FrozenDatetime(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return cls.fromtimestamp(now, tz)

        @classmethod
        def utcnow(cls) -> Any:
            return cls.fromtimestamp(now, datetime.UTC).replace(tzinfo=None)

    time.time = lambda: now
    time.time_ns = lambda: int(now * 1e9)
    datetime.datetime = FrozenDatetime  # type: ignore[misc]


def answer(handler: Any, request: Any, reply_fd: int) -> NoReturn:
    """Let the configured handler answer a request; the reply is JSON on `reply_fd`."""
    try:
        reply = {"reply": handler(request)}
    except BaseException as error:
        reply = {"error": f"{type(error).__name__}: {error}"}
    try:
        data = json.dumps(reply).encode()
    except (TypeError, ValueError, RecursionError) as error:
        data = json.dumps({"error": f"the reply is not JSON: {error}"}).encode()
    with contextlib.suppress(OSError), open(reply_fd, "wb", closefd=False) as pipe:
        pipe.write(data)
    os._exit(0)
