"""`surefoot view`: look at a run in the browser, while it goes on or afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from surefoot.errors import ConfigError

console = Console()


def view(
    run: Annotated[Path, typer.Argument(help="Run directory.")],
    other: Annotated[Path | None, typer.Argument(help="Another one, to hold against it.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8700,
    memory: Annotated[bool, typer.Option("--memory", help="Keep the index of rollouts in memory only.")] = False,
) -> None:
    """Show a run (or two) in the browser: charts, every rollout, groups side by side. On 127.0.0.1 only."""
    try:
        from surefoot.web.pages import serve
        from surefoot.web.viewer import make_app
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"the viewer needs the package {missing.name}", fix="pip install 'surefoot[view]'"
        ) from missing
    from surefoot.models.library import cache_directory

    app = make_app([path for path in (run, other) if path], None if memory else cache_directory() / "view")
    serve(
        app, port, lambda at: console.print(f"showing {run} at {at} (Ctrl-C ends it)", highlight=False, soft_wrap=True)
    )
