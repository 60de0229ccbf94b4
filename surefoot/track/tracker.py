"""What every tracker is told, and what it knows of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from surefoot.config_tracking import TrackingConfig


@dataclass(frozen=True)
class About:
    """A run, as trackers see it."""

    directory: Path
    name: str
    id: str
    """The same for as long as the run lives, however often it is resumed: 12 hexadecimal digits."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The resolved recipe."""
    settings: TrackingConfig = field(default_factory=TrackingConfig)


class Tracker(Protocol):
    """Told of a run from one thread only, in order. It may raise whatever it likes: it is left out from then on."""

    keeps_steps: bool
    """Whether it appends only: a step that it was told of is not told again by a resumed run."""

    def open(self, about: About) -> str:
        """Begin, or continue what was begun under the same id; says in a few words where to look."""
        ...

    def forget_after(self, step: int) -> None:
        """The run was resumed after `step`: later ones will be told anew."""
        ...

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers of a step by names such as `domains/code/pass_rate`; some may not be finite."""
        ...

    def event(self, step: int, kind: str, text: str) -> None:
        """Something happened at or after a step."""
        ...

    def close(self) -> None:
        """The process ends; the run may be resumed."""
        ...
