"""TensorBoard: event files in the run directory, written without TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surefoot.track.tracker import About


class TensorBoard:
    """Nested metrics become `a/b`. A resumed run tells readers to drop the steps that it takes again."""

    keeps_steps = False

    def __init__(self) -> None:
        self._directory = Path()
        self._writer: Any = None

    def open(self, about: About) -> str:
        self._directory = about.directory / "tensorboard"
        return f"tensorboard --logdir {self._directory}"

    def forget_after(self, step: int) -> None:
        self._open(purge_step=step + 1)

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        writer = self._open()
        for name, value in values.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    def event(self, step: int, kind: str, text: str) -> None:
        self._open().add_text(f"events/{kind}", "    " + text.replace("\n", "\n    "), step)  # as it is, not Markdown

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _open(self, purge_step: int | None = None) -> Any:
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(self._directory), purge_step=purge_step)
        return self._writer


make = TensorBoard
