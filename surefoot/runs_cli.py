"""`surefoot runs`: list runs, show one, verify what it needs to be resumed, delete checkpoints that nobody needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from surefoot.errors import RunError

app = typer.Typer(help="List, show, verify and prune runs.", no_args_is_help=True)
console = Console()
RunArgument = Annotated[Path, typer.Argument(help="Run directory.")]


@app.command("list")
def list_runs(folder: Annotated[Path, typer.Argument(help="Where to look.")] = Path("runs")) -> None:
    """List the runs in a folder."""
    from surefoot.store.overview import find_runs, overview

    table = Table("run", "state", "step", "checkpoints", "MiB", "domains", "model")
    for path in find_runs(folder):
        try:
            run = overview(path)
        except RunError as broken:
            table.add_row(str(path), broken.what)
            continue
        newest = run.checkpoints[-1].name.removeprefix("step-").lstrip("0") or "0" if run.checkpoints else "none"
        kept = f"{len(run.checkpoints)}, newest {newest}" if run.checkpoints else "none"
        size, domains = f"{run.megabytes:,.0f}", str(len(run.domains))
        table.add_row(str(path), run.state, f"{run.step}/{run.steps}", kept, size, domains, run.model)
    if table.row_count:
        console.print(table)
    else:
        console.print(f"no runs in {folder}", highlight=False, markup=False)


@app.command("show")
def show_run(
    run: RunArgument, last: Annotated[int, typer.Option("--events", min=0, help="Last events to show.")] = 20
) -> None:
    """Show one run: how far it is, what is kept of it, what happened."""
    from surefoot.store.journal import read_lines
    from surefoot.store.overview import events, overview

    found = overview(run)
    lines = [
        f"{found.path}: {found.state}, step {found.step} of {found.steps}, {found.megabytes:,.0f} MiB",
        f"model {found.model}; {len(found.domains)} domains: {', '.join(found.domains[:12])}"
        + (" ..." if len(found.domains) > 12 else ""),
        f"checkpoints: {', '.join(path.name for path in found.checkpoints) or 'none'}",
    ]
    if aside := read_lines(run / "quarantine.jsonl"):
        lines.append(f"tasks set aside: {len(aside)} (quarantine.jsonl)")
    if skipped := sorted((run / "skipped").glob("*.parquet")):
        lines.append(f"batches whose update was skipped: {len(skipped)} (skipped/)")
    for line in [*lines, *events(run, last)]:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


@app.command("domains")
def domains_of_run(
    run: RunArgument, as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines instead.")] = False
) -> None:
    """Show each domain up to the last checkpoint: share, pass rate, length, and what the others' training did to it.

    `between`: mean change of its pass rate over pauses in which only others were trained (transfer, or forgetting).
    """
    import json

    from surefoot.schedule.ledger import Ledger
    from surefoot.store.overview import newest_state

    ledger = Ledger()
    state = newest_state(run)
    ledger.restore(state["scheduler"]["ledger"])
    if as_json:
        for row in ledger.rows():
            print(json.dumps(row))
        return
    columns = ("domain", "share", "groups", "flat", "ungradable", "tokens an answer", "-log p", "level")
    table = Table(*columns, "first", "now", "best", "between", "")
    for row in ledger.rows():
        shares = (f"{row[name]:.0%}" for name in ("flat", "ungradable"))
        rates = (f"{row[name]:.0%}" for name in ("first", "now", "best"))
        between = "" if row["between_error"] is None else f"{row['between']:+.1%} ± {row['between_error']:.1%}"
        start = (row["domain"], f"{row['share']:.1%}", str(row["groups"]), *shares, f"{row['length']:.0f}")
        table.add_row(*start, f"{row['surprise']:.2f}", str(row["level"]), *rates, between, row["reading"])
    console.print(table)
    console.print(f"after step {state['step']}; flat: groups without a difference to learn from", highlight=False)


@app.command("trace")
def trace_run(
    run: RunArgument, out: Annotated[Path | None, typer.Option(help="File to write. [RUN/trace.json]")] = None
) -> None:
    """Write what ran when as a trace for Perfetto or Chrome, and say where the steps' time went."""
    import json
    from statistics import fmean

    from surefoot.store import atomic
    from surefoot.store.journal import read_lines
    from surefoot.store.overview import overview
    from surefoot.store.trace import chrome_trace, critical_path

    lines = read_lines(overview(run).path / "metrics.jsonl")
    if not lines:
        raise RunError("no step was recorded yet", where=str(run), fix="wait for the first step")
    target = out or run / "trace.json"
    atomic.write_text(target, json.dumps(chrome_trace(lines)))
    paths = [critical_path(line["timing"]) for line in lines]
    means = {name: fmean(path[name] for path in paths) for name in paths[0]}
    shares = ", ".join(f"{name} {taken / sum(means.values()):.0%}" for name, taken in means.items())
    console.print(f"{target}: {len(lines)} steps; open it at ui.perfetto.dev", highlight=False, soft_wrap=True)
    console.print(
        f"critical path of a step, {sum(means.values()):.2f} s on average: {shares}", highlight=False, soft_wrap=True
    )


@app.command("verify")
def verify_run(run: RunArgument) -> None:
    """Hold a run's files against their checksums. Exits with 1 if something is damaged."""
    from surefoot.store.overview import verify

    found = list(verify(run))
    damaged = [finding for finding in found if finding.problem]
    for finding in damaged:
        console.print(f"{finding.part}: {finding.problem}", highlight=False, markup=False, soft_wrap=True)
    console.print(f"{len(found) - len(damaged)} of {len(found)} parts are sound", highlight=False)
    if any(finding.part.startswith("checkpoints/") for finding in damaged):
        console.print("a resumed run falls back to the newest checkpoint that is sound", highlight=False)
    if damaged:
        raise typer.Exit(1)


@app.command("prune")
def prune_run(
    run: RunArgument,
    keep: Annotated[int | None, typer.Option(min=1, help="Newest to keep. [the recipe's checkpoint.keep]")] = None,
    keep_every: Annotated[int | None, typer.Option(min=0, help="Also keep every so many steps. [recipe's]")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
) -> None:
    """Delete checkpoints that the retention policy does not keep, and damaged ones; the best one stays."""
    from surefoot.recipe import load_recipe
    from surefoot.store.overview import is_held, overview, store_of

    overview(run)
    if is_held(run):
        raise RunError("a process is writing to this run", where=str(run), fix="wait for it or stop it")
    policy = load_recipe(run / "config.toml").checkpoint
    store = store_of(run, keep or policy.keep, policy.keep_every if keep_every is None else keep_every)
    gone = store.prune(damaged=True, dry=dry_run)
    for path in gone:
        console.print(f"{'would delete' if dry_run else 'deleted'} {path.name}", highlight=False)
    console.print(f"kept: {', '.join(p.name for p in store.paths() if p not in gone) or 'none'}", highlight=False)
