"""Where a run keeps everything about itself, and the lock that keeps a second process out."""

from __future__ import annotations

import fcntl
import json
import platform
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import IO, Any, Self

from surefoot.config import Recipe
from surefoot.errors import RunError
from surefoot.recipe import to_toml
from surefoot.store import atomic
from surefoot.store.inputs import write_inputs


@dataclass
class RunDirectory:
    """The layout of a run directory, opened for writing by one process at a time.

    `config.toml` the resolved recipe, `environment.json` versions, `data.json` hashes of the files that domains read,
    `metrics.jsonl` and `draws.jsonl` one line a step, `events.jsonl`, `rollouts/` one Parquet file a step,
    `checkpoints/`, `evaluations/`, `tensorboard/`.
    """

    path: Path
    _lock: IO[str]

    @classmethod
    def create(cls, path: Path, recipe: Recipe) -> Self:
        """Start a new run. Raises RunError if there is one already."""
        if is_run(path):
            raise RunError(
                "there is a run here already",
                where=str(path),
                fix="--resume continues it; --run-dir DIR puts the new one elsewhere",
            )
        if path.exists() and not path.is_dir():
            raise RunError("this is a file, not a directory", where=str(path), fix="choose another --run-dir")
        if path.exists() and any(p for p in path.iterdir() if p.name != ".lock"):
            raise RunError(
                "the directory is not empty and is not a run", where=str(path), fix="choose another --run-dir"
            )
        run = cls._open(path)
        atomic.write_text(path / "environment.json", json.dumps(environment(), indent=1))
        write_inputs(path, recipe)
        run.write_config(recipe)  # last: a directory with this file is a run
        return run

    @classmethod
    def resume(cls, path: Path) -> Self:
        """Open a run to continue it; removes what a killed process left half-written. Raises RunError if none."""
        if not is_run(path):
            raise RunError("there is no run here", where=str(path), fix="leave out --resume to start one")
        run = cls._open(path)
        for directory in (path, run.checkpoints, run.rollouts, run.evaluations):
            atomic.remove_leftovers(directory)
        return run

    @classmethod
    def _open(cls, path: Path) -> Self:
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock = (path / ".lock").open("w")
        except OSError as failed:
            raise RunError(f"cannot write here: {failed.strerror}", where=str(path)) from failed
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as held:
            raise RunError(
                "another process is writing to this run", where=str(path), fix="wait for it or stop it"
            ) from held
        run = cls(path, lock)
        for directory in (run.checkpoints, run.rollouts, run.evaluations, run.tensorboard):
            directory.mkdir(exist_ok=True)
        return run

    @property
    def config_file(self) -> Path:
        return self.path / "config.toml"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def rollouts(self) -> Path:
        return self.path / "rollouts"

    @property
    def evaluations(self) -> Path:
        return self.path / "evaluations"

    @property
    def tensorboard(self) -> Path:
        return self.path / "tensorboard"

    def write_config(self, recipe: Recipe) -> None:
        """Record the resolved recipe."""
        atomic.write_text(self.config_file, to_toml(recipe))

    def close(self) -> None:
        """Let other processes in."""
        self._lock.close()


def is_run(path: Path) -> bool:
    """Whether `path` is a run directory."""
    return (path / "config.toml").is_file() and (path / "environment.json").is_file()


def environment() -> dict[str, Any]:
    """What the run ran on: interpreter, machine, and the version of every installed package."""
    packages = {d.metadata["Name"]: d.version for d in metadata.distributions()}
    return {
        "python": sys.version,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "packages": dict(sorted(packages.items(), key=lambda item: str(item[0]).lower())),
    }
