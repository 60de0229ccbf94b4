"""Rows of a file whose answers are checked by a JSON schema or by pytest files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.domains.formats import Format, Row, column
from surefoot.errors import DataError
from surefoot.types import Message

JSON_REQUEST = "Reply with JSON that fits this schema, and nothing else:\n"
TARGET, TEST = "solution.py", "test_solution.py"


@dataclass(frozen=True)
class SchemaFormat(Format):
    """A schema in a column, and perhaps the one right value in another."""

    json_schema: str = "schema"

    def messages(self, row: Row, place: str) -> tuple[Message, ...]:
        *rest, last = super().messages(row, place)
        schema = json.dumps(self._schema(row, place), ensure_ascii=False)
        return (*rest, {**last, "content": f"{last['content']}\n{JSON_REQUEST}{schema}"})

    def checks(self, row: Row, place: str) -> dict[str, Any]:
        checks: dict[str, Any] = {"schema": self._schema(row, place)}
        value = column(row, self.answer) if self.answer else None
        if value is not None:
            checks["answer"] = value if _is_json(value) else json.dumps(value, ensure_ascii=False)
        return checks

    def reference(self, row: Row, checks: Mapping[str, Any]) -> str | None:
        answer = checks.get("answer")
        return None if answer is None else str(answer)

    def _schema(self, row: Row, place: str) -> Any:
        value = column(row, self.json_schema)
        try:
            value = json.loads(value) if isinstance(value, str) else value
        except ValueError:
            value = None
        if not isinstance(value, Mapping):
            fix = "give each row a JSON schema, as an object or as its text"
            raise DataError(f"the row has no schema: {self.json_schema!r}", where=place, fix=fix)
        return value


@dataclass(frozen=True)
class PytestFormat(Format):
    """Test files in a column (path -> content, or the text of one), perhaps the rest of the project in another."""

    test_files: str = "test_files"
    files: str | None = None
    target: str | None = TARGET
    """Path of the file that the answer is; `*` for an answer of several files, which then says their names."""

    def messages(self, row: Row, place: str) -> tuple[Message, ...]:
        *rest, last = super().messages(row, place)
        if self.target == "*":
            request = "Reply with each file that you write in a code block of its own, its first line `# file: PATH`."
        else:
            request = f"Reply with the whole file `{self.target}` in one code block."
        return (*rest, {**last, "content": f"{last['content']}\n{request}"})

    def checks(self, row: Row, place: str) -> dict[str, Any]:
        tests = _files(column(row, self.test_files), TEST)
        if not tests:
            raise DataError(f"the row has no test files: {self.test_files!r}", where=place)
        checks: dict[str, Any] = {"test_files": tests}
        if self.target != "*":
            checks["target"] = self.target
        if self.files is not None and (project := _files(column(row, self.files), "")):
            checks["files"] = project
        return checks

    def reference(self, row: Row, checks: Mapping[str, Any]) -> str | None:
        solution = column(row, self.solution) if self.solution else None
        if isinstance(solution, Mapping):
            return "\n".join(f"```python\n# file: {path}\n{text.strip()}\n```" for path, text in solution.items())
        return f"```python\n{solution.strip()}\n```" if isinstance(solution, str) else None


def _is_json(value: Any) -> bool:
    """Whether a value is JSON text already, as opposed to a string that is itself the answer."""
    try:
        return isinstance(value, str) and bool(json.dumps(json.loads(value)))
    except ValueError:
        return False


def _files(value: Any, name: str) -> dict[str, str]:
    """A column as files: an object, its JSON text, or the text of one file called `name`."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {name: value} if name and value.strip() else {}
    found = value if isinstance(value, Mapping) else {}
    return {str(path): text for path, text in found.items() if isinstance(text, str)}
