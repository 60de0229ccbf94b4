"""Runs on real Ray end as a run in one process does, bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_runs import alive, assert_same, metrics, processes, start_command

from surefoot.config import Recipe

pytestmark = pytest.mark.slow


def test_a_cluster_run_is_the_run_of_one_process(recipe: Recipe, plain: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    one_each = recipe.model_copy(update={"cluster": recipe.cluster.model_copy(update={"engines": 1, "graders": 1})})
    overrides = ["--set", "cluster.engines=2", "--set", "cluster.graders=2"]
    command = start_command(one_each, run, "--cluster", "local", *overrides)
    said, _ = command.communicate(timeout=580)
    assert command.returncode == 0, said
    started = processes(run)
    assert len(set(started)) == 4, said
    assert_same(plain, run)
    rates = [step["pass_rate"] for step in metrics(run)]
    assert 0 < max(rates) < 1, f"nothing to learn from: {rates}"
    assert not [pid for pid in started if alive(pid)], "actors outlived the command"
