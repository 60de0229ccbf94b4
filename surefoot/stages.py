"""The stages of a run: evaluate, warm start, evaluate, reinforcement learning, evaluate. Each is done once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from surefoot import build, loop
from surefoot.build import Suite
from surefoot.cluster.placement import open_cluster
from surefoot.config import Recipe
from surefoot.domains import demonstration
from surefoot.errors import ConfigError
from surefoot.evaluate.evaluator import EVALUATION_FILE
from surefoot.evaluate.records import Evaluation, read
from surefoot.gates import GatedTraining
from surefoot.interrupt import Interrupter
from surefoot.learner import Example, PolicyLearner, warm_start
from surefoot.loop import Run
from surefoot.measure import Measure
from surefoot.models import Decoder, LoadedModel, load_model
from surefoot.models.chat import answer_tokens, prompt_tokens
from surefoot.models.compute import pick_device
from surefoot.progress import Progress
from surefoot.protocols import ChecksPrompts
from surefoot.recipe import load_recipe
from surefoot.recovery import Recovery
from surefoot.resuming import differences
from surefoot.rewards import Rewarder
from surefoot.store import Checkpoint, CheckpointStore, Journal, Quarantine, RunDirectory
from surefoot.store.inputs import changed_inputs
from surefoot.store.rollouts import forget_after
from surefoot.track import open_trackers

LAST = "after RL"


@dataclass(frozen=True)
class Stages:
    """A run that is ready to go through its stages, from wherever it was left."""

    run: Run
    suite: Suite
    measure: Measure
    fresh: bool
    """Whether nothing of the run was checkpointed yet."""

    def go(self) -> Iterator[Evaluation]:
        """Everything that is left to do; yields the evaluations in order."""
        run, settings = self.run, self.run.recipe.evaluate
        warm = run.recipe.warm_start.examples > 0
        before = None
        if settings.before:
            yield (before := self._evaluate("base"))
        if self.fresh:
            if warm:
                self._warm_start()
            run.save()
        if settings.before and warm:
            yield (before := self._evaluate("warm start"))
        if settings.every and before:
            GatedTraining(run, self.measure).train(before)
        else:
            loop.train(run)
        if settings.after:
            yield self._evaluate(LAST)

    def _evaluate(self, label: str) -> Evaluation:
        """An evaluation that is complete is only read: the weights have moved on since. The one at the end is made anew
        if they have, because the run was resumed with more steps."""
        directory = self.run.directory.evaluations / label.replace(" ", "-")
        if (directory / EVALUATION_FILE).is_file():
            found = read(directory)
            if label != LAST or found.policy_version == self.run.engine.version:
                return found
            shutil.rmtree(directory)
        return self.measure(self.run.engine, label, directory)

    def _warm_start(self) -> None:
        run, settings = self.run, self.run.recipe.warm_start
        examples = self._demonstrations(settings.examples)
        run.progress.say(f"warm start on {len(examples)} demonstrations")

        def tell(done: int, total: int, loss: float) -> None:
            run.progress.stage("warm start", done, total)
            run.interrupter.check()

        result = warm_start(run.learner, examples, settings, run.recipe.seed, tell)
        run.engine.refresh(run.learner.version)
        run.journal.event("warm_start", **result)

    def _demonstrations(self, count: int) -> list[Example]:
        """Tasks with a known answer, the domains in turn; reinforcement learning goes on with the tasks after them."""
        tokenizer, scheduler = self.run.model.tokenizer, self.run.scheduler
        examples: list[Example] = []
        pools = {name: pool for name, pool in self.suite.pools.items() if demonstration(pool.domain, pool.train(0)[0])}
        cursors = dict.fromkeys(pools, 0)
        while pools and len(examples) < count:
            for name, pool in pools.items():
                task, cursors[name] = pool.train(cursors[name])
                answer = demonstration(pool.domain, task)
                if answer is not None and len(examples) < count:
                    examples.append(Example(prompt_tokens(tokenizer, task.messages), answer_tokens(tokenizer, answer)))
        scheduler.skip({name: pools[name].behind(cursor) for name, cursor in cursors.items()})
        return examples


@contextmanager
def open_stages(
    recipe: Recipe, directory: Path, resume: bool, progress: Progress, cluster: str | None = None
) -> Iterator[Stages]:
    """Open a run directory and assemble the run in it, new or from its newest undamaged checkpoint.

    `cluster`: where engines and graders are placed (see `open_cluster`); None for this process.
    """
    with ExitStack() as stack:
        if cluster and recipe.rollout.engine != "local":
            fix = "leave out --cluster, or set rollout.engine = 'local'"
            raise ConfigError("on a cluster the local engine samples", where="rollout.engine", fix=fix)
        interrupter = stack.enter_context(Interrupter(progress.say))
        build.set_threads(recipe.threads)
        progress.stage("loading domains and sandbox")
        suite = stack.enter_context(
            build.open_suite(
                recipe.domains,
                recipe.rollout,
                recipe.sandbox,
                heldout=recipe.evaluate.tasks,
                seed=recipe.seed,
                faults=recipe.faults,
            )
        )
        files = RunDirectory.resume(directory) if resume else RunDirectory.create(directory, recipe)
        stack.callback(files.close)
        journal = Journal(directory)
        stack.callback(journal.close)
        _follow(journal, recipe, directory, progress)
        checkpoints = CheckpointStore(files.checkpoints, recipe.checkpoint.keep, recipe.checkpoint.keep_every)
        checkpoint = _pick_up(recipe, files, journal, checkpoints, progress) if resume else None
        progress.stage(f"loading {recipe.model}")
        model = load_model(str(checkpoint.path) if checkpoint else recipe.model, seed=recipe.seed, rope=recipe.rope)
        run = _assemble(recipe, files, model, suite, journal, checkpoints, progress, interrupter)
        if checkpoint:
            # The learner was built from the checkpoint's model, so the masters among its tensors are right already.
            run.learner.restore({**run.learner.tensors(), **checkpoint.tensors}, checkpoint.state["learner"])
            run.engine.refresh(run.learner.version)
            run.scheduler.restore(checkpoint.state["scheduler"])
            run.recovery.restore(checkpoint.state.get("recovery", {}))
            run.watch.restore(checkpoint.state.get("watch", {}))
            run.done = checkpoint.step
        if cluster:
            progress.stage("starting engines and graders on the cluster")
            policy = run.learner.compute, run.learner.version
            placed = stack.enter_context(open_cluster(cluster, recipe, files.path, *policy, run.tell))
            run.engine = run.recovery.engine = build.with_sessions(placed.engine, model, suite, recipe)
            run.graders, suite = placed.graders, replace(suite, graders=placed.graders)
        stack.callback(run.engine.close)
        measure = Measure(recipe, suite, progress, interrupter, recipe.model)
        yield Stages(run, suite, measure, fresh=checkpoint is None)


def _follow(journal: Journal, recipe: Recipe, directory: Path, progress: Progress) -> None:
    def warn(text: str) -> None:
        progress.say(text)
        journal.event("tracker_failed", text=text)

    config = recipe.model_dump(mode="json")
    journal.followers = open_trackers(recipe.tracking, directory, config, progress.say, warn)


def _assemble(
    recipe: Recipe,
    files: RunDirectory,
    model: LoadedModel,
    suite: Suite,
    journal: Journal,
    checkpoints: CheckpointStore,
    progress: Progress,
    interrupter: Interrupter,
) -> Run:
    learner = PolicyLearner(
        model.decoder,
        recipe.learner,
        total_steps=recipe.steps,
        temperature=recipe.rollout.temperature,
        device=pick_device(recipe.device),
        longest_sample=max(domain.longest_sample for domain in suite.domains),
        seed=recipe.seed,
        domains={domain.name: domain.learner for domain in recipe.domains},
        teacher=_teacher(recipe.learner.teacher, model),
    )
    scheduler = build.scheduler(recipe, suite)
    scheduler.log = journal.draws
    longest = max(domain.longest_sample for domain in suite.domains)
    sampler = build.policy_engine(
        model, learner.compute, recipe.rollout, longest_answer=longest, version=learner.version
    )
    engine = build.with_sessions(sampler, model, suite, recipe)
    if isinstance(engine, ChecksPrompts):
        scheduler.refusal = engine.refusal

    def tell(kind: str, text: str, **details: Any) -> None:
        progress.say(text)
        journal.event(kind, text=text, **details)

    return Run(
        recipe=recipe,
        directory=files,
        model=model,
        scheduler=scheduler,
        engine=engine,
        graders=suite.graders,
        rewarder=Rewarder(recipe.reward),
        learner=learner,
        journal=journal,
        checkpoints=checkpoints,
        recovery=Recovery(recipe, scheduler, engine, learner, checkpoints, Quarantine(files.path), tell),
        progress=progress,
        interrupter=interrupter,
        tell=tell,
    )


def _teacher(name: str | None, student: LoadedModel) -> Decoder | None:
    """The decoder to distil from. Raises ConfigError if its tokens are not the student's."""
    if name is None:
        return None
    teacher = load_model(name)
    if teacher.tokenizer.get_vocab() != student.tokenizer.get_vocab():
        raise ConfigError(
            f"the teacher {name!r} has another vocabulary than {student.source!r}",
            where="learner.teacher",
            fix="take a teacher with the student's tokenizer",
        )
    return teacher.decoder


def _pick_up(
    recipe: Recipe, files: RunDirectory, journal: Journal, checkpoints: CheckpointStore, progress: Progress
) -> Checkpoint | None:
    """The checkpoint to go on from; says what differs from the recipe that the run was started with."""
    changed = differences(load_recipe(files.config_file), recipe)
    for difference in changed:
        progress.say(f"changed since the run was started: {difference}")
    if changed:
        files.write_config(recipe)
    for text in changed_inputs(files.path, recipe):
        progress.say(f"since the run was started: {text}")
        journal.event("data_changed", text=text)

    def warn(problem: str) -> None:
        progress.say(problem)
        journal.event("damaged_checkpoint", text=problem)

    checkpoint = checkpoints.newest(warn)
    step = checkpoint.step if checkpoint else 0
    checkpoints.set_aside_after(step)
    journal.forget_after(step)
    forget_after(files.rollouts, step)
    Quarantine(files.path).forget_after(step)
    text = f"resuming after step {step}" if checkpoint else "nothing was checkpointed yet: starting over"
    journal.event("resumed", text=text, step=step, changed=[str(difference) for difference in changed])
    progress.say(text)
    return checkpoint
