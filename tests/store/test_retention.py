"""Which checkpoints are kept, and what `surefoot runs` says and deletes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from surefoot import cli
from surefoot.recipe import parse_recipe
from surefoot.store import CheckpointStore, Journal, RunDirectory
from surefoot.store.checkpoint import damage
from surefoot.store.retention import Retention


def save(store: CheckpointStore, step: int, score: float | None = None) -> Path:
    def model(path: Path) -> None:
        (path / "model.safetensors").write_bytes(b"m" * 1000)

    return store.save(step, model, {"a": torch.ones(3)}, {"s": step}, score)


def names(store: CheckpointStore) -> list[int]:
    return [int(path.name[5:]) for path in store.paths()]


@pytest.mark.parametrize(
    ("policy", "scores", "kept"),
    [
        (Retention(2), {1: None, 2: None, 3: None}, {2, 3}),
        (Retention(1, 4), {0: None, 2: None, 4: None, 8: None, 9: None}, {4, 8, 9}),
        (Retention(1), {1: 0.2, 2: 0.9, 3: 0.9, 4: 0.1}, {2, 4}),
        (Retention(5), {}, set()),
    ],
)
def test_policy(policy: Retention, scores: dict[int, float | None], kept: set[int]) -> None:
    assert policy.kept(scores) == kept


def test_the_best_survives_until_a_better_one_comes(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=1, keep_every=4)
    for step, score in enumerate((0.1, 0.7, 0.3, 0.2, 0.5, 0.8, 0.1), start=1):
        save(store, step, score)
        assert max(names(store)) == step
    assert names(store) == [4, 6, 7]


def test_one_that_lacks_parts_does_not_push_out_a_sound_one(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=2)
    save(store, 1), save(store, 2)
    (tmp_path / "step-000002" / "state.json").unlink()
    save(store, 3)
    assert names(store) == [1, 3] and all(damage(path) is None for path in store.paths())


def test_before_takes_only_steps_that_are_due(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep=9)
    for step in (0, 4, 5, 8):
        save(store, step)
    for limit, wanted in ((9, 8), (8, 4), (6, 4), (4, 0)):
        found = store.before(limit, every=4)
        assert found is not None and found.step == wanted
    assert store.before(0, every=4) is None


def test_checksums_must_name_what_matters(tmp_path: Path) -> None:
    path = save(CheckpointStore(tmp_path, keep=1), 1)
    (path / "checksums.json").write_text("{}")
    assert damage(path) == "checksums.json is incomplete"
    (path / "checksums.json").write_text("[]")
    assert damage(path) == "checksums.json is incomplete"


def test_mean_of_a_metric_over_the_last_steps(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for step, rate in ((1, 0.9), (2, 0.1), (3, 0.3)):
        journal.metrics(step, {"pass_rate": rate, "domains": {"code": {"pass_rate": rate / 2}}})
    journal.close()
    assert journal.recent_mean("pass_rate", 3, 2) == pytest.approx(0.2)
    assert journal.recent_mean("domains/code/pass_rate", 2, 2) == pytest.approx(0.25)
    assert journal.recent_mean("", 3, 2) is None and journal.recent_mean("nothing", 3, 2) is None


@pytest.fixture
def surefoot(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["surefoot", "runs", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), " ".join((said.out + said.err).split())

    return run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    recipe = parse_recipe(
        {"model": "tiny", "steps": 9, "domains": [{"name": "d", "source": "code"}], "checkpoint": {"keep": 2}}
    )
    directory = RunDirectory.create(tmp_path / "run", recipe)
    store = CheckpointStore(directory.checkpoints, keep=9)
    for step in (3, 6, 9):
        save(store, step)
    journal = Journal(directory.path)
    journal.metrics(9, {"reward": 1.0})
    journal.event("breaker_opened", text="step 4: d is shut off until step 9: the grader raised")
    journal.close()
    (directory.path / "quarantine.jsonl").write_text(json.dumps({"step": 3}) + "\n")
    directory.close()
    return directory.path


def test_list_and_show(surefoot: Callable[..., tuple[int, str]], run: Path) -> None:
    code, said = surefoot("list", run.parent)
    assert code == 0 and "finished" in said and "9/9" in said and "3, newest 9" in said
    code, said = surefoot("show", run)
    assert code == 0 and "step 9 of 9" in said and "d is shut off until step 9" in said and "tasks set aside: 1" in said
    code, said = surefoot("show", run.parent / "nowhere")
    assert code == 2 and "there is no run here" in said


def test_verify(surefoot: Callable[..., tuple[int, str]], run: Path) -> None:
    assert surefoot("verify", run) == (0, "5 of 5 parts are sound")
    (run / "checkpoints" / "step-000009" / "model.safetensors").write_bytes(b"m" * 999)
    code, said = surefoot("verify", run)
    assert code == 1 and "checkpoints/step-000009: model.safetensors has changed" in said and "falls back" in said


def test_prune(surefoot: Callable[..., tuple[int, str]], run: Path) -> None:
    code, said = surefoot("prune", run, "--dry-run")
    assert code == 0 and "would delete step-000003" in said and len(list((run / "checkpoints").iterdir())) == 3
    (run / "checkpoints" / "step-000006").rename(run / "checkpoints" / "damaged-step-000006")
    code, said = surefoot("prune", run, "--keep", 1)
    assert code == 0 and "deleted step-000003" in said and "deleted damaged-step-000006" in said
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["step-000009"]
    held = RunDirectory.resume(run)
    code, said = surefoot("prune", run)
    held.close()
    assert code == 2 and "a process is writing to this run" in said
