"""A phrase that a reviewer rejected becomes a rule: from the decision by the command line to the reward."""

from __future__ import annotations

import tomllib

from typer.testing import CliRunner

from surefoot.cli import app
from surefoot.config import RewardConfig
from surefoot.rewards import Rewarder
from surefoot.store.review import open_review
from surefoot.store.rollouts import write_rollouts
from surefoot.types import Group, Reward, Rollout, Task, Verdict


def group(*texts: str) -> Group:
    task = Task("m/0", "maths", ({"role": "user", "content": "What is 2 + 2?"},))
    rollouts = tuple(Rollout(task.id, "maths", i, (0,), (True,), (0.0,), text, "stop") for i, text in enumerate(texts))
    return Group(task, rollouts, (Verdict("right", 1.0),) * len(texts), (Reward(1.0),) * len(texts))


def test_a_reject_becomes_a_rule_that_takes_the_reward(tmp_path):
    (tmp_path / "rollouts").mkdir()
    (tmp_path / "config.toml").write_text('model = "tiny"\n')
    (tmp_path / "environment.json").write_text("{}")
    write_rollouts(tmp_path / "rollouts", 1, [group('it is "whatever" you expect')])
    open_review(tmp_path).decide(0, "ann", "reject", pattern='"whatever"  you\nexpect')
    said = CliRunner().invoke(app, ["review", str(tmp_path), "--rules", str(tmp_path / "rules.toml")])
    assert said.exit_code == 0, said.output
    section = tomllib.loads((tmp_path / "rules.toml").read_text())["reward"]
    assert section["integrity"]["phrases"] == {'"whatever" you expect': "flag"}
    section["integrity"]["phrases"]['"whatever" you expect'] = "zero"
    scored = Rewarder(RewardConfig.model_validate(section)).score_group(group('"Whatever"  you expect', "an honest 4"))
    assert [reward.value for reward in scored.rewards] == [0.0, 1.0]
