"""An engine for the loop that is many: draws are spread over engine actors, weights are sent to all of them at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from surefoot.cluster.crew import Crew
from surefoot.cluster.pieces import Piece, cut
from surefoot.cluster.proof import Proof, fault, proof_of_decoder
from surefoot.cluster.ray_calls import POLL_SECONDS, gather, result, the_ray
from surefoot.cluster.watchdog import Watchdog
from surefoot.cluster.work import Work
from surefoot.errors import ResourceError, SurefootError
from surefoot.models import Decoder
from surefoot.types import Draw, Rollout, Sampling

WINDOW = 4
"""Pieces that are on their way at the same time: what the object store must have room for."""
FETCH_SECONDS = 1.0


class ClusterEngine:
    """Implements `protocols.TrainingEngine`.

    A sample depends on its own seed alone (in float32), so it does not matter which engine draws it, nor whether it was
    begun elsewhere before.
    """

    def __init__(
        self,
        crew: Crew,
        decoder: Decoder,
        version: int,
        *,
        watchdog: Watchdog,
        batch: int,
        piece_bytes: int,
        wanted: Callable[[], int],
    ) -> None:
        """Spread over a crew of `EngineWorker`s.

        Args:
            decoder: The learner's, in the compute type: where new weights come from.
            batch: Samples that one engine decodes at a time.
            wanted: How many engines there should be now; asked before every rollout.
        """
        self.crew, self.decoder, self.watchdog = crew, decoder, watchdog
        self.batch, self.piece_bytes, self.wanted = batch, piece_bytes, wanted
        self._version, self._calls = version, itertools.count(1)

    @property
    def version(self) -> int:
        """Version of the weights that all members sample from."""
        return self._version

    def open(self, seconds: float) -> None:
        """Start the first engines and give them the learner's weights. Raises ResourceError if none can be had."""
        self.crew.resize(self.wanted())
        self._join(self.crew.wait_for_first(seconds, self.watchdog.check))

    def close(self) -> None:
        """End all engines."""
        self.crew.close()

    # ---------------------------------------------------------------------------------------------------- sampling

    def rollout(self, draws: Sequence[Draw], sampling: Sampling) -> Iterator[Rollout]:
        """All samples of all draws, each given back as soon as it is finished.

        What an engine owes when it is lost is drawn by the others.

        Raises:
            DataError: A prompt is too long.
            ResourceError: Too many engines were lost, or the generation is stuck.
        """
        self.crew.resize(self.wanted())
        work, call = Work(draws, self.batch), f"call-{next(self._calls)}"
        fetching: dict[Any, str] = {}
        try:
            while work.unfinished:
                self.watchdog.stage("generation")
                self._join(self.crew.arrivals(0.0 if self.crew.members else POLL_SECONDS))
                self._hand_out(work, call, sampling, fetching)
                finished, _ = the_ray().wait(list(fetching), timeout=POLL_SECONDS) if fetching else ([], [])
                self.watchdog.check()
                for reference in finished:
                    yield from self._fetched(reference, work, call, fetching)
        finally:
            for name in work.given:  # the caller wants no more: engines must be free for the next call
                if name in self.crew.members:
                    self.crew.members[name].stop.remote(call)
            self.watchdog.stage("")

    def _hand_out(self, work: Work, call: str, sampling: Sampling, fetching: dict[Any, str]) -> None:
        idle = [name for name in self.crew.members if name not in work.given]
        for place, name in enumerate(idle):
            if draws := work.give(name, len(idle) - place):
                handle = self.crew.members[name]
                handle.start.remote(call, self._version, draws, sampling)  # errors show in the fetch: no such call
                fetching[handle.fetch.remote(call, FETCH_SECONDS)] = name

    def _fetched(self, reference: Any, work: Work, call: str, fetching: dict[Any, str]) -> Iterator[Rollout]:
        name = fetching.pop(reference)
        try:
            found = result(reference)
        except SurefootError:
            raise
        except Exception as failed:
            owed = work.lost(name)
            self.crew.lose(name, failed, f"sampling; {owed} samples are drawn elsewhere")
            return
        if found.done:
            rollouts = [work.took(name, rollout) for rollout in found.rollouts]
            work.finished(name)
        else:
            fetching[self.crew.members[name].fetch.remote(call, FETCH_SECONDS)] = name
            rollouts = [work.took(name, rollout) for rollout in found.rollouts]
        if rollouts:
            self.watchdog.progress()
        for rollout in rollouts:
            yield rollout
            self.watchdog.stage("generation")

    # ----------------------------------------------------------------------------------------------------- weights

    def rest(self) -> None:
        """The learner is about to learn: from now on that is what may be stuck."""
        self.watchdog.stage("learning")

    def refresh(self, version: int) -> None:
        """The learner's weights were changed: send them to all engines, and have it proved that they arrived.

        An engine that fails is replaced. Raises ResourceError when too many did.
        """
        self._version = version
        try:
            self._sync(dict(self.crew.members))
        finally:
            self.watchdog.stage("")

    def _join(self, arrived: Mapping[str, Any]) -> None:
        if arrived:
            self.crew.members.update(arrived)
            self._sync(arrived)

    def _sync(self, members: Mapping[str, Any]) -> None:
        """New weights on `members`, all or none of an engine's: prepared everywhere first, then switched."""
        self.watchdog.stage("sync")
        members, version = dict(members), self._version
        for pieces in _windows(self.decoder, self.piece_bytes):
            shared = the_ray().put(pieces)
            calls = {name: handle.prepare.remote(version, shared) for name, handle in members.items()}
            self._keep(members, gather(calls, self.watchdog.check)[1], "taking in weights")
            self.watchdog.progress()
        calls = {name: handle.commit.remote(version) for name, handle in members.items()}
        wanted = proof_of_decoder(self.decoder, version)
        proofs, failures = gather(calls, self.watchdog.check)
        self._keep(members, failures, "taking up new weights")
        for name, shown in proofs.items():
            self._hold(name, shown, wanted)
        self.watchdog.progress()

    def _keep(self, members: dict[str, Any], failures: Mapping[str, BaseException], doing: str) -> None:
        for name, failed in failures.items():
            del members[name]
            self.crew.lose(name, failed, doing)

    def _hold(self, name: str, shown: Proof, wanted: Proof) -> None:
        if wrong := fault(shown, wanted, self.decoder.embedding.dtype):
            self.crew.lose(name, ResourceError(f"the update of the weights did not arrive: {wrong}"), "being proved")


def _windows(decoder: Decoder, piece_bytes: int) -> Iterator[list[Piece]]:
    window: list[Piece] = []
    for piece in cut(decoder, piece_bytes):
        window.append(piece)
        if len(window) == WINDOW:
            yield window
            window = []
    if window:
        yield window
