"""A run that is killed at any instant and resumed ends bit for bit where the uninterrupted run ends.

These are real runs of the command line: a real (tiny) model, the real sandbox, real SIGKILLs.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from surefoot.config import ScheduleConfig
from surefoot.schedule import Arms, make_rule
from surefoot.schedule.scheduler import replay
from surefoot.store.journal import read_lines

DOMAIN = """
from surefoot import Task, domain

@domain(max_new_tokens=12)
def vowels(rng):
    word = "".join(rng.choice("abcdefghij") for _ in range(6))
    return Task("", "vowels", ({"role": "user", "content": f"Say {word}."},), checks={"word": word})

@vowels.grader
def grade(task, rollout):
    return sum(c in "aeiouAEIOU0123456789" for c in rollout.text) >= 2
"""
RECIPE = """
model = "tiny"
steps = 7
[[domains]]
name = "vowels"
source = "{folder}/vowels.py:vowels"
[[domains]]
name = "code"
source = "code"
max_new_tokens = 12
[rollout]
prompts = 4
samples = 6
[learner]
lr = 1e-3
[evaluate]
tasks = 3
samples = 2
[warm_start]
examples = 8
[checkpoint]
every = 2
keep = 3
"""


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recipe")
    (folder / "vowels.py").write_text(DOMAIN)
    path = folder / "r.toml"
    path.write_text(RECIPE.format(folder=folder))
    return path


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from surefoot.cli import main; main()", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(*arguments: object) -> str:
    process = start(*arguments)
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return said


@pytest.fixture(scope="module")
def whole(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The uninterrupted run."""
    directory = tmp_path_factory.mktemp("whole") / "run"
    finish("train", recipe, "--run-dir", directory)
    return directory


def assert_same_run(one: Path, other: Path) -> None:
    last = sorted((one / "checkpoints").iterdir())[-1].name
    for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
        left, right = (run / "checkpoints" / last / name for run in (one, other))
        assert left.read_bytes() == right.read_bytes(), name
    assert repeatable(one) == repeatable(other)
    assert read_lines(one / "draws.jsonl") == read_lines(other / "draws.jsonl")
    for path in sorted((one / "rollouts").iterdir()):
        left, right = (drop_timing(run / "rollouts" / path.name) for run in (one, other))
        assert left == right, path.name
    for stage in ("base", "warm-start", "after-RL"):
        left, right = (json.loads((r / "evaluations" / stage / "evaluation.json").read_text()) for r in (one, other))
        assert left == right, stage


def repeatable(run: Path) -> list[dict[str, object]]:
    return [{k: v for k, v in line.items() if k != "timing"} for line in read_lines(run / "metrics.jsonl")]


def drop_timing(path: Path) -> list[dict[str, object]]:
    return pq.read_table(path).drop_columns(["executions"]).to_pylist()


def test_the_run_learns_something_and_is_complete(whole: Path) -> None:
    lines = read_lines(whole / "metrics.jsonl")
    assert [line["step"] for line in lines] == list(range(1, 8))
    assert sum(line["learner"]["tokens"] > 0 for line in lines) >= 3, "the test has no signal to learn from"
    assert all(line["ungradable"] == 0 for line in lines)
    assert max(line["learner"].get("gap/mean_abs", 0) for line in lines) < 0.05
    assert (whole / "report.html").stat().st_size > 1000
    assert len(list((whole / "rollouts").iterdir())) == 7


def test_the_log_of_draws_gives_the_schedulers_state_again(recipe: Path, whole: Path) -> None:
    arms = Arms.of({"vowels": 1.0, "code": 1.0})
    rule = make_rule(ScheduleConfig(), arms, samples=6, seed=0)
    replay(rule, read_lines(whole / "draws.jsonl"), groups=4)
    saved = json.loads((whole / "checkpoints" / "step-000007" / "state.json").read_text())["scheduler"]["rule"]
    assert json.loads(json.dumps(rule.state())) == saved


