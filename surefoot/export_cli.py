"""`surefoot export`: a run's model as a Hugging Face directory with a model card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

console = Console()


def export(
    run: Annotated[Path, typer.Argument(help="Run directory.")],
    to: Annotated[Path, typer.Option(help="Directory to write; must not exist.")],
    best: Annotated[
        bool, typer.Option("--best", help="The checkpoint that checkpoint.keep_best kept, not the last.")
    ] = False,
) -> None:
    """Write a run's model in Hugging Face layout, adapters merged, with tokenizer, chat template and model card."""
    from surefoot.export import export_model

    chosen = export_model(run, to, best=best)
    console.print(f"{to}: {chosen.name} of {run}", highlight=False, markup=False, soft_wrap=True)
