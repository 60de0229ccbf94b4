"""What the columns of a task file mean. Public data sets are in `published`."""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from surefoot.errors import DataError
from surefoot.sandbox.inside import codec
from surefoot.types import Message

Row = Mapping[str, Any]

CODE_REQUEST = "Complete this Python function. Reply with the whole function in one code block."
PROMPTS = ("question", "prompt", "problem", "input", "instruction")
GENERATED = "generated_tests"
"""Column of the tests that `surefoot domains strengthen` makes."""
ANSWERS = ("answer", "target", "output", "label")


@dataclass(frozen=True)
class Format:
    """How a row becomes a task. Columns are named; a dotted name (`extra.answer`) reaches into nested objects."""

    name: str = "mapped"
    prompt: str = "question"
    answer: str | None = "answer"
    answer_regex: str | None = None
    """The answer is the first group of the last match."""
    id: str | None = None
    tests: str | None = None
    """Column of test code for the grader `code`; or of a list of assert statements, the first of which is shown."""
    entry_point: str | None = None
    setup: str | None = None
    """Column of code that is put before the tests."""
    solution: str | None = None
    """Column of the reference solution of a code task."""
    choices: str | None = None
    system: str | None = None
    """Text of a system message."""
    request: str = ""
    """Text before a prompt that is itself code."""
    grader: str = "exact"
    extract: str | None = None
    max_new_tokens: int | None = None
    keep: tuple[str, ...] = field(default=("difficulty", "level", "type", "subject"))
    """Columns that are kept as metadata, where they exist."""

    def messages(self, row: Row, place: str) -> tuple[Message, ...]:
        """What the model sees. Raises DataError if there is no prompt."""
        value = column(row, self.prompt)
        if isinstance(value, list):
            return _chat(value, place, self.prompt)
        if not isinstance(value, str) or not value.strip():
            raise _missing("prompt", self.prompt, value, row, place)
        text = value.strip()
        if self.request:
            entry = self.checks(row, place).get("entry", "")
            name = "" if re.search(rf"\b{entry}\b", value) else f" Its name must be `{entry}`."
            text = f"{self.request}{name}\n\n```python\n{value.strip()}\n```"
        elif self.tests is not None and isinstance(tests := column(row, self.tests), list) and tests:
            text = f"{text}\nReply with the whole function in one code block. It must pass this test:\n{tests[0]}"
        system: list[Message] = [{"role": "system", "content": self.system}] if self.system else []
        return (*system, {"role": "user", "content": text})

    def checks(self, row: Row, place: str) -> dict[str, Any]:
        """What the grader needs. Raises DataError if it is missing."""
        if self.tests is not None:
            return self._code_checks(row, place)
        assert self.answer is not None
        answer = self._answer(row, place)
        checks: dict[str, Any] = {"answer": answer}
        if self.choices is not None:
            checks["choices"] = column(row, self.choices)
        return checks

    def metadata(self, row: Row) -> dict[str, Any]:
        """What is logged with the task."""
        return {name: row[name] for name in self.keep if name in row}

    def reference(self, row: Row, checks: Mapping[str, Any]) -> str | None:
        """The answer for worked examples, if the row has one."""
        if self.tests is None:
            answer = checks["answer"]
            return str(answer[0] if isinstance(answer, list) else answer)
        solution = column(row, self.solution) if self.solution else None
        if not isinstance(solution, str):
            return None
        code = _joined(column(row, self.prompt), solution) if self.request else solution
        return f"```python\n{code.strip()}\n```" if _parses(code) else None

    def _answer(self, row: Row, place: str) -> Any:
        value = column(row, self.answer or "")
        if isinstance(value, (int, float)):
            value = str(value)
        if isinstance(value, list) and value and all(isinstance(v, (str, int, float)) for v in value):
            return [str(v) for v in value]
        if not isinstance(value, str) or not value.strip():
            raise _missing("answer", self.answer or "answer", value, row, place)
        if self.answer_regex is None:
            return value.strip()
        matches = list(re.finditer(self.answer_regex, value))
        if not matches:
            fix = f"options.answer_regex is {self.answer_regex!r}"
            raise DataError(f"the answer does not match: {value[-60:]!r}", where=place, fix=fix)
        return matches[-1].group(1 if matches[-1].re.groups else 0).strip()

    def _code_checks(self, row: Row, place: str) -> dict[str, Any]:
        tests = column(row, self.tests or "")
        listed = isinstance(tests, list) and tests and all(isinstance(test, str) for test in tests)
        if not listed and not (isinstance(tests, str) and "assert" in tests):
            raise _missing("tests", self.tests or "tests", tests, row, place)
        checks: dict[str, Any] = {"tests": tests}
        if listed:
            checks["visible"] = 1  # the first one is in the prompt
        if self.setup is not None and column(row, self.setup):
            checks["setup"] = str(column(row, self.setup))
        if self.request:
            checks["prefix"] = column(row, self.prompt)
        if self.entry_point is not None:
            entry = column(row, self.entry_point)
            if not isinstance(entry, str) or not entry.strip().isidentifier():
                raise _missing("name of the function", self.entry_point, entry, row, place)
            checks["entry"] = _tested(entry.strip(), str(tests))
        if row.get(GENERATED):
            checks["generated"] = _generated(row[GENERATED], place)
        return checks


