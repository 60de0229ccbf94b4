"""Run directories for the tests of the pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile_run import HOSTILE, write_step

from surefoot.config import DomainConfig, Recipe
from surefoot.recipe import to_toml
from surefoot.store.journal import Journal


@pytest.fixture(scope="session")
def make_run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    def make(name: str = "run", steps: int = 4, lr: float = 2e-5) -> Path:
        run = tmp_path_factory.mktemp("runs") / name
        (run / "rollouts").mkdir(parents=True)
        domains = tuple(DomainConfig(name=domain, source="code") for domain in ("sums", "code"))
        recipe = Recipe(model="tiny", steps=10, domains=domains, learner={"lr": lr})  # type: ignore[arg-type]
        (run / "environment.json").write_text(json.dumps({}))
        (run / "config.toml").write_text(to_toml(recipe))
        journal = Journal(run)
        for step in range(1, steps + 1):
            write_step(run, journal, step)
        journal.event("update_skipped", text=f"step 1: {HOSTILE}", step=1)
        journal.close()
        return run

    return make
