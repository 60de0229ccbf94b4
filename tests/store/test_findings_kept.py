"""Findings reach the files of a run: every one in the Parquet of its step, and their actions counted in the metrics."""

from __future__ import annotations

import json

import pyarrow.parquet as pq

from surefoot.config import IntegrityConfig, RewardConfig
from surefoot.rewards import Rewarder
from surefoot.store.rollouts import write_rollouts
from surefoot.store.summary import summarise
from surefoot.types import Group, Rollout, Task, Verdict

TEXTS = ("\\boxed{156}", "\\boxed{12 \\times 13}", "well " * 30 + "\\boxed{156}", "lost")


def scored() -> Group:
    task = Task("m/0", "maths", ({"role": "user", "content": "What is 12 times 13?"},), {"answer": "156"})
    rollouts = tuple(Rollout(task.id, "maths", i, (0,), (True,), (0.0,), text, "stop") for i, text in enumerate(TEXTS))
    verdicts = (Verdict("right", 1.0),) * 3 + (Verdict("ungradable", reason="broken"),)
    actions = {"repetition": "quarantine"}
    return Rewarder(RewardConfig(integrity=IntegrityConfig(actions=actions))).score_group(
        Group(task, rollouts, verdicts)
    )


def test_quarantined_is_masked_like_ungradable_but_counted_apart():
    group = scored()
    assert [(r.value, r.valid) for r in group.rewards] == [(1.0, True), (0.0, True), (0.0, False), (0.0, False)]
    numbers = summarise([group])["domains"]["maths"]
    assert (numbers["findings"], numbers["zeroed"], numbers["quarantined"], numbers["ungradable"]) == (2, 1, 1, 1)
    assert numbers["reward"] == 0.5


def test_every_finding_is_in_the_parquet_with_its_place(tmp_path):
    rows = pq.read_table(write_rollouts(tmp_path, 7, [scored()])).to_pylist()
    findings = [json.loads(row["findings"]) for row in rows]
    assert [[f["kind"] for f in found] for found in findings] == [[], ["restated_task"], ["repetition"], []]
    start, end = findings[1][0]["span"]
    assert rows[1]["text"][start:end] == "\\boxed{12 \\times 13}"
