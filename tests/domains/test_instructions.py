"""Instruction tasks: demonstrations keep their constraints, splits share no combination, bad options are refused."""

from __future__ import annotations

import itertools
from typing import Any, cast

import pytest

from surefoot.config import DomainConfig
from surefoot.domains import instructions
from surefoot.errors import ConfigError
from surefoot.protocols import Sandbox
from surefoot.types import Rollout, Task

DOMAIN = instructions.build(DomainConfig(name="form", source="instructions"))
TASKS: dict[str, list[Task]] = {
    "train": [DOMAIN.source.task("train", i) for i in range(DOMAIN.source.size("train") or 0)],
    "heldout": [DOMAIN.source.task("heldout", i) for i in range(DOMAIN.source.size("heldout") or 0)],
}
ALL = [*TASKS["train"], *TASKS["heldout"]]


def grade(task: Task, text: str) -> str:
    rollout = Rollout(task.id, task.domain, 0, (), (), (), text, "stop")
    return DOMAIN.grader.grade(task, rollout, cast(Sandbox, None)).grade


def test_every_demonstration_keeps_its_constraints() -> None:
    failing = [
        (t.messages[0]["content"], t.metadata["answer"]) for t in ALL if grade(t, t.metadata["answer"]) != "right"
    ]
    assert failing == []


def test_the_demonstration_of_another_subject_is_wrong() -> None:
    sample = ALL[::7]
    pairs = list(itertools.pairwise(sample))
    right = [
        (task.messages[0]["content"], other.metadata["answer"])
        for task, other in pairs
        if task.checks != other.checks and grade(task, other.metadata["answer"]) == "right"
    ]
    assert len(right) < len(pairs) / 200, right


def test_prompts_are_distinct_and_the_splits_share_no_combination() -> None:
    hashes = [task.prompt_hash for task in ALL]
    assert len(set(hashes)) == len(hashes) > 5000
    train, heldout = ({task.metadata["request"] for task in TASKS[side]} for side in ("train", "heldout"))
    assert not train & heldout
    assert len(heldout) > 1000


def test_held_out_tasks_combine_what_training_has_seen() -> None:
    subjects, constraints = (
        {side: {find(task) for task in TASKS[side]} for side in TASKS}
        for find in (lambda t: t.metadata["request"].split(": ")[1], lambda t: t.metadata["request"].split(": ")[2])
    )
    assert subjects["heldout"] <= subjects["train"]
    assert constraints["heldout"] <= constraints["train"]


def test_the_first_tasks_are_all_of_different_requests() -> None:
    assert len({task.metadata["request"] for task in TASKS["heldout"][:200]}) == 200


def test_prompts_are_short_and_well_formed() -> None:
    for task in ALL:
        prompt = task.messages[0]["content"]
        assert len(prompt) < 220
        assert not set("{}") & set(prompt) and "(s)" not in prompt and " 1 times" not in prompt
        assert len(task.metadata["answer"]) < 130
        assert 1 <= len(task.constraints) <= 4


def test_levels_and_forms_can_be_chosen() -> None:
    config = DomainConfig(name="x", source="instructions", options={"level": [0], "forms": "list"}, max_new_tokens=20)
    domain = instructions.build(config)
    sample = [domain.source.task("train", i) for i in range(domain.source.size("train") or 0)]
    assert {task.metadata["level"] for task in sample} == {0}
    assert all(task.metadata["form"].startswith("list") for task in sample)
    assert domain.max_new_tokens == 20
    with pytest.raises(IndexError):
        domain.source.task("train", len(sample))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"form": "list"}, "did you mean 'forms'"),
        ({"forms": ["lists"]}, "did you mean 'list'"),
        ({"level": 7}, "no level 7"),
        ({"forms": "json", "level": 0}, "no request"),
    ],
)
def test_options_that_there_are_not(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        instructions.build(DomainConfig(name="x", source="instructions", options=options))
