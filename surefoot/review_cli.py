"""`surefoot review`: people look at rollouts of a run; what their decisions prove; decisions out to files."""

from __future__ import annotations

import getpass
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from surefoot.errors import DataError

if TYPE_CHECKING:
    from surefoot.store.review import ReviewStore

console = Console()


def review(
    run: Annotated[Path, typer.Argument(help="Run directory.")],
    reviewer: Annotated[str, typer.Option(help="Who decides. [your login]")] = "",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8010,
    audit: Annotated[int, typer.Option(min=1, help="Random rewarded rollouts of each domain.")] = 60,
    picks: Annotated[int, typer.Option(min=0, help="Suspicious rollouts for each domain and reason.")] = 10,
    twice: Annotated[float, typer.Option(min=0, max=1, help="Share that two people judge, blind.")] = 0.2,
    seed: Annotated[int, typer.Option(help="Another random audit.")] = 0,
    renew: Annotated[bool, typer.Option("--renew", help="Make the queue anew; decisions stay.")] = False,
    summary: Annotated[bool, typer.Option("--summary", help="Only say what the decisions prove.")] = False,
    export: Annotated[Path | None, typer.Option(help="Write all decisions here (JSONL), and stop.")] = None,
    rules: Annotated[Path | None, typer.Option(help="Write marked text of rejects as rules for a recipe.")] = None,
    cases: Annotated[Path | None, typer.Option(help="Write rejected texts as audit cases (JSONL), and stop.")] = None,
) -> None:
    """Look at rollouts in the browser: a random audit that bounds undetected cheating, and suspicious picks."""
    from surefoot.store.overview import overview
    from surefoot.store.review import open_review

    store = open_review(overview(run).path, audit=audit, picks=picks, twice=twice, seed=seed, renew=renew)
    if export is not None:
        _write(export, [json.dumps(decision) for decision in store.decisions()])
    if rules is not None:
        found = dict.fromkeys(" ".join(d["pattern"].split()) for d in store.decisions() if d["decision"] == "reject")
        quoted = [f'{json.dumps(phrase)} = "flag"' for phrase in found if phrase]
        _write(rules, ["[reward.integrity.phrases]", *quoted])
    if cases is not None:
        _write(cases, [json.dumps(case) for case in store.cases()])
    if summary or any(path is not None for path in (export, rules, cases)):
        _print_summary(store)
        return
    try:
        from surefoot.web.pages import serve
        from surefoot.web.review import make_app
    except ImportError as missing:
        fix = "pip install 'surefoot[view]'"
        raise DataError(f"the page needs {missing.name}", where="surefoot review", fix=fix) from missing
    who = reviewer.strip() or getpass.getuser()
    serve(make_app(store, who), port, lambda at: console.print(f"{who} reviews {run} at {at}", highlight=False))


def _write(path: Path, lines: list[str]) -> None:
    from surefoot.store.atomic import write_text

    write_text(path, "".join(f"{line}\n" for line in lines))
    console.print(f"{path}: {len(lines)} lines", highlight=False, markup=False)


def _print_summary(store: ReviewStore) -> None:
    said = store.summary()
    table = Table("domain", "audited", "cheats", "unsure", "undetected cheating, at most (95%)")
    for found in said.bounds:
        counts = (str(n) for n in (found.judged, found.rejected, found.unsure))
        table.add_row(found.domain, *counts, f"{found.high:.1%}")
    console.print(table)
    kappa = "not defined yet" if said.kappa is None else f"{said.kappa:.2f}"
    console.print(f"judged by two: {said.doubles}, Cohen's kappa {kappa}", highlight=False)
    console.print(f"judged: {said.judged} of a queue of {said.queued}", highlight=False)
