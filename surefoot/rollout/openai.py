"""Any OpenAI-compatible endpoint as an engine: for evaluation, and for teachers.

It cannot be trained from: an endpoint gives text and counts, no token ids. The ids of its rollouts are `UNKNOWN`.
"""

from __future__ import annotations

import os
import queue
import re
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surefoot.errors import DataError, ModelError, ResourceError, SurefootError
from surefoot.types import Draw, Rollout, Sampling, StopReason, stable_seed

if TYPE_CHECKING:
    from openai import OpenAI

UNKNOWN = -1
"""Token id of a token that an endpoint only counted."""
KEY_VARIABLE = "OPENAI_API_KEY"
TOO_LONG = re.compile(
    r"context.{0,12}length|maximum context|prompt.{0,60}tokens|too (?:long|many tokens)", re.IGNORECASE
)
"""How endpoints word that a prompt does not fit; OpenAI's own code for it is `context_length_exceeded`."""


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """How an endpoint is asked."""

    concurrency: int = 8
    """Requests at the same time."""
    requests_per_minute: float = 0.0
    """Most requests that are begun in a minute; 0 for no limit."""
    retries: int = 6
    """Times that a request is tried again after 408, 409, 429, a 5xx or a lost connection, with growing pauses; an
    answer's `Retry-After` is heeded."""
    seconds: float = 600.0
    """Longest that one request may take."""


def is_endpoint(name: str) -> bool:
    """Whether a model's name is the address of an endpoint."""
    return name.startswith(("http://", "https://"))


class OpenAIEngine:
    """Samples over HTTP, one request a sample, so that each has its own seed and can be recorded by itself."""

    def __init__(self, address: str, options: EndpointOptions = EndpointOptions()) -> None:
        """Connect, and find out which model is served.

        Args:
            address: `http://host:port/v1`, with `#model` if the endpoint serves several. The key is taken from the
                environment variable OPENAI_API_KEY; an endpoint of your own needs none.

        Raises ModelError if there is no endpoint, or none of its models is meant.
        """
        self.address, _, model = address.partition("#")
        self.options = options
        self._client = _client(self.address, options)
        self._pace = _Pace(options.requests_per_minute)
        self.model = model or self._only_model()

    @property
    def version(self) -> int:
        """An endpoint's weights are taken for constant."""
        return 0

    def rollout(self, draws: Sequence[Draw], sampling: Sampling) -> Iterator[Rollout]:
        """All samples of all draws, each given back as soon as it is finished.

        A sample whose prompt is too long for the endpoint comes back as `aborted`, with what it said as the text.

        Raises:
            DataError: The endpoint refuses a prompt; names the task.
            ModelError: The endpoint refuses the model, the key, or a parameter.
            ResourceError: It did not answer, after all retries.
        """
        jobs = [(draw, i) for draw in draws for i in range(draw.samples)]
        done: queue.SimpleQueue[Rollout | BaseException] = queue.SimpleQueue()
        stopped = threading.Event()

        def work(draw: Draw, index: int) -> None:
            if stopped.is_set():
                return
            try:
                done.put(self._sample(draw, index, sampling))
            except BaseException as error:
                long = _is_too_long(error.__cause__)
                done.put(_aborted(draw, index, str(getattr(error, "what", error))) if long else error)

        pool = ThreadPoolExecutor(self.options.concurrency, thread_name_prefix="surefoot-endpoint")
        try:
            for draw, index in jobs:
                pool.submit(work, draw, index)
            for _ in jobs:
                got = done.get()
                if isinstance(got, BaseException):
                    raise got
                yield got
        finally:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _sample(self, draw: Draw, index: int, sampling: Sampling) -> Rollout:
        seed = draw.seeds[index] if draw.seeds else stable_seed(draw.task.id, index)
        self._pace.wait()
        with _told(self.address, f"task {draw.task.id!r} of domain {draw.task.domain!r}"):
            reply = self._client.chat.completions.create(
                model=self.model,
                messages=[dict(message) for message in draw.task.messages],  # type: ignore[misc]
                max_tokens=draw.max_new_tokens,
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                seed=seed,
                stop=list(sampling.stop) or None,
                extra_body={"top_k": sampling.top_k} if sampling.top_k else None,
            )
        return _rollout(draw, index, seed, reply)

    def _only_model(self) -> str:
        with _told(self.address, self.address):
            names = [model.id for model in self._client.models.list()]
        if len(names) == 1:
            return names[0]
        raise ModelError(
            f"the endpoint serves {len(names)} models: {', '.join(names[:10])}",
            where=self.address,
            fix=f"say which one: {self.address}#{names[0] if names else 'MODEL'}",
        )


