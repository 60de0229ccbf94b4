"""Surefoot from Python: `train` a recipe, `evaluate` a model. The command line calls just these."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from surefoot import build
from surefoot.config import DomainConfig, Recipe
from surefoot.errors import RunError
from surefoot.evaluate import Evaluation, report_findings, write_report
from surefoot.interrupt import Interrupter
from surefoot.measure import Measure
from surefoot.models import load_model
from surefoot.progress import Progress, open_progress
from surefoot.stages import open_stages
from surefoot.store import CheckpointStore
from surefoot.store.checkpoint import damage
from surefoot.store.rundir import is_run


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `train` gives back."""

    directory: Path
    evaluations: tuple[Evaluation, ...]
    """Of the base model, after the warm start, and after reinforcement learning: those that were asked for."""
    findings: tuple[str, ...]
    """What they say, in plain words."""
    report: Path | None
    """The page `report.html`; None without an evaluation."""


def train(recipe: Recipe, directory: Path, *, resume: bool = False, progress: Progress | None = None) -> Outcome:
    """Run a recipe to its end in a run directory.

    Args:
        resume: Continue the run in `directory` from its newest undamaged checkpoint: bit-identically on CPU.
        progress: Where to show what happens; by default the terminal.

    Raises:
        SurefootError: See its subclasses; whatever was checkpointed is kept.
        Interrupted: The user asked for the end (Ctrl-C, SIGTERM); all is saved.
    """
    with ExitStack() as stack:
        shown = stack.enter_context(progress or open_progress())
        stages = stack.enter_context(open_stages(recipe, directory, resume, shown))
        evaluations = tuple(stages.go())
    if not evaluations:
        return Outcome(directory, (), (), None)
    page, *_ = write_report(evaluations, directory, title=f"{recipe.model}, {directory.name}")
    return Outcome(directory, evaluations, tuple(report_findings(evaluations)), page)


def evaluate(
    model: str,
    domains: Sequence[DomainConfig],
    recipe: Recipe,
    *,
    output: Path | None = None,
    label: str = "",
    progress: Progress | None = None,
) -> Evaluation:
    """Measure a model on held-out tasks.

    Args:
        model: Anything a recipe's `model` may be, or a run directory, whose newest checkpoint is taken.
        recipe: Its seed, `[evaluate]`, `[rollout]`, `[sandbox]` and compute type apply.
        output: Directory for samples as they are drawn (a killed evaluation goes on where it stopped) and reports.

    Raises:
        SurefootError: A model or domain cannot be loaded.
        Interrupted: Ctrl-C or SIGTERM; samples drawn so far are in `output`.
    """
    with ExitStack() as stack:
        shown = stack.enter_context(progress or open_progress())
        interrupter = stack.enter_context(Interrupter(shown.say))
        build.set_threads(recipe.threads)
        shown.stage("loading domains and sandbox")
        suite = stack.enter_context(
            build.open_suite(domains, recipe.rollout, recipe.sandbox, heldout=recipe.evaluate.tasks, seed=recipe.seed)
        )
        shown.stage(f"loading {model}")
        loaded = load_model(newest_model(model), seed=recipe.seed)
        engine = build.engine(
            loaded, build.compute_copy(loaded.decoder, recipe.learner.dtype, recipe.device), recipe.rollout
        )
        stack.callback(engine.close)
        evaluation = Measure(recipe, suite, shown, interrupter, model)(engine, label, output)
    if output:
        write_report([evaluation], output, title=model)
    return evaluation


def newest_model(name: str) -> str:
    """A run directory becomes its newest undamaged checkpoint; anything else stays what it is."""
    if not is_run(Path(name)):
        return name
    for path in reversed(CheckpointStore(Path(name) / "checkpoints", keep=1).paths()):
        if damage(path) is None:
            return str(path)
    raise RunError("the run has no undamaged checkpoint", where=name, fix="let it train until its first checkpoint")
