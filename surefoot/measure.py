"""Evaluating a policy on the held-out tasks of a suite, the same tasks and seeds each time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from surefoot.build import Suite
from surefoot.config import Recipe
from surefoot.evaluate import Evaluation, evaluate
from surefoot.evaluate import Progress as Done
from surefoot.interrupt import Interrupter
from surefoot.progress import Progress
from surefoot.protocols import Engine
from surefoot.types import Sampling


@dataclass(frozen=True)
class Measure:
    """Evaluations of one suite, made so that any two of them can be compared task by task."""

    recipe: Recipe
    suite: Suite
    progress: Progress
    interrupter: Interrupter
    model: str

    def __call__(self, engine: Engine, label: str, directory: Path | None) -> Evaluation:
        """Sample and grade; what `directory` holds already, from before a kill, is not drawn again."""
        settings = self.recipe.evaluate
        if directory:
            directory.mkdir(parents=True, exist_ok=True)

        def tell(done: Done) -> None:
            self.progress.stage(f"evaluating {label}".rstrip(), done.done, done.total)
            self.interrupter.check()

        return evaluate(
            self.suite.domains,
            engine,
            self.suite.graders,
            tasks=settings.tasks,
            samples=settings.samples,
            sampling=Sampling(settings.temperature, stop=self.recipe.rollout.stop),
            seed=self.recipe.seed,
            progress=tell,
            model=self.model,
            label=label,
            directory=directory,
            heldout=lambda domain, count: self.suite.pools[domain.name].heldout,
        )
