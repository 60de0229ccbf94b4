"""What a run uses, read from outside: the whole process tree, from the supervisor's own /proc."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(frozen=True, slots=True)
class Usage:
    """Use of a process tree at one moment."""

    cpu_seconds: float
    memory_mb: float
    """Resident memory; pages shared with the zygote are counted once."""
    processes: int


def usage(root: int, shared_mb: float) -> Usage | None:
    """Use of `root` and everything below it; None if it is gone. `shared_mb`: what each fork shares with the zygote."""
    cpu, memory, count = 0.0, 0.0, 0
    for pid in tree(root):
        if (stat := _stat(pid)) is None:
            continue
        cpu += sum(int(ticks) for ticks in stat[11:15]) / _TICK  # own user and system, and those of waited-for children
        resident = int(stat[21]) * _PAGE_MB
        memory += resident if pid == root else max(0.0, resident - shared_mb)
        count += 1
    return Usage(cpu, memory, count) if count else None


def proportional_mb(root: int) -> float | None:
    """Memory of the tree with shared pages split among their users: exact but slow. None if the kernel forbids it."""
    total = 0.0
    try:
        for pid in tree(root):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) / 1024
    except OSError:
        return None
    return total


def tree(root: int) -> Iterator[int]:
    """`root` and its descendants. Orphans belong to process 1 of their namespace, so nothing escapes."""
    waiting = [root]
    seen: set[int] = set()
    while waiting:
        pid = waiting.pop()
        if pid in seen:
            continue
        seen.add(pid)
        yield pid
        try:
            for thread in Path(f"/proc/{pid}/task").iterdir():
                waiting += map(int, (thread / "children").read_text().split())
        except OSError:
            continue


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the third (state) on."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()


def delay(pid: int) -> float:
    """Seconds for which a process was ready to run but had no core; 0 if it is gone or the kernel does not say."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def folder_mb(path: str, most_files: int = 5000) -> float:
    """Disk use of a folder in MiB; infinite if it holds more than `most_files` entries. Follows no links."""
    total, count, waiting = 0, 0, [path]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    count += 1
                    if count > most_files:
                        return float("inf")
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue
    return total / 2**20
