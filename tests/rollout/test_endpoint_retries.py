"""An endpoint that is busy, limits its callers, or fails: a real HTTP server on this machine."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip("openai", reason="the OpenAI client is not installed: pip install 'surefoot[endpoint]'")

from surefoot.errors import ResourceError
from surefoot.rollout.openai import EndpointOptions, OpenAIEngine
from surefoot.types import Draw, Sampling, Task

REPLY = {
    "id": "1",
    "object": "chat.completion",
    "created": 0,
    "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
}


class Server(ThreadingHTTPServer):
    """Answers with the statuses of `plan`, one a request, then with 200."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.plan: list[tuple[int, dict[str, str]]] = []
        self.asked: list[float] = []
        self.lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            self.server.asked.append(time.monotonic())
            status, headers = self.server.plan.pop(0) if self.server.plan else (200, {})
        body = json.dumps(REPLY if status == 200 else {"error": {"message": "slow down"}}).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Type": "application/json", "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def _ask(server: Server, samples: int = 1, **options: float) -> list[str]:
    engine = OpenAIEngine(f"http://127.0.0.1:{server.server_port}/v1#m", EndpointOptions(**options))  # type: ignore[arg-type]
    try:
        task = Task("t", "d", ({"role": "user", "content": "well?"},))
        return [rollout.text for rollout in engine.rollout([Draw(task, samples, 8)], Sampling())]
    finally:
        engine.close()


def test_retry_after_is_heeded(server: Server) -> None:
    server.plan = [(429, {"Retry-After": "2"})]
    assert _ask(server) == ["yes"]
    assert len(server.asked) == 2 and 2.0 <= server.asked[1] - server.asked[0] < 4.0


def test_a_server_that_fails_for_a_while_is_asked_again(server: Server) -> None:
    server.plan = [(503, {}), (500, {"Retry-After": "0.1"})]
    assert _ask(server) == ["yes"] and len(server.asked) == 3


def test_a_limit_that_does_not_end_is_an_error_that_says_what_to_do(server: Server) -> None:
    server.plan = [(429, {"Retry-After": "0.05"})] * 9
    with pytest.raises(ResourceError, match=r"allows no more requests for now: .*slow down") as told:
        _ask(server, retries=2)
    assert "--requests-per-minute" in str(told.value) and len(server.asked) == 3


def test_requests_are_spread_evenly_over_the_minute(server: Server) -> None:
    assert _ask(server, samples=5, requests_per_minute=600, concurrency=5) == ["yes"] * 5
    times = sorted(server.asked)
    assert times[-1] - times[0] >= 0.38


def test_an_endpoint_that_went_away_is_told(server: Server) -> None:
    server.shutdown()
    server.server_close()
    with pytest.raises(ResourceError, match="cannot be reached"):
        _ask(server, retries=1)
