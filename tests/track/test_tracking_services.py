"""W&B, trackio and MLflow without a server: written, resumed, read back. Each skips where its package is missing."""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from surefoot.config_tracking import TrackingConfig
from surefoot.track import open_trackers

CONFIG = {"model": "tiny", "steps": 9, "learner": {"lr": 1e-5}, "domains": [{"name": "code"}]}


def follow(run: Path, name: str, resumed_after: int, steps: tuple[int, ...], offline: bool = False) -> list[str]:
    """What a run tells one tracker from its start, or its resuming, to its end; what the tracker said."""
    run.mkdir(exist_ok=True)
    said: list[str] = []
    settings = TrackingConfig.model_validate({"to": (name,), "project": "tests", "offline": offline})
    (worker,) = open_trackers(settings, run, CONFIG, said.append, pytest.fail)
    if resumed_after:
        worker.forget_after(resumed_after)
    for step in steps:
        worker.metrics(step, {"reward": step / 10, "domains/a+b/pass_rate": 0.25, "learner/gap": math.nan})
    worker.event("note", "a sentence")
    worker.close()
    assert not worker.failed
    return said


def test_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tracking = pytest.importorskip("mlflow.tracking", reason="mlflow is not installed")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    run = tmp_path / "run"
    follow(run, "mlflow", 0, (1, 2, 3))
    follow(run, "mlflow", 2, (3, 4))
    client = tracking.MlflowClient(f"sqlite:///{run}/trackers/mlflow.db")
    experiment = client.get_experiment_by_name("tests").experiment_id
    (found,) = client.search_runs([experiment])
    assert found.info.run_name == "run" and found.info.status == "FINISHED"
    history = client.get_metric_history(found.info.run_id, "reward")
    assert sorted((point.step, point.value) for point in history) == [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4)]
    assert len(client.get_metric_history(found.info.run_id, "domains/a_b/pass_rate")) == 4
    assert found.data.params["learner.lr"] == "1e-05"


def test_trackio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "kept"))  # read when trackio is imported
    trackio = pytest.importorskip("trackio", reason="trackio is not installed")
    run = tmp_path / "run"
    follow(run, "trackio", 0, (1, 2, 3))
    follow(run, "trackio", 2, (3, 4))
    (found,) = trackio.Api().runs("tests")
    assert found.name.startswith("run-")
    rows = trackio.SQLiteStorage.get_logs("tests", found.name)
    assert [(row["step"], row["reward"]) for row in rows] == [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4)]
    assert "learner/gap" not in rows[0]  # not a number


@pytest.mark.parametrize("offline", [True, False])
def test_wandb_writes_files_to_send_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline: bool, wandb_lines: Callable[[Path], list[dict[str, str]]]
) -> None:
    """Asked for, and also where there is no key."""
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "none"))
    run = tmp_path / "run"
    (said,) = follow(run, "wandb", 0, (1, 2, 3), offline)
    assert "wandb sync" in said
    follow(run, "wandb", 2, (3, 4), offline)
    files = sorted((run / "trackers" / "wandb").glob("offline-run-*/*.wandb"))
    assert len(files) == 2 and files[0].name == files[1].name  # one id, so that one run comes of them
    expected = [("1", "0.1"), ("2", "0.2"), ("3", "0.3"), ("4", "0.4")]
    until = time.monotonic() + 20  # a process of W&B's own writes the file, a little after the run has ended
    while (found := history(files, wandb_lines)) != expected and time.monotonic() < until:
        time.sleep(0.2)
    assert found == expected


def history(files: list[Path], reader: Callable[[Path], list[dict[str, str]]]) -> list[tuple[str, str]]:
    return [(line["_step"], line["reward"]) for file in files for line in reader(file)]


@pytest.fixture
def wandb_lines() -> Callable[[Path], list[dict[str, str]]]:
    """Reads the history of a `.wandb` file: after 7 bytes LevelDB's log format, with protocol buffers in it."""
    records = pytest.importorskip("wandb.proto.wandb_internal_pb2", reason="wandb is not installed")

    def read(path: Path) -> list[dict[str, str]]:
        lines = []
        for data in log_records(path.read_bytes()):
            record = records.Record.FromString(data)
            if record.WhichOneof("record_type") == "history":
                lines.append({item.key or "/".join(item.nested_key): item.value_json for item in record.history.item})
        return lines

    return read


def log_records(data: bytes, block: int = 32768) -> Iterator[bytes]:
    """Whole records; each piece has 4 bytes of checksum, 2 of length, 1 of kind (1 whole, 2 first, 3, 4 last)."""
    at, parts = 7, b""
    while at + 7 <= len(data):
        if block - at % block < 7:
            at += block - at % block
            continue
        length, kind = struct.unpack("<HB", data[at + 4 : at + 7])
        parts = (b"" if kind in (1, 2) else parts) + data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            yield parts
