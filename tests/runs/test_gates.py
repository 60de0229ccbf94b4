"""Gates during training: real runs of the tiny model, with a domain that is made to regress."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file

from surefoot import api
from surefoot.config import Recipe
from surefoot.errors import ConfigError
from surefoot.evaluate.records import read
from surefoot.gates import watched
from surefoot.recipe import parse_recipe
from surefoot.store.journal import read_lines

# Training pays for letters, and held-out answers are right where there are few: the domain gets worse for sure.
DOMAIN = """
from surefoot import domain, task

@domain(max_new_tokens=12)
def short(rng):
    return task(f"Say {rng.randint(0, 10**9)}.", answer="x")

@short.grader
def grade(task, rollout):
    many = sum(c.isascii() and c.isalpha() for c in rollout.text) >= 3
    return many != ("/heldout/" in task.id)
"""


def recipe(folder: Path, **evaluate: object) -> Recipe:
    (folder / "short.py").write_text(DOMAIN)
    return parse_recipe(
        {
            "model": "tiny",
            "steps": 9,
            "domains": [
                {"name": "short", "source": f"{folder}/short.py:short"},
                {"name": "code", "source": "code", "max_new_tokens": 8},
            ],
            "rollout": {"prompts": 8, "samples": 8},
            "learner": {"lr": 1e-2, "warmup_steps": 0, "dtype": "float32"},
            "evaluate": {"tasks": 24, "samples": 4, "every": 3, "gate": "pass@1", **evaluate},
            "checkpoint": {"every": 3, "keep": 1},
        }
    )


def gates(run: Path) -> list[dict[str, object]]:
    return [line for line in read_lines(run / "events.jsonl") if line["event"] == "gate"]


@pytest.mark.slow
def test_a_regression_stops_the_run_and_a_resumed_run_stops_there_too(tmp_path: Path) -> None:
    wanted = recipe(tmp_path, on_regression="stop")
    outcome = api.train(wanted, tmp_path / "run")
    (last,) = gates(tmp_path / "run")[-1:]
    assert list(last["worse"]) == ["short"] and last["action"] == "stop"  # type: ignore[call-overload]
    steps = [line["step"] for line in read_lines(tmp_path / "run" / "metrics.jsonl")]
    assert steps == list(range(1, int(last["step"]) + 1)) and len(steps) < 9  # type: ignore[call-overload]
    assert [e.title for e in outcome.evaluations] == ["base", "after RL"]
    assert read(tmp_path / "run" / "evaluations" / f"step-{last['step']}").domain("short")
    again = api.train(wanted, tmp_path / "run", resume=True)
    assert [e.title for e in again.evaluations] == ["base", "after RL"]
    assert len(read_lines(tmp_path / "run" / "metrics.jsonl")) == len(steps)


@pytest.mark.slow
def test_a_regression_rolls_back_and_takes_share_from_the_domain(tmp_path: Path) -> None:
    api.train(recipe(tmp_path, on_regression="roll_back", after=False), tmp_path / "run")
    held = gates(tmp_path / "run")
    assert [gate["step"] for gate in held] == [3, 6] and any(gate["worse"] for gate in held)
    assert [line["step"] for line in read_lines(tmp_path / "run" / "metrics.jsonl")] == list(range(1, 10))
    state = json.loads((tmp_path / "run" / "checkpoints" / "step-000009" / "state.json").read_text())
    times = sum("short" in gate["worse"] for gate in held)  # type: ignore[operator]
    assert state["scheduler"]["factors"]["short"] == 0.5**times
    accepted = sorted((tmp_path / "run" / "accepted").iterdir())
    assert len(accepted) == 1
    said = read_lines(tmp_path / "run" / "events.jsonl")
    assert said and load_file(accepted[0] / "model.safetensors")


def test_what_is_watched() -> None:
    from surefoot.config import EvaluateConfig

    assert str(watched(EvaluateConfig(samples=8))) == "pass^4" and str(watched(EvaluateConfig(samples=3))) == "pass^2"
    assert str(watched(EvaluateConfig(samples=1))) == "pass@1"
    assert str(watched(EvaluateConfig(gate="pass^2"))) == "pass^2"
    with pytest.raises(ConfigError, match="every needs before"):
        parse_recipe(
            {"model": "tiny", "domains": [{"name": "a", "source": "code"}], "evaluate": {"every": 2, "before": False}}
        )
