"""Real runs to break: the tiny model, the real sandbox, domains whose graders and sources fail on command."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq

from surefoot.config import Recipe
from surefoot.loop import Run
from surefoot.recipe import parse_recipe
from surefoot.stages import open_stages
from surefoot.store.journal import read_lines

DOMAINS = '''
import os, random, time
from pathlib import Path

from surefoot import Task, domain
from surefoot.protocols import Domain
from surefoot.rewards.function import FunctionGrader

HERE = Path(__file__).parent


def mode():
    """What is to go wrong now: the content of a file beside this one."""
    return (HERE / "mode").read_text() if (HERE / "mode").exists() else ""


def right(rollout):
    return sum(c in "aeiouAEIOU0123456789" for c in rollout.text) >= 2


ASKED = set()


def grade(task, rollout):
    now = mode()
    if now == "raise" or now == "poison" and "number 3." in task.messages[0]["content"]:
        raise ConnectionError("the data base of the grader is gone")
    if now == "exit":
        raise SystemExit(3)
    if now == "hang":
        time.sleep(20)
    if now == "slow":
        time.sleep(0.8)
    if now in ("nan", "inf"):
        return float(now)
    if now == "seven":
        return 7
    if now == "object":
        return object()
    if now == "flaky" and rollout.seed not in ASKED:
        ASKED.add(rollout.seed)
        raise TimeoutError("try again")
    return right(rollout)


class Numbers:
    def size(self, split):
        return 12

    def task(self, split, index):
        if mode() == "source" and split == "train":
            raise OSError("the server of the tasks does not answer")
        if not 0 <= index < 12:
            raise IndexError(index)
        text = f"Say {split} number {index}."
        return Task(f"odd/{split}/{index}", "odd", ({"role": "user", "content": text},), checks={"n": index})


def build(config):
    """Graded in this process, so that the tests can reach it."""
    return Domain(config.name, Numbers(), FunctionGrader(grade), max_new_tokens=8)


class Words:
    def size(self, split):
        return None

    def task(self, split, index):
        text = f"Say {random.Random(f'{split} {index}').random()}."
        return Task(f"calm/{split}/{index}", "calm", ({"role": "user", "content": text},), checks={"n": index})


def build_calm(config):
    """Never fails, and needs no jail, so that it is fast on a busy machine as well."""
    return Domain(config.name, Words(), FunctionGrader(lambda task, rollout: right(rollout)), max_new_tokens=8)


@domain(max_new_tokens=8)
def vowels(rng):
    word = "".join(rng.choice("abcdefghij") for _ in range(6))
    return Task("", "vowels", ({"role": "user", "content": f"Say {word}."},), checks={"word": word})


@vowels.grader
def grade_vowels(task, rollout):
    return right(rollout)


@domain(max_new_tokens=8)
def hostile(rng):
    return Task("", "hostile", ({"role": "user", "content": f"Say {rng.random()}."},), checks={"how": HOW})


@hostile.grader
def grade_hostile(task, rollout):
    how = task.checks["how"]
    if how == "leak":
        kept = []
        while True:
            kept.append(bytearray(10**8))
    if how == "end":
        os._exit(0)
    if how == "segfault":
        import ctypes
        ctypes.string_at(0)
    return right(rollout)


HOW = os.environ.get("HOW", "")
'''


class Recorder:
    """A progress display that only remembers, and can act after each step."""

    def __init__(self, after: Callable[[int], None] | None = None) -> None:
        self.lines: list[str] = []
        self.metrics: dict[int, Mapping[str, Any]] = {}
        self._after = after

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def say(self, text: str) -> None:
        self.lines.append(text)

    def stage(self, name: str, done: int = 0, total: int = 0) -> None:
        pass

    def step(self, step: int, steps: int, metrics: Mapping[str, Any]) -> None:
        self.metrics[step] = metrics
        if self._after:
            self._after(step)


class Place:
    """A folder with the domains' file, in which runs are made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "doms.py").write_text(DOMAINS)

    def breaks(self, mode: str) -> None:
        """From now on, the domain `odd` fails like this; empty for not at all."""
        (self.folder / "mode").write_text(mode)

    def recipe(self, *domains: str, **more: Any) -> Recipe:
        """A recipe over some of the domains `calm`, `odd`, `vowels`, `hostile`, `code`; sections are merged."""
        sources = {"odd": "build", "calm": "build_calm", "vowels": "vowels", "hostile": "hostile"}
        entries = [
            {"name": name, "source": f"{self.folder}/doms.py:{sources[name]}"}
            if name in sources
            else {"name": name, "source": name, "max_new_tokens": 8}
            for name in domains or ("calm", "odd")
        ]
        data: dict[str, Any] = {
            "model": "tiny",
            "steps": 4,
            "domains": entries,
            "rollout": {"prompts": 4, "samples": 4},
            "learner": {"lr": 1e-3, "warmup_steps": 0, "dtype": "float32"},
            "evaluate": {"tasks": 2, "before": False, "after": False},
            "checkpoint": {"every": 1, "keep": 3},
            "faults": {"wait": 1},
            "threads": 1,
        }
        for key, value in more.items():
            data[key] = {**data[key], **value} if isinstance(value, dict) else value
        return parse_recipe(data)

    @property
    def run(self) -> Path:
        return self.folder / "run"


@contextmanager
def opened(recipe: Recipe, directory: Path, said: Recorder, resume: bool = False) -> Iterator[tuple[Run, Any]]:
    """A run that is about to go through its stages."""
    with open_stages(recipe, directory, resume, said) as stages:
        yield stages.run, stages


def train(
    recipe: Recipe, directory: Path, *, resume: bool = False, after: Callable[[int], None] | None = None
) -> Recorder:
    """Train to the end in this process."""
    said = Recorder(after)
    with opened(recipe, directory, said, resume) as (_, stages):
        list(stages.go())
    return said


def events(run: Path, kind: str) -> list[dict[str, Any]]:
    return [line for line in read_lines(run / "events.jsonl") if line["event"] == kind]


def metrics(run: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if k != "timing"} for line in read_lines(run / "metrics.jsonl")]


def assert_same(one: Path, other: Path) -> None:
    """Two runs ended alike, bit for bit, whatever happened in between."""
    last = sorted((one / "checkpoints").iterdir())[-1].name
    for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
        left, right = ((run / "checkpoints" / last / name).read_bytes() for run in (one, other))
        assert left == right, (name, _difference(left, right))
    assert metrics(one) == metrics(other)
    files = [sorted(p.name for p in (run / "rollouts").iterdir()) for run in (one, other)]
    assert files[0] == files[1]
    for name in files[0]:
        tables = [pq.read_table(r / "rollouts" / name).drop_columns(["executions"]).to_pylist() for r in (one, other)]
        assert tables[0] == tables[1], name


def _difference(left: bytes, right: bytes) -> str:
    try:
        a, b = json.loads(left), json.loads(right)
    except ValueError:
        return "binary"
    return str({key: (a[key], b.get(key)) for key in a if a[key] != b.get(key)})[:2000]
