"""Drawing more tasks only where the interval is still too wide."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from surefoot.errors import ConfigError
from surefoot.evaluate.answers import AnswerOf, final_answer
from surefoot.evaluate.evaluator import HeldOut, Progress, evaluate, heldout_tasks
from surefoot.evaluate.metric import PASS_1, Metric, estimate
from surefoot.evaluate.records import Evaluation
from surefoot.protocols import Domain, Engine, Graders
from surefoot.types import Sampling, Task


def evaluate_until(
    domains: Sequence[Domain],
    engine: Engine,
    graders: Graders,
    *,
    half_width: float,
    tasks: int,
    samples: int,
    sampling: Sampling,
    seed: int,
    start: int = 32,
    metric: Metric = PASS_1,
    progress: Callable[[Progress], None] | None = None,
    model: str = "",
    label: str = "",
    directory: Path | None = None,
    heldout: HeldOut = heldout_tasks,
    answer: AnswerOf = final_answer,
) -> Evaluation:
    """`evaluate` in rounds: every domain begins with `start` tasks, and doubles them until half of the 95% interval of
    `metric` is at most `half_width`, its tasks are used up, or it has `tasks` of them.

    Stopping at a width, unlike stopping at a result, hardly biases the estimate (Chow & Robbins 1965); the start must
    not be too small, as a few tasks that agree by luck look certain. Tasks come in their fixed order and samples are
    never drawn twice, so an evaluation that was killed goes on, and before and after share the tasks of the shorter.
    """
    if half_width <= 0 or start < 1:
        raise ConfigError("half_width must be above 0 and start at least 1")
    goal = {domain.name: min(start, tasks) for domain in domains}

    def first(domain: Domain, count: int) -> Sequence[Task]:
        wanted = min(count, goal[domain.name])
        return heldout(domain, wanted)[:wanted]

    with tempfile.TemporaryDirectory() as scratch:
        while True:
            got = evaluate(
                domains,
                engine,
                graders,
                tasks=tasks,
                samples=samples,
                sampling=sampling,
                seed=seed,
                progress=progress,
                model=model,
                label=label,
                directory=directory or Path(scratch),
                heldout=first,
                answer=answer,
            )
            wider = [name for name in goal if _goes_on(got, name, goal[name], tasks, half_width, metric)]
            if not wider:
                return got
            goal |= {name: min(2 * goal[name], tasks) for name in wider}


def _goes_on(got: Evaluation, name: str, goal: int, most: int, half_width: float, metric: Metric) -> bool:
    """Whether a domain is too uncertain still, and has tasks left."""
    domain = got.domain(name)
    if domain is None or len(domain.tasks) + len(domain.skipped) < goal or goal >= most:
        return False
    found = estimate(metric, domain)
    return not found.known or found.high - found.low > 2 * half_width
