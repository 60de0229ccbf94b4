"""What runs in the actors: an engine over its own decoder, and a grading pool over its own sandbox.

Plain classes, so that they work without Ray too. Heavy imports come late: the environment must be set before torch is
loaded. Methods return plain data of `types.py`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.config import Recipe
from surefoot.errors import ResourceError
from surefoot.types import Draw, Rollout, Sampling, Task, Verdict

if TYPE_CHECKING:
    from surefoot.cluster.pieces import Piece, Staging
    from surefoot.cluster.proof import Proof

UNREAD = 64
"""Finished samples that wait to be fetched; an engine whose samples nobody takes stands still then."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What `EngineWorker.fetch` gives back."""

    rollouts: tuple[Rollout, ...]
    done: bool
    """Whether nothing more will come."""


class Worker:
    """What both kinds have in common."""

    def __init__(self, folder: str) -> None:
        """`folder`: the driver's working directory; paths in the recipe are relative to it."""
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        with contextlib.suppress(OSError):
            os.chdir(folder)

    def ready(self) -> dict[str, Any]:
        """Where this process runs."""
        return {"pid": os.getpid(), "host": os.uname().nodename}

    def stacks(self) -> str:
        """What every thread of this process is doing."""
        return all_stacks()


class EngineWorker(Worker):
    """Samples on request; its weights change only by `prepare` of all pieces and one `commit`."""

    def __init__(self, recipe: Recipe, dtype: str, folder: str) -> None:
        """Load the recipe's model for its shape and tokenizer; the weights to sample from come from the learner.

        `dtype`: the learner's compute type, whatever this machine would choose.
        """
        super().__init__(folder)
        from surefoot import build
        from surefoot.models import load_model

        build.set_threads(recipe.cluster.threads)
        changed = recipe.model_copy(update={"learner": recipe.learner.model_copy(update={"dtype": dtype})})
        self.engine = build.sampling_engine(load_model(recipe.model, seed=recipe.seed, rope=recipe.rope), changed)
        self.engine.refresh(-1)  # never to be sampled from before the first sync
        self.staging: Staging | None = None
        self.calls: dict[str, _Sampling] = {}

    # ----------------------------------------------------------------------------------------------------- weights

    def prepare(self, version: int, pieces: Sequence[Piece]) -> None:
        """Keep pieces of the weights of `version` beside those in use. Raises ResourceError for a damaged one."""
        from surefoot.cluster.pieces import Staging, size_of

        if self.staging is None or self.staging.version != version:
            self.staging = Staging(version, size_of(self.engine.decoder))
        for piece in pieces:
            self.staging.take(piece)

    def commit(self, version: int) -> Proof:
        """Take up the weights that were prepared, all at once; the proof is of what is in use afterwards."""
        from surefoot.cluster.proof import proof_of_engine

        if self.staging is None or self.staging.version != version:
            raise ResourceError(f"version {version} was not prepared on this engine")
        if any(call.thread.is_alive() for call in self.calls.values()):
            raise ResourceError("this engine is still sampling")
        staging, self.staging = self.staging, None
        staging.install(self.engine.decoder)
        self.engine.refresh(version)
        return proof_of_engine(self.engine)

    # ---------------------------------------------------------------------------------------------------- sampling

    def start(self, call: str, version: int, draws: Sequence[Draw], sampling: Sampling) -> None:
        """Begin to sample, in a thread; `fetch` gives what is finished. Raises ResourceError for another version."""
        if version != self.engine.version:
            raise ResourceError(f"this engine is at version {self.engine.version}, not {version}")
        for name, old in list(self.calls.items()):
            old.stop()
            del self.calls[name]
        self.calls[call] = _Sampling(lambda: self.engine.rollout(draws, sampling))

    def fetch(self, call: str, seconds: float) -> Fetched:
        """Samples that have been finished since the last time; waits up to `seconds` for the first."""
        return self.calls[call].fetch(seconds)

    def stop(self, call: str) -> None:
        """Nobody wants the rest."""
        if call in self.calls:
            self.calls.pop(call).stop()


class _Sampling:
    """One call of an engine's `rollout`, read by a thread into a bounded queue."""

    def __init__(self, begin: Callable[[], Iterator[Rollout]]) -> None:
        self.begin = begin
        self.finished: queue.Queue[Rollout | BaseException | None] = queue.Queue(UNREAD)
        self.stopped, self.done = threading.Event(), False
        self.thread = threading.Thread(target=self._read, name="surefoot-sampling", daemon=True)
        self.thread.start()

    def fetch(self, seconds: float) -> Fetched:
        """Raises what the engine raised."""
        found: list[Rollout] = []
        with contextlib.suppress(queue.Empty):
            while not self.done:
                item = self.finished.get_nowait() if found else self.finished.get(timeout=seconds)
                if isinstance(item, BaseException):
                    self.done = True
                    raise item
                if item is None:
                    self.done = True
                else:
                    found.append(item)
        if self.done:
            self.thread.join()
        return Fetched(tuple(found), self.done)

    def stop(self) -> None:
        """Returns when the thread has ended: the engine is free then."""
        self.stopped.set()
        while self.thread.is_alive():
            with contextlib.suppress(queue.Empty):
                self.finished.get_nowait()
            self.thread.join(0.01)

    def _read(self) -> None:
        last: BaseException | None = None
        try:
            for rollout in self.begin():
                if self.stopped.is_set():
                    break
                self.finished.put(rollout)
        except Exception as failed:
            last = failed
        self.finished.put(last)


class GradingWorker(Worker):
    """Grades batches of rollouts; what a model wrote runs in this worker's own sandbox."""

    def __init__(self, recipe: Recipe, folder: str) -> None:
        super().__init__(folder)
        from surefoot.domains import build_domain
        from surefoot.rewards import GradingPool
        from surefoot.sandbox.from_recipe import sandbox_of

        default = recipe.rollout.max_new_tokens
        domains = [build_domain(config, default_max_new_tokens=default) for config in recipe.domains]
        self.sandbox = sandbox_of(recipe.sandbox)
        faults, workers = recipe.faults, recipe.sandbox.workers
        self.pool = GradingPool(domains, self.sandbox, workers, seconds=faults.deadline, retries=faults.retries)

    def grade(self, jobs: Sequence[tuple[Rollout, Task | None]]) -> list[Verdict]:
        """One verdict a rollout, in their order."""
        tasks = {task.id: task for _, task in jobs if task is not None}
        return self.pool.grade_all([rollout for rollout, _ in jobs], tasks)

    def close(self) -> None:
        """End pool and sandbox."""
        self.pool.close()
        self.sandbox.close()


def all_stacks() -> str:
    """The stacks of all Python threads of this process, as faulthandler writes them."""
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return f"{time.strftime('%H:%M:%S')} process {os.getpid()} in {Path.cwd()}\n" + file.read().decode()
