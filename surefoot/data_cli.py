"""`surefoot data`: bring task files into one form, find their faults, remove duplicates and test questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from surefoot.errors import ConfigError

app = typer.Typer(help="Ingest, lint, dedup, decontaminate, profile, split and describe task files.")
console = Console()
Files = Annotated[list[Path], typer.Argument(help="Files of tasks, as `surefoot data ingest` writes them.")]
Out = Annotated[Path, typer.Option(help="File to write: .jsonl, .jsonl.gz or .parquet.")]


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


@app.command("card")
def show_card(file: Annotated[Path, typer.Argument(help="A file of tasks.")]) -> None:
    """Write the data card beside a file as Markdown: sources, licences, what was done, hashes."""
    from surefoot.data.card import checked

    text = checked(file).markdown(file.name)
    target = file.with_name(f"{file.name}.card.md")
    target.write_text(text, encoding="utf-8")
    _say(text)
    _say(f"written: {target}")
