"""The built-in engine: continuous batching over a shared-prefix KV cache, on CPU or one GPU.

A step samples one token for every row of the batch, gives back the samples that ended, fills their rows from the queue
and runs the decoder once for the rest. Row r always lives in slot r of the cache: rows stay dense, so that no product
and no copy ever touches a place that is not in use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from surefoot.errors import ResourceError
from surefoot.models import Decoder
from surefoot.models.chat import prompt_tokens
from surefoot.rollout.cache import Prefix, Slots
from surefoot.rollout.fused import FusedRunner
from surefoot.rollout.native import kernels
from surefoot.rollout.noise import uniforms
from surefoot.rollout.requests import PromptGroup, Request, requests, too_long
from surefoot.rollout.runner import Runner, TorchRunner
from surefoot.rollout.text import StopStrings, answer_text
from surefoot.types import Draw, Rollout, Sampling, StopReason, Task, Turn

PREFILL_TOKENS = 2048
"""Prompts are encoded together up to this many tokens; a longer one goes alone."""

Watch = Callable[[str, int, list[int]], None]
"""Told the task's id, the sample's index and the tokens that it has written so far."""


class LocalEngine:
    """Samples from a decoder that it shares with the learner.

    The same draws give the same rollouts, whatever was sampled before: each sample draws its random numbers from its
    own seed. In float32 neither the batch size nor the order of the draws matters (in bfloat16 rounding of the matrix
    products may differ with the number of rows).
    """

    def __init__(
        self,
        decoder: Decoder,
        tokenizer: Any,
        end_tokens: Sequence[int],
        *,
        batch: int,
        max_prompt_tokens: int,
        version: int = 0,
    ) -> None:
        """Wrap a decoder without copying it.

        Args:
            decoder: Used in its own dtype and on its own device.
            tokenizer: With a chat template.
            end_tokens: Tokens that end the model's turn.
            batch: Most samples decoded at the same time.
            max_prompt_tokens: Longer prompts are refused.
            version: Of the decoder's weights.
        """
        self.decoder, self.tokenizer = decoder, tokenizer
        self.ends, self.batch, self.max_prompt_tokens = frozenset(end_tokens), batch, max_prompt_tokens
        self._version = version
        self.runner = _runner(decoder, batch)

    @property
    def version(self) -> int:
        """Version of the weights that it samples from."""
        return self._version

    def refresh(self, version: int) -> None:
        """The decoder's weights were changed in place: forget everything derived from the old ones.

        Not while a `rollout` is being read.
        """
        self._version = version
        self.rest()

    def rest(self) -> None:
        """Give up what is derived from the weights until the next `rollout`: memory for the learner."""
        self.runner.refresh()

    def rollout(self, draws: Sequence[Draw], sampling: Sampling, watch: Watch | None = None) -> Iterator[Rollout]:
        """All samples of all draws, each given back as soon as it is finished.

        `watch` is told after every step what each unfinished sample has so far.

        Raises:
            DataError: a prompt is too long; names the task. Raised before anything is sampled.
            ResourceError: out of memory.
        """
        asked = requests(
            draws,
            self.tokenizer,
            max_prompt_tokens=self.max_prompt_tokens,
            max_positions=self.decoder.config.max_positions,
        )
        return self._run(asked, sampling, watch)

    def refusal(self, task: Task) -> str:
        """Why nothing can be sampled for this task (its prompt is too long); empty if it can."""
        length = len(prompt_tokens(self.tokenizer, task.messages))
        return too_long(length, self.max_prompt_tokens, self.decoder.config.max_positions)

    def close(self) -> None:
        """Nothing outlives a rollout but the decoder, which is the caller's."""

    def _run(self, asked: Sequence[Request], sampling: Sampling, watch: Watch | None) -> Iterator[Rollout]:
        if not asked:
            return
        try:
            batch = _Batch(self, asked, sampling)
            while batch.busy:
                yield from batch.step()
                if watch:
                    batch.tell(watch)
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as failed:
            if not _out_of_memory(failed):
                raise
            raise ResourceError(
                f"out of memory while sampling {min(self.batch, len(asked))} sequences at a time",
                where="rollout.batch",
                fix=f"lower rollout.batch (now {self.batch}), rollout.max_new_tokens or rollout.max_prompt_tokens",
            ) from failed


