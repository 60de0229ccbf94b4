"""What the columns of a file mean, and where the file is from, in a small TOML:

grader = "number"
prompt = "question"
answer = "solution"
answer_regex = "#### (.+)"
source = "GSM8K"
license = "MIT"

[join]                      # further columns from a second file
file = "answers.json"
on = "id"
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from surefoot.domains.formats import Format
from surefoot.domains.formats import Row as RowMapping
from surefoot.domains.published import recognise
from surefoot.errors import ConfigError, DataError
from surefoot.rewards.graders import named_grader


class Join(BaseModel):
    """A second file whose columns are added to rows of the same key; it is held in memory."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str
    """Relative to the mapping file."""
    on: str = "id"


class Mapping(BaseModel):
    """All keys may be left out: then the format is recognised from the first row."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prompt: str | None = None
    answer: str | None = None
    answer_regex: str | None = None
    id: str | None = None
    tests: str | None = None
    entry_point: str | None = None
    setup: str | None = None
    solution: str | None = None
    choices: str | None = None
    system: str | None = None
    request: str | None = None
    grader: str | None = None
    extract: str | None = None
    max_new_tokens: int | None = None
    keep: tuple[str, ...] | None = None
    """Columns that are kept as metadata."""
    rows: str | None = None
    """In a JSON file, the key of the list of rows."""
    join: Join | None = None
    source: str = ""
    """Name of the data set, for the card."""
    license: str = ""
    url: str = ""

    def layout(self, row: RowMapping, place: str) -> Format:
        """The format of a file whose first row is `row`. Raises DataError if it cannot be told."""
        known = recognise(row)
        names = {field.name for field in fields(Format)} - {"name"}
        given: dict[str, Any] = {k: v for k, v in self.model_dump(include=names).items() if v is not None}
        if known is None and not (self.prompt and (self.answer or self.tests)):
            raise DataError(
                f"the meaning of its columns is not known: {', '.join(map(str, row))}"[:300],
                where=place,
                fix='name them in a mapping: prompt = "...", answer = "..." (--map FILE.toml)',
            )
        if {"prompt", "answer", "tests"} & given.keys():
            base = Format(prompt=known.prompt if known else "question", answer=known.answer if known else "answer")
            if self.tests:
                base = replace(base, answer=None, grader="code")
            known = base
        layout = replace(known or Format(), **given)
        named_grader(layout.grader, extract=layout.extract, where="mapping: grader")
        return layout


def read_mapping(path: Path) -> Mapping:
    """The mapping in a TOML file. Raises ConfigError for what is missing, malformed or unknown."""
    try:
        mapping = Mapping.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
        if mapping.answer_regex is not None:
            re.compile(mapping.answer_regex)
    except FileNotFoundError:
        raise ConfigError("there is no such mapping", where=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"not valid TOML: {error}", where=str(path)) from None
    except re.error as error:
        raise ConfigError(f"not a regular expression: {error}", where=f"{path}: answer_regex") from None
    except ValidationError as invalid:
        first = invalid.errors()[0]
        key = ".".join(map(str, first["loc"]))
        known = f"keys of a mapping: {', '.join(Mapping.model_fields)}"
        what = f"unknown key {key!r}" if first["type"] == "extra_forbidden" else f"{key}: {first['msg']}"
        raise ConfigError(what, where=str(path), fix=known) from None
    if mapping.join and "://" not in mapping.join.file:
        joined = mapping.join.model_copy(update={"file": str(path.parent / mapping.join.file)})
        return mapping.model_copy(update={"join": joined})
    return mapping
