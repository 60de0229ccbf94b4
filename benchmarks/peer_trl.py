"""Surefoot against TRL's GRPOTrainer: the same model, prompts, group size, token limit and reward, step by step.

    python benchmarks/peer_trl.py [--quick] [--steps N] [--trl-python PATH]

Both sides run as processes of their own that load once and then take one step whenever this program says so, in turn:
A B A B. Every sample has exactly the same number of new tokens on both sides, so that a step is the same work. TRL is
installed into a virtual environment of its own (kept in the cache directory) unless --trl-python names one that has it.

The last line is one JSON object: `time_ratio` (Surefoot / TRL, median of the pairs), `memory_ratio` (peak resident
memory), `quick`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TRL = "trl==1.16.0"


class Side:
    """One of the two programs, waiting for the word to take a step."""

    def __init__(self, name: str, python: str, script: str, arguments: list[str]) -> None:
        self.name = name
        environment = {
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "OMP_WAIT_POLICY": "PASSIVE",
            "PYTHONPATH": str(HERE.parent),
        }
        self.process = subprocess.Popen(
            [python, str(HERE / script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if "BENCH_VERBOSE" not in os.environ else None,
            text=True,
            env=environment,
        )
        self.steps: list[dict[str, Any]] = []
        self.ready = self._read()
        print(f"{name}: {self.ready['what']}", flush=True)

    def step(self) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        result = self._read()
        self.steps.append(result)
        return result

    def close(self) -> None:
        self.process.kill()
        self.process.wait()

    def median(self, key: str) -> float:
        return statistics.median(step[key] for step in self.steps)

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("BENCH "):
                answer: dict[str, Any] = json.loads(line.removeprefix("BENCH "))
                return answer
        raise SystemExit(f"{self.name} ended early (exit code {self.process.wait()}); BENCH_VERBOSE=1 shows why")


def trl_python() -> str:
    """Python of a virtual environment that has TRL; made on first use."""
    cache = Path(os.environ.get("SUREFOOT_CACHE") or Path.home() / ".cache" / "surefoot")
    place = cache / "venvs" / TRL.replace("==", "-")
    python = place / "bin" / "python"
    if not (place / ".ready").exists():
        print(f"installing {TRL} into {place} (once, some minutes)", flush=True)
        torch = next(x for x in (HERE.parent / "constraints.txt").read_text().split() if x.startswith("torch=="))
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        for package in (torch, TRL):
            subprocess.run([str(python), "-m", "pip", "install", "-q", "--no-compile", package], check=True)
        (place / ".ready").touch()
    return str(python)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 prompts x 4 samples x 16 tokens, one pair of steps")
    parser.add_argument("--steps", type=int, default=3, help="measured pairs of steps, after one of warm-up")
    parser.add_argument("--trl-python", default=None, help="a Python that has TRL installed")
    options = parser.parse_args()
    prompts, samples, tokens = (2, 4, 16) if options.quick else (8, 8, 64)
    steps, warm_up = (1, 0) if options.quick else (options.steps, 1)

    import torch

    from surefoot.models.compute import pick_dtype
    from surefoot.models.embedded import EMBEDDED, convert_embedded
    from surefoot.models.library import cache_directory

    model = convert_embedded(cache_directory() / "models")
    print(f"{EMBEDDED}: {prompts} prompts x {samples} samples x {tokens} new tokens, {steps} pairs of steps")
    dtype = str(pick_dtype("auto", torch.device("cpu"))).removeprefix("torch.")  # what is fastest here, on both sides
    arguments = [str(model), dtype, str(prompts), str(samples), str(tokens), str(steps + warm_up)]
    ours = Side("surefoot", sys.executable, "peer_trl_ours.py", arguments)
    theirs = Side("trl", options.trl_python or trl_python(), "peer_trl_theirs.py", arguments)
    try:
        for pair in range(steps + warm_up):
            a, b = ours.step(), theirs.step()
            note = "  (warm-up, not counted)" if pair < warm_up else ""
            print(f"pair {pair}: surefoot {a['seconds']:.2f} s, trl {b['seconds']:.2f} s{note}", flush=True)
    finally:
        ours.close()
        theirs.close()
    report(ours, theirs, warm_up, options.quick)


def report(ours: Side, theirs: Side, warm_up: int, quick: bool) -> None:
    for side in (ours, theirs):
        side.steps = side.steps[warm_up:]
    print(f"\n{'median of a step':<20}{'seconds':>10}{'generate':>10}{'learn':>10}{'tokens':>10}{'peak MiB':>10}")
    for side in (ours, theirs):
        figures = [side.median(key) for key in ("seconds", "generate", "learn", "tokens")]
        peak = max(step["peak_mb"] for step in side.steps)
        print(f"{side.name:<20}" + "".join(f"{x:>10.2f}" for x in figures[:3]) + f"{figures[3]:>10.0f}{peak:>10.0f}")
    ratios = [a["seconds"] / b["seconds"] for a, b in zip(ours.steps, theirs.steps, strict=True)]
    memory = max(s["peak_mb"] for s in ours.steps) / max(s["peak_mb"] for s in theirs.steps)
    result = {"time_ratio": round(statistics.median(ratios), 4), "memory_ratio": round(memory, 3), "quick": quick}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
