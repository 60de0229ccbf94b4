"""`surefoot data lint`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table

from surefoot.types import Task

console = Console()


def lint_files(
    files: Annotated[list[Path], typer.Argument(help="Files of tasks, as `surefoot data ingest` writes them.")],
    report: Annotated[
        Path | None, typer.Option(help="Folder for FILE.lint.json and FILE.lint.html. [beside each]")
    ] = None,
    tasks: Annotated[int, typer.Option(min=-1, help="Rows whose references are run; -1: all, 0: none.")] = 500,
    budget: Annotated[int, typer.Option(min=0, help="Most tokens of a prompt; 0: don't count them.")] = 1024,
    model: Annotated[str, typer.Option(help="Model whose tokens are counted.")] = "smollm2-135m-instruct",
    fix: Annotated[Path | None, typer.Option(help="Write what can safely be mended: a file, or a folder.")] = None,
    fail_on: Annotated[
        Literal["error", "warning", "never"], typer.Option(help="Exit with 1 if there are any.")
    ] = "error",
) -> None:
    """Find faults: references that fail, tests that let everything through, leaked answers, duplicates and more.

    The rules are in docs/data.md. Solutions run in the sandbox only.
    """
    from surefoot.data.lint import Options, lint, to_html
    from surefoot.data.lint import fix as mend
    from surefoot.data.tasks import outputs
    from surefoot.sandbox import open_sandbox

    outs = outputs(files, fix) if fix else []
    tokens = _counter(model) if budget else None
    sandbox = open_sandbox() if tasks else None
    failed = False
    try:
        for number, path in enumerate(files):
            found = lint(path, sandbox, Options(budget, tasks), tokens=tokens)
            target = (report or path.parent) / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            told = json.dumps(found.to_json(), indent=1, ensure_ascii=False).encode("utf-8", "replace")
            target.with_name(f"{target.name}.lint.json").write_bytes(told + b"\n")
            target.with_name(f"{target.name}.lint.html").write_text(to_html(found), encoding="utf-8")
            _print(found, target)
            failed |= fail_on != "never" and found.of("error") + (fail_on == "warning") * found.of("warning") > 0
            if outs:
                done = mend(path, outs[number], found)
                _say(f"{outs[number]}: {done.kept:,} rows, {done.repaired:,} repaired, {done.left_out:,} left out")
    finally:
        if sandbox is not None:
            sandbox.close()
    raise typer.Exit(int(failed))


def _print(found: object, target: Path) -> None:
    from surefoot.data.lint import RULES, Report

    assert isinstance(found, Report)
    _say(f"{found.file}: {found.rows:,} rows, references of {found.graded:,} graded: {target}.lint.html")
    table = Table("rule", "severity", "rows", "first", box=None)
    for name, rule in RULES.items():
        if count := found.counts[name]:
            first = next(problem for problem in found.problems if problem.rule == name)
            where = f"line {first.line}: " if first.line else ""
            table.add_row(name, rule.severity, f"{count:,}", f"{where}{first.message}".replace("[", r"\["))
    if found.counts:
        console.print(table, highlight=False)
    else:
        _say("nothing found")


def _counter(model: str) -> Callable[[Task], int]:
    from surefoot.models import load_model
    from surefoot.models.chat import prompt_tokens

    tokenizer = load_model(model).tokenizer
    return lambda task: len(prompt_tokens(tokenizer, task.messages))


def _say(text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
