"""The grader `pytest`: answers of one and of several files, and such as try to reach the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from surefoot.config import DomainConfig
from surefoot.domains import build_domain
from surefoot.errors import ConfigError, DataError, GraderError
from surefoot.protocols import Sandbox
from surefoot.rewards.graders import named_grader
from surefoot.rewards.integrity import inspect
from surefoot.types import Rollout, Task, Verdict

TESTS = {
    "test_stack.py": """
import pytest
from stack import Stack, reverse

def test_order():
    s = Stack(); s.push(1); s.push(2)
    assert s.pop() == 2 and s.pop() == 1

def test_empty():
    with pytest.raises(IndexError): Stack().pop()

@pytest.mark.parametrize("given, wanted", [([1, 2], [2, 1]), ([], [])])
def test_reverse(given, wanted): assert reverse(given) == wanted
"""
}
GOOD = """class Stack:
    def __init__(self): self.items = []
    def push(self, x): self.items.append(x)
    def pop(self): return self.items.pop()

def reverse(xs): return list(xs)[::-1]
"""
ONE = {"test_files": TESTS, "target": "stack.py"}


def fenced(*sources: str) -> str:
    return "\n".join(f"```python\n{source}\n```" for source in sources)


def grade(text: str, checks: dict[str, Any], sandbox: Sandbox) -> Verdict:
    rollout = Rollout("t", "d", 0, (1,), (True,), (0.0,), text, "stop")
    return named_grader("pytest").grade(Task("t", "d", (), checks), rollout, sandbox)


def test_right_partly_right_and_nothing(sandbox: Sandbox) -> None:
    verdict = grade(fenced(GOOD), ONE, sandbox)
    assert verdict.grade == "right" and len(verdict.checks) == 4, verdict
    partly = grade(fenced(GOOD.replace("[::-1]", "")), ONE, sandbox)
    assert (partly.grade, partly.score) == ("wrong", 0.75)
    for text in ("", "I don't know.", fenced("x = 1"), fenced("def ("), fenced("import os\nos._exit(0)")):
        assert grade(text, ONE, sandbox).grade == "wrong", text


def test_visible_tests_are_not_hidden(sandbox: Sandbox) -> None:
    fitted = GOOD.replace("list(xs)[::-1]", "[2, 1]").replace(
        "self.items.pop()", "self.items.pop() if self.items else 0"
    )
    shown = {**ONE, "visible": ["test_stack.py::test_order", "test_stack.py::test_reverse[given0-wanted0]"]}
    verdict = grade(fenced(fitted), shown, sandbox)
    assert [f.kind for f in verdict.findings] == ["visible_hidden_gap"] and verdict.score == 0.0


def test_an_answer_of_several_files_over_a_project(sandbox: Sandbox) -> None:
    checks = {
        "test_files": {"tests/test_shop.py": "from shop.price import total\ndef test_t(): assert total([1, 2]) == 6\n"},
        "files": {"shop/__init__.py": "", "shop/price.py": "def total(x): return 0", "shop/rate.py": "RATE = 1"},
    }
    price, rate = (
        "# file: shop/price.py\nfrom shop.rate import RATE\ndef total(x): return RATE * sum(x)",
        "# file: shop/rate.py\nRATE = 2",
    )
    assert grade(fenced(price, rate), checks, sandbox).grade == "right"
    assert grade(fenced(price), checks, sandbox).grade == "wrong"
    assert grade(fenced(price, rate, rate), checks, sandbox).grade == "wrong"
    for path in ("../shop/price.py", "/etc/passwd", "shop/pr\u00efce.py"):
        refused = grade(fenced(f"# file: {path}\nx = 1"), checks, sandbox)
        assert "not a path" in refused.checks[0].evidence
    rewritten = "# file: tests/test_shop.py\ndef test_t(): pass"
    assert grade(fenced(rewritten), checks, sandbox).grade == "wrong"
    hooks = "# file: conftest.py\nimport os\nos._exit(0)"
    assert grade(fenced(price, hooks), checks, sandbox).grade == "wrong"


def test_a_malformed_task_is_ungradable(sandbox: Sandbox) -> None:
    for checks in ({}, {"test_files": {}}, {"test_files": {"test_a.py": 3}}, {"test_files": "x"}):
        with pytest.raises(GraderError):
            grade(fenced(GOOD), checks, sandbox)
    assert grade(fenced(GOOD), {"test_files": {"data.txt": "x"}, "target": "a.py"}, sandbox).grade == "ungradable"


def test_hardcoded_results_are_found() -> None:
    tests = "\n".join(f"def test_{i}(): assert f({i * 1000 + 7}) == {i * 7919}" for i in range(1, 7))
    table = "def f(x):\n    return {" + ", ".join(f"{i * 1000 + 7}: {i * 7919}" for i in range(1, 7)) + "}[x]"
    for checks in ({"target": "m.py"}, {}):
        task = Task("t", "d", (), {"test_files": {"test_m.py": f"from m import f\n{tests}"}, **checks})
        rollout = Rollout("t", "d", 0, (1,), (True,), (0.0,), fenced(f"# file: m.py\n{table}"), "stop")
        assert "test_literals" in [f.kind for f in inspect(task, rollout, Verdict("right", 1.0))]


def domain(tmp_path: Path, rows: list[dict[str, Any]], **options: Any) -> Any:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return build_domain(DomainConfig(name="mine", source=f"file:{path}", options={"heldout": 0, **options}))


def sent(task: Task, text: str) -> Rollout:
    return Rollout(task.id, task.domain, 0, (1,), (True,), (0.0,), text, "stop")


def test_rows_with_test_files(tmp_path: Path, sandbox: Sandbox) -> None:
    row = {"ask": "Write a stack.", "tests": TESTS, "gold": GOOD}
    built = domain(tmp_path, [row], prompt="ask", test_files="tests", target="stack.py", solution="gold")
    task = built.source.task("train", 0)
    assert task.messages[0]["content"].endswith("Reply with the whole file `stack.py` in one code block.")
    assert built.grader.grade(task, sent(task, task.metadata["answer"]), sandbox).grade == "right"
    text = [
        {
            "ask": "Double x.",
            "tests": "from solution import f\ndef test_f(): assert f(2) == 4",
            "gold": "def f(x): return 2 * x",
        }
    ]
    built = domain(tmp_path, text, prompt="ask", test_files="tests", solution="gold")
    task = built.source.task("train", 0)
    assert built.grader.grade(task, sent(task, task.metadata["answer"]), sandbox).grade == "right"
    assert built.grader.grade(task, sent(task, fenced("def f(x): return 2")), sandbox).grade == "wrong"


def test_rows_with_a_schema(tmp_path: Path, sandbox: Sandbox) -> None:
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    rows = [{"ask": f"n is {i}", "schema": schema, "gold": {"n": i}} for i in range(3)]
    built = domain(tmp_path, rows, prompt="ask", json_schema="schema", answer="gold")
    task = built.source.task("train", 1)
    assert json.dumps(schema) in task.messages[0]["content"] and task.metadata["answer"] == '{"n": 1}'
    grades = [built.grader.grade(task, sent(task, text), sandbox).grade for text in ('{"n": 1}', '{"n": 2}', "{}")]
    assert grades == ["right", "wrong", "wrong"]
    free = domain(tmp_path, rows, prompt="ask", json_schema="schema")
    task = free.source.task("train", 1)
    assert free.grader.grade(task, sent(task, '{"n": 2}'), sandbox).grade == "right"


def test_bad_options_and_rows_say_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="go with"):
        domain(tmp_path, [{"ask": "x", "answer": "y"}], prompt="ask", answer="answer", target="a.py")
    with pytest.raises(ConfigError, match="not both"):
        domain(tmp_path, [{"ask": "x"}], prompt="ask", json_schema="s", test_files="t")
    with pytest.raises(DataError, match="no schema"):
        domain(tmp_path, [{"ask": "x", "s": "{"}], prompt="ask", json_schema="s")
    with pytest.raises(DataError, match="no test files"):
        domain(tmp_path, [{"ask": "x", "t": {}}], prompt="ask", test_files="t")
