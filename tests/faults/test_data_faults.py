"""Training on files of which some rows are too long for the window that was set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fault_page import fault
from fault_runs import Place, Recorder, assert_same, events, opened, train

from surefoot.config import Recipe
from surefoot.evaluate.records import read
from surefoot.recipe import parse_recipe


@pytest.fixture
def recipe(place: Place) -> Recipe:
    rows = [
        {"question": ("long " * 300 if i % 4 == 1 else "") + f"Say {i}.", "answer": str(i), "id": f"row-{i}"}
        for i in range(24)
    ]
    (place.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    whole = place.recipe("calm").model_dump(mode="json", exclude_none=True)
    own = {
        "name": "rows",
        "source": f"file:{place.folder}/rows.jsonl",
        "grader": "number",
        "max_new_tokens": 4,
        "options": {"heldout": 0.3},
    }
    rollout = {"max_prompt_tokens": 400, "prompts": 4, "samples": 2}
    evaluate = {"tasks": 6, "samples": 2, "before": True, "after": False}
    return parse_recipe({**whole, "domains": [*whole["domains"], own], "rollout": rollout, "evaluate": evaluate})


@fault(
    "prompts are longer than `rollout.max_prompt_tokens`",
    run="draws other tasks of the domain in their place; evaluations list them apart",
    seen="event `prompts_too_long` with the tasks",
)
def test_long_rows_are_left_out_and_told(place: Place, recipe: Recipe, tmp_path: Path) -> None:
    said = train(recipe, place.run)
    told = events(place.run, "prompts_too_long")
    left = [task for event in told for task in event["tasks"]]
    assert left and len(left) == len(set(left)) and all(event["domain"] == "rows" for event in told)
    assert "rollout.max_prompt_tokens is 400" in told[0]["text"] and told[0]["text"] in said.text
    groups = [json.loads(line)["groups"] for line in (place.run / "draws.jsonl").read_text().splitlines()]
    assert all(len(step) == 4 for step in groups), "no group is lost"
    skipped = next(d for d in read(place.run / "evaluations" / "base").domains if d.name == "rows").skipped
    assert skipped and all("max_prompt_tokens" in task.reason for task in skipped)
    # Killed and resumed, it leaves out the same tasks, and ends alike.
    other = tmp_path / "other"
    with opened(recipe.model_copy(update={"steps": 4}), other, Recorder()) as (run, stages):
        run.until = 2
        list(stages.go())
    train(recipe, other, resume=True)
    assert_same(place.run, other)
