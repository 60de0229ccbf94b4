"""Real runs on real Ray: the tiny model, the real sandbox, a domain with rewards on both sides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq

from surefoot.config import Recipe
from surefoot.recipe import parse_recipe, to_toml
from surefoot.stages import open_stages
from surefoot.store.journal import read_lines

DOMAINS = """
from surefoot import Task, domain


@domain(max_new_tokens=8)
def vowels(rng):
    word = "".join(rng.choice("abcdefghij") for _ in range(6))
    return Task("", "vowels", ({"role": "user", "content": f"Say {word}."},), checks={"word": word})


@vowels.grader
def grade_vowels(task, rollout):
    return sum(c in "aeiouAEIOU0123456789" for c in rollout.text) >= 2
"""


def recipe_in(folder: Path, **more: Any) -> Recipe:
    """A recipe over one domain, whose file is written into `folder`; sections of `more` are merged in."""
    (folder / "doms.py").write_text(DOMAINS)
    data: dict[str, Any] = {
        "model": "tiny",
        "steps": 3,
        "threads": 1,
        "domains": [{"name": "vowels", "source": f"{folder}/doms.py:vowels"}],
        "rollout": {"prompts": 4, "samples": 4, "batch": 8},
        "learner": {"lr": 1e-3, "warmup_steps": 0, "dtype": "float32"},
        "sandbox": {"workers": 1},
        "evaluate": {"tasks": 2, "samples": 2, "before": False, "after": False},
        "checkpoint": {"every": 1, "keep": 9},
        "cluster": {"engines": 2, "graders": 2, "start_seconds": 500},
    }
    for key, value in more.items():
        data[key] = {**data[key], **value} if isinstance(value, dict) else value
    return parse_recipe(data)


class Recorder:
    """A progress display that only remembers, and can act after each step."""

    def __init__(self, after: Callable[[int], None] | None = None) -> None:
        self.lines: list[str] = []
        self._after = after

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def say(self, text: str) -> None:
        self.lines.append(text)

    def stage(self, name: str, done: int = 0, total: int = 0) -> None:
        pass

    def step(self, step: int, steps: int, metrics: Mapping[str, Any]) -> None:
        if self._after:
            self._after(step)


def train(
    recipe: Recipe,
    directory: Path,
    cluster: str | None = "local",
    *,
    resume: bool = False,
    before: Callable[[Any], None] | None = None,
    after: Callable[[Any, int], None] | None = None,
) -> Recorder:
    """Train to the end in this process; `before` the first step and `after` each one, something may be done to it."""
    opened: list[Any] = []
    said = Recorder(after and (lambda step: after(opened[0], step)))
    with open_stages(recipe, directory, resume, said, cluster) as stages:
        opened.append(stages.run)
        if before:
            before(stages.run)
        list(stages.go())
    return said


def start_command(recipe: Recipe, directory: Path, *arguments: str) -> subprocess.Popen[str]:
    """`surefoot train`, as a user types it."""
    file = directory.with_suffix(".toml")
    file.write_text(to_toml(recipe))
    command = [sys.executable, "-c", "from surefoot.cli import main; main()", "train", str(file)]
    environment = {**os.environ, "COLUMNS": "200", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*command, "--run-dir", str(directory), *arguments],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
    )


def events(run: Path, kind: str) -> list[dict[str, Any]]:
    """Those of one kind, in their order."""
    return [line for line in read_lines(run / "events.jsonl") if line["event"] == kind]


def metrics(run: Path) -> list[dict[str, Any]]:
    """Of each step, without what depends on the clock."""
    return [{k: v for k, v in line.items() if k != "timing"} for line in read_lines(run / "metrics.jsonl")]


def samples(run: Path) -> list[dict[str, Any]]:
    """Every rollout of every step with its verdict and reward, without what the sandbox measured."""
    tables = [pq.read_table(file).drop_columns(["executions"]) for file in sorted((run / "rollouts").iterdir())]
    return [row for table in tables for row in table.to_pylist()]


def weights(run: Path) -> bytes:
    """The last checkpoint's."""
    return (sorted((run / "checkpoints").iterdir())[-1] / "model.safetensors").read_bytes()


def assert_same(one: Path, other: Path) -> None:
    """Two runs are alike, bit for bit: draws, samples with log-probs, rewards, metrics and weights."""
    assert (one / "draws.jsonl").read_bytes() == (other / "draws.jsonl").read_bytes()
    assert samples(one) == samples(other)
    assert metrics(one) == metrics(other)
    assert weights(one) == weights(other)


def processes(run: Path) -> list[int]:
    """Of engines and graders that were started for a run."""
    started = [*events(run, "engine_started"), *events(run, "grader_started")]
    return [int(line["pid"]) for line in started]


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def shown(value: object) -> str:
    """For messages of assertions."""
    return json.dumps(value, indent=1, default=str)
