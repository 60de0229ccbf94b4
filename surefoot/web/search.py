"""Finding rollouts in the index: what can be asked for, and the query that it becomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self
from urllib.parse import urlencode

from surefoot.web.index import RolloutIndex

PAGE = 50
ORDERS = {
    "newest": "step DESC, domain, task_id, sample",
    "oldest": "step, domain, task_id, sample",
    "best": "reward DESC, step DESC, domain, task_id, sample",
    "worst": "reward, step DESC, domain, task_id, sample",
    "longest": "sampled DESC, step DESC, domain, task_id, sample",
}
SHOWN = "step, domain, task_id, sample, grade, score, reward, valid, stop, sampled, findings, outcomes, excerpt"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the reader asks for; every field is text as it comes from a form, empty for "all the same"."""

    domain: str = ""
    grade: str = ""
    outcome: str = ""
    """Of any execution."""
    finding: str = ""
    """Kind; `any` for any."""
    stop: str = ""
    step_from: str = ""
    step_to: str = ""
    reward_from: str = ""
    reward_to: str = ""
    text: str = ""
    """Part of the prompt or the answer; capitals don't matter."""
    task: str = ""
    order: str = "newest"
    page: str = "1"

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """From the query of an address; what is unknown is left out."""
        return cls(**{f.name: given[f.name] for f in fields(cls) if f.name in given})

    def query(self, **changed: str) -> str:
        """As the query of an address: a link to exactly this."""
        values = {f.name: changed.get(f.name, getattr(self, f.name)) for f in fields(self)}
        return urlencode({k: v for k, v in values.items() if v and (k, v) not in (("order", "newest"), ("page", "1"))})

    @property
    def number(self) -> int:
        """Of the page, from 1."""
        return max(1, int(self.page)) if self.page.isdigit() and len(self.page) < 9 else 1


@dataclass(frozen=True, slots=True)
class Found:
    """One page of what was found."""

    rows: list[dict[str, Any]]
    total: int

    @property
    def pages(self) -> int:
        return max(1, -(-self.total // PAGE))


def search(index: RolloutIndex, wanted: Wanted) -> Found:
    """One page of the rollouts that are wanted, and how many there are."""
    clauses = list(_clauses(wanted))
    where = " AND ".join(clause for clause, _ in clauses) or "true"
    values = [value for _, given in clauses for value in given]
    order = ORDERS.get(wanted.order, ORDERS["newest"])
    total = index.rows(f"SELECT count(*) AS n FROM rollouts WHERE {where}", values)[0]["n"]
    page = f"SELECT {SHOWN} FROM rollouts WHERE {where} ORDER BY {order} LIMIT {PAGE} OFFSET ?"
    rows = index.rows(page, [*values, (wanted.number - 1) * PAGE]) if total else []
    return Found(rows, total)


def choices(index: RolloutIndex) -> dict[str, list[str]]:
    """What can be chosen in the filters."""
    domains = "SELECT DISTINCT domain AS name FROM rollouts ORDER BY 1"
    kinds = "SELECT DISTINCT unnest({}) AS name FROM rollouts WHERE len({}) > 0 ORDER BY 1"
    queries = {"domains": domains, **{n: kinds.format(n, n) for n in ("findings", "outcomes")}}
    return {name: [row["name"] for row in index.rows(query)] for name, query in queries.items()}


def counts_by_step(index: RolloutIndex, column: str, buckets: int = 120) -> list[list[Any]]:
    """How often each finding or execution outcome was seen: rows of first step of a bucket, kind, count."""
    if column not in ("findings", "outcomes"):
        raise ValueError(column)
    last = index.rows("SELECT max(step) AS n FROM rollouts")[0]["n"] or 1
    width = max(1, -(-last // buckets))
    query = (
        f"SELECT step // {width} * {width} AS step, kind, count(*) AS n FROM "
        f"(SELECT step, unnest({column}) AS kind FROM rollouts WHERE len({column}) > 0) GROUP BY 1, 2 ORDER BY 1, 2"
    )
    return [[row["step"], row["kind"], row["n"]] for row in index.rows(query)]


def _clauses(wanted: Wanted) -> Iterator[tuple[str, list[Any]]]:
    for column in ("domain", "grade", "stop"):
        if value := getattr(wanted, column):
            yield f"{column} = ?", [value]
    if wanted.task:
        yield "task_id = ?", [wanted.task]
    if wanted.outcome:
        yield "list_contains(outcomes, ?)", [wanted.outcome]
    if wanted.finding == "any":
        yield "len(findings) > ?", [0]
    elif wanted.finding:
        yield "list_contains(findings, ?)", [wanted.finding]
    for column in ("step", "reward"):
        if (low := _number(getattr(wanted, f"{column}_from"))) is not None:
            yield f"{column} >= ?", [low]
        if (high := _number(getattr(wanted, f"{column}_to"))) is not None:
            yield f"{column} <= ?", [high]
    if wanted.text:
        yield "(contains(haystack, ?) OR contains(prompt, ?))", [wanted.text.lower()] * 2


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
