"""Disks that fill up, files that are damaged, recipes and domains that change between a run and its resumption."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from fault_children import finish
from fault_page import fault
from fault_runs import Place, Recorder, assert_same, events, metrics, opened, train

from surefoot.errors import ConfigError, ResourceError, RunError
from surefoot.recipe import to_toml
from surefoot.store import CheckpointStore, Journal
from surefoot.store.checkpoint import damage
from surefoot.store.overview import verify

pytestmark = pytest.mark.slow

FULL = "`the disk is full; what was saved before is still valid`, exit code 1"


@fault(
    "no file can grow any more (a file size limit)",
    run="ends with an error",
    lost="steps since the last checkpoint",
    seen=FULL,
)
def test_file_limit(place: Place, healthy: Place) -> None:
    recipe, log = place.folder / "r.toml", place.folder / "log"
    recipe.write_text(to_toml(place.recipe("vowels", "code")))
    train(place.recipe("vowels", "code", steps=2), place.run)
    assert finish(recipe, place.run, True, log, largest_file=100_000) == 1
    assert "the disk is full; what was saved before is still valid" in log.read_text(), log.read_text()
    assert "Traceback" not in log.read_text()
    assert all(damage(path) is None for path in (place.run / "checkpoints").glob("step-*"))
    train(place.recipe("vowels", "code"), place.run, resume=True)
    assert_same(place.run, healthy.run)


@pytest.fixture
def small_disk(tmp_path: Path):
    """A file system of 16 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@fault("the disk fills up", run="ends with an error", lost="steps since the last checkpoint", seen=FULL)
def test_disk_full(place: Place, small_disk: Path, healthy: Place) -> None:
    run, recipe = small_disk / "run", place.recipe("vowels", "code")
    filler = small_disk / "filler"

    def fill(step: int) -> None:
        if step == 2:
            with pytest.raises(OSError, match="No space"), filler.open("wb") as file:
                while True:
                    file.write(b"x" * 4096)
                    file.flush()

    with pytest.raises(ResourceError, match="the disk is full"):
        train(recipe, run, after=fill)
    filler.unlink()
    train(recipe, run, resume=True)
    assert_same(run, healthy.run)


@pytest.fixture(scope="module")
def two_checkpoints(healthy: Place) -> Path:
    return healthy.run / "checkpoints"


