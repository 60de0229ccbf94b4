"""Texts that people rejected, as `surefoot review --cases` writes them: each must not be paid any more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from surefoot.config import IntegrityConfig
from surefoot.domains.audit.result import ProbeResult, Rate
from surefoot.domains.audit.trial import Trial, written
from surefoot.errors import DataError
from surefoot.protocols import Domain
from surefoot.rewards.integrity import Inspector
from surefoot.types import Message, Split, Task

SEARCHED = 1000
"""Tasks looked through for the one of a case, where its id does not lead there."""
_PLACE = re.compile(r"/(train|heldout)/(\d+)$")


class Case(TypedDict):
    """One rejected text, with the task that it answered."""

    domain: str
    task_id: str
    messages: list[Message]
    text: str
    note: str


def read_cases(path: Path) -> dict[str, list[Case]]:
    """The cases of a file by domain. Raises DataError with the line of the first that is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"the cases cannot be read: {error}", where=str(path)) from None
    found: dict[str, list[Case]] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                case = TypeAdapter(Case).validate_json(line)
            except ValidationError as invalid:
                first = invalid.errors()[0]
                what = f"not a case: {'.'.join(map(str, first['loc']))} {first['msg']}"
                fix = "write them with surefoot review RUN --cases FILE"
                raise DataError(what, where=f"{path}:{number}", fix=fix) from None
            found.setdefault(case["domain"], []).append(case)
    return found


def try_cases(
    domain: Domain, cases: Sequence[Case], trial: Trial, integrity: IntegrityConfig
) -> tuple[tuple[ProbeResult, ...], Rate, int]:
    """How each case fares, the share of those that still pay, and how many have no task here any more.

    A case pays if the grader says right and no finding takes the reward away, under the recipe's actions and phrases.
    """
    found = [(case, task_of(case, domain)) for case in cases]
    sent = [(case, task) for case, task in found if task is not None]
    verdicts = trial.verdicts([(task, case["text"]) for case, task in sent])
    inspector, results = Inspector(integrity), []
    for number, ((case, task), verdict) in enumerate(zip(sent, verdicts, strict=True), 1):
        decided = verdict
        if integrity.enabled:
            decided = inspector.verdict(task, written(task, case["text"], 0), verdict)
        paid = verdict.grade == "right" and all(f.action == "flag" for f in decided.findings)
        name = f"case {number}: {case['note'] or 'rejected in review'}"[:80]
        example = f"{case['task_id']}: {case['text'][:80]!r}"
        results.append(ProbeResult("case", name, int(paid), 1, verdict.score if paid else 0.0, example))
    return tuple(results), Rate(sum(r.accepted for r in results), len(results)), len(cases) - len(sent)


def task_of(case: Case, domain: Domain) -> Task | None:
    """The task that a case answered, known by its prompt; None if the domain has it no longer."""
    wanted = Task("", "", tuple(case["messages"])).prompt_hash
    return next((task for task in _candidates(case["task_id"], domain) if task.prompt_hash == wanted), None)


def _candidates(task_id: str, domain: Domain) -> Iterator[Task]:
    """The task at the place that the id names, then the first ones of both splits."""
    place = _PLACE.search(task_id)
    if place is not None:
        split: Split = "train" if place.group(1) == "train" else "heldout"
        for source in (domain.source, *domain.levels):
            size = source.size(split)
            if size is None or int(place.group(2)) < size:
                yield source.task(split, int(place.group(2)))
    sizes: Mapping[Split, int | None] = {"heldout": domain.source.size("heldout"), "train": domain.source.size("train")}
    for half, size in sizes.items():
        yield from (domain.source.task(half, i) for i in islice(range(size or SEARCHED), SEARCHED))
