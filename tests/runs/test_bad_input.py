"""What a careless user gets to see: what is wrong, where, what to do; exit code 2 or 1; never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from surefoot import cli
from surefoot.models import load_model, save_model
from surefoot.store.checkpoint import damage

RECIPE = """
model = "{model}"
steps = 1
[[domains]]
name = "d"
source = "{source}"
max_new_tokens = 4
[rollout]
prompts = 2
samples = 2
[evaluate]
tasks = 2
samples = 2
"""


class Said:
    """What a command printed and how it ended."""

    def __init__(self, code: int, text: str) -> None:
        self.code, self.text = code, " ".join(text.split())


@pytest.fixture
def surefoot(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def run(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["surefoot", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out = capsys.readouterr()
        assert "Traceback" not in out.out + out.err
        return Said(int(ended.value.code or 0), out.out + out.err)

    return run


def recipe(folder: Path, source: str, model: str = "tiny") -> Path:
    path = folder / "r.toml"
    path.write_text(RECIPE.format(source=source, model=model))
    return path


def test_unknown_key(surefoot, tmp_path: Path) -> None:
    said = surefoot("train", recipe(tmp_path, "code"), "--set", "learner.lrr=1", "--run-dir", tmp_path / "run")
    assert said.code == 2
    assert "unknown key 'learner.lrr' (did you mean 'learner.lr'?)" in said.text
    assert not (tmp_path / "run").exists()


def test_missing_recipe(surefoot, tmp_path: Path) -> None:
    said = surefoot("train", tmp_path / "none.toml")
    assert said.code == 2
    assert "there is no such recipe" in said.text


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "no such file"),
        ("", "empty"),
        ('{"question": "1+1?", "answer": "2"}\n{"question": "oops"\n', ":2"),
        ('{"question": "1+1?", "answer": "2"}\n{"question": "2+2?"}\n', "answer"),
    ],
    ids=["missing", "empty", "malformed-line", "no-answer"],
)
def test_bad_data(surefoot, tmp_path: Path, content: str | None, told: str) -> None:
    data = tmp_path / "tasks.jsonl"
    if content is not None:
        data.write_text(content)
    path = recipe(tmp_path, f"file:{data}")
    path.write_text(path.read_text().replace("[rollout]", 'grader = "exact"\n[rollout]'))
    said = surefoot("train", path, "--run-dir", tmp_path / "run")
    assert said.code == 2, said.text
    assert told in said.text
    assert "tasks.jsonl" in said.text
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("reasoning_gym:gdc", "did you mean"),
        ("nonsense", "no source 'nonsense'"),
        ("code:list", "did you mean"),
        ("nowhere.py:domain", "nowhere.py"),
    ],
)
def test_unknown_source(surefoot, tmp_path: Path, source: str, told: str) -> None:
    said = surefoot("train", recipe(tmp_path, source), "--run-dir", tmp_path / "run")
    assert said.code == 2
    assert told in said.text


def test_a_model_without_tokenizer(surefoot, tmp_path: Path) -> None:
    model = load_model("tiny")
    save_model(model.decoder, model.hf_config, model.tokenizer, tmp_path / "m")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "m" / name).unlink()
    said = surefoot("train", recipe(tmp_path, "code", str(tmp_path / "m")), "--run-dir", tmp_path / "run")
    assert said.code == 2
    assert "tokenizer" in said.text


def test_a_run_that_exists_and_one_that_does_not(surefoot, tmp_path: Path) -> None:
    path, run = recipe(tmp_path, "code"), tmp_path / "run"
    assert surefoot("train", path, "--run-dir", run).code == 0
    before = (run / "metrics.jsonl").read_bytes()
    said = surefoot("train", path, "--run-dir", run)
    assert said.code == 2
    assert "--resume continues it" in said.text
    assert (run / "metrics.jsonl").read_bytes() == before
    said = surefoot("train", path, "--run-dir", tmp_path / "other", "--resume")
    assert said.code == 2
    assert "there is no run here" in said.text


def test_evaluating_a_run_and_failing_a_gate(surefoot, tmp_path: Path) -> None:
    path, run = recipe(tmp_path, "code"), tmp_path / "run"
    assert surefoot("train", path, "--run-dir", run).code == 0
    out = tmp_path / "out"
    said = surefoot("eval", run, "--samples", 3, "--out", out, "--fail-if", "pass@1.d < 0.5")
    assert said.code == 1
    assert "pass@1" in said.text
    assert (out / "report.html").exists()
    assert surefoot("compare", out, run / "evaluations" / "after-RL").code == 0
    said = surefoot("eval", run, "--fail-if", "pass@one < 2")
    assert said.code == 2
    said = surefoot("eval", run, "--domains", "e")
    assert said.code == 2
    assert "no domain 'e'" in said.text


def test_a_typing_error_in_a_command(surefoot) -> None:
    said = surefoot("trian")
    assert said.code == 2
    assert "Did you mean 'train'" in said.text


def test_listing_showing_and_checking_domains(surefoot) -> None:
    assert "reasoning_gym:gcd" in surefoot("domains", "list", "gcd").text
    said = surefoot("domains", "show", "code:lists", "--sample", "1")
    assert said.code == 0
    assert "def" in said.text
    assert surefoot("domains", "check", "code:lists", "--tasks", "3").code == 0


@pytest.mark.slow
def test_a_full_disk_during_a_checkpoint(surefoot, tmp_path: Path) -> None:
    """A real one: a file system of 5 MiB, which holds the first checkpoint and not the third."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=5m", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        path = recipe(tmp_path, "code")
        changes = ["--set", "steps=9", "--set", "checkpoint.every=1", "--set", "checkpoint.keep=9"]
        said = surefoot("train", path, "--run-dir", disk / "run", *changes, "--set", "evaluate.before=false")
        assert said.code == 1, said.text
        assert "the disk is full" in said.text
        kept = sorted((disk / "run" / "checkpoints").iterdir())
        assert kept
        assert all(damage(path) is None for path in kept)
    finally:
        subprocess.run(["umount", disk], check=True)
