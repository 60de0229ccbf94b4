"""MLflow: the server of MLFLOW_TRACKING_URI, else an SQLite file in the run directory."""

from __future__ import annotations

import logging
import math
import os
import re
import time
from collections.abc import Mapping
from typing import Any

from surefoot.track.tracker import About

LIMIT = 1000
"""Most metrics of one request, and near the most characters that older servers keep of a parameter (500 to 6,000)."""


class MLflow:
    """One MLflow run, found again by its tag `surefoot_id`."""

    keeps_steps = True

    def __init__(self) -> None:
        self._client: Any = None
        self._run = ""

    def open(self, about: About) -> str:
        from mlflow.tracking import MlflowClient

        logging.getLogger("alembic").setLevel(logging.WARNING)  # a new database tells of every migration
        where = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{about.directory / 'trackers' / 'mlflow.db'}"
        self._client = MlflowClient(where)
        known = self._client.get_experiment_by_name(about.settings.project)
        experiment = known.experiment_id if known else self._client.create_experiment(about.settings.project)
        found = self._client.search_runs([experiment], filter_string=f"tags.surefoot_id = '{about.id}'", max_results=1)
        if found:
            self._run = found[0].info.run_id
            self._client.update_run(self._run, status="RUNNING")
        else:
            self._run = self._begin(experiment, about)
        return f"mlflow ui --backend-store-uri {where}" if where.startswith("sqlite") else where

    def _begin(self, experiment: str, about: About) -> str:
        from mlflow.entities import Param

        made = self._client.create_run(experiment, run_name=about.name, tags={"surefoot_id": about.id})
        recipe = [Param(_plain(key), str(value)[:LIMIT]) for key, value in _leaves(about.config).items()]
        for first in range(0, len(recipe), 100):
            self._client.log_batch(made.info.run_id, params=recipe[first : first + 100])
        return str(made.info.run_id)

    def forget_after(self, step: int) -> None:
        pass

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        listed = [Metric(_plain(name), value, now, step) for name, value in values.items() if math.isfinite(value)]
        for first in range(0, len(listed), LIMIT):
            self._client.log_batch(self._run, metrics=listed[first : first + LIMIT])

    def event(self, step: int, kind: str, text: str) -> None:
        pass

    def close(self) -> None:
        self._client.set_terminated(self._run)


def _leaves(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for key, value in values.items():
        leaves |= _leaves(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return leaves


def _plain(name: str) -> str:
    """Only what MLflow takes in a name: letters, digits, `_-. /`."""
    return re.sub(r"[^A-Za-z0-9_\-. /]", "_", name)


make = MLflow
