"""What each layer of a run in the sandbox costs: a fork, then one layer more at a time, then the whole.

The layers are those of `surefoot.sandbox.inside`, put on by the same code (`sandbox_layers_inside.py`), in a process
that has entered namespaces of its own and has imported what a zygote imports. All stages take turns, so that a busy
machine slows them alike. The last line is JSON: microseconds that each layer adds (medians).

    python benchmarks/sandbox_layers.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import surefoot.sandbox
from surefoot.protocols import Program
from surefoot.sandbox import open_sandbox

CODE = "print(1)\n"
LAYERS = ("fork and end", "pid namespace", "private tmpfs", "limits", "no capabilities", "seccomp", "program")


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of each layer of a run in the sandbox.")
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    options = parser.parse_args()
    rounds = 200 if options.quick else 1500
    package = str(Path(surefoot.sandbox.__file__).parent)
    command = [sys.executable, "-P", str(Path(__file__).with_name("sandbox_layers_inside.py")), package, str(rounds)]
    cumulative: list[float] = json.loads(subprocess.check_output(command, text=True))
    taken = []
    with open_sandbox("namespaces", 1) as sandbox:
        for _ in range(rounds):
            start = time.perf_counter()
            sandbox.run(Program(code=CODE))
            taken.append(time.perf_counter() - start)
    whole = statistics.median(taken)
    steps = [after - before for before, after in zip([0.0, *cumulative], [*cumulative, whole], strict=True)]
    result = {name: round(1e6 * step) for name, step in zip([*LAYERS, "supervisor"], steps, strict=True)}
    for name, cost in result.items():
        print(f"{name:16} {cost:6d} us")
    print(f"{'a whole run':16} {1e6 * whole:6.0f} us")
    print(json.dumps({**{name.replace(" ", "_"): cost for name, cost in result.items()}, "quick": options.quick}))


if __name__ == "__main__":
    main()