@pytest.mark.parametrize("percent", range(0, 100, 5))
@fault(
    "a checkpoint is truncated, at any 5% of any of its files",
    run="falls back to the checkpoint before",
    lost="steps since that one",
    seen="`checkpoint step-000004 is damaged (optimizer.safetensors has changed); falling back ...`",
)
def test_truncated(two_checkpoints: Path, tmp_path: Path, percent: int) -> None:
    for name in (p.name for p in (two_checkpoints / "step-000004").iterdir()):
        folder = tmp_path / name
        shutil.copytree(two_checkpoints, folder)
        whole = (folder / "step-000004" / name).read_bytes()
        (folder / "step-000004" / name).write_bytes(whole[: len(whole) * percent // 100])
        said: list[str] = []
        back = CheckpointStore(folder, keep=3).newest(said.append)
        assert back is not None and back.step == 3
        assert "step-000004 is damaged" in said[0] and "falling back to the one before" in said[0]
        shutil.rmtree(folder)


@fault(
    "a checkpoint has one flipped bit, the one before lacks a file",
    run="falls back twice",
    lost="as above",
    seen="both",
)
def test_two_damaged(place: Place, healthy: Place) -> None:
    shutil.copytree(healthy.run, place.run)
    model = place.run / "checkpoints" / "step-000004" / "model.safetensors"
    content = bytearray(model.read_bytes())
    content[len(content) // 2] ^= 4
    model.write_bytes(content)
    (place.run / "checkpoints" / "step-000003" / "optimizer.safetensors").unlink()
    said = train(healthy.recipe("vowels", "code"), place.run, resume=True)
    assert "model.safetensors has changed" in said.text and "optimizer.safetensors is missing" in said.text
    assert "resuming after step 2" in said.text
    assert len(events(place.run, "damaged_checkpoint")) == 2
    assert_same(place.run, healthy.run)


@fault(
    "every checkpoint is damaged",
    run="ends at once; starts nothing anew",
    seen="`every checkpoint is damaged`, exit code 2",
)
def test_all_damaged(place: Place, healthy: Place) -> None:
    shutil.copytree(healthy.run, place.run)
    for path in (place.run / "checkpoints").iterdir():
        (path / "state.json").write_text("{")
    with pytest.raises(RunError, match="every checkpoint is damaged"):
        train(healthy.recipe("vowels", "code"), place.run, resume=True)
    assert len(metrics(place.run)) == 4, "it was left as it was"


@fault(
    "metrics, events and rollouts are torn or overwritten",
    run="resumes; what it writes again is whole",
    lost="the damaged lines and files",
    seen="`surefoot runs verify` names them",
)
def test_records_damaged(place: Place, healthy: Place) -> None:
    shutil.copytree(healthy.run, place.run)
    shutil.rmtree(place.run / "checkpoints" / "step-000004")
    Journal(place.run).event("note", text="so that there is a line to be torn")
    for name in ("metrics.jsonl", "events.jsonl"):
        text = (place.run / name).read_bytes()
        (place.run / name).write_bytes(text[:-20])
    (place.run / "rollouts" / "step-000004.parquet").write_bytes(b"PAR1")
    named = {finding.part for finding in verify(place.run) if finding.problem}
    assert named == {"metrics.jsonl", "events.jsonl", "rollouts/step-000004.parquet"}
    train(healthy.recipe("vowels", "code"), place.run, resume=True)
    assert not [finding for finding in verify(place.run) if finding.problem]
    assert_same(place.run, healthy.run)


@fault(
    "`config.toml` of the run is damaged",
    run="does not resume",
    seen="`not valid TOML: ...` with the place, exit code 2",
)
def test_config_damaged(place: Place, healthy: Place) -> None:
    shutil.copytree(healthy.run, place.run)
    (place.run / "config.toml").write_text('model = "ti')
    with pytest.raises(ConfigError, match="not valid TOML"):
        train(healthy.recipe("vowels", "code"), place.run, resume=True)


@fault(
    "a second process resumes a run that is going on",
    run="goes on, unharmed",
    seen="the second one: `another process is writing`",
)
def test_second_process(place: Place, healthy: Place) -> None:
    recipe, told = place.recipe("vowels", "code"), []

    def intrude(step: int) -> None:
        with pytest.raises(RunError) as refused:
            train(recipe, place.run, resume=True)
        told.append(str(refused.value))

    said = Recorder(lambda step: intrude(step) if step == 2 else None)
    with opened(recipe, place.run, said) as (_, stages):
        list(stages.go())
    assert "another process is writing to this run" in told[0]
    assert_same(place.run, healthy.run)


@fault(
    "a run is resumed with another recipe, domains added and removed",
    run="goes on; new domains start afresh, old ones are forgotten",
    seen="each difference and what it means",
)
def test_changed_recipe(place: Place) -> None:
    place.breaks("raise")
    train(place.recipe("calm", "odd"), place.run)
    assert events(place.run, "breaker_opened")
    said = train(place.recipe("calm", "code", steps=6, learner={"lr": 2e-3}), place.run, resume=True)
    told = " ".join(said.text.split())
    assert "domains.code: added; it starts as in a new run" in told
    assert "domains.odd: removed; what was learnt about it is forgotten" in told
    assert "learner.lr: 0.001 -> 0.002; holds for the updates from here on; the optimiser's state is kept" in told
    assert "steps: 4 -> 6; the run ends there" in told
    assert set(metrics(place.run)[-1]["domains"]) == {"calm", "code"}
    (event,) = events(place.run, "resumed")
    assert len(event["changed"]) == 4
    back = train(place.recipe("calm", "odd", steps=8, learner={"lr": 2e-3}), place.run, resume=True)
    assert "domains.odd: added" in back.text and "odd" in back.metrics[7]["domains"], "it is not shut off any more"
