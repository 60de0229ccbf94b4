"""The pool: order, streams, cancellation, recovery, back-pressure, and a clean end, even a violent one."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Thread

import pytest

from surefoot.errors import SandboxError
from surefoot.protocols import Limits, Program
from surefoot.sandbox import Sandbox, sampler
from surefoot.types import Execution, IsolationLevel

ROOT = Path(__file__).resolve().parents[2]


def test_map_keeps_the_order_and_takes_programs_as_it_goes(sandbox: Sandbox) -> None:
    taken = 0

    def programs() -> object:
        nonlocal taken
        for index in range(30):
            taken += 1
            yield Program(code=f"print({index})")

    results = sandbox.map(programs())  # type: ignore[arg-type]
    assert next(results).stdout == "0\n" and taken < 10
    assert [execution.stdout for execution in results] == [f"{index}\n" for index in range(1, 30)]


def test_stream_gives_results_as_they_end(namespaces: Sandbox) -> None:
    slow = "import time; time.sleep(0.5)"
    programs = [Program(code=slow), *(Program(code=f"print({i})") for i in range(5))]

    async def collect() -> list[int]:
        return [index async for index, execution in namespaces.stream(programs) if execution.outcome == "ok"]

    order = asyncio.run(collect())
    assert sorted(order) == list(range(6)) and order[-1] == 0


def test_cancel_ends_a_run(sandbox: Sandbox) -> None:
    cancel = Event()
    results: list[Execution] = []
    program = Program(code="import time; time.sleep(60)", limits=Limits(wall_seconds=120))
    thread = Thread(target=lambda: results.append(sandbox.run(program, cancel=cancel)))
    thread.start()
    time.sleep(0.2)
    cancel.set()
    thread.join(20)
    assert not thread.is_alive()
    assert (results[0].outcome, results[0].detail) == ("sandbox_error", "cancelled")
    assert sandbox.run(Program(code="print(1)")).stdout == "1\n"


def test_many_threads_share_the_workers(sandbox: Sandbox) -> None:
    results: list[str] = []
    threads = [
        Thread(target=lambda i=i: results.append(sandbox.run(Program(code=f"print({i})")).stdout)) for i in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(int, results)) == list(range(16))


def test_metrics() -> None:
    with Sandbox("namespaces", workers=1) as sandbox:
        sandbox.run(Program(code="pass"))
        sandbox.run(Program(code="1 / 0"))
        metrics = sandbox.metrics()
    assert (metrics.runs, metrics.busy, metrics.waiting, metrics.restarts) == (2, 0, 0, 0)
    assert metrics.outcomes == {"ok": 1, "failed": 1} and metrics.runs_per_second > 0


@pytest.mark.parametrize("level", ["namespaces", "landlock"])
def test_a_dead_zygote_is_replaced_and_the_run_repeated(level: IsolationLevel) -> None:
    with Sandbox(level, workers=1) as sandbox:
        sandbox.run(Program(code="pass"))
        (zygote,) = sandbox._pool._slots[0].zygotes.values()
        os.kill(zygote.pid, signal.SIGKILL)
        assert sandbox.run(Program(code="print(1)")).stdout == "1\n"
        killer = Thread(target=lambda: (time.sleep(0.3), os.kill(_only_zygote(sandbox), signal.SIGKILL)))
        killer.start()
        execution = sandbox.run(Program(code="import time; time.sleep(0.6); print(2)"))
        killer.join()
        assert (execution.outcome, execution.stdout) == ("ok", "2\n")
        assert sandbox.metrics().restarts >= 1


def _only_zygote(sandbox: Sandbox) -> int:
    (zygote,) = sandbox._pool._slots[0].zygotes.values()
    return zygote.pid


def test_closed_is_closed() -> None:
    sandbox = Sandbox("namespaces", workers=1)
    sandbox.run(Program(code="pass"))
    sandbox.close()
    sandbox.close()
    with pytest.raises(SandboxError, match="closed"):
        sandbox.run(Program(code="pass"))


def test_close_leaves_nothing() -> None:
    before = set(sampler.tree(os.getpid())), len(list(Path("/proc/self/fd").iterdir()))
    with Sandbox("landlock", workers=2) as sandbox:
        sandbox.warm("python", judge=True)
        folders = {zygote.base for slot in sandbox._pool._slots for zygote in slot.zygotes.values()}
    assert before == (set(sampler.tree(os.getpid())), len(list(Path("/proc/self/fd").iterdir())))
    assert len(folders) == 4 and not any(folder and Path(folder).exists() for folder in folders)


PARENT = """
import sys, threading, time
from surefoot.protocols import Program
from surefoot.sandbox import Sandbox, sampler
import os
sandbox = Sandbox(sys.argv[1], workers=2)
sandbox.warm()
for code in ("while True: pass", "import time; time.sleep(600)"):
    threading.Thread(target=sandbox.run, args=(Program(code=code),), daemon=True).start()
time.sleep(0.5)
bases = [z.base for slot in sandbox._pool._slots for z in slot.zygotes.values()]
print(*sampler.tree(os.getpid()), "|", *[base for base in bases if base], flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("level", ["namespaces", "landlock"])
def test_kill_9_of_the_parent_leaves_nothing(level: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, level], stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ}
    )
    assert parent.stdout is not None
    with parent.stdout:
        pids, _, folders = parent.stdout.readline().partition("|")
    parent.kill()
    parent.wait()
    started = [pid for pid in map(int, pids.split()) if pid != parent.pid]
    assert len(started) >= 4
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and (_living(started) or any(Path(f).exists() for f in folders.split())):
        time.sleep(0.05)
    assert _living(started) == [] and not any(Path(folder).exists() for folder in folders.split())


def _living(pids: list[int]) -> list[int]:
    alive = []
    for pid in pids:
        stat = sampler._stat(pid)
        if stat is not None and stat[0] != "Z":
            alive.append(pid)
    return alive


def test_a_short_storm_leaks_nothing(sandbox: Sandbox) -> None:
    def state() -> tuple[int, int]:
        return len(list(sampler.tree(os.getpid()))), len(list(Path("/proc/self/fd").iterdir()))

    sandbox.run(Program(code="pass"))
    before = state()
    for execution in sandbox.map(Program(code="pass") for _ in range(200)):
        assert execution.outcome == "ok"
    assert state() == before
