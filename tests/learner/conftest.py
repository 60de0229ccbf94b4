"""Fixtures of the learner's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(params=["llama", "qwen2", "qwen3"])
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def one_thread(request: pytest.FixtureRequest) -> Iterator[None]:
    """Products of the small models only lose by being shared between threads."""
    before = torch.get_num_threads()
    if "slow" not in request.keywords:
        torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
