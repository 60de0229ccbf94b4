"""Telling weights apart without reading them: by where they lie, how large they are, and when they were written."""

from __future__ import annotations

import hashlib
from pathlib import Path

WEIGHTS = ("*.safetensors", "config.json", "tokenizer*.json", "chat_template*")


def fingerprint(name: str, seed: int = 0) -> str:
    """Differs when a model's files do; of a name that is no directory, the name and `seed`, which `tiny` depends on."""
    folder = Path(name).expanduser()
    if not folder.is_dir():
        return f"{name}#{seed}"
    files = sorted({path for pattern in WEIGHTS for path in folder.glob(pattern)})
    seen = [(path.name, stat.st_size, stat.st_mtime_ns) for path in files for stat in [path.stat()]]
    return hashlib.sha256(repr((str(folder.resolve()), seen)).encode()).hexdigest()[:16]
