"""Ray is optional: without it there is nothing to test here. One plain run is what cluster runs are held against."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_runs import recipe_in, train

from surefoot.config import Recipe

pytest.importorskip("ray", reason="needs the extra `cluster`")
# Actors are other processes: they inherit this, and sleep while they wait instead of taking the cores from others.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    """Two engines, two grading processes; with a domain whose file is in a folder of its own."""
    return recipe_in(tmp_path_factory.mktemp("domains"))


@pytest.fixture(scope="session")
def plain(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The same recipe in one process."""
    run = tmp_path_factory.mktemp("plain") / "run"
    train(recipe, run, None)
    yield run