def test_what_each_domain_did_can_be_shown(whole: Path) -> None:
    rows = [json.loads(line) for line in finish("runs", "domains", whole, "--json").splitlines()]
    assert [row["domain"] for row in rows] == ["code", "vowels"]
    assert sum(row["groups"] for row in rows) == 28
    assert abs(sum(row["share"] for row in rows) - 1) < 1e-9
    assert "after step 7" in finish("runs", "domains", whole)


def some_time_after(steps: int, seconds: float) -> Callable[[Path], bool]:
    """So many seconds after so many steps, however slow the machine; 0 steps: after the run directory was made."""
    seen: list[float] = []

    def due(run: Path) -> bool:
        if not seen and (run / "config.toml").exists() and len(read_lines(run / "metrics.jsonl")) >= steps:
            seen.append(time.monotonic())
        return bool(seen) and time.monotonic() > seen[0] + seconds

    return due


def mid_checkpoint(run: Path) -> bool:
    return any((run / "checkpoints").glob(".step-*/*.safetensors"))


def kill_when(process: subprocess.Popen[str], run: Path, due: Callable[[Path], bool]) -> None:
    while process.poll() is None and not due(run):
        time.sleep(0.001)
    process.kill()
    process.communicate()


@pytest.mark.slow
def test_killed_at_random_instants(recipe: Path, whole: Path, tmp_path: Path) -> None:
    run, instants = tmp_path / "run", random.Random(11)
    for steps in (0, 0, 1, 3, 6):
        resume = ["--resume"] if (run / "config.toml").exists() else []
        due = some_time_after(steps, instants.uniform(0, 2))
        kill_when(start("train", recipe, "--run-dir", run, *resume), run, due)
    finish("train", recipe, "--run-dir", run, "--resume")
    assert_same_run(whole, run)


@pytest.mark.slow
def test_killed_in_the_middle_of_writing_checkpoints(recipe: Path, whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    kill_when(start("train", recipe, "--run-dir", run), run, mid_checkpoint)
    assert not list((run / "checkpoints").glob("step-*"))
    for wanted in (2, 4):
        seen = f"step-{wanted:06d}"
        due = lambda r, seen=seen: any((r / "checkpoints").glob(f".{seen}-*/*.safetensors"))  # noqa: E731
        kill_when(start("train", recipe, "--run-dir", run, "--resume"), run, due)
        assert not (run / "checkpoints" / seen).exists()
    finish("train", run, "--resume")  # the run directory alone will do
    assert not list((run / "checkpoints").glob(".*"))
    assert_same_run(whole, run)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_it_saves_and_goes_on_later(
    recipe: Path, whole: Path, tmp_path: Path, number: signal.Signals
) -> None:
    run = tmp_path / "run"
    process = start("train", recipe, "--run-dir", run)
    while process.poll() is None and len(read_lines(run / "metrics.jsonl")) < 3:
        time.sleep(0.001)
    os.kill(process.pid, number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "--resume" in said
    done = len(read_lines(run / "metrics.jsonl"))
    assert sorted((run / "checkpoints").iterdir())[-1].name == f"step-{done:06d}"
    said = finish("train", recipe, "--run-dir", run, "--resume")
    assert f"resuming after step {done}" in said
    assert_same_run(whole, run)


@pytest.mark.slow
def test_a_changed_recipe_is_named_and_a_damaged_checkpoint_passed_over(
    recipe: Path, whole: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    finish("train", recipe, "--run-dir", run, "--set", "steps=4")
    newest = run / "checkpoints" / "step-000004" / "optimizer.safetensors"
    newest.write_bytes(newest.read_bytes()[:-100])
    said = finish("train", recipe, "--run-dir", run, "--resume")
    assert "changed since the run was started: steps: 4 -> 7" in said
    assert "step-000004 is damaged" in said
    assert "resuming after step 2" in said
    assert repeatable(run) == repeatable(whole)
