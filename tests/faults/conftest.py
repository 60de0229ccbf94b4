"""A fresh place for each test, and one healthy run to hold others against."""

from __future__ import annotations

from pathlib import Path

import pytest
from fault_runs import Place, train


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(scope="session")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A place with a finished run over the domains `vowels` and `code`, to which nothing happened."""
    place = Place(tmp_path_factory.mktemp("healthy"))
    train(place.recipe("vowels", "code"), place.run)
    return place
