"""Goes through a file by all rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from surefoot.data.lint.rowwise import Tokens, row_problems
from surefoot.data.lint.rules import RULES, Problem
from surefoot.data.lint.running import Runner
from surefoot.data.lint.whole import Answers, duplicate_problems
from surefoot.data.reading import file_hash, read
from surefoot.data.tasks import Line, layout_of, problem_of
from surefoot.domains.files import make_task
from surefoot.domains.written import TaskFormat
from surefoot.errors import DataError
from surefoot.protocols import Sandbox
from surefoot.types import Task

MOST = 2000
"""Findings of one rule that are kept; all are counted."""
BATCH = 32
"""Tasks whose references are graded at the same time."""


@dataclass(frozen=True)
class Options:
    budget: int = 1024
    """Most tokens of a prompt."""
    tasks: int = 500
    """Rows whose references are graded, drawn at random; 0 for none, -1 for all."""
    seed: int = 0


@dataclass
class Report:
    file: str
    sha256: str
    rows: int = 0
    graded: int = 0
    """Rows whose reference was graded."""
    counts: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)

    def add(self, problem: Problem) -> None:
        self.counts[problem.rule] += 1
        if self.counts[problem.rule] <= MOST:
            self.problems.append(problem)

    def of(self, severity: str) -> int:
        """Findings of a severity."""
        return sum(count for rule, count in self.counts.items() if RULES[rule].severity == severity)

    def to_json(self) -> dict[str, Any]:
        """The report as plain data, with what the rules that found something mean."""
        found = {name: asdict(RULES[name]) | {"count": self.counts[name]} for name in RULES if self.counts[name]}
        head = {"file": self.file, "sha256": self.sha256, "rows": self.rows, "graded": self.graded}
        return head | {"rules": found, "findings": [asdict(problem) for problem in self.problems]}


def lint(
    path: Path,
    sandbox: Sandbox | None,
    options: Options | None = None,
    *,
    tokens: Tokens | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> Report:
    """Try all rules on an ingested file.

    Args:
        sandbox: Where references and solutions run; None to run nothing.
        tokens: Counts the tokens of a task's prompt; None to leave the budget out.

    Raises DataError if the file cannot be read at all, or none of its rows is a task.
    """
    options = options or Options()
    report = Report(path.name, file_hash(path))
    answers, ids = Answers(), _Ids()
    drawn = _Drawn(options.tasks, options.seed)
    layout: TaskFormat | None = None
    for entry in read(str(path)):
        report.rows += 1
        if progress and report.rows % 1000 == 0:
            progress("read", report.rows)
        if wrong := problem_of(entry.row) or entry.problem:
            report.add(Problem("malformed-row", entry.number, "", wrong, entry.shown))
            continue
        assert entry.row is not None
        line = Line(entry.number, entry.row)
        layout = layout or layout_of(line, path)
        task = _task(line, layout, path)
        if isinstance(task, Problem):
            report.add(task)
            continue
        for problem in (*ids.problems(line), *row_problems(line, task, layout.grader, tokens, options.budget)):
            report.add(problem)
        answers.add(task, layout.grader)
        drawn.add(line.number, task)
    if layout is None:
        raise DataError("no row of it is a task", where=str(path), fix="surefoot data ingest FILE --out tasks.jsonl")
    for problem in (*answers.problems(), *duplicate_problems(path, ids.by_line)):
        report.add(problem)
    if sandbox is not None:
        for problem in _run(drawn.tasks, layout, sandbox, report, progress):
            report.add(problem)
    return report


def _task(line: Line, layout: TaskFormat, path: Path) -> Task | Problem:
    name = str(line.row.get("id", ""))
    if not any(message["content"].strip() for message in line.row["messages"] if message["role"] == "user"):
        return Problem("missing-field", line.number, name, "the task has no prompt")
    try:
        task = make_task(line.row, layout, "data", "train", line.number, f"{path}:{line.number}")
    except DataError as error:
        return Problem("missing-field", line.number, name, error.what)
    answer = task.checks.get("answer", "given otherwise")
    if not task.checks or answer is None or (isinstance(answer, str) and not answer.strip()):
        return Problem("missing-field", line.number, name, "there is nothing to check an answer by")
    return task


def _run(
    drawn: list[tuple[int, Task]],
    layout: TaskFormat,
    sandbox: Sandbox,
    report: Report,
    progress: Callable[[str, int], None] | None,
) -> Iterator[Problem]:
    runner = Runner(layout.grader, layout.extract, sandbox)
    try:
        for first in range(0, len(drawn), BATCH):
            part = drawn[first : first + BATCH]
            yield from runner.problems(part)
            report.graded += sum(task.metadata.get("answer") is not None for _, task in part)
            if progress:
                progress("graded", report.graded)
    finally:
        runner.close()


class _Drawn:
    """A fair sample of the rows (reservoir sampling)."""

    def __init__(self, most: int, seed: int) -> None:
        self._most, self._random, self._seen = most, Random(seed), 0
        self._held: list[tuple[int, Task]] = []

    @property
    def tasks(self) -> list[tuple[int, Task]]:
        return sorted(self._held, key=lambda entry: entry[0])

    def add(self, line: int, task: Task) -> None:
        self._seen += 1
        if self._most < 0 or len(self._held) < self._most:
            self._held.append((line, task))
        elif self._most and (place := self._random.randrange(self._seen)) < self._most:
            self._held[place] = line, task


class _Ids:
    """Ids that were seen; beyond a number of rows they are no longer watched."""

    MOST = 2_000_000

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self.by_line: dict[int, str] = {}

    def problems(self, line: Line) -> Iterator[Problem]:
        name = str(line.row.get("id", ""))
        if not name or len(self._seen) >= self.MOST:
            return
        self.by_line[line.number] = name
        if name in self._seen:
            yield Problem("duplicate-id", line.number, name, f"line {self._seen[name]} has it too")
        else:
            self._seen[name] = line.number
