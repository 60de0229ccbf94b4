"""Writing a file so that a reader finds the old one or the new one, never half of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from surefoot.errors import ResourceError


def write_atomically(path: Path, text: str) -> None:
    """Write `text` beside `path` and move it there once it is on the disk. Makes missing folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    draft = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(0o644)
        draft.replace(path)
    except OSError as error:
        raise ResourceError(f"cannot write: {error.strerror or error}", where=str(path)) from error
    finally:
        draft.unlink(missing_ok=True)
