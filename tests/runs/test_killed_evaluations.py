"""`surefoot eval`, killed at random instants and started again, ends as if nobody had killed it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "eval_resume.py"


@pytest.mark.slow
def test_kills_at_random_instants_leave_no_trace(tmp_path: Path) -> None:
    suite = tmp_path / "short.toml"
    suite.write_text(
        '[suite]\ndescription = "short"\n[[domains]]\nname = "sums"\nsource = "reasoning_gym:chain_sum"\n'
        "max_new_tokens = 12\n"
        '[[domains]]\nname = "words"\nsource = "instructions"\nmax_new_tokens = 12\n'
    )
    command = [sys.executable, SCRIPT, "--suite", suite, "--tasks", "3", "--samples", "8", "--kills", "2"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["drawn_twice"] == 0 and found["same_samples"] and found["same_evaluation"]
    assert found["samples"] == 48 and all(0 < count <= 48 for count in found["kills_at"])
