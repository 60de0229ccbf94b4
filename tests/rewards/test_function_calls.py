"""Function calls: BFCL's own data where it is at hand (SUREFOOT_DATA), and answers made to break or fool the grader."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.rewards.function_calls import FunctionCallGrader, NoCallsError, read_calls
from surefoot.types import Rollout, Task

DATA = Path(os.environ.get("SUREFOOT_DATA", "data")) / "bfcl"
AREA = {
    "functions": [
        {
            "name": "geo.area",
            "parameters": {
                "properties": {"base": {"type": "integer"}, "height": {"type": "float"}, "unit": {"type": "string"}},
                "required": ["base", "height"],
            },
        }
    ],
    "ground_truth": [{"geo.area": {"base": [10], "height": [5.0], "unit": ["square metres", ""]}}],
}


def grade(text: str, checks: dict[str, Any]) -> str:
    return (
        FunctionCallGrader()
        .grade(Task("t", "d", (), checks), Rollout("t", "d", 0, (), (), (), text, "stop"), None)
        .grade
    )


@pytest.mark.parametrize(
    "text",
    [
        "geo.area(base=10, height=5)",
        "[geo.area(base=10, height=5.0, unit='Square-Metres')]",
        '{"name": "geo.area", "arguments": {"base": 10, "height": 5}}',
        '```json\n[{"name": "geo.area", "arguments": {"height": 5, "base": 10}}]\n```',
    ],
)
def test_right_calls(text: str) -> None:
    assert grade(text, AREA) == "right"


@pytest.mark.parametrize(
    "text",
    [
        "", "geo.area", "geo.area(10, 5)", "geo.area(base=10)", "geo.area(base=11, height=5)",
        "geo.area(base=10.0, height=5)", "geo.area(base=True, height=5)", "geo.area(base='10', height=5)",
        "geo.area(base=10, height=5, colour=1)", "geo.area(base=10, height=5), geo.area(base=10, height=5)",
        "area(base=10, height=5)", "geo.area(base=10, height=5) or 1", "geo.area(base=5+5, height=5)",
        "geo.area(base=11, height=5)\ngeo.area(base=10, height=5)", "geo.area(base=10, base=11, height=5)",
        '{"name": "geo.area", "arguments": {"base": 11, "base": 10, "height": 5}}',
        "__import__('os').system(base=10, height=5)", "geo.area(**{'base': 10, 'height': 5})",
        "```\ngeo.area(base=11, height=5)\n```\n```\ngeo.area(base=10, height=5)\n```",
        "(" * 5000, "[" * 9999, "geo.area(base=" + "-" * 9000 + "1, height=5)", "9" * 9999,
        "geo.area(base=" + "9" * 9000 + ", height=5)", '{"a":' * 1900, "geo.area(base=10, height=nan)",
    ],
)  # fmt: skip
def test_wrong_calls(text: str) -> None:
    assert grade(text, AREA) == "wrong"


@given(st.text(max_size=200) | st.text(alphabet="()[]{}'\",:=abc1.-* \n", max_size=200))
def test_reading_never_fails_but_by_saying_so(text: str) -> None:
    try:
        assert all(isinstance(name, str) for name, _ in read_calls(text))
    except NoCallsError as error:
        assert str(error)


@pytest.mark.parametrize("kind", ["simple_python", "multiple", "parallel", "live_simple"])
def test_the_first_accepted_values_of_bfcl_are_right_and_others_wrong(kind: str) -> None:
    path = DATA / f"BFCL_v4_{kind}.json"
    if not path.is_file():
        pytest.skip("BFCL's data is not at hand: set SUREFOOT_DATA to the folder that holds bfcl/")
    rows, answers = ([json.loads(line) for line in p.open()] for p in (path, path.with_suffix(".answers.json")))
    for row, answer in zip(rows, answers, strict=True):
        if any(not values for entry in answer["ground_truth"] for given in entry.values() for values in given.values()):
            continue  # a parameter for which nothing is accepted, nor its absence: two rows of live_simple
        checks = {"functions": row["function"], "ground_truth": answer["ground_truth"]}
        calls = [(name, _first(arguments)) for entry in answer["ground_truth"] for name, arguments in entry.items()]
        made = json.dumps([{"name": name, "arguments": arguments} for name, arguments in calls])
        assert grade(made, checks) == "right", row["id"]
        as_python = ", ".join(f"{n}({', '.join(f'{k}={v!r}' for k, v in a.items())})" for n, a in calls)
        if all(key.isidentifier() for _, a in calls for key in a) and "class=" not in as_python:
            assert grade(f"[{as_python}]", checks) == "right", row["id"]
        strange = json.dumps([{"name": n, "arguments": {**a, "no_such": 1}} for n, a in calls])
        assert grade(strange, checks) == "wrong" and grade("", checks) == "wrong", row["id"]


def _first(arguments: dict[str, list[Any]]) -> dict[str, Any]:
    """The first accepted value of each parameter; one that may only be left out is."""
    told = {key: [value for value in values if value != ""] for key, values in arguments.items()}
    return {key: _chosen(values[0]) for key, values in told.items() if values}


def _chosen(value: Any) -> Any:
    """A nested object with the first accepted value of each of its keys."""
    if isinstance(value, dict):
        return {k: _chosen(v[0] if isinstance(v, list) and v else v) for k, v in value.items() if v != "" and v != [""]}
    return [_chosen(item) for item in value] if isinstance(value, list) else value
