"""Fixtures: sandboxes that are shared by all tests, and the optional public data."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import SandboxError
from surefoot.sandbox import Sandbox, open_sandbox
from surefoot.types import IsolationLevel

ROOT = Path(__file__).resolve().parents[2]


def _open(level: IsolationLevel) -> Iterator[Sandbox]:
    try:
        sandbox = open_sandbox(level, workers=2)
    except SandboxError as error:
        pytest.skip(f"this machine cannot give the level: {error}")
    with sandbox:
        sandbox.warm(judge=True)
        yield sandbox


@pytest.fixture(scope="session")
def namespaces() -> Iterator[Sandbox]:
    yield from _open("namespaces")


@pytest.fixture(scope="session")
def landlock() -> Iterator[Sandbox]:
    yield from _open("landlock")


@pytest.fixture(params=["namespaces", "landlock"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """A sandbox of each level in turn."""
    opened: Sandbox = request.getfixturevalue(request.param)
    return opened


@pytest.fixture(scope="session")
def mbpp() -> list[dict[str, Any]]:
    """The sanitised MBPP problems, if the public data is there."""
    folder = Path(os.environ.get("SUREFOOT_DATA", ROOT.parent / "shared" / "data"))
    file = folder / "mbpp" / "mbpp_sanitized_for_code_generation.jsonl"
    if not file.exists():
        pytest.skip(f"no MBPP data at {file} (set SUREFOOT_DATA)")
    return [json.loads(line) for line in file.read_text().splitlines()]
