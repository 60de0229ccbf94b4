"""Does a killed evaluation go on without drawing anything twice? SIGKILL at random instants, against a run left alone.

`surefoot eval MODEL --suite SUITE` is started and killed `--kills` times, at random instants of its sampling, then left
to end; its log and its `evaluation.json` are held against those of an evaluation with a cache of its own that nobody
killed. Checked: after each kill, every recorded line is still there and none is repeated; in the end both evaluations
are the same, byte for byte. The last line is JSON; the exit code is 1 if anything differs.

    python benchmarks/eval_resume.py [--model tiny] [--suite stability-quick] [--tasks 4] [--samples 4] [--kills 4]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def start(options: argparse.Namespace, home: Path, said: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from surefoot.cli import main; main()", "eval", options.model]
    command += ["--suite", options.suite, "--tasks", options.tasks, "--samples", options.samples]
    command += [
        "--set",
        "learner.dtype=float32",
        "--set",
        "threads=1",
        "--set",
        "rollout.batch=16",
        "--out",
        home / "out",
    ]
    environment = {**os.environ, "SUREFOOT_CACHE": str(home / "cache")}
    with said.open("ab") as output:
        return subprocess.Popen([str(part) for part in command], env=environment, stdout=output, stderr=output)


def lines(home: Path) -> list[str]:
    """The whole lines of the samples that are recorded, without the head."""
    log = next((home / "cache" / "evaluations").glob("*/samples.jsonl"), None)
    return log.read_text().split("\n")[1:-1] if log else []


def left_alone(options: argparse.Namespace, home: Path) -> float:
    """Evaluate without any kill; gives the seconds."""
    began = time.monotonic()
    process = start(options, home, home / "said.txt")
    if process.wait():
        sys.exit((home / "said.txt").read_text())
    return time.monotonic() - began


def killed(options: argparse.Namespace, home: Path, total: int, rng: random.Random) -> list[int]:
    """Kill again and again, then let it end; gives how many samples were recorded at each kill."""
    counts: list[int] = []
    for goal in sorted(rng.sample(range(1, total), min(options.kills, total - 1))):
        before = lines(home)
        process = start(options, home, home / "said.txt")
        while process.poll() is None and len(lines(home)) < goal:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.2))  # not only just after a line
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        after = lines(home)
        assert after[: len(before)] == before, "recorded lines are gone"
        counts.append(len(after))
        print(f"killed with {len(after)} of {total} samples recorded", flush=True)
    left_alone(options, home)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--suite", default="stability-quick")
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        whole, broken = Path(folder) / "whole", Path(folder) / "broken"
        whole.mkdir()
        broken.mkdir()
        seconds = left_alone(options, whole)
        wanted = lines(whole)
        print(f"left alone: {len(wanted)} samples in {seconds:.0f} s", flush=True)
        counts = killed(options, broken, len(wanted), random.Random(options.seed))
        got = lines(broken)
        same = [(home / "out" / "evaluation.json").read_bytes() for home in (whole, broken)]
        result = {
            "samples": len(wanted),
            "kills_at": counts,
            "drawn_twice": len(got) - len({(json.loads(line)["task"], json.loads(line)["seed"]) for line in got}),
            "same_samples": sorted(got) == sorted(wanted),
            "same_evaluation": same[0] == same[1],
        }
    print(json.dumps(result))
    sys.exit(not (result["same_samples"] and result["same_evaluation"]) or result["drawn_twice"] > 0)


if __name__ == "__main__":
    main()
