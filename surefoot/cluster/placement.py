"""Connects to Ray and places a run's engines and graders there; all of it ends with the driver."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.cluster.crew import Budget, Crew, Tell
from surefoot.cluster.engine import ClusterEngine
from surefoot.cluster.graders import ClusterGraders
from surefoot.cluster.ray_calls import the_ray
from surefoot.cluster.sizes import Sizes, read_sizes
from surefoot.cluster.watchdog import Watchdog
from surefoot.cluster.workers import EngineWorker, GradingWorker
from surefoot.config import Recipe
from surefoot.errors import ConfigError, ResourceError
from surefoot.models import Decoder

LOCAL = "local"
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Placed:
    """What takes the place of the local engine and graders."""

    engine: ClusterEngine
    graders: ClusterGraders


@contextmanager
def connected(address: str, object_store_mb: int = 128) -> Iterator[Any]:
    """Ray, connected for the length of the block; one that is connected already is used and left alone.

    Args:
        address: `local` starts a cluster of this machine alone, reachable from nowhere else; `HOST:PORT` or `auto`
            joins one from one of its nodes, `ray://HOST:PORT` from outside.
        object_store_mb: Shared memory of a local cluster, MiB.

    Raises:
        ConfigError: Ray is not installed, or the address makes no sense.
        ResourceError: Nothing answers there.
    """
    ray = the_ray()
    if ray.is_initialized():
        yield ray
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    common: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if address == LOCAL:
        common |= {
            "num_cpus": 1,  # actors ask for none here; each one more would be a process that waits
            "include_dashboard": False,
            "object_store_memory": object_store_mb * MIB,
            "_node_ip_address": "127.0.0.1",
        }
    elif address == "auto" or ":" in address:
        _answers(address)
        common |= {"address": address}
    else:
        raise ConfigError(
            f"{address!r} is no address of a cluster",
            where="--cluster",
            fix="local, HOST:PORT, auto or ray://HOST:PORT",
        )
    try:
        ray.init(**common)
    except (ConnectionError, RuntimeError, ValueError, OSError, TimeoutError) as failed:
        why = (str(failed).strip().splitlines() or [type(failed).__name__])[0]
        raise ResourceError(f"no Ray cluster: {why}", where=address, fix="see `ray status --address`") from failed
    try:
        yield ray
    finally:
        ray.shutdown()


def _answers(address: str) -> None:
    """Raises ResourceError at once where nothing listens; Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as failed:
        raise ResourceError(f"nothing answers: {failed}", where=address, fix="see `ray status --address`") from failed


@contextmanager
def open_cluster(
    address: str, recipe: Recipe, run: Path, decoder: Decoder, version: int, tell: Tell
) -> Iterator[Placed]:
    """Engines and graders on a cluster, with the learner's weights on every engine and the proof of it.

    Args:
        address: See `connected`.
        run: The run directory: `cluster.json` is read there, stacks are written there.
        decoder: The learner's, in the compute type.
        version: Of its weights.

    Raises:
        ConfigError: Ray is not installed, or the address or `cluster.json` makes no sense.
        ResourceError: No cluster, or nothing can be started on it.
    """
    settings, local = recipe.cluster, address == LOCAL
    with connected(address, object_store_mb=max(128, 12 * settings.piece_mb)):
        budget, folder = Budget(settings.replacements), str(Path.cwd())
        dtype = str(decoder.embedding.dtype).removeprefix("torch.")
        engines = Crew(
            "engine",
            EngineWorker,
            (recipe, dtype, folder),
            {"num_cpus": 0 if local else settings.engine_cpus, "num_gpus": settings.engine_gpus},
            budget,
            tell,
        )
        graders = Crew(
            "grader",
            GradingWorker,
            (recipe, folder),
            {"num_cpus": 0 if local else settings.grader_cpus, "num_gpus": 0.0},
            budget,
            tell,
        )
        asked = _Asked(run, recipe, tell)
        watchdog = Watchdog(run, settings.stuck_seconds, tell, lambda: engines.stacks() | graders.stacks())
        placed = Placed(
            ClusterEngine(
                engines,
                decoder,
                version,
                watchdog=watchdog,
                batch=recipe.rollout.batch,
                piece_bytes=settings.piece_mb * MIB,
                wanted=lambda: asked.now().engines,
            ),
            ClusterGraders(
                graders, watchdog=watchdog, threads=recipe.sandbox.workers, wanted=lambda: asked.now().graders
            ),
        )
        try:
            graders.resize(asked.now().graders)  # both kinds start side by side
            placed.engine.open(settings.start_seconds)
            placed.graders.open(settings.start_seconds)
            watchdog.stage("")
            yield placed
        finally:
            watchdog.close()
            placed.engine.close()
            placed.graders.close()


class _Asked:
    """The numbers that are asked for now; a file that makes no sense is told of once, and the last good one holds."""

    def __init__(self, run: Path, recipe: Recipe, tell: Tell) -> None:
        self.run, self.config, self.tell = run, recipe.cluster, tell
        self.last: Sizes = read_sizes(run, recipe.cluster)
        self.complaint = ""

    def now(self) -> Sizes:
        try:
            self.last, self.complaint = read_sizes(self.run, self.config), ""
        except ConfigError as wrong:
            if str(wrong) != self.complaint:
                self.complaint = str(wrong)
                self.tell("cluster_file", f"not used: {wrong}")
        return self.last
