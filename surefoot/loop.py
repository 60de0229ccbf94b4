"""The loop that everything serves: draw, sample, verify, reward, learn, record; again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from surefoot.config import Recipe
from surefoot.interrupt import Interrupter
from surefoot.learner import PolicyLearner
from surefoot.models import LoadedModel
from surefoot.progress import Progress
from surefoot.protocols import Graders, Scheduler, TrainingEngine
from surefoot.recovery import Recovery, Tell
from surefoot.rewards import Rewarder
from surefoot.rewards.integrity.jumps import JumpWatch
from surefoot.store import CheckpointStore, Journal, RunDirectory, write_rollouts
from surefoot.store.summary import summarise
from surefoot.types import Draw, Group, Rollout, Sampling, UpdateReport, Verdict


def train(run: Run) -> None:
    """Take every step that the run has not taken yet."""
    for step in run.steps():
        draws = run.scheduler.draw(step, run.recovery.available(step))  # which prompts of which domains
        rollouts = run.rollout(draws)  # sampled, and given on as they finish
        verdicts = run.grade(rollouts, draws)  # verified while others are still being sampled
        groups = run.reward(verdicts, draws)  # gated by correctness
        update = run.learn(groups)  # policy gradient; the engine sees the new weights
        run.scheduler.observe(groups, update)
        run.recovery.observe(step, groups, update)  # what failed is shut off, set aside or taken back
        run.record(step, groups, update)  # metrics, every rollout, a checkpoint when due


@dataclass
class Run:
    """The parts of a run, and the thin glue between them."""

    recipe: Recipe
    directory: RunDirectory
    model: LoadedModel
    scheduler: Scheduler
    engine: TrainingEngine
    graders: Graders
    rewarder: Rewarder
    learner: PolicyLearner
    journal: Journal
    checkpoints: CheckpointStore
    recovery: Recovery
    progress: Progress
    interrupter: Interrupter
    tell: Tell
    watch: JumpWatch = field(default_factory=JumpWatch)
    done: int = 0
    """Steps taken, in this process or before it was resumed."""
    until: int | None = None
    """Pause after this step; None for the recipe's last."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Of the present step, by stage; `began` is the time of day."""

    @property
    def sampling(self) -> Sampling:
        """How the recipe samples while training."""
        r = self.recipe.rollout
        return Sampling(r.temperature, r.top_p, r.top_k, r.stop)

    def steps(self) -> Iterator[int]:
        """The numbers of the steps still to take, from 1; stops early, with all saved, when the user asks."""
        for step in range(self.done + 1, (self.until or self.recipe.steps) + 1):
            self.seconds = {"began": time.time()}
            began = time.perf_counter()
            yield step
            self.done = step
            self.seconds["step"] = time.perf_counter() - began
            if self.interrupter.asked or self.recovery.hopeless:
                self.save()
                self.interrupter.check()
                self.recovery.check()

    def rollout(self, draws: Sequence[Draw]) -> Iterator[Rollout]:
        """Samples of all draws, each as soon as it is finished."""
        total, began = sum(draw.samples for draw in draws), time.perf_counter()
        for count, rollout in enumerate(self.recovery.rollouts(draws, self.sampling), start=1):
            self.progress.stage("sampling", count, total)
            self.seconds.setdefault("first_rollout", time.perf_counter() - began)
            yield rollout
        self.seconds["generate"] = time.perf_counter() - began

    def grade(self, rollouts: Iterable[Rollout], draws: Sequence[Draw]) -> list[tuple[Rollout, Verdict]]:
        """Verdicts of all rollouts, in the order in which they came."""
        with self._timed("generate_and_grade", ""):
            return list(self.graders.grade(rollouts, {draw.task.id: draw.task for draw in draws}))

    def reward(self, verdicts: Sequence[tuple[Rollout, Verdict]], draws: Sequence[Draw]) -> list[Group]:
        """One group a draw, in the order of the draws and of the samples, whatever finished first."""
        by_task: dict[str, list[tuple[Rollout, Verdict]]] = {draw.task.id: [] for draw in draws}
        for rollout, verdict in sorted(verdicts, key=lambda pair: pair[0].sample):
            by_task[rollout.task_id].append((rollout, verdict))
        return [self._group(draw, by_task[draw.task.id]) for draw in draws]

    def _group(self, draw: Draw, graded: Sequence[tuple[Rollout, Verdict]]) -> Group:
        rollouts, verdicts = zip(*graded, strict=True)
        return self.rewarder.score_group(Group(draw.task, rollouts, verdicts))

    def learn(self, groups: Sequence[Group]) -> UpdateReport:
        """Update the policy and let the engine know that its weights are new."""
        with self._timed("learn", "learning"):
            self.engine.rest()
            update = self.learner.update(groups)
            self.engine.refresh(update.version)
        return update

    def record(self, step: int, groups: Sequence[Group], update: UpdateReport) -> None:
        """Write what happened; save a checkpoint when one is due."""
        with self._timed("record", "writing"):
            write_rollouts(self.directory.rollouts, step, groups)
        learnt = {name: value for name, value in update.metrics.items() if name != "seconds"}
        metrics = {**summarise(groups, update), "learner": learnt, "timing": self._timing(groups)}
        if update.skipped:
            self.tell("update_skipped", f"step {step}: no update ({update.skipped})", step=step, reason=update.skipped)
        for name, level in self.scheduler.opened.items():
            text = f"step {step}: {name} goes on to level {level}"
            self.tell("level_opened", text, step=step, domain=name, level=level)
        for name, tasks in self.scheduler.refused.items():
            first, why = next(iter(tasks.items()))
            text = f"step {step}: {name}: {len(tasks)} tasks are too long and never drawn ({first}: {why})"
            self.tell("prompts_too_long", text, step=step, domain=name, tasks=dict(tasks))
        for jump in self.watch.observe(groups):
            text = f"step {step}: a sudden rise, look at its rollouts: {jump.evidence}"
            self.tell(jump.kind, text, step=step, evidence=jump.evidence)
        self.journal.metrics(step, metrics)
        self.progress.step(step, self.recipe.steps, metrics)
        self.done = step
        due = step % self.recipe.checkpoint.every == 0 and not self.recovery.doubtful
        if due or step == self.recipe.steps:
            self.save()

    def save(self) -> None:
        """Write a checkpoint of everything that the next step depends on, unless there is one of this step."""
        if (self.directory.checkpoints / f"step-{self.done:06d}").exists():
            return
        self.write_checkpoint(self.checkpoints)

    def write_checkpoint(self, store: CheckpointStore) -> None:
        """Write a checkpoint of the present step into a store."""
        self.progress.stage("saving a checkpoint")
        state = {
            "learner": self.learner.counters(),
            "scheduler": self.scheduler.state(),
            "recovery": self.recovery.state(),
            "watch": self.watch.state(),
        }
        kept = self.recipe.checkpoint
        store.save(
            self.done,
            lambda path: self.learner.save(path, self.model, self.recipe.model),
            {name: tensor for name, tensor in self.learner.tensors().items() if not name.startswith("master")},
            state,
            score=self.journal.recent_mean(kept.keep_best, self.done, kept.every),
        )

    def _timing(self, groups: Sequence[Group]) -> Mapping[str, float]:
        rollouts = [rollout for group in groups for rollout in group.rollouts]
        tokens, both = sum(r.sampled for r in rollouts), max(self.seconds["generate_and_grade"], 1e-9)
        return {
            **self.seconds,
            "step": sum(self.seconds[name] for name in ("generate_and_grade", "learn", "record")),
            "tokens_per_second": tokens / max(self.seconds.get("generate", both), 1e-9),
            "gradings_per_second": len(rollouts) / both,
        }

    @contextmanager
    def _timed(self, name: str, shown: str) -> Iterator[Any]:
        if shown:
            self.progress.stage(shown)
        began = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - began
