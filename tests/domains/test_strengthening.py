"""A file of code tasks, strengthened and read again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surefoot.config import DomainConfig
from surefoot.domains.files import build
from surefoot.domains.strengthening import row_of, strengthen_file
from surefoot.errors import DataError
from surefoot.sandbox import Sandbox
from surefoot.types import Rollout

ROW = {
    "task_id": 1,
    "text": "Write a function that gives the distinct pairs of neighbours as tuples.",
    "code": "def pairs(xs):\n    return {(a, b) for a, b in zip(xs, xs[1:])}",
    "test_list": ["assert pairs([1, 2]) == {(1, 2)}", "assert pairs([1]) == set()", "assert pairs([3, 1]) == {(3, 1)}"],
    "test_setup_code": "",
}


def write(path: Path, row: object) -> Path:
    path.write_text(json.dumps(row) + "\n")
    return path


def test_generated_tests_survive_the_file_and_decide(tmp_path: Path, sandbox: Sandbox) -> None:
    (line,) = strengthen_file(write(tmp_path / "in.jsonl", ROW), sandbox)
    assert line.made.hidden and not line.made.skipped
    path = write(tmp_path / "out.jsonl", row_of(line))
    domain = build(DomainConfig(name="d", source=f"file:{path}", options={"heldout": 0.0}))
    task = domain.source.task("train", 0)
    assert len(task.checks["generated"]["cases"]) == len(line.made.hidden) + len(line.made.adversarial)
    assert all(isinstance(case["expected"], set) for case in task.checks["generated"]["cases"])

    def grade(code: str) -> str:
        text = f"```python\n{code}\n```"
        return domain.grader.grade(task, Rollout(task.id, "d", 0, (), (), (), text, "stop"), sandbox).grade

    assert grade(ROW["code"]) == "right"
    assert grade("def pairs(xs):\n    return {tuple(xs)} if len(xs) > 1 else set()") == "wrong"


def test_files_without_code_or_references_are_refused(tmp_path: Path, sandbox: Sandbox) -> None:
    with pytest.raises(DataError, match="no code tasks"):
        list(strengthen_file(write(tmp_path / "a.jsonl", {"question": "1+1?", "answer": "2"}), sandbox))
    with pytest.raises(DataError, match="no reference"):
        list(strengthen_file(write(tmp_path / "b.jsonl", {**ROW, "code": None}), sandbox))
    damaged = write(tmp_path / "c.jsonl", {**ROW, "generated_tests": "{"})
    with pytest.raises(DataError, match="generated_tests"):
        build(DomainConfig(name="d", source=f"file:{damaged}"))
