"""Which files a run reads, and their hashes, so that what it learnt from can be told afterwards."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from surefoot.config import DomainConfig, Recipe
from surefoot.store import atomic

FILE = "data.json"
OPTIONS = ("heldout_file", "answers_file")


def write_inputs(directory: Path, recipe: Recipe) -> None:
    """Write `data.json`: of every domain each file with its bytes, its SHA-256 and its data card, where it has one."""
    found = {domain.name: [_told(path) for path in _files(domain)] for domain in recipe.domains}
    atomic.write_text(directory / FILE, json.dumps(found, indent=1, ensure_ascii=False))


def changed_inputs(directory: Path, recipe: Recipe) -> list[str]:
    """Files that are no longer what they were when the run was started, in words."""
    path = directory / FILE
    if not path.is_file():
        return []
    known = {e["file"]: e["sha256"] for entries in json.loads(path.read_text()).values() for e in entries}
    now = {str(file): _hash(file) for domain in recipe.domains for file in _files(domain)}
    told = [f"{file} was changed" for file, digest in now.items() if known.get(file, digest) != digest]
    return told + [f"{file} is gone" for file in known if file not in now and not Path(file).is_file()]


def _files(domain: DomainConfig) -> Iterator[Path]:
    kind, _, rest = domain.source.partition(":")
    named = [rest if kind == "file" else kind, domain.card, domain.profile]
    for name in (*named, *(domain.options.get(option) for option in OPTIONS)):
        if isinstance(name, str) and name and (path := Path(name).expanduser()).is_file():
            yield path


def _told(path: Path) -> dict[str, Any]:
    entry: dict[str, Any] = {"file": str(path), "bytes": path.stat().st_size, "sha256": _hash(path)}
    card = path.with_name(f"{path.name}.card.json")
    try:
        return entry | {"card": json.loads(card.read_text(encoding="utf-8"))} if card.is_file() else entry
    except ValueError:
        return entry


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
