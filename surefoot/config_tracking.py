"""`[tracking]`: who is told of a run besides its own directory."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from surefoot.config_section import Section

TrackerName = Literal["tensorboard", "wandb", "trackio", "mlflow", "prometheus"]


class TrackingConfig(Section):
    """`[tracking]`: trackers that follow a run; `metrics.jsonl` is written whatever they do (docs/trackers.md)."""

    to: tuple[TrackerName, ...] = ("tensorboard",)
    """`tensorboard` (in the run directory), `wandb`, `trackio`, `mlflow` (each an extra of that name) and `prometheus`
    (an endpoint to be scraped, extra `prometheus`). One that fails is left out with a warning; the run goes on."""
    project: str = Field(default="surefoot", min_length=1)
    """Project of W&B and trackio, experiment of MLflow."""
    name: str = ""
    """What trackers call the run; empty for the name of its directory."""
    offline: bool = False
    """W&B only: write files to send later with `wandb sync`. Without a key for its server that is done in any case."""
    host: str = "127.0.0.1"
    """Address of the Prometheus endpoint. Others than 127.0.0.1 let other machines read: there is no password."""
    port: int = Field(default=9464, ge=0, le=65535)
    """Port of the Prometheus endpoint; 0 takes a free one and says which."""