class _Batch:
    """One call of `rollout`: the queue of samples, the rows being written, and their cache."""

    def __init__(self, engine: LocalEngine, asked: Sequence[Request], sampling: Sampling) -> None:
        self.engine, self.sampling, self.runner = engine, sampling, engine.runner
        self.waiting = deque(asked)
        self.rows: list[Request] = []
        size, longest = min(engine.batch, len(asked)), max(request.group.limit for request in asked)
        self.size = size
        self.slots = Slots(engine.decoder.config, size, engine.decoder.embedding)
        self.hidden = engine.decoder.embedding.new_empty(
            size, engine.decoder.config.width
        )  # what each row samples from
        self.tokens: NDArray[np.int64] = np.zeros((size, longest), dtype=np.int64)
        self.logprobs: NDArray[np.float32] = np.zeros((size, longest), dtype=np.float32)
        self.written: NDArray[np.int64] = np.zeros(size, dtype=np.int64)
        self.limits: NDArray[np.int64] = np.zeros(size, dtype=np.int64)
        self.prompts: NDArray[np.int64] = np.zeros(size, dtype=np.int64)  # lengths
        self.seeds: NDArray[np.uint64] = np.zeros(size, dtype=np.uint64)
        self.ends = np.array(sorted(engine.ends), dtype=np.int64)
        self.stops = StopStrings(engine.tokenizer, sampling.stop)
        self._fill()

    @property
    def busy(self) -> bool:
        """Whether anything is still to be sampled."""
        return bool(self.rows)

    @torch.inference_mode()
    def step(self) -> list[Rollout]:
        """Sample one token a row, take out the samples that ended, and run the decoder for the others."""
        n = len(self.rows)
        self._draw(n)
        over, stopped = self._ended(n)
        ended = np.flatnonzero(over).tolist()
        done = [self._rollout(row, "stop" if stopped[row] else "length") for row in ended]
        self._drop(ended)
        if self.rows:
            self._advance(len(self.rows))
        self._fill()
        return done

    def tell(self, watch: Watch) -> None:
        """What each unfinished sample has so far."""
        for row, request in enumerate(self.rows):
            watch(request.group.task.id, request.index, self.tokens[row, : self.written[row]].tolist())

    def _draw(self, n: int) -> None:
        uniform = torch.from_numpy(uniforms(self.seeds[:n], self.written[:n]))  # [n]
        tokens, logprobs = self.runner.draw(self.hidden[:n], uniform, self.sampling)  # [n] each
        rows = np.arange(n)
        self.tokens[rows, self.written[:n]] = tokens.numpy()
        self.logprobs[rows, self.written[:n]] = logprobs.numpy()
        self.written[:n] += 1

    def _ended(self, n: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which rows have ended [n], and which of them because the policy stopped [n]."""
        last = self.tokens[np.arange(n), self.written[:n] - 1]  # [n]
        stopped = np.isin(last, self.ends)  # [n]
        if self.stops:
            for row in np.flatnonzero(~stopped):
                stopped[row] = self.stops.completed(self.tokens[row, : self.written[row]].tolist())
        return stopped | (self.written[:n] >= self.limits[:n]), stopped

    def _advance(self, n: int) -> None:
        """Run the decoder over the last token of each row."""
        before = self.written[:n] - 1  # tokens of each row that the cache already has
        self.slots.make_room(int(before.max()) + 1)
        last = torch.from_numpy(self.tokens[np.arange(n), before])  # [n]
        prefixes = [_prefix(request.group) for request in self.rows]
        self.hidden[:n] = self.runner.decode(last, torch.from_numpy(before), prefixes, self.slots)

    @torch.inference_mode()
    def _fill(self) -> None:
        """Give free rows to waiting samples; the prompts that they need are encoded together."""
        first = len(self.rows)
        arrived = [self.waiting.popleft() for _ in range(min(self.size - first, len(self.waiting)))]
        self.rows += arrived
        self._encode([request.group for request in arrived])
        for row, request in enumerate(arrived, start=first):
            self.hidden[row] = _prefix(request.group).hidden
            self.written[row], self.limits[row] = 0, request.group.limit
            self.prompts[row], self.seeds[row] = len(request.group.prompt), request.seed

    def _encode(self, groups: Sequence[PromptGroup]) -> None:
        missing = [group for group in dict.fromkeys(groups) if group.prefix is None]
        while missing:
            count, tokens = 1, len(missing[0].prompt)
            while count < len(missing) and tokens + len(missing[count].prompt) <= PREFILL_TOKENS:
                tokens += len(missing[count].prompt)
                count += 1
            chunk, missing = missing[:count], missing[count:]
            for group, prefix in zip(chunk, self.runner.encode([g.prompt for g in chunk]), strict=True):
                group.prefix = prefix

    def _drop(self, ended: Sequence[int]) -> None:
        """Take rows out; the last rows move into the holes."""
        for row in reversed(ended):
            group = self.rows[row].group
            group.unfinished -= 1
            if not group.unfinished:
                group.prefix = None
            last = len(self.rows) - 1
            if row != last:
                self.slots.move(last, row, int(self.written[last]) - 1)
                self.rows[row] = self.rows[last]
                for state in (self.tokens, self.logprobs, self.written, self.limits, self.prompts, self.seeds):
                    state[row] = state[last]
            self.rows.pop()

    def _rollout(self, row: int, stop: StopReason) -> Rollout:
        request, count = self.rows[row], int(self.written[row])
        group, written = request.group, self.tokens[row, :count].tolist()
        before = len(group.prompt)
        return Rollout(
            task_id=group.task.id,
            domain=group.task.domain,
            sample=request.index,
            tokens=(*group.prompt, *written),
            mask=(False,) * before + (True,) * count,
            logprobs=(0.0,) * before + tuple(self.logprobs[row, :count].tolist()),
            text=answer_text(self.engine.tokenizer, written, self.engine.ends),
            stop=stop,
            policy_version=self.engine.version,
            seed=request.seed,
            turns=(Turn("prompt", 0, before), Turn("assistant", before, before + count)),
        )


def _runner(decoder: Decoder, rows: int) -> Runner:
    """The fastest runner that this decoder can have on this machine."""
    if FusedRunner.fits(decoder) and (compiled := kernels(decoder.embedding.dtype)) is not None:
        return FusedRunner(decoder, compiled, rows)
    return TorchRunner(decoder)


def _prefix(group: PromptGroup) -> Prefix:
    if group.prefix is None:
        raise RuntimeError("a group in the batch has lost its prefix")
    return group.prefix


def _out_of_memory(failed: BaseException) -> bool:
    return isinstance(failed, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(failed)
