"""`surefoot eval` with a real (tiny) model and the real sandbox: suites, cache, SIGKILL, endpoints."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from surefoot.errors import ConfigError
from surefoot.evaluate.records import read
from surefoot.evaluate.suite import load_suite, suites

SUITE = """
[suite]
description = "small"
variants = ["distractor", "inputs"]
[conversations]
scripts = 2
turns = 3
samples = 1
max_new_tokens = 6
[evaluate]
tasks = 4
samples = 6
temperature = 0.7
[rollout]
batch = 4
[[domains]]
name = "code"
source = "code"
max_new_tokens = 24
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SUREFOOT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "small.toml").write_text(SUITE)
    return tmp_path


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from surefoot.cli import main; main()", "eval", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(*arguments: object, code: int = 0) -> str:
    process = start(*arguments)
    said, _ = process.communicate(timeout=600)
    assert process.returncode == code, said
    return said


def log_of(home: Path) -> Path | None:
    return next((home / "cache" / "evaluations").glob("*/samples.jsonl"), None)


def seeds(log: Path) -> list[tuple[str, int]]:
    lines = [json.loads(line) for line in log.read_text().splitlines()[1:]]
    return [(line["task"], line["seed"]) for line in lines]


@pytest.mark.slow
def test_killed_and_run_again_no_sample_is_drawn_twice(home: Path) -> None:
    suite = home / "small.toml"
    said = finish("tiny", "--suite", suite, "--plan")
    assert "10 tasks, 54 samples, at most 1,188 tokens; time unknown" in " ".join(said.split())
    process = start("tiny", "--suite", suite)
    deadline = time.monotonic() + 300
    while not ((log := log_of(home)) and log.read_bytes().count(b"\n") > 6):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    kept = seeds(log)
    assert 6 <= len(kept) < 48 and not (log.parent / "evaluation.json").exists()
    said = finish("tiny", "--suite", suite, "--out", home / "out", "--inspect-log", home / "logs")
    assert f"{len(kept)} samples are recorded already" in " ".join(said.split())
    whole = seeds(log)
    assert whole[: len(kept)] == kept and len(whole) == len(set(whole)) == 48
    got = read(home / "out")
    assert {d.name for d in got.domains} >= {"code", "code~distractor", "code~empty-input"}
    assert len(got.conversations) == 2 and all(len(t.replies) == 3 for t in got.conversations)
    assert (home / "out" / "report.html").exists() and len(list((home / "logs").iterdir())) == len(got.domains)
    # A third time everything is in the cache, and the gate sees the same.
    size = log.stat().st_size
    finish("tiny", "--suite", suite, "--fail-if", "pass@1.code < 0.9", code=1)
    assert log.stat().st_size == size


@pytest.mark.slow
def test_an_endpoint_is_evaluated_like_any_model(home: Path) -> None:
    pytest.importorskip("openai", reason="pip install 'surefoot[endpoint]'")
    pytest.importorskip("uvicorn", reason="pip install 'surefoot[serve]'")
    command = [sys.executable, "-c", "from surefoot.cli import main; main()", "serve", "tiny", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split(" at ")[1].strip()
        finish(address, "--suite", home / "small.toml", "--out", home / "out", "--concurrency", 3)
    finally:
        server.terminate()
        server.wait(timeout=30)
    got = read(home / "out")
    assert got.model == address and got.domains[0].drawn == 24
    assert all(1 <= s.tokens <= 24 and s.context > 20 for s in got.domains[0]) and len(got.conversations) == 2


def test_the_suites_that_come_along() -> None:
    names = dict(suites())
    assert names.keys() == {"stability-quick", "stability-full", "boundary", "long-constraints", "public"}
    for name in names:
        suite = load_suite(name, "tiny", ["evaluate.tasks=3"], data=Path("/data"))
        assert suite.recipe.model == "tiny" and suite.recipe.evaluate.tasks == 3 and suite.description
    assert load_suite("long-constraints", "tiny", ["conversations.turns=4"]).conversations.turns == 4  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "overrides", "told"),
    [
        ("stability-quik", [], "did you mean 'stability-quick'"),
        ("public", [], "--data DIR"),
        ("boundary", ["suite.variants=['paraphrased']"], "did you mean 'paraphrase'"),
        ("boundary", ["conversations.tunrs=3"], "unknown key 'conversations.tunrs'"),
        ("boundary", ["evaluate.taks=3"], "did you mean 'evaluate.tasks'"),
        ("nowhere.toml", [], "cannot be read"),
    ],
)
def test_a_wrong_suite_says_what_is_wrong(name: str, overrides: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load_suite(name, "tiny", overrides)
