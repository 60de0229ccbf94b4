"""A short text that changes when a domain's tasks or its grader do: what ties a domain card to its domain."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

from surefoot.protocols import Domain, Grader
from surefoot.types import Task

TASKS = 8
"""First training tasks, as the source has them, that are looked at."""
_PLAIN = (str, int, float, bool, type(None))


def fingerprint(domain: Domain) -> str:
    """16 characters, the same in every process and whatever the domain is called; calls the source, grades nothing."""
    size = domain.source.size("train")
    tasks = (domain.source.task("train", i) for i in range(TASKS if size is None else min(TASKS, size)))
    seen = [_described(domain.grader), *(_said(task) for task in tasks)]
    text = json.dumps(seen, sort_keys=True, default=_plain)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _said(task: Task) -> dict[str, Any]:
    """What a task asks and checks; ids hold the name that a recipe gave the domain."""
    named = ("messages", "checks", "constraints")
    return {name: getattr(task, name) for name in named} | {"answer": task.metadata.get("answer")}


def _described(grader: Grader) -> list[Any]:
    """Class and plain settings of a grader, of one inside it too, and the content of a user's file."""
    kind = f"{type(grader).__module__}.{type(grader).__qualname__}"
    names = [f.name for f in dataclasses.fields(grader)] if dataclasses.is_dataclass(grader) else list(vars(grader))
    settings = {name: getattr(grader, name, None) for name in names if not name.startswith("_")}
    plain = {name: value for name, value in settings.items() if isinstance(value, _PLAIN)}
    files = [_content(value) for value in settings.values() if isinstance(value, Path)]
    inner = settings.get("inner")
    return [kind, plain, files, _described(inner) if inner is not None else None]


def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _plain(value: Any) -> Any:
    """What JSON does not know, without the address that a repr may hold, nor the order that a set has by chance."""
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    if hasattr(value, "items"):
        return {str(key): item for key, item in value.items()}
    return type(value).__qualname__
