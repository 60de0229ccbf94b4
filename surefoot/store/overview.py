"""What there is to say about runs on disk, without opening them for writing: a run may be going on meanwhile."""

from __future__ import annotations

import fcntl
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.errors import RunError
from surefoot.store.checkpoint import CheckpointStore, damage
from surefoot.store.journal import read_lines
from surefoot.store.rundir import is_run


@dataclass(frozen=True, slots=True)
class RunOverview:
    """A run as its directory shows it."""

    path: Path
    model: str
    domains: tuple[str, ...]
    step: int
    """Last step whose metrics were written."""
    steps: int
    running: bool
    """Whether a process holds the run's lock."""
    checkpoints: tuple[Path, ...]
    megabytes: float

    @property
    def state(self) -> str:
        """In a word."""
        if self.running:
            return "running"
        return "finished" if self.step >= self.steps else "stopped"


@dataclass(frozen=True, slots=True)
class Finding:
    """What `verify` found of one part of a run."""

    part: str
    problem: str
    """Empty if it is sound."""


def find_runs(folder: Path) -> Iterator[Path]:
    """The run directories in a folder, at any depth, and the folder itself if it is one."""
    if is_run(folder):
        yield folder
    elif folder.is_dir():
        for path in sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")):
            yield from find_runs(path)


def overview(path: Path) -> RunOverview:
    """Look at a run. Raises RunError if there is none."""
    recipe = _recipe(path)
    lines = read_lines(path / "metrics.jsonl")
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return RunOverview(
        path=path,
        model=str(recipe.get("model", "?")),
        domains=tuple(str(domain.get("name", "?")) for domain in recipe.get("domains", ())),
        step=int(lines[-1]["step"]) if lines else 0,
        steps=int(recipe.get("steps", 0)),
        running=is_held(path),
        checkpoints=tuple(store_of(path).paths()),
        megabytes=size / 2**20,
    )


def events(path: Path, last: int) -> list[str]:
    """The last events of a run as sentences, oldest first."""
    return [f"{line.get('time', '')[:19]}  {line.get('text') or line['event']}" for line in _events(path)[-last:]]


def _events(path: Path) -> list[dict[str, Any]]:
    return read_lines(path / "events.jsonl")


def verify(path: Path) -> Iterator[Finding]:
    """Hold everything that a resumed run needs against its checksums, and every rollout file against its format."""
    import pyarrow.parquet as pq

    _recipe(path)
    for checkpoint in store_of(path).paths():
        yield Finding(f"checkpoints/{checkpoint.name}", damage(checkpoint) or "")
    for file in sorted((path / "rollouts").glob("*.parquet")):
        try:
            pq.read_table(file)
        except (OSError, ValueError) as broken:
            yield Finding(f"rollouts/{file.name}", f"cannot be read: {str(broken).splitlines()[0]}")
        else:
            yield Finding(f"rollouts/{file.name}", "")
    for name in ("metrics.jsonl", "draws.jsonl", "events.jsonl"):
        if (path / name).exists():
            torn = len((path / name).read_text(encoding="utf-8", errors="replace").splitlines()) - len(
                read_lines(path / name)
            )
            yield Finding(name, f"{torn} lines at the end are torn" if torn else "")


def sound_checkpoints(path: Path) -> Iterator[Path]:
    """The undamaged checkpoints of a run, the newest first. Raises RunError if there is no run."""
    _recipe(path)
    return (checkpoint for checkpoint in reversed(store_of(path).paths()) if damage(checkpoint) is None)


def newest_state(path: Path) -> dict[str, Any]:
    """The state in the newest sound checkpoint of a run. Raises RunError if there is none."""
    newest = next(sound_checkpoints(path), None)
    if newest is None:
        raise RunError("nothing was checkpointed yet", where=str(path), fix="wait for the first checkpoint")
    state: dict[str, Any] = json.loads((newest / "state.json").read_text())
    return state


def store_of(path: Path, keep: int = 1, keep_every: int = 0) -> CheckpointStore:
    """The checkpoints of a run directory."""
    return CheckpointStore(path / "checkpoints", keep, keep_every)


def is_held(path: Path) -> bool:
    """Whether a process is writing to the run."""
    try:
        with (path / ".lock").open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _recipe(path: Path) -> dict[str, Any]:
    if not is_run(path):
        raise RunError(
            "there is no run here", where=str(path), fix="give a run directory; surefoot runs list finds them"
        )
    try:
        return tomllib.loads((path / "config.toml").read_text())
    except ValueError as broken:
        raise RunError(f"config.toml is damaged: {broken}", where=str(path)) from broken
