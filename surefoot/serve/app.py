"""The endpoint itself: `/v1/models`, `/v1/chat/completions`, `/v1/completions`, `/health`."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse

from surefoot.errors import DataError, SurefootError
from surefoot.models import LoadedModel
from surefoot.models.chat import prompt_tokens
from surefoot.rollout import LocalEngine
from surefoot.serve.conductor import Conductor, Job
from surefoot.serve.replies import Piece, Replies
from surefoot.serve.schema import ChatRequest, CompletionRequest
from surefoot.serve.scoring import Scored
from surefoot.serve.writing import Writing
from surefoot.types import Rollout, stable_seed

Event = tuple[int, str, int, Any]
"""Number of the prompt, what happened to it, which sample of it, and with what; see `Job.tell`."""

DEFAULT_CHAT_TOKENS = 1024


def make_app(model: LoadedModel, engine: LocalEngine, name: str) -> FastAPI:
    """The application that serves one model under `name`."""
    conductor = Conductor(model, engine)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        conductor.close()

    app = FastAPI(title="Surefoot", lifespan=lifespan, docs_url=None, redoc_url=None)
    server = _Server(conductor, name)

    @app.exception_handler(RequestValidationError)
    async def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "body")
        return _refused(400, f"{place}: {first['msg']}", place)

    @app.exception_handler(SurefootError)
    async def _failed(request: Request, error: SurefootError) -> JSONResponse:
        return _refused(400 if isinstance(error, DataError) else 500, str(error))

    @app.get("/health")
    async def _health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/v1/models")
    async def _models() -> dict[str, Any]:
        entry = {"id": name, "object": "model", "created": int(time.time()), "owned_by": "surefoot"}
        return {"object": "list", "data": [entry]}

    @app.post("/v1/chat/completions", response_model=None)
    async def _chat(body: ChatRequest) -> dict[str, Any] | StreamingResponse | JSONResponse:
        if body.model not in ("", name):
            return _refused(404, f"the model {body.model!r} is not served here; {name!r} is", "model")
        return await server.chat(body)

    @app.post("/v1/completions", response_model=None)
    async def _complete(body: CompletionRequest) -> dict[str, Any] | StreamingResponse | JSONResponse:
        if body.model not in ("", name):
            return _refused(404, f"the model {body.model!r} is not served here; {name!r} is", "model")
        return await server.complete(body)

    return app


class _Server:
    """Turns requests into jobs, and what becomes of those into answers."""

    def __init__(self, conductor: Conductor, name: str) -> None:
        self.conductor, self.name = conductor, name
        self.tokenizer = conductor.model.tokenizer

    async def chat(self, body: ChatRequest) -> dict[str, Any] | StreamingResponse:
        try:
            prompt = prompt_tokens(self.tokenizer, body.chat())
        except ValueError as error:
            raise DataError(str(error), where="messages") from error
        limit = body.limit or DEFAULT_CHAT_TOKENS
        replies = Replies("chat.completion", self.name, self.tokenizer)
        if body.stream:
            return _streaming(self._stream(replies, [prompt], limit, body))
        pieces = await self._pieces([prompt], limit, body, top=(body.top_logprobs or 0) if body.logprobs else None)
        return replies.whole(pieces, len(prompt))

    async def complete(self, body: CompletionRequest) -> dict[str, Any] | StreamingResponse:
        prompts = [self._tokens(prompt) for prompt in body.prompts()]
        replies = Replies("text_completion", self.name, self.tokenizer)
        if body.stream:
            if body.echo or body.logprobs is not None or not body.max_tokens:
                raise DataError("echo, logprobs and max_tokens = 0 cannot be streamed", where="stream")
            return _streaming(self._stream(replies, prompts, body.max_tokens, body))
        pieces = await self._pieces(prompts, body.max_tokens, body, top=body.logprobs, echo=body.echo)
        return replies.whole(pieces, sum(map(len, prompts)))

    def _tokens(self, prompt: str | list[int]) -> tuple[int, ...]:
        found = tuple(self.tokenizer.encode(prompt)) if isinstance(prompt, str) else tuple(prompt)
        vocabulary = self.conductor.engine.decoder.config.vocab
        if not found or not all(0 <= token < vocabulary for token in found):
            raise DataError("a prompt must have tokens, each in the vocabulary", where="prompt")
        return found

    async def _pieces(
        self,
        prompts: Sequence[tuple[int, ...]],
        limit: int,
        body: ChatRequest | CompletionRequest,
        *,
        top: int | None,
        echo: bool = False,
    ) -> list[Piece]:
        """The samples of every prompt, in order; with log-probs (temperature 1) where `top` is given."""
        samples: dict[tuple[int, int], Rollout] = {}
        if limit:
            async for place, what, index, value in self._events(self._sampling_jobs(prompts, limit, body)):
                if what == "done":
                    samples[place, index] = value
        finished = [(i, samples.get((i, j))) for i in range(len(prompts)) for j in range(body.n if limit else 1)]
        texts = [prompts[i] + (_written(r) if r else ()) for i, r in finished]
        scored = await self._scored(texts, top) if top is not None else [()] * len(texts)
        return [
            self._piece(prompts[i], rollout, found, body.sampling.stop, echo)
            for (i, rollout), found in zip(finished, scored, strict=True)
        ]

    def _piece(
        self,
        prompt: tuple[int, ...],
        rollout: Rollout | None,
        scored: Sequence[Scored],
        stops: Sequence[str],
        echo: bool,
    ) -> Piece:
        written = _written(rollout) if rollout else ()
        writing = Writing(self.tokenizer, self.conductor.engine.ends, stops)
        text = writing.whole(written)
        shown = scored if echo else scored[len(prompt) :]
        before: str = self.tokenizer.decode(prompt, skip_special_tokens=False) if echo else ""
        finish = "length" if rollout is None or rollout.stop == "length" else "stop"
        return Piece(before + text, finish, written, shown)

    async def _scored(self, texts: Sequence[tuple[int, ...]], top: int) -> list[Sequence[Scored]]:
        found: dict[int, Sequence[Scored]] = {}
        async for place, what, _, value in self._events([{"prompt": text, "top": top} for text in texts]):
            if what == "scored":
                found[place] = value
        return [found[i] for i in range(len(texts))]

    async def _stream(
        self, replies: Replies, prompts: Sequence[tuple[int, ...]], limit: int, body: ChatRequest | CompletionRequest
    ) -> AsyncIterator[str]:
        writings: dict[int, Writing] = {}
        async for place, what, index, value in self._events(self._sampling_jobs(prompts, limit, body)):
            choice = place * body.n + index
            if choice not in writings:
                writings[choice] = Writing(self.tokenizer, self.conductor.engine.ends, body.sampling.stop)
                if replies.chat:
                    yield _sent(replies.part(choice, None))
            if what == "text" and (new := writings[choice].more(value)):
                yield _sent(replies.part(choice, new))
            elif what == "done":
                rest = writings[choice].rest(_written(value))
                if rest:
                    yield _sent(replies.part(choice, rest))
                yield _sent(replies.part(choice, "", "length" if value.stop == "length" else "stop"))
        yield "data: [DONE]\n\n"

    def _sampling_jobs(
        self, prompts: Sequence[tuple[int, ...]], limit: int, body: ChatRequest | CompletionRequest
    ) -> list[dict[str, Any]]:
        seed = secrets.randbits(62) if body.seed is None else body.seed
        return [
            {
                "prompt": prompt,
                "samples": body.n,
                "limit": limit,
                "sampling": body.sampling,
                "seeds": tuple(_sample_seed(seed, i, j) for j in range(body.n)),
            }
            for i, prompt in enumerate(prompts)
        ]

    async def _events(self, jobs: Sequence[dict[str, Any]]) -> AsyncIterator[Event]:
        """What becomes of jobs, until all are done. Raises what the engine raised."""
        loop, events = asyncio.get_running_loop(), asyncio.Queue[Event]()
        left = sum(int(job.get("samples", 1)) for job in jobs)
        for place, job in enumerate(jobs):

            def tell(what: str, index: int, value: Any, place: int = place) -> None:
                loop.call_soon_threadsafe(events.put_nowait, (place, what, index, value))

            self.conductor.submit(Job(tell=tell, **job))
        while left:
            event = await events.get()
            if event[1] == "failed":
                raise event[3]
            yield event
            left -= event[1] in ("done", "scored")


def _sample_seed(seed: int, prompt: int, sample: int) -> int:
    """The request's own seed for its first sample, so that a sample can be had again by itself."""
    return seed % 2**63 if prompt == sample == 0 else stable_seed("serve", seed, prompt, sample)


def _written(rollout: Rollout) -> tuple[int, ...]:
    return rollout.tokens[rollout.prompt_length :]


def _streaming(events: AsyncIterator[str]) -> StreamingResponse:
    return StreamingResponse(events, media_type="text/event-stream")


def _sent(part: dict[str, Any]) -> str:
    return f"data: {json.dumps(part)}\n\n"


def _refused(status: int, message: str, param: str | None = None) -> JSONResponse:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return JSONResponse({"error": {"message": message, "type": kind, "param": param, "code": None}}, status_code=status)
