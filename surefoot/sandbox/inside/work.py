"""The work directory: files laid out before a run and, without namespaces, a private folder on the host."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

RUN = "run"


def lay_out(files: Mapping[str, str]) -> None:
    """Write `files` (relative path -> content) here. Raises ValueError for a path that leaves the current directory."""
    for path, content in files.items():
        if os.path.isabs(path) or ".." in path.split("/"):
            raise ValueError(f"the path {path!r} leaves the work directory")
        if folder := os.path.dirname(path):
            os.makedirs(folder, exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(content)


def enter(base: str) -> None:
    """Without a tmpfs of its own: a fresh `base/run/work`, with `TMPDIR` beside it."""
    run = os.path.join(base, RUN)
    os.mkdir(run, 0o700)
    os.mkdir(os.path.join(run, "tmp"))
    os.mkdir(os.path.join(run, "work"))
    os.environ["TMPDIR"] = os.path.join(run, "tmp")
    os.environ["HOME"] = os.path.join(run, "work")
    os.chdir(os.path.join(run, "work"))


def remove(path: str) -> None:
    """Remove a folder that a hostile program may have made awkward (no permissions, very deep). Never follows links."""
    for _ in range(2):
        shutil.rmtree(path, ignore_errors=True)
        if not os.path.lexists(path):
            return
        for folder, names, _files in os.walk(path):
            for name in names:
                inner = os.path.join(folder, name)
                if not os.path.islink(inner):
                    os.chmod(inner, 0o700)
