"""The run directory under crashes: files whole or absent, damage noticed, steps forgotten that are redone."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch

from surefoot.errors import ResourceError, RunError
from surefoot.recipe import parse_recipe
from surefoot.store import CheckpointStore, Journal, RunDirectory, atomic, write_rollouts
from surefoot.store.checkpoint import damage
from surefoot.store.journal import flatten, read_lines
from surefoot.store.rollouts import forget_after
from surefoot.types import Check, Execution, Group, Reward, Rollout, Task, Verdict

RECIPE = parse_recipe({"model": "tiny", "domains": [{"name": "d", "source": "code"}]})


class TestRunDirectory:
    def test_a_run_that_exists_is_refused_and_unharmed(self, tmp_path: Path) -> None:
        RunDirectory.create(tmp_path / "r", RECIPE).close()
        before = (tmp_path / "r" / "config.toml").read_text()
        with pytest.raises(RunError, match="--resume"):
            RunDirectory.create(tmp_path / "r", RECIPE)
        assert (tmp_path / "r" / "config.toml").read_text() == before

    def test_a_directory_with_other_things_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "thesis.txt").write_text("irreplaceable")
        with pytest.raises(RunError, match="not empty"):
            RunDirectory.create(tmp_path, RECIPE)
        assert sorted(p.name for p in tmp_path.iterdir()) == ["thesis.txt"]

    def test_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "f").touch()
        with pytest.raises(RunError):
            RunDirectory.create(tmp_path / "f", RECIPE)

    def test_resuming_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(RunError, match="no run here"):
            RunDirectory.resume(tmp_path)

    def test_two_processes_at_once(self, tmp_path: Path) -> None:
        first = RunDirectory.create(tmp_path / "r", RECIPE)
        with pytest.raises(RunError, match="another process"):
            RunDirectory.resume(tmp_path / "r")
        first.close()
        RunDirectory.resume(tmp_path / "r").close()

    def test_leftovers_of_a_killed_process_are_removed(self, tmp_path: Path) -> None:
        run = RunDirectory.create(tmp_path / "r", RECIPE)
        run.close()
        (run.checkpoints / ".step-000004-x1").mkdir()
        (run.rollouts / ".step-000004.parquet-x2").touch()
        RunDirectory.resume(tmp_path / "r").close()
        assert not [*run.checkpoints.iterdir(), *run.rollouts.iterdir()]

    def test_the_environment_names_versions(self, tmp_path: Path) -> None:
        RunDirectory.create(tmp_path / "r", RECIPE).close()
        recorded = json.loads((tmp_path / "r" / "environment.json").read_text())
        assert recorded["packages"]["torch"] == torch.__version__


def save(store: CheckpointStore, step: int) -> Path:
    return store.save(step, lambda p: (p / "model.safetensors").write_bytes(b"m" * 5000), tensors(step), {"s": step})


def tensors(step: int) -> dict[str, torch.Tensor]:
    return {"a": torch.full((300,), float(step)), "b": torch.arange(step)}


class TestCheckpoints:
    def test_there_and_back(self, tmp_path: Path) -> None:
        store = CheckpointStore(tmp_path, keep=2)
        save(store, 7)
        back = store.newest(pytest.fail)
        assert back is not None
        assert (back.step, back.state) == (7, {"s": 7})
        assert all(torch.equal(back.tensors[k], v) for k, v in tensors(7).items())

    def test_only_the_newest_are_kept(self, tmp_path: Path) -> None:
        store = CheckpointStore(tmp_path, keep=2)
        for step in (1, 2, 3, 10):
            save(store, step)
        assert [p.name for p in store.paths()] == ["step-000003", "step-000010"]

    def test_none_yet(self, tmp_path: Path) -> None:
        assert CheckpointStore(tmp_path, keep=1).newest(pytest.fail) is None

    @pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json", "checksums.json"])
    @pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.95])
    def test_a_truncated_one_falls_back_to_the_one_before(self, tmp_path: Path, name: str, share: float) -> None:
        store = CheckpointStore(tmp_path, keep=3)
        save(store, 1)
        newest = save(store, 2)
        whole = (newest / name).read_bytes()
        (newest / name).write_bytes(whole[: int(len(whole) * share)])
        said: list[str] = []
        back = store.newest(said.append)
        assert back is not None
        assert back.step == 1
        assert "step-000002 is damaged" in said[0]

    def test_a_flipped_bit_is_noticed(self, tmp_path: Path) -> None:
        path = save(CheckpointStore(tmp_path, keep=1), 1)
        content = bytearray((path / "optimizer.safetensors").read_bytes())
        content[-1] ^= 1
        (path / "optimizer.safetensors").write_bytes(content)
        assert damage(path) == "optimizer.safetensors has changed"

    def test_all_damaged_is_an_error_not_a_fresh_start(self, tmp_path: Path) -> None:
        store = CheckpointStore(tmp_path, keep=1)
        (save(store, 1) / "state.json").unlink()
        with pytest.raises(RunError, match="every checkpoint is damaged"):
            store.newest(lambda said: None)

    def test_a_full_disk_leaves_the_previous_one_valid(self, tmp_path: Path) -> None:
        store = CheckpointStore(tmp_path, keep=1)
        good = save(store, 1)

        def full(path: Path) -> None:
            (path / "model.safetensors").write_bytes(b"half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with pytest.raises(ResourceError, match="disk is full"):
            store.save(2, full, {}, {})
        assert damage(good) is None
        assert [p.name for p in tmp_path.iterdir()] == ["step-000001"]

    def test_killed_while_writing(self, tmp_path: Path) -> None:
        """A real SIGKILL in the middle of a write: the name never appears, the leftovers go on resume."""
        store = CheckpointStore(tmp_path, keep=2)
        save(store, 1)
        child = multiprocessing.get_context("fork").Process(target=_die_while_saving, args=(store,))
        child.start()
        child.join(30)
        assert child.exitcode == -9
        assert [p.name for p in store.paths()] == ["step-000001"]
        atomic.remove_leftovers(tmp_path)
        assert [p.name for p in tmp_path.iterdir()] == ["step-000001"]


def _die_while_saving(store: CheckpointStore) -> None:
    def die(path: Path) -> None:
        (path / "model.safetensors").write_bytes(b"half")
        os.kill(os.getpid(), 9)

    store.save(2, die, {}, {})


class TestAtomicFiles:
    def test_a_failed_write_keeps_the_old_content(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "f"
        atomic.write_text(path, "old")

        def full(handle: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(ResourceError, match="full"):
            atomic.write_text(path, "new")
        assert [p.name for p in tmp_path.iterdir()] == ["f"]
        assert path.read_text() == "old"


class TestJournal:
    def test_forgetting_steps_and_torn_lines(self, tmp_path: Path) -> None:
        journal = Journal(tmp_path)
        for step in (1, 2, 3):
            journal.metrics(step, {"reward": step / 10, "learner": {"lr": 1e-5}})
        with journal.metrics_file.open("a") as file:
            file.write('{"step": 4, "rew')
        journal.forget_after(2)
        journal.metrics(3, {"reward": 0.9})
        journal.close()
        assert [(line["step"], line["reward"]) for line in read_lines(journal.metrics_file)] == [
            (1, 0.1),
            (2, 0.2),
            (3, 0.9),
        ]

    def test_events_have_a_time(self, tmp_path: Path) -> None:
        journal = Journal(tmp_path)
        journal.event("resumed", step=3)
        (event,) = read_lines(journal.events_file)
        assert (event["event"], event["step"]) == ("resumed", 3)
        assert event["time"].startswith("20")

    def test_flattening(self) -> None:
        assert flatten({"a": {"b": 1, "c": {"d": 2.5}}, "e": "text"}) == {"a/b": 1.0, "a/c/d": 2.5}


def test_rollouts_survive_odd_text(tmp_path: Path) -> None:
    task = Task("t/1", "d", ({"role": "user", "content": "q\udcff"},), checks={"answer": "secret"})
    rollout = Rollout("t/1", "d", 0, (1, 2, 3), (False, True, True), (0.0, -0.5, -1.5), "\ud800 \x00 ok", "stop")
    execution = Execution("timeout", stdout="\udcfe", signal=9)
    verdict = Verdict("wrong", 0.25, (Check("c", False, "\udc80"),), (execution,), reason="\udc81")
    path = write_rollouts(tmp_path, 3, [Group(task, (rollout,), (verdict,), (Reward(0.0),))])
    (row,) = pq.read_table(path).to_pylist()
    assert row["tokens"] == [1, 2, 3]
    assert row["mask"] == [False, True, True]
    assert json.loads(row["messages"])[0]["content"] == "q\udcff"
    assert json.loads(row["executions"])[0]["outcome"] == "timeout"
    assert "secret" not in json.dumps(row)
    write_rollouts(tmp_path, 4, [])
    forget_after(tmp_path, 3)
    assert [p.name for p in tmp_path.iterdir()] == ["step-000003.parquet"]
