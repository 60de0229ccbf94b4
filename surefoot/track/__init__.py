"""Trackers: TensorBoard, Weights & Biases, trackio, MLflow and Prometheus follow what the journal of a run records."""

from surefoot.track.opening import open_trackers
from surefoot.track.tracker import About, Tracker
from surefoot.track.worker import Worker

__all__ = ["About", "Tracker", "Worker", "open_trackers"]
