"""Grades an answer that must be one JSON value: one that fits a schema, one that equals the reference, or both.

`Task.checks` holds `schema` (JSON Schema, a dict or its JSON text), `answer` (JSON text, or a list of accepted ones),
or both. A schema alone pays for whatever fits it, so let it leave no room for empty objects and made-up values.
"""

from __future__ import annotations

import importlib.util
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.errors import ConfigError, GraderError
from surefoot.protocols import Sandbox
from surefoot.rewards.equal import same
from surefoot.rewards.extract import extract, only_block
from surefoot.rewards.jail import Jail
from surefoot.rewards.text import references
from surefoot.rewards.verdicts import no_answer, right, wrong
from surefoot.types import Finding, Rollout, Task, Verdict

LONGEST, DEEPEST = 100_000, 64
"""Characters of an answer, and brackets open at once in it, beyond which it is not read."""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)


class NoJsonError(ValueError):
    """A text is not one plain JSON value; the message says why."""


def _schema_jail() -> Jail:
    return Jail("surefoot.rewards.json_jail:handle", seconds=2.5)


@dataclass(frozen=True)
class JsonGrader:
    """Right if the whole answer, or the one fenced block in it, is JSON that fits the schema and equals the reference.

    The schema is applied by `jsonschema` in the jail: a `pattern` or `uniqueItems` can take for ever on an answer made
    for it. Such an answer is wrong; a schema that fails on the reference too is the task's fault.
    """

    extract: str = "whole"
    jail: Jail = field(default_factory=_schema_jail, compare=False)

    def __post_init__(self) -> None:
        if importlib.util.find_spec("jsonschema") is None:
            raise ConfigError("the grader 'json' needs jsonschema", fix="pip install 'surefoot[json]'")

    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict:
        schema, accepted = _wanted(task)
        text = extract(rollout.text, self.extract)
        if text is None:
            return no_answer(self.extract)
        try:
            source = only_block(text)
            value = read_json(source)
        except NoJsonError as error:
            return wrong("json", str(error))
        if schema is not None and (refusal := self._schema(task, schema, source, accepted, sandbox)) is not None:
            return refusal
        if accepted and not any(same(value, read_json(one)) for one in accepted):
            return wrong("json", f"not the value that was asked for: {source}")
        return right("json", source)

    def _schema(self, task: Task, schema: Any, source: str, accepted: list[str], sandbox: Sandbox) -> Verdict | None:
        """Why the value does not fit; None if it does. Raises GraderError for a schema that is none."""
        harmless = accepted[0] if accepted else "null"
        reply = self.jail.ask_about({"schema": schema, "text": source}, {"schema": schema, "text": harmless}, sandbox)
        if reply is None:
            finding = Finding("breaks_grader", "warning", f"the schema cannot be applied to {source[:200]!r} only")
            return wrong("json schema", source, findings=(finding,))
        if "fault" in reply:
            raise GraderError(f"the task's schema is none: {reply['fault']}", where=task.id)
        return None if reply["fits"] else wrong("json schema", f"{reply['place']}: {reply['message']}")


def read_json(text: str) -> Any:
    """The value of one JSON text. Raises NoJsonError for nan, infinity, a name that comes twice, or depth and length
    beyond `DEEPEST` and `LONGEST`."""
    if len(text) > LONGEST:
        raise NoJsonError(f"an answer of {len(text)} characters")
    if _depth(text) > DEEPEST:
        raise NoJsonError("too deeply nested")
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:  # an integer of more than 4,300 digits is a ValueError too
        raise NoJsonError(f"not JSON: {error}"[:200]) from None


def _wanted(task: Task) -> tuple[Any, list[str]]:
    """The schema, None without one, and the accepted JSON texts. Raises GraderError for a task with neither."""
    schema = task.checks.get("schema")
    try:
        schema = read_json(schema) if isinstance(schema, str) else schema
        accepted = references(task) if task.checks.get("answer") is not None else []
        for text in accepted:
            read_json(text)
    except NoJsonError as error:
        raise GraderError(f"the task's JSON is malformed: {error}", where=task.id) from None
    if schema is None and not accepted:
        raise GraderError("the task has neither schema nor answer", where=task.id)
    if schema is not None and not isinstance(schema, (bool, Mapping)):
        raise GraderError(f"a schema is an object, not {type(schema).__name__}", where=task.id)
    return schema, accepted


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a name that comes twice would let an answer say two things."""
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name comes twice in an object")
    return dict(pairs)


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large")
    return value


def _depth(text: str) -> int:
    """Most brackets that are open at once outside strings."""
    deepest = depth = 0
    for character in re.sub(r"[^\[\]{}]", "", _STRING.sub("", text)):
        depth += 1 if character in "[{" else -1
        deepest = max(deepest, depth)
    return deepest
