"""Where samples are kept between evaluations: one folder for each model, definition of tasks, and way to sample.

Asking for more tasks or samples of the same finds the old samples there; whatever could change a verdict or a sample
leads to another folder.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surefoot.config import DomainConfig, Recipe

FORMAT = 1
"""Goes up when samples of before should not be used any more."""
IRRELEVANT = {"weight", "chance"}
"""What a domain says that has no bearing on its samples and verdicts."""


def cache_folder(root: Path, model: str, fingerprint: str, domains: Sequence[DomainConfig], recipe: Recipe) -> Path:
    """The folder of an evaluation below `root`.

    Args:
        fingerprint: Of the weights; the same for the same weights only.
    """
    what: dict[str, Any] = {
        "format": FORMAT,
        "model": model,
        "weights": fingerprint,
        "seed": recipe.seed,
        "temperature": recipe.evaluate.temperature,
        "stop": recipe.rollout.stop,
        "default_max_new_tokens": recipe.rollout.max_new_tokens,
        "dtype": recipe.learner.dtype,
        "device": recipe.device,
        "domains": [domain.model_dump(mode="json", exclude=IRRELEVANT) for domain in domains],
    }
    digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:12]
    return root / f"{_slug(model)}-{digest}"


def _slug(model: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.]+", "-", model).strip("-.")[-48:] or "model"
