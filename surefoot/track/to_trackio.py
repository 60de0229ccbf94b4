"""trackio: a local SQLite database, looked at with `trackio show`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from surefoot.track.tracker import About


class Trackio:
    """trackio knows runs by name, so that the name carries the id."""

    keeps_steps = True

    def __init__(self) -> None:
        self._run: Any = None

    def open(self, about: About) -> str:
        import trackio

        self._run = trackio.init(
            project=about.settings.project,
            name=f"{about.name}-{about.id[:6]}",
            config=dict(about.config),
            resume="allow",
            auto_log_gpu=False,
            auto_log_cpu=False,
        )
        return f"trackio show --project {about.settings.project}"

    def forget_after(self, step: int) -> None:
        pass

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log({name: value for name, value in values.items() if math.isfinite(value)}, step=step)

    def event(self, step: int, kind: str, text: str) -> None:
        pass

    def close(self) -> None:
        self._run.finish()


make = Trackio