class _Pace:
    """Lets no more than so many callers a minute pass, evenly."""

    def __init__(self, per_minute: float) -> None:
        self._gap = 60.0 / per_minute if per_minute > 0 else 0.0
        self._lock = threading.Lock()
        self._next = 0.0

    def wait(self) -> None:
        if not self._gap:
            return
        with self._lock:
            now = time.monotonic()
            mine = max(now, self._next)
            self._next = mine + self._gap
        time.sleep(mine - now)


@contextmanager
def _told(address: str, task: str) -> Iterator[None]:
    """Turns the client's errors into ones that say what to do."""
    try:
        yield
    except Exception as error:
        known = _known(error, address, task)
        if known is None:
            raise
        raise known from error


def _known(error: BaseException, address: str, task: str) -> SurefootError | None:
    import openai

    said = str(getattr(error, "message", error))[:500]
    if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
        return ModelError(f"the endpoint refuses the key: {said}", where=address, fix=f"set {KEY_VARIABLE}")
    if isinstance(error, openai.NotFoundError):
        fix = "give the address up to and with /v1, and a model that it serves after a #"
        return ModelError(f"the endpoint does not know this: {said}", where=address, fix=fix)
    if isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
        return DataError(f"the endpoint refuses the request: {said}", where=task)
    if isinstance(error, openai.RateLimitError):
        fix = "wait, or ask more slowly: --requests-per-minute, --concurrency; samples so far are kept"
        return ResourceError(f"the endpoint allows no more requests for now: {said}", where=address, fix=fix)
    if isinstance(error, openai.APIConnectionError):
        return ResourceError(f"the endpoint cannot be reached: {said}", where=address, fix="is the server running?")
    if isinstance(error, openai.OpenAIError):
        return ResourceError(f"the endpoint failed: {said}", where=address, fix="samples so far are kept: run it again")
    return None


def _is_too_long(error: BaseException | None) -> bool:
    import openai

    if not isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
        return False
    return error.code == "context_length_exceeded" or bool(TOO_LONG.search(str(error.message)))


def _aborted(draw: Draw, index: int, why: str) -> Rollout:
    return Rollout(draw.task.id, draw.task.domain, index, (), (), (), why, "aborted")


def _client(address: str, options: EndpointOptions) -> OpenAI:
    try:
        import openai
    except ImportError as missing:
        raise ModelError("endpoints need the package openai", fix="pip install 'surefoot[endpoint]'") from missing
    key = os.environ.get(KEY_VARIABLE) or "none"
    return openai.OpenAI(base_url=address, api_key=key, max_retries=options.retries, timeout=options.seconds)


def _rollout(draw: Draw, index: int, seed: int, reply: Any) -> Rollout:
    choice, usage = reply.choices[0], reply.usage
    text = choice.message.content or ""
    before = int(usage.prompt_tokens) if usage else 0
    count = int(usage.completion_tokens) if usage else len(text.split())
    stop: StopReason = "length" if choice.finish_reason == "length" else "stop"
    return Rollout(
        task_id=draw.task.id,
        domain=draw.task.domain,
        sample=index,
        tokens=(UNKNOWN,) * (before + count),
        mask=(False,) * before + (True,) * count,
        logprobs=(0.0,) * (before + count),
        text=text,
        stop=stop,
        seed=seed,
    )
