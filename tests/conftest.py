"""What all tests share. Waiting torch threads sleep, as in the command line: tests run beside sandboxes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from surefoot.errors import SandboxError
from surefoot.protocols import Sandbox
from surefoot.sandbox import open_sandbox

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

settings.register_profile("unhurried", deadline=None)  # how fast an example runs is the machine's affair
settings.load_profile("unhurried")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first, so that no worker is left with one of them at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """A sandbox of the strongest level that hides the host's files and is to be had here."""
    try:
        opened = open_sandbox("namespaces")
    except SandboxError:
        opened = open_sandbox("landlock")
    with opened:
        yield opened
