"""Checkpoints: a model that plain transformers loads, the optimiser beside it, and a checksum of every file."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from surefoot.errors import RunError
from surefoot.store import atomic
from surefoot.store.retention import Retention

SaveModel = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What is needed to go on from after `step`, read back and verified."""

    step: int
    path: Path
    tensors: Mapping[str, Tensor]
    """Optimiser state (and whatever else the learner keeps besides the model)."""
    state: Mapping[str, Any]
    """Counters, scheduler, cursors: plain JSON data."""


class CheckpointStore:
    """Writes, verifies, finds and prunes the checkpoints of a run.

    Each is a directory `step-000010` that appears by one rename when all of it is on disk.
    """

    def __init__(self, directory: Path, keep: int, keep_every: int = 0) -> None:
        self.directory, self.retention = directory, Retention(keep, keep_every)

    def save(
        self,
        step: int,
        save_model: SaveModel,
        tensors: Mapping[str, Tensor],
        state: Mapping[str, Any],
        score: float | None = None,
    ) -> Path:
        """Write the checkpoint of `step` and prune old ones; one with the best `score` is kept.

        Raises ResourceError if the disk is full; the checkpoints from before are then untouched.
        """
        target = self.directory / f"step-{step:06d}"
        with atomic.new_directory(target) as scratch:
            save_model(scratch)
            save_file({k: v.contiguous() for k, v in tensors.items()}, scratch / "optimizer.safetensors")
            scored = {} if score is None else {"score": score}
            (scratch / "state.json").write_text(json.dumps({"step": step, **scored, **state}))
            files = sorted(path for path in scratch.rglob("*") if path.is_file())
            sums = {path.relative_to(scratch).as_posix(): _checksum(path) for path in files}
            (scratch / "checksums.json").write_text(json.dumps(sums, indent=1))
        self.prune()
        return target

    def prune(self, *, damaged: bool = False, dry: bool = False) -> list[Path]:
        """Delete what the retention policy does not keep; returns what was (with `dry`: would be) deleted.

        A checkpoint that lacks parts does not count among those that are kept. With `damaged`, those that were set
        aside go as well.
        """
        sound = {step_of(path): path for path in self.paths() if not _plainly_broken(path)}
        kept = self.retention.kept({step: score_of(path) for step, path in sound.items()})
        if not kept:
            return []
        gone = [path for path in self.paths() if step_of(path) not in kept]
        gone += sorted(self.directory.glob("damaged-step-*")) if damaged else []
        for path in [] if dry else gone:
            shutil.rmtree(path, ignore_errors=True)
        return gone

    def paths(self) -> list[Path]:
        """Directories of all checkpoints, oldest first."""
        return sorted(p for p in self.directory.glob("step-*") if p.is_dir())

    def newest(self, warn: Callable[[str], None]) -> Checkpoint | None:
        """The newest checkpoint that is undamaged, or None if there is none at all.

        Raises RunError if there are checkpoints but every one is damaged. `warn` is told of each that is skipped.
        """
        paths = self.paths()
        for path in reversed(paths):
            problem = damage(path)
            if problem is None:
                return self.load(path)
            warn(f"checkpoint {path.name} is damaged ({problem}); falling back to the one before")
        if paths:
            raise RunError("every checkpoint is damaged", where=str(self.directory), fix="start the run again")
        return None

    def set_aside_after(self, step: int) -> None:
        """Rename checkpoints of later steps, which are damaged if this one was the newest that is not.

        Left in place they would count among the newest, and keep the resumed run from writing these steps again.
        """
        for path in self.paths():
            if step_of(path) > step:
                aside = path.with_name(f"damaged-{path.name}")
                shutil.rmtree(aside, ignore_errors=True)
                path.rename(aside)

    def before(self, step: int, every: int) -> Checkpoint | None:
        """The newest undamaged checkpoint from before `step` of those that are due every so many steps.

        Others were saved because somebody stopped the run: going back to one of them would make what follows depend on
        when that was.
        """
        for path in reversed(self.paths()):
            if step_of(path) < step and step_of(path) % every == 0 and damage(path) is None:
                return self.load(path)
        return None

    def load(self, path: Path) -> Checkpoint:
        """Read one checkpoint, without verifying it again."""
        state = json.loads((path / "state.json").read_text())
        state.pop("score", None)
        return Checkpoint(state.pop("step"), path, load_file(path / "optimizer.safetensors"), state)


def damage(path: Path) -> str | None:
    """What is wrong with a checkpoint directory, or None if every file has the checksum it was written with."""
    try:
        sums: dict[str, str] = json.loads((path / "checksums.json").read_text())
    except (OSError, ValueError):
        return "no readable checksums.json"
    if not isinstance(sums, dict) or not sums.keys() >= {"state.json", "optimizer.safetensors"}:
        return "checksums.json is incomplete"
    for name, expected in sums.items():
        if not (path / name).is_file():
            return f"{name} is missing"
        if _checksum(path / name) != expected:
            return f"{name} has changed"
    return None


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:32]


def step_of(path: Path) -> int:
    """The step of a checkpoint directory."""
    return int(path.name.removeprefix("step-"))


def _plainly_broken(path: Path) -> bool:
    """Whether parts of a checkpoint are missing; unlike `damage`, this does not read all of it."""
    return not all((path / name).is_file() for name in ("checksums.json", "state.json", "optimizer.safetensors"))


def score_of(path: Path) -> float | None:
    """The score that a checkpoint was saved with; None if it has none."""
    try:
        score = json.loads((path / "state.json").read_text()).get("score")
    except (OSError, ValueError, AttributeError):
        return None
    return float(score) if isinstance(score, int | float) and math.isfinite(score) else None
