"""`cluster.json` in the run directory: how many engines and graders there should be, from the next step on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from surefoot.config_cluster import ClusterConfig
from surefoot.errors import ConfigError
from surefoot.store.atomic import write_text

FILE = "cluster.json"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of actors, each at least 1."""

    engines: int
    graders: int


def read_sizes(run: Path, config: ClusterConfig) -> Sizes:
    """What the file says; the recipe's numbers where it says nothing. Raises ConfigError if it makes no sense."""
    path = run / FILE
    try:
        said = json.loads(path.read_text())
    except FileNotFoundError:
        said = {}
    except ValueError as broken:
        raise ConfigError(f"not valid JSON: {broken}", where=str(path)) from broken
    known = {"engines": config.engines, "graders": config.graders}
    good = isinstance(said, dict) and set(said) <= set(known)
    if not good or not all(
        isinstance(count, int) and not isinstance(count, bool) and count >= 1 for count in said.values()
    ):
        raise ConfigError(
            f"cannot be used: {said!r}"[:300], where=str(path), fix='write for example {"engines": 3, "graders": 2}'
        )
    return Sizes(**(known | said))


def write_sizes(run: Path, sizes: Sizes) -> None:
    """Ask a run for other numbers; it looks at the start of its next step."""
    write_text(run / FILE, json.dumps(asdict(sizes)) + "\n")
