"""Reading a JSON-lines file as it grows, a piece at a time, from where the reader left it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PIECE = 4 << 20
"""Most bytes read at once."""


@dataclass(frozen=True, slots=True)
class Piece:
    """What came since the cursor."""

    lines: list[dict[str, Any]]
    cursor: str
    """To be given the next time."""
    reset: bool
    """The file is another one than before (a resumed run rewrites it): forget what was read."""
    more: bool
    """There is more to read at once."""


def read_from(path: Path, cursor: str) -> Piece:
    """The whole lines after `cursor` (empty for the beginning). A torn last line is left for the next time."""
    try:
        with path.open("rb") as file:
            inode = path.stat().st_ino
            size = file.seek(0, 2)
            known, _, at = cursor.partition("-")
            same = known == str(inode) and at.isdigit() and int(at) <= size
            start = int(at) if same else 0
            file.seek(start)
            data = file.read(PIECE)
    except FileNotFoundError:
        return Piece([], "", bool(cursor), False)
    whole = data[: data.rfind(b"\n") + 1]
    lines = [line for text in whole.splitlines() if (line := _parse(text)) is not None]
    end = start + len(whole)
    return Piece(lines, f"{inode}-{end}", not same, bool(whole) and end < size)


def _parse(text: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None
