"""`review.sqlite` in a run directory: the queue of rollouts to look at and every decision that was taken."""

from __future__ import annotations

import json
import math
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from surefoot.errors import DataError, RunError
from surefoot.rewards.review import Bound, Candidate, Judged, Pick, bounds, cohen_kappa, double_judged, queue
from surefoot.store.rollouts import read_rows, rollout_file
from surefoot.types import stable_seed

DECISIONS = ("accept", "reject", "unsure")
SHAPED = 4000
"""Characters of a text from which its make-up is measured."""
LIGHT = ["step", "task_id", "sample", "domain", "grade", "reward", "valid", "text", "findings", "checks"]
SHOWN = [
    *("step", "domain", "task_id", "sample", "messages", "text", "grade", "score", "reward", "valid"),
    *("reason", "stop", "checks", "findings", "executions", "dimensions"),
]
SCHEMA = """
CREATE TABLE IF NOT EXISTS items (
    position INTEGER PRIMARY KEY, step INTEGER, task_id TEXT, sample INTEGER, domain TEXT, why TEXT, audit INTEGER,
    twice INTEGER, UNIQUE (step, task_id, sample));
CREATE TABLE IF NOT EXISTS decisions (
    step INTEGER, task_id TEXT, sample INTEGER, domain TEXT, reviewer TEXT, decision TEXT, note TEXT, pattern TEXT,
    time TEXT, PRIMARY KEY (step, task_id, sample, reviewer));
"""


@dataclass(frozen=True, slots=True)
class Item:
    """A place in the queue."""

    position: int
    step: int
    task_id: str
    sample: int
    domain: str
    why: str
    audit: bool
    twice: bool
    """Whether two people are to judge it, neither knowing what the other said."""

    @property
    def key(self) -> tuple[int, str, int]:
        return self.step, self.task_id, self.sample


@dataclass(frozen=True, slots=True)
class Summary:
    """What the decisions of a run prove."""

    bounds: list[Bound]
    doubles: int
    """Pairs of decisions on the same rollout."""
    kappa: float | None
    judged: int
    """Rollouts of the queue that somebody judged."""
    queued: int


