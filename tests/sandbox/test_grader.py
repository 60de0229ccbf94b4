"""Jailed graders: warm, forked for each request, never hanging, and jailed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from surefoot.errors import GraderError, SandboxError
from surefoot.sandbox import JailedWorker
from surefoot.types import IsolationLevel

HANDLER = f"{Path(__file__).with_name('grading.py')}:handler"


@pytest.fixture(scope="module", params=["namespaces", "landlock"])
def worker(request: pytest.FixtureRequest) -> Iterator[JailedWorker]:
    pytest.importorskip("sympy")
    level: IsolationLevel = request.param
    with JailedWorker(HANDLER, level=level, workers=2) as opened:
        yield opened


def test_requests_are_answered_by_forks(worker: JailedWorker) -> None:
    for _ in range(2):
        assert worker.request({"do": "simplify", "text": "x + x"}, 10) == {"text": "2*x", "calls": 1}


def test_its_environment_is_fixed(worker: JailedWorker) -> None:
    seen = [worker.request({"do": "environment"}, 5) for _ in range(2)]
    assert seen[0] == seen[1] and seen[0]["tz"] == "UTC" and seen[0]["encoding"] == "C.UTF-8"


@pytest.mark.parametrize(
    ("do", "why"),
    [
        ("loop", "timeout"),
        ("exit", "malformed"),
        ("crash", "crashed"),
        ("raise", "no such thing"),
        ("list", "not a JSON object"),
        ("object", "not JSON"),
    ],
)
def test_what_goes_wrong_is_a_grader_error(worker: JailedWorker, do: str, why: str) -> None:
    with pytest.raises(GraderError, match=why):
        worker.request({"do": do}, 0.5)
    assert worker.request({"do": "echo"}, 5) == {"do": "echo"}


def test_a_sleeper_is_ended(worker: JailedWorker) -> None:
    start = time.monotonic()
    with pytest.raises(GraderError, match="wall time"):
        worker.request({"do": "sleep"}, 0.05)
    assert time.monotonic() - start < 30


@pytest.mark.parametrize(
    "text",
    [
        "open('/etc/shadow').read()",
        "__import__('socket').socket()",
        "open('/usr/hit', 'w')",
        f"open({__file__!r}, 'a')",
        "__import__('os').kill(__import__('os').getppid() or -1, 9) or [][0]",
    ],
)
def test_hostile_text_is_contained(worker: JailedWorker, text: str) -> None:
    with pytest.raises(GraderError):
        worker.request({"do": "eval", "text": text}, 5)


def test_hostile_text_does_not_last(worker: JailedWorker) -> None:
    text = "__import__('builtins').__dict__.update(hit=1) or __import__('sympy').__dict__.clear()"
    worker.request({"do": "eval", "text": text}, 5)
    assert worker.request({"do": "simplify", "text": "y - y"}, 10)["text"] == "0"
    assert worker.request({"do": "eval", "text": "'hit' in dir(__import__('builtins'))"}, 5) == {"value": "False"}


def test_threads_share_it(worker: JailedWorker) -> None:
    results: list[object] = []
    threads = [
        Thread(target=lambda i=i: results.append(worker.request({"do": "echo", "i": i}, 10)["i"])) for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, results)) == [str(i) for i in range(8)]


def test_it_survives_the_death_of_its_process() -> None:
    with JailedWorker(HANDLER) as worker:
        (zygote,) = worker._pool._slots[0].zygotes.values()
        os.kill(zygote.pid, signal.SIGKILL)
        assert worker.request({"do": "echo"}, 5) == {"do": "echo"}
    with pytest.raises(GraderError, match="closed"):
        worker.request({"do": "echo"}, 5)


def test_a_module_handler_and_its_errors() -> None:
    with JailedWorker("json:loads", workers=1) as worker, pytest.raises(GraderError, match="TypeError"):
        worker.request({"a": 1}, 5)
    with pytest.raises(SandboxError, match="does not name a handler"):
        JailedWorker("nothing")
    with pytest.raises(SandboxError, match="no_such"):
        JailedWorker("no_such_module:handler")
    with pytest.raises(GraderError, match="not plain JSON"), JailedWorker("json:loads") as worker:
        worker.request({"x": object()}, 5)
