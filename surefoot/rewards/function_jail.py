"""Runs a user's grader function inside the jail. The file is loaded once, before the first fork."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from surefoot.protocols import GraderFunction
from surefoot.rewards.loading import load_attribute
from surefoot.rewards.verdicts import as_verdict
from surefoot.types import Rollout, Task, dump, load


def handle(request: dict[str, Any]) -> dict[str, Any]:
    """`{"verdict": ...}` of the function for `task` and `rollout`. Whatever it raises is the grader's fault."""
    value = _FUNCTION(load(Task, request["task"]), load(Rollout, request["rollout"]))
    return {"verdict": dump(as_verdict(value, _ATTRIBUTE))}


def _function(path: str, attribute: str) -> GraderFunction:
    found = load_attribute(Path(path), attribute)
    function: GraderFunction = getattr(found, "grade_function", found)
    return function


_PATH, _, _ATTRIBUTE = os.environ["SUREFOOT_GRADER"].rpartition(":")
_FUNCTION = _function(_PATH, _ATTRIBUTE)
