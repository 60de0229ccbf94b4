"""A real server process with the tiny model, and the real OpenAI client."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

openai = pytest.importorskip("openai", reason="the OpenAI client is not installed: pip install 'surefoot[endpoint]'")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'surefoot[serve]'")


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    command = [sys.executable, "-c", "from surefoot.cli import main; main()", "serve", "tiny", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--set", "learner.dtype=float32"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    said = process.stdout.readline()
    try:
        assert "serving tiny at http://127.0.0.1:" in said, said + process.stdout.read()
        yield said.split(" at ")[1].strip()
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.fixture(scope="session")
def client(address: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=address, api_key="none", max_retries=0, timeout=60) as made:
        yield made
