"""`surefoot train` and `surefoot eval` on a domain of many turns of the user's own, with one environment that fails."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from surefoot import api
from surefoot.config import DomainConfig
from surefoot.domains import build_domain
from surefoot.errors import ConfigError
from surefoot.evaluate.records import read
from surefoot.recipe import parse_recipe
from surefoot.store.rollouts import read_rows

DOMAIN = """
from surefoot import domain, task

@domain(max_new_tokens=8, turns=3)
def letters(rng):
    return task(f"Say something with more and more letters {rng.randint(0, 10**6)}.", answer="x")

@letters.grader
def grade(task, rollout):
    return rollout.state["letters"] > 6

@letters.environment
class Counter:
    def reset(self, task):
        self.letters, self.broken = 0, "7" in task.messages[0]["content"]
        return task.messages

    def step(self, message):
        if self.broken:
            raise ValueError("sevens")
        self.letters += sum(c.isalpha() for c in message["content"])
        return [{"role": "tool", "content": f"{self.letters} so far"}]

    def end(self):
        return {"letters": self.letters}
"""


@pytest.mark.slow
def test_a_domain_of_many_turns_is_trained_and_measured(tmp_path: Path) -> None:
    (tmp_path / "letters.py").write_text(DOMAIN)
    recipe = parse_recipe(
        {
            "model": "tiny",
            "steps": 2,
            "domains": [
                {"name": "letters", "source": f"{tmp_path}/letters.py:letters", "session": {"tokens": 400}},
                {"name": "one", "source": "instructions", "max_new_tokens": 4},
            ],
            "rollout": {"prompts": 6, "samples": 4},
            "learner": {"dtype": "float32", "lr": 1e-3},
            "evaluate": {"tasks": 4, "samples": 2, "before": False},
            "sandbox": {"level": "landlock"},
        }
    )
    api.train(recipe, tmp_path / "run")
    rows = [row for step in (1, 2) for row in read_rows(tmp_path / "run" / "rollouts", step)]
    episodes = [row for row in rows if row["domain"] == "letters"]
    assert {row["domain"] for row in rows} == {"letters", "one"}
    for row in episodes:
        broken = "7" in row["messages"][0]["content"]
        assert (row["grade"] == "ungradable") == broken and ("sevens" in row["reason"]) == broken
        if not broken:
            roles = [m["role"] for m in row["transcript"]]
            assert roles == ["assistant", "tool", "assistant", "tool", "assistant"] and row["stop"] == "length"
            flips = sum(a != b for a, b in zip(row["mask"], row["mask"][1:], strict=False))
            assert flips == 5 and len(row["tokens"]) <= 400
    assert any(row["grade"] == "right" for row in episodes) and not any(
        row["transcript"] for row in rows if row["domain"] == "one"
    )
    done = read(tmp_path / "run" / "evaluations" / "after-RL").domain("letters")
    assert done is not None and len(done.tasks) == 4
    assert pq.read_table(tmp_path / "run" / "rollouts").num_rows == 48


def test_an_endpoint_and_a_single_turn_take_no_session(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="one turn"):
        build_domain(DomainConfig.model_validate({"name": "a", "source": "instructions", "session": {"turns": 2}}))
