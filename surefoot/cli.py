"""The command line. It parses, calls `surefoot.api` and prints; imports are late, so that `--help` is instant."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from surefoot import data_cli, export_cli, interrupt, review_cli, runs_cli, sandbox_cli, view_cli
from surefoot.config import DomainConfig
from surefoot.errors import ConfigError, SurefootError

# Graders share the cores with torch. A torch thread that spins while it waits for one that was put aside makes both
# wait: with two busy neighbours, sampling is six times faster when waiting threads sleep. Read when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

app = typer.Typer(
    help="Surefoot: reinforcement learning that turns what a model might do into what it reliably does.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
domains_app = typer.Typer(help="List, show and check domains: tasks with their graders.", no_args_is_help=True)
config_app = typer.Typer(help="Explain and check recipes.", no_args_is_help=True)
app.add_typer(domains_app, name="domains")
app.add_typer(config_app, name="config")
app.add_typer(runs_cli.app, name="runs")
app.add_typer(data_cli.app, name="data")
app.add_typer(sandbox_cli.app, name="sandbox")
app.command()(export_cli.export)
app.command()(review_cli.review)
app.command()(view_cli.view)

console, errors = Console(), Console(stderr=True)

Set = Annotated[list[str] | None, typer.Option("--set", help="Override a key of the recipe: --set learner.lr=2e-6")]
RecipeFile = Annotated[Path, typer.Option("--recipe", help="Recipe that domains and settings are taken from.")]
QUICKSTART = Path("recipes/quickstart.toml")


def main() -> NoReturn:
    """Entry point: known errors become one clear message and an exit code, never a traceback."""
    try:
        result = app(standalone_mode=False)  # the exit code of a command that ended with typer.Exit
        code = result if isinstance(result, int) else 0
    except interrupt.Interrupted:
        errors.print("stopped; --resume continues where it was left", style="yellow")
        code = interrupt.EXIT_CODE
    except (KeyboardInterrupt, typer.Abort):
        code = interrupt.EXIT_CODE
    except typer.TyperException as wrong:
        show = getattr(wrong, "show", None)  # usage errors know how to show themselves
        errors.print(str(wrong)) if show is None else show()
        code = 2
    except SurefootError as error:
        errors.print("error:", style="bold red", end=" ")
        errors.print(str(error), markup=False, highlight=False, soft_wrap=True)
        code = error.exit_code
    except BrokenPipeError:
        code = 0
    sys.exit(code)


@app.command()
def train(
    recipe: Annotated[Path, typer.Argument(help="Recipe (TOML); with --resume a run directory will do.")],
    set_: Set = None,
    run_dir: Annotated[Path | None, typer.Option(help="Where the run is kept [runs/NAME-OF-RECIPE].")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run from its newest checkpoint.")] = False,
    cluster: Annotated[
        str | None, typer.Option(help="Engines and graders on Ray: local, HOST:PORT or ray://HOST:PORT.")
    ] = None,
) -> None:
    """Train a model as a recipe says, with evaluations before and after."""
    from surefoot.recipe import load_recipe
    from surefoot.store.rundir import is_run

    if resume and is_run(recipe):
        run_dir, recipe = run_dir or recipe, recipe / "config.toml"
    resolved = load_recipe(recipe, set_ or ())

    from surefoot import api  # after the recipe was read: its faults are told at once, not after seconds of imports
    from surefoot.evaluate.report import table

    directory = run_dir or Path(resolved.run_dir or Path("runs") / recipe.stem)
    outcome = api.train(resolved, directory, resume=resume, cluster=cluster)
    if outcome.evaluations:
        console.print(table(outcome.evaluations))
        for sentence in outcome.findings:
            console.print(f"- {sentence}", highlight=False, markup=False)
    console.print(f"run: {directory}", highlight=False)
    if outcome.report:
        console.print(f"report: {outcome.report}", highlight=False)


@app.command("eval")
def evaluate(
    model: Annotated[str, typer.Argument(help="Model name, Hugging Face directory, run directory, or http://... /v1.")],
    suite: Annotated[str, typer.Option(help="What to measure: a suite's name or a .toml (see surefoot suites).")] = "",
    data: Annotated[Path | None, typer.Option(help="Folder of public data sets, for suites that read them.")] = None,
    domains: Annotated[str, typer.Option(help="Comma-separated names from it, or sources. [all of it]")] = "",
    recipe: RecipeFile = QUICKSTART,
    tasks: Annotated[int | None, typer.Option(min=1, help="Held-out tasks a domain.")] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Samples a task.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0.0, help="Sampling temperature.")] = None,
    half_width: Annotated[float | None, typer.Option(min=0.001, help="More tasks until intervals are +- this.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write evaluation.json and reports here.")] = None,
    inspect_log: Annotated[Path | None, typer.Option(help="Also write logs for inspect_ai's viewer here.")] = None,
    fail_if: Annotated[list[str] | None, typer.Option(help="Exit with 1 if true, e.g. 'pass^4.code < 0.6'.")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Only say what it will cost.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Draw samples anew that are in the cache.")] = False,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests at the same time, for an endpoint.")] = 8,
    requests_per_minute: Annotated[float, typer.Option(min=0, help="Most requests; 0: no limit.")] = 0,
    set_: Set = None,
) -> None:
    """Measure how reliably a model solves held-out tasks, with 95% intervals. Samples are cached: a killed evaluation
    goes on where it stopped."""
    from surefoot.evaluate import check_gate, parse_gate
    from surefoot.evaluate.suite import EvaluationSuite, load_suite
    from surefoot.recipe import load_recipe, select_domains
    from surefoot.store.rundir import is_run

    gates = [parse_gate(text) for text in fail_if or ()]
    given = {"evaluate.tasks": tasks, "evaluate.samples": samples, "evaluate.temperature": temperature}
    overrides = [*(set_ or ()), *(f"{k}={v}" for k, v in given.items() if v is not None)]
    if suite:
        chosen = load_suite(suite, model, overrides, data=data)
    else:
        of_run = is_run(Path(model)) and recipe == QUICKSTART
        recipe = Path(model) / "config.toml" if of_run else recipe
        chosen = EvaluationSuite(recipe.parent.name if of_run else recipe.stem, load_recipe(recipe, overrides))
    names = [name.strip() for name in domains.split(",") if name.strip()]
    chosen = chosen.only(select_domains(chosen.recipe, names))

    from surefoot import api
    from surefoot.evaluate.overview import overview
    from surefoot.rollout.openai import EndpointOptions

    if plan:
        console.print(str(api.evaluation_cost(model, chosen)), highlight=False, markup=False)
        return
    options = EndpointOptions(concurrency, requests_per_minute)
    evaluation = api.evaluate(
        model, chosen, output=out, half_width=half_width, fresh=fresh, inspect_log=inspect_log, endpoint=options
    )
    for part in overview(evaluation):
        console.print(part, highlight=False)
    results = [check_gate(gate, evaluation) for gate in gates]
    for result in results:
        console.print(result.message, highlight=False, markup=False)
    if not all(result.passed for result in results):
        raise typer.Exit(1)


@app.command()
def serve(
    model: Annotated[str, typer.Argument(help="Model name, Hugging Face directory, or run directory.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    host: Annotated[
        str, typer.Option(help="Others than 127.0.0.1 let other machines in: there is no key.")
    ] = "127.0.0.1",
    name: Annotated[str | None, typer.Option(help="What clients call the model. [MODEL]")] = None,
    set_: Set = None,
) -> None:
    """Serve a model as an OpenAI-compatible endpoint: chat, completions with log-probs and echo, streaming."""
    from surefoot.evaluate.suite import load_suite

    recipe = load_suite("stability-quick", model, set_ or ()).recipe

    from surefoot import api

    api.serve(
        model, recipe, port=port, host=host, name=name, ready=lambda at: console.print(f"serving {model} at {at}")
    )


@app.command("suites")
def list_suites() -> None:
    """List the suites that `surefoot eval --suite` knows."""
    from surefoot.evaluate.suite import suites

    for name, description in suites():
        console.print(f"{name:<20} {description}", highlight=False, markup=False, soft_wrap=True)


@app.command()
def compare(
    before: Annotated[Path, typer.Argument(help="Evaluation directory or evaluation.json.")],
    after: Annotated[Path, typer.Argument(help="The one to hold against it.")],
    out: Annotated[Path | None, typer.Option(help="Also write report.html, .json and .md here.")] = None,
) -> None:
    """Hold two evaluations against each other, task by task."""
    from surefoot.evaluate import findings, read, table, write_report

    pair = [read(before), read(after)]
    console.print(table(pair))
    for sentence in findings(*pair):
        console.print(f"- {sentence}", highlight=False, markup=False)
    if out:
        out.mkdir(parents=True, exist_ok=True)
        write_report(pair, out)


@app.command()
def doctor() -> None:
    """Say what this machine offers: processor, GPU, sandbox, optional parts, each with how to get it."""
    from surefoot.machine import examine

    marks = {"ok": "[green]ok[/]", "missing": "[red]missing[/]", "warning": "[yellow]look[/]"}
    for item in examine():
        console.print(f"{marks[item.state]:<20} {item.name:<16}", end=" ")
        console.print(item.found, highlight=False, markup=False, soft_wrap=True)
        if item.fix:
            console.print(f"{'':27}-> {item.fix}", highlight=False, markup=False, soft_wrap=True)


@app.command("audit")
def audit_domains(
    names: Annotated[list[str], typer.Argument(help="Domains of the recipe, or sources such as code:lists.")],
    tasks: Annotated[int, typer.Option(min=2, help="Tasks a domain.")] = 20,
    out: Annotated[Path | None, typer.Option(help="Write audit.html, audit.json and domain cards here.")] = None,
    fail_over: Annotated[float, typer.Option(min=0, max=1, help="Share of tasks that may be judged wrongly.")] = 0.05,
    cases: Annotated[
        Path | None, typer.Option(help="Texts that `surefoot review --cases` wrote: must not pay.")
    ] = None,
    recipe: RecipeFile = QUICKSTART,
    set_: Set = None,
) -> None:
    """Red-team verifiers before training: can they be fooled, do they refuse what is right? Exits with 1 if so."""
    from surefoot.domains.audit.cases import read_cases
    from surefoot.domains.audit.run import audit_all, write_reports
    from surefoot.recipe import load_recipe

    audits, rejected = [], read_cases(cases) if cases else {}
    configs = [_one_domain(name, recipe, set_) for name in names]
    integrity = load_recipe(recipe, set_ or ()).reward.integrity if recipe.is_file() else None
    for found in audit_all(configs, tasks, cases=rejected, integrity=integrity):
        audits.append(found)
        state = "[red]fails[/]" if found.fails(fail_over) else "[green]holds[/]"
        rates = f"false accepts {found.fooled}, false rejects {found.refused}, best blind guess {found.guess_rate:.0%}"
        console.print(state, f"{found.domain}: {found.tasks} tasks,", rates.replace("[", "\\["), highlight=False)
        if found.cases.tries:
            console.print(f"  {found.cases.hits} of {found.cases.tries} rejected texts are paid", highlight=False)
        for problem in found.problems:
            console.print(f"  - {problem}", highlight=False, markup=False, soft_wrap=True)
    if out:
        write_reports(audits, out, fail_over)
        console.print(f"report: {out / 'audit.html'}", highlight=False)
    if any(found.fails(fail_over) for found in audits):
        raise typer.Exit(1)


@domains_app.command("list")
def list_domains(pattern: Annotated[str, typer.Argument(help="Only those that contain this.")] = "") -> None:
    """List every built-in source of tasks."""
    from surefoot.domains import available

    for name, description in available():
        if pattern in name:
            console.print(f"{name:<44} {description}", highlight=False, markup=False, soft_wrap=True)


@domains_app.command("show")
def show_domain(
    name: Annotated[str, typer.Argument(help="Name of a domain in the recipe, or a source such as code:lists.")],
    sample: Annotated[int, typer.Option(min=1, help="How many tasks.")] = 3,
    recipe: RecipeFile = QUICKSTART,
    set_: Set = None,
) -> None:
    """Show tasks of a domain as the model sees them, with what the grader knows."""
    from surefoot.domains import TaskPool, build_domain
    from surefoot.domains.check import describe

    domain = build_domain(_one_domain(name, recipe, set_))
    console.print(f"{domain.name}: {domain.description}", style="bold", markup=False)
    cursor, pool = 0, TaskPool(domain, 0)
    for _ in range(sample):
        task, cursor = pool.train(cursor)
        console.print(describe(task), markup=False, highlight=False)


@domains_app.command("check")
def check_domain(
    name: Annotated[str, typer.Argument(help="Name of a domain in the recipe, or a source such as code:lists.")],
    tasks: Annotated[int, typer.Option(min=1, help="Tasks to try.")] = 20,
    recipe: RecipeFile = QUICKSTART,
    set_: Set = None,
) -> None:
    """Try a domain offline: are its own answers accepted and wrong ones refused, are tasks repeatable and disjoint?"""
    from surefoot.domains import build_domain
    from surefoot.domains.check import check
    from surefoot.sandbox import open_sandbox

    domain = build_domain(_one_domain(name, recipe, set_))
    with open_sandbox() as sandbox:
        report = check(domain, sandbox, tasks=tasks)
    table = Table(show_header=False)
    for key, value in report.rows():
        table.add_row(key, value)
    console.print(table)
    for problem in report.problems:
        console.print(f"problem: {problem}", style="red", highlight=False, markup=False)
    if report.problems:
        raise typer.Exit(1)


@domains_app.command("strengthen")
def strengthen_domain(
    file: Annotated[
        Path, typer.Argument(help="Code tasks with reference solutions (JSONL, Parquet; HumanEval, MBPP).")
    ],
    out: Annotated[Path, typer.Option(help="The same rows with generated tests, as JSON lines.")],
    seed: Annotated[int, typer.Option(help="Other tests for another seed.")] = 0,
) -> None:
    """Generate hidden and adversarial tests for code tasks from their reference solutions, run in the sandbox."""
    from surefoot.domains.strengthening import row_of, strengthen_file
    from surefoot.rewards.adversarial import Settings
    from surefoot.sandbox import open_sandbox
    from surefoot.store.atomic import write_text

    lines: list[str] = []
    with open_sandbox() as sandbox:
        for number, line in enumerate(strengthen_file(file, sandbox, Settings(seed=seed)), 1):
            made = line.made
            found = made.skipped or f"{len(made.hidden)} hidden, {len(made.adversarial)} adversarial tests"
            console.print(f"{number:5} {made.function:28.28} {found}", highlight=False, markup=False)
            lines.append(json.dumps(row_of(line), ensure_ascii=False))
    write_text(out, "\n".join(lines) + "\n")
    console.print(f"written: {out}", highlight=False)


@config_app.command("explain")
def explain_key(key: Annotated[str, typer.Argument(help="A key or a section; all keys if left out.")] = "") -> None:
    """Explain a key of the recipe: meaning, type, default."""
    from surefoot.recipe import explain, keys

    texts = [explain(key)] if key else [explain(name) for name, _ in keys()]
    console.print("\n\n".join(texts), highlight=False, markup=False, soft_wrap=True)


@config_app.command("check")
def check_recipe(recipe: Annotated[Path, typer.Argument(help="Recipe to check.")], set_: Set = None) -> None:
    """Check a recipe and print it with every default filled in."""
    from surefoot.recipe import load_recipe, to_toml

    console.print(to_toml(load_recipe(recipe, set_ or ())), highlight=False, markup=False, soft_wrap=True, end="")


def _one_domain(name: str, recipe: Path, overrides: list[str] | None) -> DomainConfig:
    from surefoot.recipe import load_recipe, select_domains, source_of

    if recipe.is_file():
        return select_domains(load_recipe(recipe, overrides or ()), [name])[0]
    if recipe != QUICKSTART:
        raise ConfigError("there is no such recipe", where=str(recipe))
    return source_of(name)
