"""Rows whose columns are messages: those that `surefoot data` itself writes, and chats that end with the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.domains.formats import GENERATED, Format, Row, column
from surefoot.errors import DataError
from surefoot.sandbox.inside import codec
from surefoot.types import Message

ROLES = {"human": "user", "gpt": "assistant", "user": "user", "assistant": "assistant", "system": "system"}


@dataclass(frozen=True)
class TaskFormat(Format):
    """Rows that `surefoot data` wrote: messages and checks as the task has them (JSON text in Parquet)."""

    def checks(self, row: Row, place: str) -> dict[str, Any]:
        if row.get("grader") != self.grader:
            fix = "put tasks of different graders into different files"
            raise DataError(f"the grader is {row.get('grader')!r}, above it was {self.grader!r}", where=place, fix=fix)
        checks: dict[str, Any] = _plain(row.get("checks"), dict, "checks", place)
        if row.get(GENERATED):
            try:
                checks["generated"] = codec.decode(codec.loads(str(row[GENERATED]).encode()))
            except ValueError as error:
                raise DataError(f"{GENERATED!r} cannot be read: {error}", where=place) from None
        return checks

    def metadata(self, row: Row) -> dict[str, Any]:
        found: dict[str, Any] = _plain(row.get("metadata") or {}, dict, "metadata", str(row.get("id")))
        return found

    def reference(self, row: Row, checks: Mapping[str, Any]) -> str | None:
        answer = row.get("reference")
        return None if answer is None else str(answer)


@dataclass(frozen=True)
class ChatFormat(Format):
    """A conversation whose last turn, the assistant's, is the answer."""

    def messages(self, row: Row, place: str) -> tuple[Message, ...]:
        return self._turns(row, place)[:-1]

    def checks(self, row: Row, place: str) -> dict[str, Any]:
        return {"answer": self._turns(row, place)[-1]["content"]}

    def _turns(self, row: Row, place: str) -> tuple[Message, ...]:
        value = column(row, self.prompt)
        turns: list[Message] = []
        for turn in value if isinstance(value, list) else []:
            given = turn if isinstance(turn, Mapping) else {}
            role, content = ROLES.get(str(given.get("role", given.get("from")))), given.get("content")
            content = given.get("value") if content is None else content
            if role is None or not isinstance(content, str):
                raise DataError(f"{self.prompt!r} is not a list of chat messages", where=place)
            turns.append({"role": role, "content": content})
        if len(turns) < 2 or turns[-1]["role"] != "assistant" or not turns[-1]["content"].strip():
            raise DataError("the conversation does not end with an answer of the assistant", where=place)
        return tuple(turns)


def _plain(value: Any, kind: type, name: str, place: str) -> Any:
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        found = None
    if not isinstance(found, kind):
        raise DataError(f"{name!r} must be a JSON {'object' if kind is dict else 'list'}", where=place)
    return kind(found)
