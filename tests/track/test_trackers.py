"""Trackers: what they wrote is read back by their own readers; failures warn once; resuming doubles nothing."""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from surefoot.config_tracking import TrackingConfig
from surefoot.errors import ConfigError
from surefoot.store.journal import Journal, read_lines
from surefoot.track import About, Worker, open_trackers
from surefoot.track.opening import NEEDS
from surefoot.track.worker import Memory

CONFIG = {"model": "tiny", "steps": 9, "learner": {"lr": 1e-5}}


class Diary:
    """A tracker that remembers, and fails when told to."""

    def __init__(self, keeps_steps: bool = True, fails_at: int = 0, slow: threading.Event | None = None) -> None:
        self.keeps_steps, self.fails_at, self.slow = keeps_steps, fails_at, slow
        self.steps: list[int] = []
        self.closed = False

    def open(self, about: About) -> str:
        return "in a diary"

    def forget_after(self, step: int) -> None: ...

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        if self.slow:
            self.slow.wait(20)
        if step == self.fails_at:
            raise OSError("the server\nis gone")
        self.steps.append(step)

    def event(self, step: int, kind: str, text: str) -> None: ...

    def close(self) -> None:
        self.closed = True


def work(tracker: Diary, run: Path, warnings: list[str]) -> Worker:
    return Worker("diary", tracker, About(run, "run", "id"), Memory(run / "diary.json"), print, warnings.append)


def test_one_that_fails_warns_once_and_the_others_go_on(tmp_path: Path) -> None:
    warnings: list[str] = []
    bad, good = Diary(fails_at=2), Diary()
    journal = Journal(tmp_path)
    (tmp_path / "good").mkdir()
    journal.followers = [work(bad, tmp_path, warnings), work(good, tmp_path / "good", warnings)]
    for step in range(1, 6):
        journal.metrics(step, {"reward": 0.5})
    journal.close()
    assert bad.steps == [1] and good.steps == [1, 2, 3, 4, 5] and good.closed
    assert len(warnings) == 1 and "OSError: the server is gone" in warnings[0]
    assert len(read_lines(journal.metrics_file)) == 5


def test_one_that_hangs_holds_up_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.track.worker.CLOSING_SECONDS", 0.2)
    warnings: list[str] = []
    release = threading.Event()
    worker = work(Diary(slow=release), tmp_path, warnings)
    began = time.monotonic()
    for step in range(1, 100):
        worker.metrics(step, {})
    worker.close()
    assert time.monotonic() - began < 5
    assert len(warnings) == 1 and "did not end" in warnings[0]
    release.set()


def test_a_resumed_run_tells_each_step_once(tmp_path: Path) -> None:
    for keeps, expected in ((True, [4]), (False, [3, 4])):
        place = tmp_path / str(keeps)
        place.mkdir()
        first = work(Diary(keeps), place, [])
        for step in (1, 2, 3):
            first.metrics(step, {})
        first.close()
        diary = Diary(keeps)
        again = work(diary, place, [])
        again.forget_after(2)
        for step in (3, 4):
            again.metrics(step, {})
        again.close()
        assert diary.steps == expected


def test_tensorboard_reads_back_every_step_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.followers = open_trackers(TrackingConfig(), tmp_path, CONFIG, print, pytest.fail)
    for step in (1, 2, 3):
        journal.metrics(step, {"reward": step / 10, "domains": {"code": {"pass_rate": 0.25}}})
    journal.event("note", text="<script> *stars*")
    journal.close()

    resumed = Journal(tmp_path)
    resumed.followers = open_trackers(TrackingConfig(), tmp_path, CONFIG, print, pytest.fail)
    time.sleep(1.1)  # event files are named by the second, and read in the order of their names
    resumed.forget_after(2)
    for step in (3, 4):
        resumed.metrics(step, {"reward": step})
    resumed.close()

    found = EventAccumulator(str(tmp_path / "tensorboard"))
    found.Reload()
    assert [(e.step, round(e.value, 3)) for e in found.Scalars("reward")] == [(1, 0.1), (2, 0.2), (3, 3.0), (4, 4.0)]
    assert [e.value for e in found.Scalars("domains/code/pass_rate")] == [0.25, 0.25]


def test_prometheus_answers_on_this_machine_only(tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
    said: list[str] = []
    settings = TrackingConfig(to=("prometheus",), port=0)
    (worker,) = open_trackers(settings, tmp_path, CONFIG, said.append, pytest.fail)
    numbers = {
        "reward": 0.5,
        "learner/gap/mean_abs": float("nan"),
        "domains/a.b/pass_rate": 0.25,
        "domains/c/pass_rate": 1,
    }
    worker.metrics(3, numbers)
    worker.event("resumed", "resuming after step 2")
    address = wait_for(lambda: said and said[0].split(": ", 1)[1])
    assert address.startswith("http://127.0.0.1:")
    text = wait_for(lambda: "surefoot_step 3.0" in (page := get(address)) and "resumed" in page and page)
    worker.close()
    lines = text.splitlines()
    for line in (
        "surefoot_reward 0.5",
        "surefoot_learner_gap_mean_abs NaN",
        'surefoot_domain_pass_rate{domain="a.b"} 0.25',
        'surefoot_domain_pass_rate{domain="c"} 1.0',
        'surefoot_events_total{event="resumed"} 1.0',
        "surefoot_steps 9.0",
    ):
        assert line in lines, text
    with pytest.raises(OSError):
        get(address)


def test_a_port_that_is_taken_is_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
    said: list[str] = []
    (first,) = open_trackers(TrackingConfig(to=("prometheus",), port=0), tmp_path, CONFIG, said.append, pytest.fail)
    port = int(wait_for(lambda: said and said[0].rsplit(":", 1)[1].split("/")[0]))
    warnings: list[str] = []
    settings = TrackingConfig(to=("prometheus",), port=port)
    (second,) = open_trackers(settings, tmp_path, CONFIG, print, warnings.append)
    second.metrics(1, {})
    second.close()
    first.close()
    assert len(warnings) == 1 and "Address already in use" in warnings[0]


def test_a_missing_package_is_told_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NEEDS, "wandb", "no_such_package")
    with pytest.raises(ConfigError, match="not installed"):
        open_trackers(TrackingConfig(to=("wandb",)), tmp_path, CONFIG, print, print)


def get(address: str) -> str:
    with urllib.request.urlopen(address, timeout=5) as answer:
        return answer.read().decode()


def wait_for(get, seconds: float = 20):
    until = time.monotonic() + seconds
    while not (found := get()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found
