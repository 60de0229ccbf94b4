"""JSON answers: one value, a schema applied in the jail, and answers made to fool or to hang it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.errors import GraderError
from surefoot.protocols import Sandbox
from surefoot.rewards.graders import named_grader
from surefoot.rewards.json_answer import NoJsonError, read_json
from surefoot.types import Rollout, Task, Verdict

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"type": "integer", "minimum": 0},
        "born": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "uniqueItems": True},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
    "$defs": {"tag": {"enum": ["a", "b"]}},
}


def grade(text: str, sandbox: Sandbox, **checks: Any) -> Verdict:
    rollout = Rollout("t", "d", 0, (1,), (True,), (0.0,), text, "stop")
    return named_grader("json").grade(Task("t", "d", (), checks), rollout, sandbox)


@pytest.mark.parametrize(
    ("text", "grade_"),
    [
        ('{"name": "Ann", "age": 3}', "right"),
        ('Here it is:\n```json\n{"age": 3.0, "name": "Ann", "tags": ["a"]}\n```\nDone.', "right"),
        ('{"name": "Ann", "age": 3, "born": "2020-02-29"}', "right"),
        ('{"name": "Ann", "age": 3, "born": "2021-02-29"}', "wrong"),
        ('{"name": "Ann", "age": "3"}', "wrong"),
        ('{"name": "Ann", "age": true}', "wrong"),
        ('{"name": "", "age": 3}', "wrong"),
        ('{"name": "Ann", "age": 3, "more": 1}', "wrong"),
        ('{"name": "Ann", "age": 3, "tags": ["c"]}', "wrong"),
        ('{"name": "Ann", "age": 3, "tags": ["a", "a"]}', "wrong"),
        ('{"name": "Ann", "age": 3, "age": -1}', "wrong"),
        ('{"name": "Ann", "age": NaN}', "wrong"),
        ('{"name": "Ann", "age": 1e999}', "wrong"),
        ('{"name": "Ann", "age": ' + "9" * 5000 + "}", "wrong"),
        ('{"name": "Ann", "age": 3} or {"name": "Ben", "age": 4}', "wrong"),
        ('```json\n{"name": "Ann", "age": 3}\n```\n```json\n{"name": "Ben", "age": 3}\n```', "wrong"),
        ("{'name': 'Ann', 'age': 3}", "wrong"),
        ("", "wrong"),
        ("{}", "wrong"),
        ("null", "wrong"),
        ("[" * 50_000, "wrong"),
        ('{"name": "' + "A" * 200_000 + '", "age": 3}', "wrong"),
    ],
)
def test_a_schema(text: str, grade_: str, sandbox: Sandbox) -> None:
    assert grade(text, sandbox, schema=PERSON).grade == grade_
    assert grade(text, sandbox, schema=json.dumps(PERSON)).grade == grade_


def test_a_reference_beside_a_schema_decides(sandbox: Sandbox) -> None:
    answer = '{"name": "Ann", "age": 3}'
    assert grade('{"age": 3, "name": "Ann"}', sandbox, schema=PERSON, answer=answer).grade == "right"
    assert grade('{"age": 4, "name": "Ann"}', sandbox, schema=PERSON, answer=answer).grade == "wrong"
    assert grade('{"age": 4, "name": "Ann"}', sandbox, answer=[answer, '{"name": "Ann", "age": 4}']).grade == "right"
    assert grade("[1, 2.0]", sandbox, answer="[1, 2]").grade == "right"
    assert grade("[1, true]", sandbox, answer="[1, 1]").grade == "wrong"


@pytest.mark.slow
def test_a_pattern_that_hangs_is_the_answers_fault_and_a_broken_schema_the_tasks(sandbox: Sandbox) -> None:
    began = time.monotonic()
    verdict = grade(json.dumps("a" * 40 + "!"), sandbox, schema={"type": "string", "pattern": "^(a+)+$"})
    assert verdict.grade == "wrong" and verdict.findings[0].kind == "breaks_grader"
    assert time.monotonic() - began < 40
    assert grade(json.dumps("aaa"), sandbox, schema={"type": "string", "pattern": "^(a+)+$"}).grade == "right"


@pytest.mark.parametrize(
    "checks",
    [
        {},
        {"schema": {"type": "objekt"}},
        {"schema": {"$ref": "https://example.org/schema.json"}},
        {"schema": {"pattern": "("}},
        {"schema": 3},
        {"schema": "{"},
        {"answer": "{"},
    ],
)
def test_a_malformed_task_is_ungradable(checks: dict[str, Any], sandbox: Sandbox) -> None:
    with pytest.raises(GraderError):
        grade('"a"', sandbox, **checks)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@given(st.recursive(SCALARS, lambda one: st.lists(one) | st.dictionaries(st.text(), one), max_leaves=20))
def test_json_is_read_as_python_reads_it(value: Any) -> None:
    assert read_json(json.dumps(value)) == value


@given(st.text(alphabet='[]{}":,\\ 0e-ntf\ud800\u0660', max_size=60))
def test_any_other_text_is_refused_and_never_raises(text: str) -> None:
    try:
        read_json(text)
    except NoJsonError:
        return
    json.loads(text)
