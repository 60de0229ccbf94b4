"""What this machine can give, found by attacking it: `surefoot sandbox doctor`."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

from surefoot.errors import SandboxError
from surefoot.sandbox import probes
from surefoot.sandbox.inside import landlock
from surefoot.sandbox.sandbox import Sandbox
from surefoot.types import IsolationLevel

LEVELS: tuple[IsolationLevel, ...] = ("namespaces", "landlock", "rlimits")


@dataclass(frozen=True, slots=True)
class LevelReport:
    """One level on this machine."""

    level: IsolationLevel
    probes: tuple[probes.Probe, ...] = ()
    refused: str = ""
    """Why the level cannot be had at all: the refused call and the way to get it; empty if it can."""

    @property
    def holds(self) -> bool:
        """Whether the level can be had and every attack on it failed."""
        return not self.refused and all(probe.held for probe in self.probes)


@dataclass(frozen=True, slots=True)
class Report:
    """All levels on this machine, strongest first."""

    kernel: str
    user: str
    landlock_abi: int
    levels: tuple[LevelReport, ...]

    @property
    def strongest(self) -> IsolationLevel | None:
        """The strongest level that holds; `rlimits` never counts."""
        return next((report.level for report in self.levels if report.holds and report.level != "rlimits"), None)


def examine() -> Report:
    """Attack every level for real. Takes some seconds and leaves nothing behind."""
    return Report(
        kernel=f"{platform.system()} {platform.release()} {platform.machine()}",
        user=f"uid {os.geteuid()}",
        landlock_abi=landlock.abi(),
        levels=tuple(examine_level(level) for level in LEVELS),
    )


def examine_level(level: IsolationLevel) -> LevelReport:
    """Attack one level."""
    try:
        with Sandbox(level, workers=1) as sandbox:
            return LevelReport(level, probes.quick(sandbox) + probes.limits(sandbox))
    except SandboxError as error:
        return LevelReport(level, refused=str(error))


def describe(report: Report) -> str:
    """The report as text, one attack a line."""
    lines = [f"{report.kernel}, {report.user}, Landlock ABI {report.landlock_abi}"]
    for level in report.levels:
        state = "holds" if level.holds else "cannot be had" if level.refused else "does NOT hold"
        lines.append(f"\n{level.level}: {state}")
        lines += [f"  {line}" for line in level.refused.splitlines()]
        for probe in level.probes:
            lines.append(f"  {'held  ' if probe.held else 'BROKEN'}  {probe.name:34} {probe.evidence[:70]}")
    best = report.strongest
    lines.append(f'\nUse [sandbox] level = "{best}".' if best else "\nNo level holds here; see docs/sandbox.md.")
    return "\n".join(lines)


def main_report() -> int:
    """Examine this machine and print the report. Returns the exit status: 0 if a level holds that isolates."""
    report = examine()
    print(describe(report))
    return 0 if report.strongest else 1
