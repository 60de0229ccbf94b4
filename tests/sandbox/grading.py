"""Handlers for the tests of `JailedWorker`."""

from __future__ import annotations

import os
import time
from typing import Any

import sympy  # imported once, in the zygote

STATE = {"calls": 0}


def handler(request: dict[str, Any]) -> dict[str, Any]:
    STATE["calls"] += 1
    do = request["do"]
    if do == "simplify":
        return {"text": str(sympy.simplify(request["text"])), "calls": STATE["calls"]}
    if do == "eval":
        return {"value": repr(eval(request["text"]))}
    if do == "environment":
        return {"tz": time.tzname[0], "hash": hash("a"), "encoding": os.environ["LC_ALL"]}
    if do == "loop":
        while True:
            pass
    if do == "sleep":
        time.sleep(600)
    if do == "exit":
        os._exit(0)
    if do == "raise":
        raise ValueError("no such thing")
    if do == "crash":
        os.abort()
    if do == "list":
        return [1]  # type: ignore[return-value]
    if do == "object":
        return {"x": object()}
    return request
