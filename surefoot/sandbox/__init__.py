"""Runs untrusted programs: isolated, reproducible, observable, and fast.

Open one with `open_sandbox()`, then `run` programs, `call` functions of solutions, or `judge` solutions by tests.
`JailedWorker` runs trusted grader code over untrusted text. `doctor` says what this machine can give.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from surefoot.errors import SandboxError
from surefoot.protocols import Limits
from surefoot.sandbox import probes
from surefoot.sandbox.grader import JailedWorker
from surefoot.sandbox.images import Image
from surefoot.sandbox.sandbox import DEFAULT_LIMITS, Sandbox
from surefoot.types import IsolationLevel

__all__ = ["Image", "JailedWorker", "Sandbox", "open_sandbox"]


def open_sandbox(
    level: IsolationLevel = "namespaces",
    workers: int = 2,
    images: Mapping[str, Image] | None = None,
    allow_weak: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Sandbox:
    """Open a sandbox at exactly `level`, after attacking it to see that it holds.

    Args:
        level: `namespaces`, `landlock` (plain containers), or `rlimits` (hides no files; needs `allow_weak`).
        workers: Programs run at the same time.
        images: More images, or other ones under the names `python` and `python-scientific`.
        allow_weak: Accept the level `rlimits`.
        limits: Of runs that name none.

    Raises SandboxError if the machine cannot give the level: it names what was refused and the way to get it.
    """
    if level == "rlimits" and not allow_weak:
        fix = 'use level = "landlock", or set allow_weak = true if every program is trusted'
        raise SandboxError("the level 'rlimits' hides neither the host's files nor its processes", fix=fix)
    sandbox = Sandbox(level, workers, images, limits)
    try:
        if level != "rlimits":
            _require(sandbox)
    except BaseException:
        sandbox.close()
        raise
    return sandbox


@cache
def _trusted(level: IsolationLevel) -> list[bool]:
    """Whether `level` was attacked in this process already and held."""
    return []


def _require(sandbox: Sandbox) -> None:
    verdict = _trusted(sandbox.level)
    if verdict:
        return
    broken = [f"{probe.name}: {probe.evidence}" for probe in probes.quick(sandbox) if not probe.held]
    if broken:
        raise SandboxError(
            f"the sandbox level {sandbox.level!r} does not hold on this machine ({'; '.join(broken)})",
            fix="run `surefoot sandbox doctor`",
        )
    verdict.append(True)
