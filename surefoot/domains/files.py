"""Domains from a file of tasks: `file:PATH`, JSON lines, JSON or Parquet, each also gzipped.

GSM8K, MATH, HumanEval, MBPP, IFEval, BFCL, BBH and ARC are recognised as they are published; other files say what
their columns mean:

    [[domains]]
    name = "shop"
    source = "file:questions.jsonl"
    options = {prompt = "question", answer = "solution", answer_regex = "#### (.+)", heldout = 0.1}
    grader = "number"
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from surefoot.config import DomainConfig
from surefoot.domains.answers_file import with_answers
from surefoot.domains.checked_formats import PytestFormat, SchemaFormat
from surefoot.domains.formats import Format
from surefoot.domains.guessing import guess_rate
from surefoot.domains.published import recognise
from surefoot.domains.rows import Row, Rows, open_rows
from surefoot.errors import ConfigError, DataError
from surefoot.protocols import Domain
from surefoot.rewards.graders import named_grader
from surefoot.types import Split, Task, stable_seed

NOT_COLUMNS = {"rows", "heldout", "heldout_file", "answers_file", "longest", "missing"}
"""Options that say nothing of columns."""


class FileOptions(BaseModel):
    """Options of `file:PATH`."""

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
    json_schema: str | None = None
    """Column of the JSON schema that an answer must fit."""
    test_files: str | None = None
    """Column of pytest files: path -> content, or the text of one."""
    files: str | None = None
    """Column of the rest of the project that those test."""
    target: str | None = None
    """Path of the file that the answer is; `*` for an answer of several files."""
    system: str | None = None
    rows: str | None = None
    heldout: float = Field(default=0.1, ge=0, lt=1)
    heldout_file: str | None = None
    answers_file: str | None = None
    """A second file with more columns for the rows of the same `id`. BFCL's is found by itself beside its questions."""
    longest: int | None = Field(default=None, ge=1)
    """Rows whose prompts have more characters are left out."""
    missing: Literal["error", "skip"] = "error"
    """What to do with a row that lacks its prompt or answer. A malformed line is always an error."""


@dataclass(frozen=True)
class FileSource:
    """Tasks of a file, read again when asked for; only their places are held in memory."""

    domain: str
    layout: Format
    files: Mapping[Split, Rows]
    handles: Mapping[Split, array[int]]
    path: str

    def size(self, split: Split) -> int | None:
        return len(self.handles[split])

    def task(self, split: Split, index: int) -> Task:
        if index < 0:
            raise IndexError(index)
        handle = self.handles[split][index]
        row = self.files[split].load(handle)
        return make_task(row, self.layout, self.domain, split, index, self.path)


def make_task(row: Row, layout: Format, domain: str, split: Split, index: int, place: str) -> Task:
    """The task of one row. Raises DataError if it has no prompt, or nothing to check an answer by."""
    checks = layout.checks(row, place)
    reference = layout.reference(row, checks)
    metadata = layout.metadata(row)
    if layout.id is not None and row.get(layout.id) is not None:
        metadata["id"] = str(row[layout.id])
    if reference is not None:
        metadata["answer"] = reference
    return Task(f"{domain}/{split}/{index}", domain, layout.messages(row, place), checks, metadata=metadata)


def build(config: DomainConfig) -> Domain:
    """The domain of `file:PATH`. Reads the whole file once, so that a bad row is reported now and not in mid-run."""
    options = _options(config)
    path = Path(config.source.partition(":")[2]).expanduser()
    rows = _open(path, options)
    layout = _layout(config, options, rows, path)
    places: dict[Split, array[int]] = {"train": array("Q"), "heldout": array("Q")}
    files: dict[Split, Rows] = {"train": rows, "heldout": rows}
    for handle, task in _tasks(rows, layout, config, options):
        places[_split_of(task, 0.0 if options.heldout_file else options.heldout)].append(handle)
    if options.heldout_file:
        files["heldout"] = _open(Path(options.heldout_file).expanduser(), options)
        places["heldout"].extend(handle for handle, _ in _tasks(files["heldout"], layout, config, options))
    source = FileSource(config.name, layout, files, places, str(path))
    domain = Domain(
        name=config.name,
        source=source,
        grader=named_grader(layout.grader, extract=config.extract or layout.extract, where=f"domains.{config.name}"),
        chance=guess_rate(source, "heldout" if source.size("heldout") else "train"),
        description=f"{layout.name} rows of {path.name}",
    )
    return domain if layout.max_new_tokens is None else replace(domain, max_new_tokens=layout.max_new_tokens)


