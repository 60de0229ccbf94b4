"""Makes a user's Python file readable inside a jail."""

from __future__ import annotations

import os
import shutil
import stat
from functools import cache
from pathlib import Path

from surefoot.sandbox.scratch import Scratch

MOST_BYTES = 20 * 2**20
"""Larger files beside the Python file are not copied."""


def readable_in_jail(path: Path) -> Path:
    """`path`, or the same file in a copy of its folder where the jail could not read it.

    A jail that root starts runs as another user, who cannot pass a private folder such as /root. The files beside it
    are copied with it, subfolders are not.
    """
    path = path.resolve()
    if os.geteuid() != 0 or _open_to_all(path):
        return path
    return _copy(path.parent, path.stat().st_mtime_ns).path / path.name


def _open_to_all(path: Path) -> bool:
    folders = all(parent.stat().st_mode & stat.S_IXOTH for parent in path.parents)
    return folders and bool(path.stat().st_mode & stat.S_IROTH)


@cache
def _copy(folder: Path, version: int) -> Scratch:
    copy = Scratch("grader")
    copy.path.chmod(0o755)
    for entry in sorted(folder.iterdir()):
        if entry.is_file() and entry.stat().st_size <= MOST_BYTES:
            target = copy.path / entry.name
            shutil.copyfile(entry, target)
            target.chmod(0o644)
    return copy
