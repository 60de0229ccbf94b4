"""The sample log: every graded sample on the disk before the next one, so that a killed evaluation loses nothing.

`samples.jsonl` begins with one line that names what was sampled (model, weights, sampling parameters, seed); every
further line is a sample. A line is complete once its newline is there. A kill can only tear the last one, which is cut
off when the log is opened again, and drawn again.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from pydantic import ValidationError

from surefoot.errors import ResourceError, RunError
from surefoot.evaluate.records import SCHEMA, Sample
from surefoot.protocols import Engine
from surefoot.types import Sampling, Task, dump, load

Key = tuple[str, str, int, int]
"""What makes a sample reusable: task id, prompt hash, token limit, seed."""


def key_of(task: Task, limit: int, seed: int) -> Key:
    return task.id, task.prompt_hash, limit, seed


def header_of(model: str, engine: Engine, sampling: Sampling, seed: int) -> dict[str, Any]:
    """The first line of a log: what its samples were drawn from, and how."""
    return {
        "schema": SCHEMA,
        "model": model,
        "policy_version": engine.version,
        "sampling": dump(sampling),
        "seed": seed,
    }


class SampleLog:
    """Samples by key, kept in memory and, where a path is given, in a file that only one process may have open."""

    def __init__(self, path: Path | None, header: Mapping[str, Any]) -> None:
        self.samples: dict[Key, Sample] = {}
        self._path = path
        self._file: BinaryIO | None = None
        if path is not None:
            self._file = _open(path)
            try:
                self._lock()
                self._restore(dict(header))
            except BaseException:
                self.close()
                raise

    def append(self, key: Key, sample: Sample) -> None:
        """Record one sample: in the kernel's hands when this returns, so that only a power cut could lose it."""
        self.samples[key] = sample
        task, prompt, limit, _ = key
        self._write({"task": task, "prompt": prompt, "limit": limit, **dump(sample)})

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n")
            self._file.flush()
        except OSError as error:
            raise ResourceError(
                f"cannot record a sample: {error.strerror or error}",
                where=str(self._path),
                fix="free some disk space and run the same command again: recorded samples are kept",
            ) from error

    def _lock(self) -> None:
        assert self._file is not None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RunError(
                "another evaluation is writing here",
                where=str(self._path),
                fix="wait for it, or choose another directory",
            ) from error

    def _restore(self, header: dict[str, Any]) -> None:
        """Read what is there, cut off a torn end, and see that it belongs to this evaluation."""
        assert self._file is not None
        self._file.seek(0)
        lines, end = self._whole_lines(self._file.read())
        self._file.truncate(end)
        if not lines:
            self._write(header)
            return
        self._compare(lines[0], json.loads(json.dumps(header)))
        for number, line in enumerate(lines[1:], start=2):
            try:
                fields = dict(line)
                task, prompt, limit = (fields.pop(name) for name in ("task", "prompt", "limit"))
                sample = load(Sample, fields)
            except (KeyError, ValidationError) as error:
                raise self._damaged(number) from error
            self.samples[task, prompt, limit, sample.seed] = sample

    def _whole_lines(self, content: bytes) -> tuple[list[dict[str, Any]], int]:
        """The parsed lines and the offset at which the last whole one ends."""
        lines: list[dict[str, Any]] = []
        end = 0
        pieces = content.split(b"\n")[:-1]
        for number, piece in enumerate(pieces, start=1):
            try:
                parsed = json.loads(piece)
            except ValueError as error:
                if number == len(pieces):
                    break
                raise self._damaged(number) from error
            if not isinstance(parsed, dict):
                raise self._damaged(number)
            lines.append(parsed)
            end += len(piece) + 1
        return lines, end

    def _compare(self, found: dict[str, Any], wanted: dict[str, Any]) -> None:
        differing = [name for name in wanted if found.get(name) != wanted[name]]
        if differing:
            name = differing[0]
            raise RunError(
                f"the samples recorded here have {name} = {found.get(name)!r}, this evaluation {wanted[name]!r}",
                where=str(self._path),
                fix="choose another directory, or remove the file to start over",
            )

    def _damaged(self, number: int) -> RunError:
        return RunError(
            "this line is damaged", where=f"{self._path}:{number}", fix="remove the line: its sample is drawn again"
        )


def _open(path: Path) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a+b")
    except OSError as error:
        raise RunError(
            f"cannot write samples here: {error.strerror or error}", where=str(path), fix="choose another directory"
        ) from error
