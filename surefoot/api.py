"""Surefoot from Python: `train` a recipe, `evaluate` a model. The command line calls just these."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from surefoot import build
from surefoot.config import Recipe
from surefoot.errors import ResourceError, RunError
from surefoot.evaluate import Evaluation, report_findings, save, write_report
from surefoot.evaluate.cache import cache_folder
from surefoot.evaluate.cost import Cost
from surefoot.evaluate.evaluator import EVALUATION_FILE
from surefoot.evaluate.inspect_log import write_inspect_logs
from surefoot.evaluate.suite import EvaluationSuite
from surefoot.interrupt import Interrupter
from surefoot.measure import Measure
from surefoot.models import load_model
from surefoot.models.fingerprint import fingerprint
from surefoot.models.library import cache_directory
from surefoot.progress import Progress, open_progress
from surefoot.rollout.openai import EndpointOptions
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


def train(
    recipe: Recipe,
    directory: Path,
    *,
    resume: bool = False,
    cluster: str | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Run a recipe to its end in a run directory.

    Args:
        resume: Continue the run in `directory` from its newest undamaged checkpoint: bit-identically on CPU.
        cluster: Where engines and graders run: `local`, `HOST:PORT` or `ray://HOST:PORT`; by default in this process.
        progress: Where to show what happens; by default the terminal.

    Raises:
        SurefootError: See its subclasses; whatever was checkpointed is kept.
        Interrupted: The user asked for the end (Ctrl-C, SIGTERM); all is saved.
    """
    with ExitStack() as stack:
        shown = stack.enter_context(progress or open_progress())
        stages = stack.enter_context(open_stages(recipe, directory, resume, shown, cluster))
        evaluations = tuple(stages.go())
    if not evaluations:
        return Outcome(directory, (), (), None)
    page, *_ = write_report(evaluations, directory, title=f"{recipe.model}, {directory.name}")
    return Outcome(directory, evaluations, tuple(report_findings(evaluations)), page)


def evaluate(
    model: str,
    suite: EvaluationSuite,
    *,
    output: Path | None = None,
    label: str = "",
    half_width: float | None = None,
    fresh: bool = False,
    inspect_log: Path | None = None,
    endpoint: EndpointOptions | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure a model on held-out tasks.

    Every sample is kept in the cache as it is graded, so that a killed evaluation goes on where it stopped, and one of
    the same model, domains and parameters draws only what is new.

    Args:
        model: Anything a recipe's `model` may be, a run directory, whose newest checkpoint is taken, or the address of
            an OpenAI-compatible endpoint (`http://host:port/v1`, the model's name after a `#` if it serves several).
        suite: What to measure; the model of its recipe is of no account.
        output: Directory for `evaluation.json` and the reports.
        half_width: Draw more tasks only while half of a domain's interval is wider than this.
        fresh: Forget the samples of before.
        inspect_log: Directory for logs that the viewer of inspect_ai opens, one a domain.

    Raises:
        SurefootError: A model or domain cannot be loaded.
        Interrupted: Ctrl-C or SIGTERM; samples drawn so far are in the cache.
    """
    with ExitStack() as stack:
        shown = stack.enter_context(progress or open_progress())
        source = newest_model(model)
        measure, folder = stack.enter_context(_open_measure(model, source, suite, shown, half_width))
        if fresh:
            shutil.rmtree(folder, ignore_errors=True)
        shown.say(f"{suite.name}: {measure.cost(folder)}")
        shown.stage(f"loading {model}")
        engine = build.open_engine(source, suite.recipe, measure.suite, endpoint)
        stack.callback(engine.close)
        evaluation = measure(engine, label, folder)
    write_report([evaluation], folder, title=model)
    if output:
        save(evaluation, output / EVALUATION_FILE)
        write_report([evaluation], output, title=model)
    if inspect_log:
        write_inspect_logs(evaluation, inspect_log)
    return evaluation


def evaluation_cost(model: str, suite: EvaluationSuite) -> Cost:
    """What `evaluate` would still have to draw. The model is not loaded."""
    source = newest_model(model)
    with open_progress() as shown, _open_measure(model, source, suite, shown, None) as (measure, folder):
        return measure.cost(folder)


@contextmanager
def _open_measure(
    model: str, source: str, suite: EvaluationSuite, shown: Progress, half_width: float | None
) -> Iterator[tuple[Measure, Path]]:
    """What measures, ready but for the engine, and the folder in the cache that its samples belong to.

    `source` is where the weights of `model` are.
    """
    recipe = suite.recipe
    with ExitStack() as stack:
        interrupter = stack.enter_context(Interrupter(shown.say))
        build.set_threads(recipe.threads)
        shown.stage("loading domains and sandbox")
        opened = stack.enter_context(
            build.open_suite(
                recipe.domains,
                recipe.rollout,
                recipe.sandbox,
                heldout=recipe.evaluate.tasks,
                seed=recipe.seed,
                train=False,
                variants=suite.variants,
            )
        )
        weights = fingerprint(source, recipe.seed)
        folder = cache_folder(cache_directory() / "evaluations", model, weights, recipe.domains, recipe)
        yield Measure(recipe, opened, shown, interrupter, model, half_width, suite.conversations), folder


def serve(
    model: str,
    recipe: Recipe,
    *,
    port: int,
    host: str = "127.0.0.1",
    name: str | None = None,
    ready: Callable[[str], None] = print,
) -> None:
    """Serve a model as an OpenAI-compatible endpoint until the process is asked to end.

    Args:
        recipe: Its compute type, device, threads and `[rollout]` batch and prompt limit apply.
        name: What clients call the model; by default `model`.
        ready: Told the address once requests are taken.

    Raises:
        ResourceError: The port is taken.
    """
    import uvicorn

    from surefoot.serve import make_app

    build.set_threads(recipe.threads)
    loaded = load_model(newest_model(model), seed=recipe.seed, rope=recipe.rope)
    app = make_app(loaded, build.sampling_engine(loaded, recipe), name or model)
    listening = _listen(host, port)
    ready(f"http://{host}:{listening.getsockname()[1]}/v1")
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port))
    except OSError as error:
        raise ResourceError(
            f"cannot listen: {error.strerror or error}", where=f"{host}:{port}", fix="choose another --port"
        ) from error


def newest_model(name: str) -> str:
    """A run directory becomes its newest undamaged checkpoint; anything else stays what it is."""
    if not is_run(Path(name)):
        return name
    for path in reversed(CheckpointStore(Path(name) / "checkpoints", keep=1).paths()):
        if damage(path) is None:
            return str(path)
    raise RunError("the run has no undamaged checkpoint", where=name, fix="let it train until its first checkpoint")
