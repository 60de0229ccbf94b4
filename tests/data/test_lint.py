"""The linter on small files with one planted fault each, with the real sandbox and graders."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot.data.lint import RULES, Options, Report, fix, lint, to_html
from surefoot.data.tasks import lines
from surefoot.protocols import Sandbox
from surefoot.sandbox import open_sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    box = open_sandbox()
    yield box
    box.close()


def row(name: str, text: str, answer: Any = "4", grader: str = "number", **more: Any) -> dict[str, Any]:
    checks = {"answer": answer} if answer is not None else {}
    base = {"id": name, "messages": [{"role": "user", "content": text}], "grader": grader, "checks": checks}
    return {**base, "reference": answer, **more}


def code_row(name: str, text: str, tests: list[str], solution: str) -> dict[str, Any]:
    reference = f"```python\n{solution}\n```"
    return row(name, text, None, "code", checks={"tests": tests}, reference=reference)


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows), encoding="utf-8")
    return path


def found(report: Report) -> dict[str, list[int]]:
    lines: dict[str, list[int]] = {}
    for problem in report.problems:
        lines.setdefault(problem.rule, []).append(problem.line)
    return lines


GOOD = [row("a", "Two and two apples make how many?"), row("b", "How much is three plus one?")]


def test_a_sound_file_has_no_findings(tmp_path: Path, sandbox: Sandbox) -> None:
    report = lint(write(tmp_path / "t.jsonl", GOOD), sandbox)
    assert (found(report), report.graded) == ({}, 2)
    assert "Nothing was found" in to_html(report)


def test_answers_are_graded_in_the_form_that_the_grader_reads(tmp_path: Path, sandbox: Sandbox) -> None:
    rows = [row("m", "Half of one?", "\\frac{1}{2}", "math"), row("n", "Half of three?", "\\frac{3}{2}", "math")]
    report = lint(write(tmp_path / "t.jsonl", rows), sandbox)
    assert (found(report), report.graded) == ({}, 2)


def test_every_rule_of_rows_finds_its_fault(tmp_path: Path, sandbox: Sandbox) -> None:
    rows = [
        *GOOD,
        "{oops",  # 3
        row("c", "   "),  # 4
        row("d", "What is it?", None),  # 5
        row("a", "A further question?"),  # 6
        row("e", "How many of them are there?", "about 4 of them"),  # 7
        row("f", "What is 2+2? Answer: 4"),  # 8
        row("g", "It isnâ€™t five, what is it?"),  # 9
        row("h", "It is\u0000 four, is it?"),  # 10
        row("i", "word " * 300),  # 11
        {**GOOD[0], "id": "j"},  # 12
        {**GOOD[1], "id": "k", "checks": {"answer": "5"}, "reference": "5"},  # 13
        row("l", "Twice two?", reference="5"),  # 14
    ]
    report = lint(
        write(tmp_path / "t.jsonl", rows), sandbox, Options(budget=200), tokens=lambda t: len(str(t.messages).split())
    )
    assert found(report) == {
        "malformed-row": [3],
        "missing-field": [4, 5],
        "duplicate-id": [6],
        "unreadable-answer": [7],
        "answer-leaked": [8],
        "encoding": [9, 10],
        "prompt-too-long": [11],
        "duplicate": [12],
        "contradiction": [13],
        "reference-fails": [14],
    }


def test_solutions_and_tests_are_tried(tmp_path: Path, sandbox: Sandbox) -> None:
    good = "def larger(a, b):\n    if a > b:\n        return a\n    return b"
    tests = ["assert larger(1, 2) == 2", "assert larger(5, 3) == 5", "assert larger(-1, -7) == -1"]
    flaky = "import time\ndef f(x):\n    return 7 * x + time.perf_counter_ns() // 1000 % 2"
    clip = "def clip(x):\n    if x < 0:\n        return 0\n    if x > 10:\n        return 10\n    return x"
    flaky_tests = ["assert f(1) == 7"]
    rows = [
        code_row("sound", "Which is larger?", tests, good),
        code_row("wrong", "Which one is larger?", tests, good.replace(">", "<")),
        code_row("true", "Is it so?", ["assert yes(1) == True"], "def yes(x):\n    return x > 0"),
        code_row("identity", "Clip a number at zero and ten.", ["assert clip(5) == 5", "assert clip(6) == 6"], clip),
        *[code_row(f"flaky{n}", f"Flaky number {n}?", flaky_tests, flaky) for n in range(6)],
    ]
    report = lint(write(tmp_path / "t.jsonl", rows), sandbox)
    lines = found(report)
    assert 1 not in {line for some in lines.values() for line in some}
    assert lines["reference-fails"][0] == 2
    assert lines["trivial-passes"] == [3, 4]
    assert len(lines["flaky-reference"]) >= 1
    assert set(lines["flaky-reference"]) <= {5, 6, 7, 8, 9, 10}


def test_weak_tests_are_shown_with_a_fault_that_they_let_through(tmp_path: Path, sandbox: Sandbox) -> None:
    ifs = "".join(f"    if x > {n}0:\n        return {n}0\n" for n in range(1, 6))
    rows = [code_row("w", "Clip.", ["assert clip(4) == 8"], f"def clip(x):\n{ifs}    return x * 2")]
    report = lint(write(tmp_path / "t.jsonl", rows), sandbox)
    assert list(found(report)) == ["weak-tests"]
    assert report.problems[0].evidence.startswith("-")


def test_answers_that_are_always_the_same_are_told(tmp_path: Path) -> None:
    choices = {"A": "x", "B": "y", "C": "z"}
    rows = [row(f"r{n}", f"Question {n} of many?", "A" if n < 70 else "B", "choice") for n in range(100)]
    for r in rows:
        r["checks"]["choices"] = choices
    told = [p.message for p in lint(write(tmp_path / "t.jsonl", rows), None).problems]
    assert any("right for 70 of 100" in message for message in told)
    assert any("A 70, B 30, C 0" in message for message in told)


def test_fix_repairs_what_is_safe_and_leaves_the_rest(tmp_path: Path, sandbox: Sandbox) -> None:
    rows = [*GOOD, row("g", "It isnâ€™t five,\ufeff what is it?"), "{oops", row("e", "How many?", "some"), GOOD[0]]
    path = write(tmp_path / "t.jsonl", rows)
    done = fix(path, tmp_path / "fixed.jsonl", lint(path, sandbox))
    assert (done.kept, done.repaired, done.left_out) == (3, 1, 3)
    kept = [line.text for line in lines(tmp_path / "fixed.jsonl")]
    assert kept[2] == "It isn’t five, what is it?"
    again = lint(tmp_path / "fixed.jsonl", sandbox)
    assert again.of("error") == again.of("warning") == 0


def test_what_stands_in_the_data_cannot_become_markup(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    rows = [row(evil, f"{evil} &lt; Answer: {evil}", evil, "exact")]
    page = to_html(lint(write(tmp_path / "t.jsonl", rows), None))
    assert "answer-leaked" in page
    assert "<script" not in page


def test_every_rule_is_in_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
    assert all(f"`{name}`" in text for name in RULES)