def _open(path: Path, options: FileOptions) -> Rows:
    return with_answers(open_rows(path, options.rows), path, options.answers_file)


def _tasks(rows: Rows, layout: Format, config: DomainConfig, options: FileOptions) -> Iterator[tuple[int, Task]]:
    """All tasks of a file with the handles of their rows. Raises DataError at a bad row, unless those are skipped."""
    for handle, place, row in rows.scan():
        try:
            task = make_task(row, layout, config.name, "train", 0, place)
            if options.longest is None or sum(len(m["content"]) for m in task.messages) <= options.longest:
                yield handle, task
        except DataError:
            if options.missing == "error":
                raise


def _layout(config: DomainConfig, options: FileOptions, rows: Rows, path: Path) -> Format:
    first = next(((row, place) for _, place, row in rows.scan()), None)
    if first is None:
        raise DataError("the file has no rows", where=str(path), fix="add at least one task")
    row, place = first
    if not options.test_files and (options.files or options.target):
        raise ConfigError("`files` and `target` go with `test_files`", where=f"domains.{config.name}.options")
    known = recognise(row)
    mapping = {key: value for key, value in options.model_dump(exclude=NOT_COLUMNS).items() if value is not None}
    checked = options.json_schema or options.test_files
    if known is None and not (options.prompt and (options.answer or options.tests or checked)):
        raise DataError(
            f"the meaning of its columns is not known: {', '.join(map(str, row))}",
            where=place,
            fix='name them, e.g. options = {prompt = "question", answer = "answer"}',
        )
    if checked:
        known = _checked(options, known, config)
    elif {"prompt", "answer", "tests", "answer_regex"} & mapping.keys():
        prompt = next((p for p in (known.prompt if known else None,) if p), "question")
        base = Format(prompt=prompt, answer=None if options.tests else (known.answer if known else "answer"))
        known = replace(base, grader="code") if options.tests else base
    layout = replace(known or Format(), **mapping)
    if layout.answer_regex is not None:
        _check_regex(layout.answer_regex, config)
    return layout


def _checked(options: FileOptions, known: Format | None, config: DomainConfig) -> Format:
    """The format of rows that a schema or test files check. Raises ConfigError for both, or for neither's options."""
    if options.json_schema and options.test_files:
        raise ConfigError("an answer is JSON or code, not both", where=f"domains.{config.name}.options")
    prompt = known.prompt if known else "question"
    if options.json_schema:
        return SchemaFormat("JSON", prompt, known.answer if known else None, grader="json", max_new_tokens=256)
    return PytestFormat("pytest", prompt, None, grader="pytest", max_new_tokens=512)


def _split_of(task: Task, share: float) -> Split:
    """By the prompt and nothing else, so that rows that read the same fall on the same side."""
    return "heldout" if stable_seed("heldout", task.prompt_hash) < share * 2**63 else "train"


def _options(config: DomainConfig) -> FileOptions:
    try:
        return FileOptions.model_validate(config.options)
    except ValidationError as invalid:
        error = invalid.errors()[0]
        key = ".".join(map(str, error["loc"]))
        known = ", ".join(FileOptions.model_fields)
        what = f"unknown option {key!r}" if error["type"] == "extra_forbidden" else f"{key}: {error['msg']}"
        raise ConfigError(what, where=f"domains.{config.name}.options", fix=f"options of a file: {known}") from None


def _check_regex(pattern: str, config: DomainConfig) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        where = f"domains.{config.name}.options.answer_regex"
        raise ConfigError(f"not a regular expression: {error}", where=where) from None
