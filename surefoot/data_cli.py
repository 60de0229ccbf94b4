"""`surefoot data`: bring task files into one form, find their faults, remove duplicates and test questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from surefoot import data_lint_cli, data_profile_cli
from surefoot.errors import ConfigError

app = typer.Typer(help="Ingest, lint, dedup, decontaminate, profile, split and describe task files.")
app.command("lint")(data_lint_cli.lint_files)
app.command("profile")(data_profile_cli.profile_file)
app.command("split")(data_profile_cli.split_file)
console = Console()
Files = Annotated[list[Path], typer.Argument(help="Files of tasks, as `surefoot data ingest` writes them.")]


def _say(text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


@app.command("ingest")
def ingest_files(
    inputs: Annotated[list[str], typer.Argument(help="JSONL, JSON, Parquet, CSV (.gz, .zst); paths or URLs.")],
    out: Annotated[Path, typer.Option(help="File to write (.jsonl, .jsonl.gz, .parquet), or a folder for one each.")],
    map_: Annotated[Path | None, typer.Option("--map", help="TOML that says what the columns mean.")] = None,
) -> None:
    """Write the tasks of any known form as rows that `source = "file:..."` reads; list what was rejected."""
    from surefoot.data import Mapping, ingest, read_mapping

    mapping = read_mapping(map_) if map_ else Mapping()
    groups = [(inputs, out)]
    if out.is_dir() or not out.suffix:
        groups = [([url], out / f"{Path(url).name.partition('.')[0]}.jsonl") for url in inputs]
    if len({target for _, target in groups}) < len(groups):
        fix = "ingest them into different folders"
        raise ConfigError("two inputs would become one file", where=f"--out {out}", fix=fix)
    for some, target in groups:
        summary = ingest(some, target, mapping)
        for url, name in summary.formats.items():
            _say(f"{url}: {name}")
        _say(f"{target}: {summary.written:,} tasks of {summary.rows:,} rows")
        if summary.rejected:
            _say(f"{summary.rejected:,} rejected, listed in {summary.rejects}")
        for reason, count in summary.reasons.most_common(5):
            _say(f"{count:9,}  {reason}")


@app.command("dedup")
def dedup_files(
    files: Files,
    out: Annotated[Path, typer.Option(help="File to write, or a folder for one each where there are several.")],
    threshold: Annotated[float, typer.Option(min=0.1, max=1.0, help="Similarity from which texts are the same.")] = 0.8,
    common: Annotated[float, typer.Option(min=0.0, max=1.0, help="Phrases of more rows than this don't count.")] = 0.01,
    any_number: Annotated[bool, typer.Option("--any-number", help="Texts that differ in numbers may be the same.")] = (
        False
    ),
) -> None:
    """Remove rows that an earlier row, in this file or one before it, is the same as or nearly."""
    from surefoot.data.clusters import Settings
    from surefoot.data.dedup import dedup
    from surefoot.data.tasks import outputs

    outs = outputs(files, out)
    result = dedup(files, outs, Settings(threshold, common, numerals=not any_number))
    _say(f"{result.rows:,} rows, {result.kept:,} stay; {result.equal:,} equal and {result.near:,} nearly equal removed")
    for (file, other), count in sorted(result.between.items(), key=lambda entry: -entry[1])[:20]:
        _say(f"{count:9,}  of {file}, in {'itself' if file == other else other}")
    if result.contradictions:
        _say(f"{result.contradictions:,} pairs of equal text have different answers and stay: see surefoot data lint")
    _say(f"written: {', '.join(map(str, outs))}; removed rows in FILE.removed.jsonl")


@app.command("decontaminate")
def decontaminate_files(
    files: Files,
    out: Annotated[Path, typer.Option(help="File to write, or a folder for one each where there are several.")],
    against: Annotated[list[Path], typer.Option(help="File of evaluation tasks, ingested too; repeatable.")],
    ngram: Annotated[int, typer.Option(min=3, max=50, help="Words of an n-gram.")] = 8,
    contained: Annotated[float, typer.Option(min=0.05, max=1.0, help="Share of a task's n-grams.")] = 0.5,
    similar: Annotated[float, typer.Option(min=0.05, max=1.0, help="Jaccard similarity.")] = 0.5,
) -> None:
    """Remove rows that show what evaluation files ask."""
    from surefoot.data.decontaminate import Limits, decontaminate
    from surefoot.data.tasks import outputs

    for path, target in zip(files, outputs(files, out), strict=True):
        result = decontaminate(path, target, against, Limits(ngram, contained, similar))
        _say(f"{target}: {result.removed:,} of {result.rows:,} rows removed; they show {result.tasks_found:,} of the")
        _say(f"    {result.tasks:,} evaluation tasks: {target.name}.removed.jsonl")


@app.command("card")
def show_card(file: Annotated[Path, typer.Argument(help="A file of tasks.")]) -> None:
    """Write the data card beside a file as Markdown: sources, licences, what was done, hashes."""
    from surefoot.data.card import checked

    text = checked(file).markdown(file.name)
    target = file.with_name(f"{file.name}.card.md")
    target.write_text(text, encoding="utf-8")
    _say(text)
    _say(f"written: {target}")