class ReviewStore:
    """The queue and the decisions of one run. Safe to use from several threads and processes."""

    def __init__(self, run: Path) -> None:
        self.run, self.path = run, run / "review.sqlite"
        with self._open() as db:
            db.executescript(SCHEMA)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            db = sqlite3.connect(self.path, timeout=30)
        except sqlite3.Error as failed:
            raise RunError(f"cannot open the decisions: {failed}", where=str(self.path)) from failed
        try:
            with db:
                yield db
        except sqlite3.DatabaseError as broken:
            raise RunError(f"the decisions cannot be read or written: {broken}", where=str(self.path)) from broken
        finally:
            db.close()

    def fill(self, picks: Sequence[Pick], twice: float = 0.2) -> None:
        """Put up a queue in place of the one before; decisions stay. `twice` is the share that two people judge."""
        rows = [
            (i, *p.candidate.key, p.candidate.domain, p.why, p.audit, _by_two(p.candidate.key, twice))
            for i, p in enumerate(picks)
        ]
        with self._open() as db:
            db.execute("DELETE FROM items")
            db.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def items(self) -> list[Item]:
        """The queue in its order."""
        with self._open() as db:
            rows = db.execute("SELECT * FROM items ORDER BY position").fetchall()
        return [_item(row) for row in rows]

    def next(self, reviewer: str) -> Item | None:
        """The first place that `reviewer` has not judged and that is not judged by as many people as it needs."""
        sql = """SELECT i.* FROM items i LEFT JOIN decisions d USING (step, task_id, sample)
            GROUP BY i.position HAVING sum(coalesce(d.reviewer, '') = ?) = 0 AND count(d.reviewer) < 1 + i.twice
            ORDER BY i.position LIMIT 1"""
        with self._open() as db:
            row = db.execute(sql, (reviewer,)).fetchone()
        return _item(row) if row else None

    def decide(self, position: int, reviewer: str, decision: str, note: str = "", pattern: str = "") -> None:
        """Record a decision; a second one of the same reviewer on the same rollout takes the first one's place.

        Raises DataError for a decision that there is not, an unknown place, or a reviewer without a name.
        """
        if decision not in DECISIONS or not reviewer.strip():
            raise DataError(f"a decision needs a reviewer and is one of {', '.join(DECISIONS)}, not {decision!r}")
        row = next((item for item in self.items() if item.position == position), None)
        if row is None:
            raise DataError(f"there is no place {position} in the queue", where=str(self.path))
        values = (*row.key, row.domain, reviewer.strip(), decision, note, pattern, datetime.now(UTC).isoformat())
        with self._open() as db:
            db.execute("INSERT OR REPLACE INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

    def decisions(self) -> list[dict[str, Any]]:
        """Every decision, oldest first, with whether its rollout is in the random audit of the present queue."""
        sql = """SELECT d.*, coalesce(i.audit, 0) AS audit, coalesce(i.why, '') AS why
            FROM decisions d LEFT JOIN items i USING (step, task_id, sample) ORDER BY d.time"""
        with self._open() as db:
            db.row_factory = sqlite3.Row
            return [{**dict(row), "audit": bool(row["audit"])} for row in db.execute(sql)]

    def judged(self) -> list[Judged]:
        """The decisions as statistics want them."""
        return [
            Judged((d["step"], d["task_id"], d["sample"]), d["domain"], d["reviewer"], d["decision"], d["audit"])
            for d in self.decisions()
        ]

    def summary(self) -> Summary:
        """What the decisions prove so far."""
        items, judged = self.items(), self.judged()
        pairs = double_judged(judged)
        queued = {item.key for item in items}
        done = len({one.item for one in judged} & queued)
        found = bounds(judged, {item.domain for item in items})
        return Summary(found, len(pairs), cohen_kappa(pairs), done, len(items))

    def cases(self) -> list[dict[str, Any]]:
        """Each rejected text once, with its task and the reviewer's note: what the verifier should refuse."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for said in self.decisions():
            if said["decision"] == "reject":
                row = self.rollout((said["step"], said["task_id"], said["sample"]))
                case = {name: row[name] for name in ("domain", "task_id", "messages", "text", "grade", "reward")}
                found.setdefault((row["task_id"], row["text"]), {**case, "note": said["note"]})
        return list(found.values())

    def rollout(self, key: tuple[int, str, int]) -> dict[str, Any]:
        """All that is shown of one rollout, its JSON columns read. Raises RunError if the run has it no longer."""
        step, task_id, sample = key
        folder = self.run / "rollouts"
        rows = read_rows(folder, step, SHOWN, task_id=task_id, sample=sample)
        if not rows:
            where = str(rollout_file(folder, step))
            raise RunError(f"there is no sample {sample} of {task_id!r} any more", where=where)
        return rows[0]


def open_review(
    run: Path, *, audit: int = 60, picks: int = 10, twice: float = 0.2, seed: int = 0, renew: bool = False
) -> ReviewStore:
    """The review of a run; its queue is made at the first opening and again with `renew`. Decisions are kept.

    Args:
        audit: Random rollouts of each domain; 60 without a cheat bound its rate below 5%.
        picks: Suspicious rollouts for each domain and reason.
        twice: Share of the queue that two people judge.

    Raises RunError for a run without rollouts.
    """
    store = ReviewStore(run)
    if renew or not store.items():
        found = list(candidates(run))
        if not found:
            raise RunError("there are no rollouts yet", where=str(run / "rollouts"), fix="wait for the first step")
        store.fill(queue(found, audit, picks, seed), twice)
    return store


def candidates(run: Path) -> Iterator[Candidate]:
    """Every rollout of a run, file by file, reduced to what picking needs."""
    for path in sorted((run / "rollouts").glob("step-*.parquet")):
        columns = pq.read_table(path, columns=LIGHT).to_pydict()
        for row in zip(*(columns[name] for name in LIGHT), strict=True):
            yield _candidate(*row)


def _candidate(
    step: int, task_id: str, sample: int, domain: str, grade: str, reward: float, valid: bool, text: str, *rest: str
) -> Candidate:
    findings, checks = (json.loads(part) if part != "[]" else [] for part in rest)
    outcomes = [check["passed"] for check in checks if check.get("dimension", "correctness") == "correctness"]
    return Candidate(
        *(step, task_id, sample, domain, grade, float(reward), bool(valid)),
        text_hash=hash(" ".join(text.split())),
        shape=_shape(text),
        findings=tuple((f["kind"], f["severity"], f["action"]) for f in findings),
        failed=outcomes.count(False),
        passed=outcomes.count(True),
    )


def _shape(text: str) -> tuple[float, float, float]:
    head = text[:SHAPED]
    raw = head.encode()
    packed = len(zlib.compress(raw, 1)) / len(raw) if len(raw) > 100 else 0.6  # short texts do not compress
    signs = sum(not (c.isalnum() or c.isspace()) for c in head) / max(1, len(head))
    return math.log1p(len(text)), packed, signs


def _by_two(key: tuple[int, str, int], share: float) -> bool:
    return stable_seed("twice", *key) / 2**63 < share


def _item(row: Sequence[Any]) -> Item:
    position, step, task_id, sample, domain, why, audit, twice = row
    return Item(position, step, task_id, sample, domain, why, bool(audit), bool(twice))
