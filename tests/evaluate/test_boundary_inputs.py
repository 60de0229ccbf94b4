"""Boundary inputs of code: made from types, expected values from the reference, samples graded again in the jail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from surefoot.evaluate.inputs import INPUT_CLASSES, boundary_tasks
from surefoot.evaluate.records import DomainRecord, Sample, TaskRecord
from surefoot.evaluate.regrade import regrade
from surefoot.evaluate.variants import derive_inputs, regrades
from surefoot.protocols import Domain
from surefoot.rewards import GradingPool
from surefoot.rewards.code import CodeGrader
from surefoot.sandbox import Sandbox, open_sandbox
from surefoot.types import Task

REFERENCE = "def total(numbers):\n    return sum(numbers)"
FRAGILE = "def total(numbers):\n    out = numbers[0]\n    for n in numbers[1:]:\n        out += n\n    return out"
CASES = [{"args": [[1, 2]], "expected": 3, "hidden": True}, {"args": [[4]], "expected": 4, "hidden": True}]
SUM = Task(
    "c/0",
    "c",
    ({"role": "user", "content": "Sum."},),
    {"function": "total", "cases": CASES},
    metadata={"answer": REFERENCE},
)


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    with open_sandbox("landlock", 1) as sandbox:
        yield sandbox


@pytest.mark.parametrize(
    ("name", "value", "made"),
    [
        ("empty-input", [1], []),
        ("empty-input", 3, None),
        ("minimal-input", "abc", "a"),
        ("negative-input", [1, -2], [-1, -2]),
        ("negative-input", True, None),
        ("duplicates-input", [1, 2], [1, 1, 1, 1, 2, 2]),
        ("unicode-input", [1], None),
    ],
)
def test_values_of_a_class(name: str, value: object, made: object) -> None:
    assert INPUT_CLASSES[name](value) == made
    assert len(INPUT_CLASSES["maximal-input"]("ab")) >= 2000 and INPUT_CLASSES["maximal-input"](5) > 10**18


def test_expected_values_are_those_of_the_reference(box: Sandbox) -> None:
    made = boundary_tasks(SUM, box)
    assert made["empty-input"].checks["cases"] == [{"args": [[]], "expected": 0, "hidden": True, "boundary": True}]
    assert [c["expected"] for c in made["negative-input"].checks["cases"]] == [-3, -4]
    assert "unicode-input" not in made
    partial = boundary_tasks(Task("c/1", "c", SUM.messages, SUM.checks, metadata={"answer": FRAGILE}), box)
    assert "empty-input" not in partial, "where the reference raises, nothing is expected"
    assert boundary_tasks(Task("q/0", "q", SUM.messages, {"answer": "3"}), box) == {}


def test_samples_are_graded_again_without_being_drawn_again(box: Sandbox) -> None:
    domain = Domain("c", None, CodeGrader("calls"))  # type: ignore[arg-type]
    derived = derive_inputs(domain, [SUM], box)
    assert [d.name for d in derived][:1] == ["c~empty-input"] and all(map(regrades, derived)) and not regrades(domain)
    samples = tuple(Sample(i, i, "right", 1.0, text, None, 5, "stop") for i, text in enumerate([REFERENCE, FRAGILE]))
    records = [DomainRecord("c", 0.0, 64, (TaskRecord("c/0", "x", SUM.messages, samples),))]
    with GradingPool([domain, *derived], box, workers=1) as graders:
        found = regrade([(d, [d.source.task("heldout", 0)]) for d in derived], records, graders)
    by_name = {record.name: [s.grade for s in record.tasks[0].samples] for record in found}
    assert by_name["c~empty-input"] == ["right", "wrong"]
    assert by_name["c~negative-input"] == ["right", "right"]
    assert "IndexError" in found[0].tasks[0].samples[1].reason and found[0].tasks[0].variant_of == "c/0"
