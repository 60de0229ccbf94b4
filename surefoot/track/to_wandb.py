"""Weights & Biases: online with a key, else files for `wandb sync`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from surefoot.track.tracker import About


class WandB:
    """One run under one id; resumed, it goes on with the first step that it does not have."""

    keeps_steps = True

    def __init__(self) -> None:
        self._run: Any = None

    def open(self, about: About) -> str:
        import wandb

        folder = about.directory / "trackers"
        offline = about.settings.offline or os.environ.get("WANDB_MODE") == "offline" or not wandb.login(prompt=False)
        self._run = wandb.init(
            project=about.settings.project,
            name=about.name,
            id=about.id,
            resume="allow",
            dir=str(folder),
            config=dict(about.config),
            mode="offline" if offline else None,
            # No code, no console output and no view of the machine leaves it: only what the journal says.
            settings=wandb.Settings(
                silent=True, console="off", disable_git=True, save_code=False, x_disable_stats=True
            ),
        )
        return f"offline; later: wandb sync {folder}/wandb/offline-run-*-{about.id}*" if offline else self._run.url

    def forget_after(self, step: int) -> None:
        pass

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def event(self, step: int, kind: str, text: str) -> None:
        pass

    def close(self) -> None:
        self._run.finish()


make = WandB
