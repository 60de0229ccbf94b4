"""A child process that misbehaves in every way, asked by the real driver."""

from __future__ import annotations

import os
import sys
import time

import pytest

from surefoot.rollout.child import Child, ChildFailed, ChildRefused

SCRIPT = """
import json, sys, time, os
for line in sys.stdin:
    asked = json.loads(line)
    def say(**said): print(json.dumps({"call": asked["call"], **said}), flush=True)
    do = asked["do"]
    if do == "count":
        for i in range(asked["to"]): say(done=i)
        say(end={"to": asked["to"]})
    elif do == "refuse": say(error="ValueError: no")
    elif do == "die": print("the reason", file=sys.stderr, flush=True); os._exit(7)
    elif do == "garbage": print("Loading weights...", flush=True)
    elif do == "number": print("7", flush=True)
    elif do == "sleep": time.sleep(60)
    elif do == "slowly":
        for i in range(6): time.sleep(0.2); say(alive=True)
        say(end={})
"""


@pytest.fixture
def child():  # type: ignore[no-untyped-def]
    made = Child([sys.executable, "-c", SCRIPT], os.environ)
    yield made
    made.close()


def test_lines_come_in_order_and_a_request_left_unread_does_not_spoil_the_next(child: Child) -> None:
    lines = list(child.ask("count", seconds=10, to=3))
    assert [line.get("done") for line in lines] == [0, 1, 2, None] and lines[-1]["end"] == {"to": 3}
    assert next(child.ask("count", seconds=10, to=1000))["done"] == 0
    assert next(child.ask("count", seconds=10, to=0))["end"] == {"to": 0}


def test_a_refusal_leaves_it_alive(child: Child) -> None:
    with pytest.raises(ChildRefused, match="ValueError: no"):
        list(child.ask("refuse", seconds=10))
    assert child.alive and list(child.ask("count", seconds=10, to=0))


def test_signs_of_life_count_against_silence(child: Child) -> None:
    assert list(child.ask("count", seconds=10, to=0))
    assert len(list(child.ask("slowly", seconds=0.9))) == 7


@pytest.mark.parametrize(
    ("do", "told"),
    [
        ("die", r"ended when asked to die \(exit code 7\).*\n.*the reason"),
        ("garbage", "no answer: 'Loading weights"),
        ("number", "no answer: '7"),
        ("sleep", "silent for 0.5 s when asked to sleep"),
    ],
)
def test_whatever_goes_wrong_is_told_and_the_child_is_dead(child: Child, do: str, told: str) -> None:
    assert list(child.ask("count", seconds=10, to=0))
    began = time.monotonic()
    with pytest.raises(ChildFailed, match=told):
        list(child.ask(do, seconds=0.5))
    assert time.monotonic() - began < 5 and not child.alive
    with pytest.raises(ChildFailed, match="could not be asked"):
        list(child.ask("count", seconds=1, to=0))