def column(row: Row, name: str) -> Any:
    """The value of a column; None if there is none."""
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def _chat(value: list[Any], place: str, name: str) -> tuple[Message, ...]:
    turns: list[Message] = []
    for turn in value:
        role, content = (turn.get("role"), turn.get("content")) if isinstance(turn, Mapping) else (None, None)
        if role not in ("system", "user", "assistant") or not isinstance(content, str):
            fix = '[{"role": "user", "content": "..."}]'
            raise DataError(f"{name!r} is not a list of chat messages", where=place, fix=fix)
        turns.append({"role": role, "content": content})
    if not turns or turns[-1]["role"] != "user":
        raise DataError(f"{name!r} must end with a message of the user", where=place)
    return tuple(turns)


def _generated(text: Any, place: str) -> Any:
    """The generated tests of a row. Raises DataError if they are not what `surefoot domains strengthen` wrote."""
    try:
        return codec.decode(codec.loads(str(text).encode()))
    except ValueError as error:
        fix = "make them again: surefoot domains strengthen"
        raise DataError(f"{GENERATED!r} cannot be read: {error}", where=place, fix=fix) from None


def _tested(entry: str, tests: str) -> str:
    """The function that the tests call: `entry`, unless they never mention it and call another one by name."""
    if re.search(rf"\b{entry}\b", tests) or re.search(r"(?<!def )\bcandidate\(|check\(candidate\)\s*:\s*$", tests):
        return entry
    called = [name for name in re.findall(r"\b([A-Za-z_]\w*)\(", tests) if not hasattr(builtins, name)]
    return next((name for name in called if name != "check"), entry)


def _joined(head: str, body: str) -> str:
    """A function from its head with docstring and its body; the body is shifted if it is indented otherwise."""
    if _parses(head + body):
        return head + body
    there, here = (len(line) - len(line.lstrip()) for line in (head.rstrip().splitlines()[-1], body.lstrip("\n")))
    lines = body.lstrip("\n").splitlines()
    shifted = (" " * there + line[here:] if line[:here].isspace() else line for line in lines)
    return head.rstrip("\n") + "\n" + "\n".join(shifted) + "\n"


def _parses(code: str) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):  # such as for an escape sequence in a docstring of the data
            ast.parse(code)
    except (SyntaxError, ValueError):
        return False
    return True


def _missing(what: str, name: str, value: Any, row: Row, place: str) -> DataError:
    if value is None and column(row, name) is None and name not in row:
        problem = f"the row has no {what}: there is no column {name!r} (it has {', '.join(map(str, row))})"
    else:
        problem = f"the row has no {what}: {name!r} is {str(value)[:60]!r}"
    return DataError(
        problem,
        where=place,
        fix='correct the row, name the right column in options, or leave such rows out: options.missing = "skip"',
    )
