"""`surefoot sandbox`: attack the sandbox on this machine, and run a program in it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from surefoot.errors import ConfigError
from surefoot.types import Execution, IsolationLevel

app = typer.Typer(help="Attack the sandbox on this machine, or run a program in it.", no_args_is_help=True)
LEVELS = get_args(IsolationLevel)


@app.command("doctor")
def doctor() -> None:
    """Attack the sandbox at every level and print what held."""
    from surefoot.sandbox.doctor import main_report

    raise typer.Exit(main_report())


@app.command("run", context_settings={"ignore_unknown_options": True})
def run(
    program: Annotated[list[str], typer.Argument(help="A Python file, or after -- any command with its arguments.")],
    file: Annotated[list[Path] | None, typer.Option(help="Lay this file into the work directory; repeatable.")] = None,
    stdin: Annotated[Path | None, typer.Option(help="What the program reads; - for this command's own.")] = None,
    level: Annotated[str, typer.Option(help=f"One of {', '.join(LEVELS)}.")] = "namespaces",
    image: Annotated[str, typer.Option(help="Sandbox image: python or python-scientific.")] = "python",
    cpu_seconds: Annotated[float, typer.Option(min=0.01)] = 2.0,
    memory_mb: Annotated[int, typer.Option(min=32)] = 512,
    output_kb: Annotated[int, typer.Option(min=1)] = 64,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole execution as JSON.")] = False,
) -> None:
    """Run one program in the sandbox. Exits with 0 only if it ended well.

    surefoot sandbox run solve.py --stdin in.txt

    surefoot sandbox run --file main.c -- sh -c 'cc main.c -o main && ./main'
    """
    from surefoot.protocols import Limits, Program
    from surefoot.sandbox import open_sandbox
    from surefoot.sandbox.images import DEFAULT_IMAGES

    if level not in LEVELS:
        raise ConfigError(f"there is no level {level!r}", where="--level", fix=f"one of {', '.join(LEVELS)}")
    if image not in DEFAULT_IMAGES:
        raise ConfigError(f"there is no image {image!r}", where="--image", fix=f"one of {', '.join(DEFAULT_IMAGES)}")
    limits = Limits(cpu_seconds=cpu_seconds, memory_mb=memory_mb, output_kb=output_kb)
    asked = Program(
        code=_text(Path(program[0])) if _is_python(program) else None,
        argv=None if _is_python(program) else tuple(program),
        stdin="" if stdin is None else sys.stdin.read() if str(stdin) == "-" else _text(stdin),
        files={path.name: _text(path) for path in file or ()},
        image=image,
        limits=limits,
    )
    with open_sandbox(cast(IsolationLevel, level), workers=1, allow_weak=level == "rlimits") as sandbox:
        execution = sandbox.run(asked)
    if as_json:
        print(json.dumps(asdict(execution), indent=2))
    else:
        _show(execution)
    raise typer.Exit(0 if execution.outcome == "ok" else 1)


def _is_python(program: list[str]) -> bool:
    return len(program) == 1 and program[0].endswith(".py")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as broken:
        raise ConfigError(f"cannot be read as text: {broken}", where=str(path)) from broken


def _show(execution: Execution) -> None:
    """Output as it was, with control characters of terminals made harmless; what became of it on stderr."""
    print(_harmless(execution.stdout), end="")
    print(_harmless(execution.stderr), end="", file=sys.stderr)
    ended = f"exit {execution.exit_code}" if execution.signal is None else f"signal {execution.signal}"
    cut = " (output cut)" if execution.stdout_truncated or execution.stderr_truncated else ""
    why = f" ({execution.detail})" if execution.detail else ""
    print(
        f"{execution.outcome}{why}: {ended}, {execution.cpu_seconds:.3f} s CPU, {execution.wall_seconds:.3f} s, "
        f"{execution.peak_memory_mb:.0f} MiB, {execution.level}, {execution.image}{cut}",
        file=sys.stderr,
    )


def _harmless(text: str) -> str:
    return "".join(c if (c >= " " and c != "\x7f") or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)
