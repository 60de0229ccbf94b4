"""SIGKILL and SIGTERM at random instants: the resumed run ends where the uninterrupted one does, bit for bit."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest
from fault_children import finish, start
from fault_page import fault
from fault_runs import Place, assert_same

from surefoot.recipe import to_toml
from surefoot.store.checkpoint import damage
from surefoot.store.journal import read_lines

pytestmark = pytest.mark.slow

STEPS = 10
ENDS = 5
"""Times that each run is ended before it may finish; with 4 runs there are 20 instants."""


def recipe_file(place: Place) -> Path:
    path = place.folder / "r.toml"
    path.write_text(to_toml(place.recipe("vowels", "code", steps=STEPS, checkpoint={"every": 2})))
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("whole"))
    assert finish(recipe_file(place), place.run, False, place.folder / "log") == 0, (place.folder / "log").read_text()
    return place


def end_somewhere(place: Place, recipe: Path, number: signal.Signals, chance: random.Random) -> int:
    """Start or resume the run and end it at a random instant after a random number of steps; returns the exit code."""
    run, log = place.run, place.folder / "log"
    resume = (run / "config.toml").exists()
    before = len(read_lines(run / "metrics.jsonl"))
    process = start(recipe, run, resume, log)
    steps, delay = before + chance.choice((0, 0, 1, 2)), chance.uniform(0.0, 0.4)
    while process.is_alive() and not (
        (run / "config.toml").exists() and len(read_lines(run / "metrics.jsonl")) >= steps
    ):
        time.sleep(0.002)
    time.sleep(delay)
    if process.is_alive() and process.pid:
        os.kill(process.pid, number)
    process.join(60)
    assert process.exitcode is not None
    return process.exitcode


def survive(place: Place, whole: Place, number: signal.Signals, seed: int) -> None:
    recipe, chance = recipe_file(place), random.Random(seed)
    codes = [end_somewhere(place, recipe, number, chance) for _ in range(ENDS)]
    assert set(codes) <= {-number, 130, 0}, (codes, (place.folder / "log").read_text())
    assert sum(code != 0 for code in codes) >= ENDS - 1, (codes, "it came to its end before it was ended")
    assert all(damage(path) is None for path in (place.run / "checkpoints").glob("step-*"))
    assert finish(recipe, place.run, True, place.folder / "log") == 0, (place.folder / "log").read_text()
    assert "Traceback" not in (place.folder / "log").read_text()
    assert_same(place.run, whole.run)


@pytest.mark.parametrize("seed", [1, 2])
@fault(
    "SIGKILL (or a power cut), at 10 random instants",
    run="ends at once; `--resume` goes on bit for bit",
    lost="steps since the last checkpoint, which are taken again",
    seen="`resuming after step 4`",
)
def test_sigkill(place: Place, whole: Place, seed: int) -> None:
    survive(place, whole, signal.SIGKILL, seed)


@pytest.mark.parametrize("seed", [3, 4])
@fault(
    "SIGTERM or Ctrl-C, at 10 random instants",
    run="finishes the step, saves, ends with exit code 130; `--resume` goes on bit for bit",
    seen="`stopping: finishing this step and saving`",
)
def test_sigterm(place: Place, whole: Place, seed: int) -> None:
    survive(place, whole, signal.SIGTERM, seed)
