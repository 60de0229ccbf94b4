"""reasoning-gym's generators as the package publishes them: its own scorers, partial credit and all, nothing mended.

For audits only: what they find here is why `reasoning` binarises scores, fixes hash seeds and mends or refuses some.
"""

from __future__ import annotations

import atexit
import os
from dataclasses import dataclass, field

from surefoot.config import DomainConfig
from surefoot.domains.guessing import guess_rate
from surefoot.domains.reasoning import CHANCE, HANDLER, SLOW, ReasoningGymSource
from surefoot.domains.reasoning_maker import Maker
from surefoot.errors import GraderError
from surefoot.protocols import Domain, Sandbox
from surefoot.rewards.jail import Jail
from surefoot.types import Check, Rollout, Task, Verdict

_MAKER = Maker(hash_seed=os.environ.get("PYTHONHASHSEED", "random"))
atexit.register(_MAKER.close)


@dataclass(frozen=True)
class PublishedGrader:
    """The generator's scorer, asked for every answer, the reference included. A scorer that raises is ungradable."""

    extract: str = "whole"
    jail: Jail = field(default_factory=lambda: Jail(HANDLER, seconds=3.0))

    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict:
        request = {key: task.checks.get(key) for key in ("dataset", "options", "seed", "entry")}
        reply = self.jail.ask({**request, "answer": rollout.text.strip()}, sandbox)
        if "raised" in reply:
            raise GraderError(f"the scorer raised {reply['raised']}")
        score = min(1.0, max(0.0, float(reply["score"])))
        checks = (Check("score", score == 1.0, f"{reply['score']:g}"),)
        return Verdict("right" if score == 1.0 else "wrong", score, checks=checks)


def as_published(config: DomainConfig) -> Domain:
    """The domain of `reasoning_gym:NAME` without any of Surefoot's care."""
    name = config.source.partition(":")[2]
    source = ReasoningGymSource(config.name, name, config.options, maker=_MAKER)
    return Domain(
        name=config.name,
        source=source,
        grader=PublishedGrader(),
        chance=CHANCE.get(name, 0.0) if name in SLOW else guess_rate(source),
        description="as published",
    )
