"""The searchable index of a run's rollouts: the light columns of every Parquet file of theirs in one DuckDB table.

A long run has tens of thousands of files; opening them all for each question would take minutes. The index reads each
once, in the background, as it appears; what is heavy (tokens, log-probs, evidence) stays in the files.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from surefoot.store.rollouts import rollout_file

VERSION = 1
"""Part of the index file's name: another layout is another file."""
BATCH = 256
"""Files read in one statement."""
LOOK_SECONDS = 1.0
TABLES = """
CREATE TABLE IF NOT EXISTS files (step INTEGER PRIMARY KEY, stamp VARCHAR, problem VARCHAR);
CREATE TABLE IF NOT EXISTS rollouts (
    step INTEGER, domain VARCHAR, task_id VARCHAR, sample INTEGER, grade VARCHAR, score FLOAT, reward FLOAT,
    valid BOOLEAN, stop VARCHAR, sampled INTEGER, findings VARCHAR[], outcomes VARCHAR[], prompt VARCHAR,
    excerpt VARCHAR, haystack VARCHAR);
"""
TAKE = """
INSERT INTO rollouts
SELECT step, domain, task_id, sample, grade, score, reward, valid, stop, list_sum(mask::TINYINT[])::INTEGER,
    CASE WHEN findings = '[]' THEN [] ELSE json_extract_string(findings, '$[*].kind') END,
    CASE WHEN executions = '[]' THEN [] ELSE json_extract_string(executions, '$[*].outcome') END,
    lower(json_extract_string(messages, '$[#-1].content')), left(text, 300), lower(text)
FROM read_parquet($files)
"""


@dataclass(frozen=True, slots=True)
class IndexState:
    """How far the index is."""

    rollouts: int
    files: int
    waiting: int
    """Files that are there and not read yet."""
    damaged: tuple[str, ...]
    """Files that cannot be read."""


class RolloutIndex:
    """Follows `RUN/rollouts`. Safe to use from several threads, each by its own cursor."""

    def __init__(self, run: Path, cache: Path | None) -> None:
        """`cache`: folder for the index file, None for memory. Memory also if another process has the file open."""
        self.folder = run / "rollouts"
        self._connection = _connect(cache and cache / f"{_name(run)}.duckdb")
        self._connection.execute("SET autoinstall_known_extensions = false")
        self._connection.execute(TABLES)
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._waiting, self._seen = 0, -1
        self._thread = threading.Thread(target=self._follow, name="rollout-index", daemon=True)

    def start(self) -> None:
        """Follow the run in the background."""
        self._thread.start()

    def close(self) -> None:
        """Stop following; what was read is kept."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._connection.close()

    def rows(self, query: str, parameters: list[Any] | None = None) -> list[dict[str, Any]]:
        """The rows of a query, as mappings. Values go in by `?`, never as part of the text."""
        with self._connection.cursor() as cursor:
            result = cursor.execute(query, parameters or [])
            names = [column[0] for column in result.description or ()]
            return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    def state(self) -> IndexState:
        """How far it is."""
        count = self.rows("SELECT count(*) AS n FROM rollouts")[0]["n"]
        files = self.rows("SELECT step, problem FROM files ORDER BY step")
        broken = tuple(f"{self._file(f['step']).name}: {f['problem']}" for f in files if f["problem"])
        return IndexState(count, len(files), self._waiting, broken)

    def update(self) -> None:
        """Read what is new, forget what was deleted or written again (a resumed run does both)."""
        with self._lock:
            changed = self.folder.stat().st_mtime_ns if self.folder.is_dir() else 0
            if changed == self._seen:
                return
            there = dict(_files(self.folder))
            known = {row["step"]: row["stamp"] for row in self.rows("SELECT step, stamp FROM files")}
            for step in [step for step, stamp in known.items() if there.get(step) != stamp]:
                self._connection.execute("DELETE FROM rollouts WHERE step = ?", [step])
                self._connection.execute("DELETE FROM files WHERE step = ?", [step])
                known.pop(step)
            new = sorted(step for step in there if step not in known)
            self._waiting = len(new)
            for begin in range(0, len(new), BATCH):
                batch = tuple(new[begin : begin + BATCH])
                if self._stop.is_set():
                    return
                self._read(batch, there)
                self._waiting -= len(batch)
            self._seen = changed

    def _read(self, steps: tuple[int, ...], stamps: dict[int, str]) -> None:
        try:
            self._take(steps, stamps)
        except duckdb.Error as broken:
            if len(steps) > 1:  # find the one that is damaged
                for step in steps:
                    self._read((step,), stamps)
            elif self._file(steps[0]).exists():
                problem = str(broken).splitlines()[0]
                self._connection.execute("INSERT INTO files VALUES (?, ?, ?)", [steps[0], stamps[steps[0]], problem])

    def _take(self, steps: tuple[int, ...], stamps: dict[int, str]) -> None:
        paths = [str(self._file(step)) for step in steps]
        with self._connection.cursor() as cursor:
            cursor.begin()
            try:
                cursor.execute(TAKE, {"files": paths})
                cursor.executemany("INSERT INTO files VALUES (?, ?, NULL)", [[step, stamps[step]] for step in steps])
            except duckdb.Error:
                cursor.rollback()
                raise
            cursor.commit()

    def _file(self, step: int) -> Path:
        return rollout_file(self.folder, step)

    def _follow(self) -> None:
        while not self._stop.is_set():
            self.update()
            self._stop.wait(LOOK_SECONDS)


def _files(folder: Path) -> Iterator[tuple[int, str]]:
    for path in folder.glob("step-*.parquet"):
        number = path.stem.removeprefix("step-")
        if number.isdigit():
            found = path.stat()
            yield int(number), f"{found.st_mtime_ns}-{found.st_size}-{found.st_ino}"


def _name(run: Path) -> str:
    return f"{hashlib.sha256(str(run.resolve()).encode()).hexdigest()[:16]}-v{VERSION}"


def _connect(path: Path | None) -> duckdb.DuckDBPyConnection:
    if path is not None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return duckdb.connect(str(path))
        except (duckdb.Error, OSError):  # another viewer has it open, or the disk is read-only
            pass
    return duckdb.connect(":memory:")
