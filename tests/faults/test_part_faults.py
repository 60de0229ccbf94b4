"""Sandbox, engine and data that fail while the run goes on, and a clock that jumps."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import torch
from fault_page import fault
from fault_runs import Place, Recorder, assert_same, events, metrics, opened, train

from surefoot.errors import ResourceError
from surefoot.loop import Run
from surefoot.rollout import LocalEngine
from surefoot.sandbox import sampler
from surefoot.types import Rollout


def jailed_processes() -> list[int]:
    """The zygotes that this process has started, with whatever runs in them."""
    return [pid for pid in sampler.tree(os.getpid()) if pid != os.getpid()]


class Killer:
    """Kills jailed processes of this process, one after each step and some in between."""

    def __init__(self, seed: int) -> None:
        self.random, self.killed = random.Random(seed), 0

    def __call__(self, step: int) -> None:
        self.strike()
        threading.Timer(self.random.uniform(0.0, 0.1), self.strike).start()

    def strike(self) -> None:
        pids = jailed_processes()
        if pids:
            try:
                os.kill(self.random.choice(pids), signal.SIGKILL)
                self.killed += 1
            except ProcessLookupError:
                pass


@pytest.mark.parametrize("seed", [1, 2])
@fault("zygotes of the sandbox are killed", run="starts new ones and runs again what ran in them", seen="nothing")
def test_zygotes_killed(place: Place, healthy: Place, seed: int) -> None:
    killer = Killer(seed)
    train(place.recipe("vowels", "code"), place.run, after=killer)
    assert killer.killed >= 4
    assert metrics(place.run) == metrics(healthy.run)
    assert_same(place.run, healthy.run)


@fault("every jailed process is killed at once, while it grades", run="as above", seen="nothing")
def test_all_jails_killed(place: Place, healthy: Place) -> None:
    def kill_all(step: int) -> None:
        for pid in jailed_processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    train(place.recipe("vowels", "code"), place.run, after=kill_all)
    assert_same(place.run, healthy.run)


def failing(run: Run, times: int, error: Exception, after: int = 5) -> None:
    """Let the real engine raise so many times, each time after some samples of a call."""
    engine, left = run.engine, [times]
    real = engine.rollout

    def rollout(*args: object, **more: object) -> Iterator[Rollout]:
        for count, sample in enumerate(real(*args, **more)):  # type: ignore[arg-type]
            if left[0] and count == after:
                left[0] -= 1
                raise error
            yield sample

    engine.rollout = rollout  # type: ignore[method-assign,assignment]
    assert isinstance(engine, LocalEngine)


@fault(
    "the engine raises in the middle of a step",
    run="asks it again for what is missing",
    seen="`11 samples are drawn again`",
)
def test_engine_once(place: Place, healthy: Place) -> None:
    said = Recorder()
    with opened(place.recipe("vowels", "code"), place.run, said) as (run, stages):
        failing(run, 1, RuntimeError("CUDA error: an illegal memory access was encountered"))
        list(stages.go())
    assert "the engine failed (RuntimeError: CUDA error" in said.text and "11 samples are drawn again" in said.text
    assert len(events(place.run, "engine_failed")) == 1
    assert_same(place.run, healthy.run)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError("CUDA error: device lost"), "the engine failed twice in one step"),
        (torch.OutOfMemoryError("out of memory"), "out of memory"),
    ],
)
@fault(
    "the engine raises twice in a step, or is out of memory",
    run="ends with an error",
    lost="steps since the last checkpoint",
    seen="what to change, exit code 1; `--resume` goes on bit for bit",
)
def test_engine_twice(place: Place, healthy: Place, error: Exception, told: str) -> None:
    recipe = place.recipe("vowels", "code")
    broken: dict[str, bool] = {}

    def break_it(run: Run) -> None:
        failing(run, 2, error if "engine failed" in told else ResourceError(f"{told} while sampling"))
        broken["now"] = True

    said = Recorder()
    with pytest.raises(ResourceError, match=told), opened(recipe, place.run, said) as (run, stages):
        said._after = lambda step: break_it(run) if step == 2 else None
        list(stages.go())
    assert broken and [line["step"] for line in metrics(place.run)] == [1, 2]
    train(recipe, place.run, resume=True)
    assert_same(place.run, healthy.run)


class Jumping(datetime):
    """A clock that somebody sets: each reading is up to a year off."""

    chance = random.Random(3)

    @classmethod
    def now(cls, tz: object = None) -> datetime:
        return datetime.now(UTC) + timedelta(days=cls.chance.uniform(-365, 365))


@fault(
    "the clock is set, backwards and forwards, all the time", run="is not affected", seen="odd times in `events.jsonl`"
)
def test_clock(place: Place, healthy: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, real = random.Random(4), time.time
    monkeypatch.setattr(time, "time", lambda: real() + chance.uniform(-3e7, 3e7))
    monkeypatch.setattr("surefoot.store.journal.datetime", Jumping)
    train(place.recipe("vowels", "code"), place.run)
    monkeypatch.undo()
    assert_same(place.run, healthy.run)


def questions(place: Place) -> tuple[Path, dict[str, object]]:
    """A file of tasks, and the recipe entry of its domain."""
    file = place.folder / "questions.jsonl"
    file.write_text("".join(f'{{"prompt": "What is {n} and 1?", "answer": "{n + 1}"}}\n' for n in range(40)))
    options = {"prompt": "prompt", "answer": "answer", "heldout": 0.2}
    return file, {"name": "questions", "source": f"file:{file}", "options": options, "max_new_tokens": 4}


@pytest.mark.parametrize("damage", ["truncated", "garbage", "deleted"])
@fault(
    "a data file is truncated, overwritten or deleted while the run goes on",
    run="its domain is shut off, the others go on",
    seen="`questions is shut off ... it has no tasks to give`; a resume that reads the file says which line is wrong",
)
def test_data_file(place: Place, damage: str) -> None:
    file, entry = questions(place)
    plain = place.recipe("calm")
    recipe = type(plain).model_validate({**plain.model_dump(), "domains": [plain.domains[0].model_dump(), entry]})

    def break_it(step: int) -> None:
        if damage == "deleted":
            file.unlink(missing_ok=True)
        else:
            file.write_bytes(b"" if damage == "truncated" else b"\x00garbage{" * 300)

    train(recipe, place.run, after=break_it)
    (first, *_) = events(place.run, "breaker_opened")
    assert first["domain"] == "questions" and "it has no tasks to give" in first["why"]
    lines = metrics(place.run)
    assert "questions" in lines[0]["domains"] and all("questions" not in line["domains"] for line in lines[1:])
    assert lines[-1]["domains"]["calm"]["rollouts"] > 0
