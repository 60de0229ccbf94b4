"""Runs in processes of their own, which can be killed. A fork server has imported everything beforehand."""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["surefoot.cli", "surefoot.api", "torch.utils.tensorboard", "pyarrow.parquet"])


def start(recipe: Path, run: Path, resume: bool, log: Path, largest_file: int | None = None) -> ForkServerProcess:
    """The command line's `train` in a new process; what it prints goes to `log`."""
    process = SERVER.Process(target=_main, args=(recipe, run, resume, log, largest_file))
    process.start()
    return process


def finish(recipe: Path, run: Path, resume: bool, log: Path, largest_file: int | None = None) -> int:
    """Run to the end; returns the exit code."""
    process = start(recipe, run, resume, log, largest_file)
    process.join(timeout=240)
    assert process.exitcode is not None, log.read_text()
    return process.exitcode


def _main(recipe: Path, run: Path, resume: bool, log: Path, largest_file: int | None) -> None:
    from surefoot.cli import main

    end: Callable[[int], object] = os._exit
    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    sys.argv = ["surefoot", "train", str(recipe), "--run-dir", str(run), *(["--resume"] if resume else [])]
    try:
        main()
    except SystemExit as ended:
        sys.stdout.flush()
        sys.stderr.flush()
        end(int(ended.code or 0))
