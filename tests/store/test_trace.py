"""Steps as a trace: lanes, overlap and what a step waits for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from surefoot.cli import app
from surefoot.config import DomainConfig, Recipe
from surefoot.store import RunDirectory
from surefoot.store.trace import LANES, chrome_trace, critical_path

TIMING = {
    "began": 1000.0,
    "first_rollout": 0.5,
    "generate": 2.0,
    "generate_and_grade": 2.25,
    "learn": 1.0,
    "record": 0.25,
    "step": 3.5,
}


def test_stages_lie_where_they_ran() -> None:
    trace = chrome_trace([{"step": 3, "timing": TIMING}])
    events = {event["name"]: event for event in trace["traceEvents"] if event["ph"] == "X"}
    places = {name: (event["ts"] - 1000_000_000, event["dur"]) for name, event in events.items()}
    assert places == {
        "sample": (0, 2_000_000),
        "grade": (500_000, 1_750_000),  # beside the sampling
        "learn": (2_250_000, 1_000_000),
        "record": (3_250_000, 250_000),
    }
    assert {event["args"]["step"] for event in events.values()} == {3}
    assert [event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"] == list(LANES)


def test_the_critical_path_is_the_step() -> None:
    path = critical_path(TIMING)
    assert path == {"sample": 2.0, "grade": 0.25, "learn": 1.0, "record": 0.25}
    assert sum(path.values()) == TIMING["step"]


def test_steps_without_times_of_day_follow_each_other() -> None:
    old = {name: value for name, value in TIMING.items() if name not in {"began", "first_rollout"}}
    events = chrome_trace([{"step": 1, "timing": old}, {"step": 2, "timing": old}])["traceEvents"]
    assert [event["ts"] for event in events if event["name"] == "sample"] == [0, 3_500_000]


@pytest.mark.parametrize("steps", [0, 2])
def test_the_command(steps: int, tmp_path: Path) -> None:
    recipe = Recipe(model="tiny", steps=5, domains=(DomainConfig(name="d", source="instructions"),))
    run = RunDirectory.create(tmp_path / "run", recipe)
    run.close()
    lines = [json.dumps({"step": step, "timing": TIMING}) for step in range(1, steps + 1)]
    (run.path / "metrics.jsonl").write_text("".join(line + "\n" for line in lines))
    done = CliRunner().invoke(app, ["runs", "trace", str(run.path)])
    if steps:
        assert done.exit_code == 0, done.output
        assert "sample 57%, grade 7%, learn 29%, record 7%" in done.output
        assert len(json.loads((run.path / "trace.json").read_text())["traceEvents"]) == 4 + 2 * 4
    else:
        assert "no step was recorded yet" in str(done.exception)
