"""Files that are either wholly there or not at all, also after a power cut or on a full disk."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from surefoot.errors import ResourceError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Error numbers of a disk, a quota or a permitted file size that is used up."""


def write_text(path: Path, text: str) -> None:
    """Replace the file at `path`. Raises ResourceError if the disk is full; the old file is then unharmed."""
    write_bytes(path, text.encode("utf-8", "surrogatepass"))


def write_bytes(path: Path, data: bytes) -> None:
    """Replace the file at `path`. Raises ResourceError if the disk is full; the old file is then unharmed."""
    with clear_disk_errors(path):
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        scratch = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            scratch.replace(path)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """A scratch directory that becomes `target` when the block ends well, and vanishes when it does not.

    Every file in it is on disk before the name appears, so `target` existing means that it is complete.
    """
    with clear_disk_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            yield scratch
            for path in [*scratch.rglob("*"), scratch]:
                _sync(path)
            if target.exists():
                shutil.rmtree(target)
            scratch.rename(target)
            sync_directory(target.parent)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise


def remove_leftovers(directory: Path) -> None:
    """Delete scratch files and directories that a killed process left behind."""
    for path in directory.glob(".*-*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def clear_disk_errors(path: Path) -> Iterator[None]:
    """Turn `no space left` and its like into a ResourceError that says what is still valid."""
    try:
        yield
    except Exception as failed:
        # safetensors reports a full disk in an error class of its own, with the system's words in the message.
        full = getattr(failed, "errno", None) in FULL or any(os.strerror(code) in str(failed) for code in FULL)
        if not full:
            raise
        raise ResourceError(
            "the disk is full; what was saved before is still valid",
            where=str(path),
            fix="free some space (or lower checkpoint.keep) and continue with --resume",
        ) from failed


def sync_directory(directory: Path) -> None:
    """Make renames in `directory` survive a power cut."""
    _sync(directory)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
