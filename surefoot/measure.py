"""Evaluating a policy on the held-out tasks of a suite, the same tasks and seeds each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from surefoot.build import Suite
from surefoot.config import Recipe
from surefoot.evaluate import Evaluation, evaluate, evaluate_until
from surefoot.evaluate import Progress as Done
from surefoot.evaluate.conversations import converse
from surefoot.evaluate.cost import Cost, Pacemaker, estimate_cost, remaining
from surefoot.evaluate.evaluator import EVALUATION_FILE
from surefoot.evaluate.records import Conversation, save
from surefoot.evaluate.scripts import make_scripts
from surefoot.evaluate.suite import ConversationSection
from surefoot.interrupt import Interrupter
from surefoot.progress import Progress
from surefoot.protocols import Domain, Engine
from surefoot.types import Sampling, Task


@dataclass(frozen=True)
class Measure:
    """Evaluations of one suite, made so that any two of them can be compared task by task."""

    recipe: Recipe
    suite: Suite
    progress: Progress
    interrupter: Interrupter
    model: str
    half_width: float | None = None
    """Goal of the intervals of pass@1; None for all tasks of every domain."""
    conversations: ConversationSection | None = None

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.recipe.evaluate.temperature, stop=self.recipe.rollout.stop)

    def __call__(self, engine: Engine, label: str, directory: Path | None) -> Evaluation:
        """Sample and grade; what `directory` holds already, from before a kill, is not drawn again."""
        settings, pacemaker = self.recipe.evaluate, Pacemaker(directory)
        if directory:
            directory.mkdir(parents=True, exist_ok=True)
        draw = evaluate if self.half_width is None else partial(evaluate_until, half_width=self.half_width)
        found = draw(
            self.suite.domains,
            engine,
            self.suite.graders,
            tasks=settings.tasks,
            samples=settings.samples,
            sampling=self.sampling,
            seed=self.recipe.seed,
            progress=self._teller(f"evaluating {label}".rstrip(), pacemaker),
            model=self.model,
            label=label,
            directory=directory,
            heldout=self.heldout,
        )
        pacemaker.close()
        if self.conversations is None:
            return found
        found = replace(found, conversations=self._converse(engine, directory))
        if directory:
            save(found, directory / EVALUATION_FILE)
        return found

    def cost(self, directory: Path | None) -> Cost:
        """What `__call__` would draw, tasks apart that the interval may spare."""
        settings = self.recipe.evaluate
        return estimate_cost(
            self.suite.domains,
            tasks=settings.tasks,
            samples=settings.samples,
            heldout=self.heldout,
            directory=directory,
            conversations=self.conversations,
        )

    def heldout(self, domain: Domain, count: int) -> Sequence[Task]:
        """The held-out tasks of a domain: the same whatever was trained on."""
        return self.suite.pools[domain.name].heldout

    def _converse(self, engine: Engine, directory: Path | None) -> tuple[Conversation, ...]:
        plan = self.conversations
        assert plan is not None
        return converse(
            make_scripts(plan.scripts, plan.turns, padding=plan.padding),
            engine,
            samples=plan.samples,
            sampling=self.sampling,
            seed=self.recipe.seed,
            max_new_tokens=plan.max_new_tokens,
            max_context=self.recipe.rollout.max_prompt_tokens,
            model=self.model,
            directory=directory,
            progress=self._teller("holding conversations"),
        )

    def _teller(self, what: str, also: Callable[[Done], None] = lambda done: None) -> Callable[[Done], None]:
        def tell(done: Done) -> None:
            also(done)
            self.progress.stage(f"{what}{remaining(done)}", done.done, done.total)
            self.interrupter.check()

        return tell
