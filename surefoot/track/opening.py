"""From the recipe's `[tracking]` to trackers at work."""

from __future__ import annotations

import importlib
import importlib.util
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surefoot.config_tracking import TrackingConfig
from surefoot.errors import ConfigError
from surefoot.track.tracker import About
from surefoot.track.worker import Memory, Say, Worker

NEEDS = {
    "tensorboard": "tensorboard",
    "wandb": "wandb",
    "trackio": "trackio",
    "mlflow": "mlflow",
    "prometheus": "prometheus_client",
}
"""The module that each tracker needs; its extra has the tracker's name."""


def open_trackers(
    settings: TrackingConfig, directory: Path, config: Mapping[str, Any], say: Say, warn: Say
) -> tuple[Worker, ...]:
    """Start the trackers of a run, each in a thread of its own; one that fails later calls `warn` once.

    Raises:
        ConfigError: The package of one is not installed: that is better known now than after a night without plots.
    """
    for name in settings.to:
        if importlib.util.find_spec(NEEDS[name]) is None:
            raise ConfigError(
                f"{name} needs a package that is not installed",
                where="tracking.to",
                fix=f"pip install 'surefoot[{name}]', or leave {name} out",
            )
    memories = directory / "trackers"
    memories.mkdir(exist_ok=True)
    about = About(
        directory.absolute(), settings.name or directory.absolute().name, _identity(memories), config, settings
    )
    workers = []
    for name in settings.to:
        tracker = importlib.import_module(f"surefoot.track.to_{name}").make()
        workers.append(Worker(name, tracker, about, Memory(memories / f"{name}.json"), say, warn))
    return tuple(workers)


def _identity(memories: Path) -> str:
    """The id by which servers know the run: made once, kept in the run."""
    path = memories / "id"
    if not path.is_file():
        path.write_text(secrets.token_hex(6), encoding="utf-8")
    return path.read_text(encoding="utf-8").strip()
