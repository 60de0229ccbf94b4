"""Checkpoints: a model that plain transformers loads, the optimiser beside it, and a checksum of every file."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from surefoot.errors import RunError
from surefoot.store import atomic

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

    def __init__(self, directory: Path, keep: int) -> None:
        self.directory, self.keep = directory, keep

    def save(self, step: int, save_model: SaveModel, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> Path:
        """Write the checkpoint of `step` and prune old ones.

        Raises ResourceError if the disk is full; the checkpoints from before are then untouched.
        """
        target = self.directory / f"step-{step:06d}"
        with atomic.new_directory(target) as scratch:
            save_model(scratch)
            save_file({k: v.contiguous() for k, v in tensors.items()}, scratch / "optimizer.safetensors")
            (scratch / "state.json").write_text(json.dumps({"step": step, **state}))
            sums = {path.name: _checksum(path) for path in sorted(scratch.iterdir())}
            (scratch / "checksums.json").write_text(json.dumps(sums, indent=1))
        for old in self.paths()[: -self.keep]:
            shutil.rmtree(old, ignore_errors=True)
        return target

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

    def load(self, path: Path) -> Checkpoint:
        """Read one checkpoint, without verifying it again."""
        state = json.loads((path / "state.json").read_text())
        return Checkpoint(state.pop("step"), path, load_file(path / "optimizer.safetensors"), state)


def damage(path: Path) -> str | None:
    """What is wrong with a checkpoint directory, or None if every file has the checksum it was written with."""
    try:
        sums: dict[str, str] = json.loads((path / "checksums.json").read_text())
    except (OSError, ValueError):
        return "no readable checksums.json"
    for name, expected in sums.items():
        if not (path / name).is_file():
            return f"{name} is missing"
        if _checksum(path / name) != expected:
            return f"{name} has changed"
    return None


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:32]
