"""Asks a second process, with another hash seed, to make and grade the same tasks: both must agree.

Run as `python -m surefoot.domains.audit.twin`: a list of domain configurations in, a JSON line of replies for each out.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from typing_extensions import TypedDict

from surefoot.config import DomainConfig
from surefoot.domains.audit.probes import reference
from surefoot.domains.audit.trial import Trial, extraction
from surefoot.domains.audit.variants import variants
from surefoot.domains.pool import TaskPool
from surefoot.errors import SurefootError
from surefoot.protocols import Domain
from surefoot.types import Task, dump

TASKS = 4
SECONDS = 900.0


class Replies(TypedDict):
    """What a process says of a domain: a digest of each task, and grade and score of a few answers to each."""

    tasks: list[str]
    verdicts: list[tuple[str, float]]


def repeated(domain: Domain, trial: Trial | None = None) -> Replies:
    """This process's replies for the first few tasks, made anew. Without a trial, only the tasks are made."""
    pool = TaskPool(domain, 0)
    tasks = [task for task, _ in (pool.train(place) for place in range(TASKS))]
    verdicts: list[tuple[str, float]] = []
    if trial is not None:
        graded = trial.verdicts([(task, text) for task in tasks for text in _answers(domain, task, tasks)])
        verdicts = [(verdict.grade, verdict.score) for verdict in graded]
    return {"tasks": [digest(dump(task)) for task in tasks], "verdicts": verdicts}


def compare(mine: Replies, other: Replies) -> tuple[int, int, int]:
    """Verdicts that differ, verdicts compared, tasks that read differently. Only equal tasks' verdicts are compared."""
    changed = sum(a != b for a, b in zip(mine["tasks"], other["tasks"], strict=False))
    if changed or len(mine["verdicts"]) != len(other["verdicts"]):
        return 0, 0, changed
    differ = sum(tuple(a) != tuple(b) for a, b in zip(mine["verdicts"], other["verdicts"], strict=True))
    return differ, len(mine["verdicts"]), changed


def ask_twins(configs: Sequence[DomainConfig], *, raw: bool = False) -> list[Replies | None]:
    """Replies of a fresh process whose hash seed differs from this one's; None for a domain that failed there."""
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    request = {"domains": [config.model_dump() for config in configs], "raw": raw}
    try:
        finished = subprocess.run(
            [sys.executable, "-m", __name__],
            input=json.dumps(request),
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [None] * len(configs)
    lines = [json.loads(line) for line in finished.stdout.splitlines() if line.startswith("{")]
    replies: list[Replies | None] = [line.get("replies") for line in lines]
    return (replies + [None] * len(configs))[: len(configs)]


def _answers(domain: Domain, task: Task, tasks: Sequence[Task]) -> list[str]:
    texts = ["0", "yes", *(answer for other in tasks if (answer := reference(other)) is not None)]
    return [*texts, *(v.text for v in variants(task, extraction(domain)))]


def digest(value: Any) -> str:
    """Differs when plain data does."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _serve(request: dict[str, Any]) -> None:
    from surefoot.domains.catalogue import build_domain
    from surefoot.domains.reasoning_raw import as_published
    from surefoot.rewards.grading import GradingPool
    from surefoot.sandbox import open_sandbox

    with open_sandbox() as sandbox:
        for data in request["domains"]:
            config = DomainConfig.model_validate(data)
            try:
                domain = as_published(config) if request["raw"] else build_domain(config)
                with GradingPool([domain], sandbox, workers=1, seconds=60.0) as graders:
                    print(json.dumps({"replies": repeated(domain, Trial(graders))}), flush=True)
            except SurefootError as error:
                print(json.dumps({"error": str(error)}), flush=True)


if __name__ == "__main__":
    _serve(json.load(sys.stdin))
