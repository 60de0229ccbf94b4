"""The inner half of `sandbox_layers.py`: as lean a process as a zygote, which times runs with more and more layers."""

from __future__ import annotations

import gc
import importlib
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, sys.argv[1])
inside: Any = importlib.import_module("inside")
child, filters, kernel, program, root, zygote = (
    importlib.import_module(f"inside.{name}") for name in ("child", "filter", "kernel", "program", "root", "zygote")
)
CODE = "print(1)\n"
JOB = {"kind": "code", "cpu_seconds": 2.0, "space_mb": 1 << 14, "disk_mb": 16, "processes": 1 << 12}
LAYERS = 7


def stages(rounds: int) -> list[float]:
    """Median seconds of a run with the first 1, 2, ... layers, in namespaces of this process's own."""
    own = enter()
    for name in zygote.PRELOAD.split():
        importlib.import_module(name)
    kernel.forbid_new_privileges()
    filters.install(filters.for_zygote())
    bpf = filters.for_run(forks=True)
    gc.collect()
    gc.freeze()
    taken: list[list[float]] = [[] for _ in range(LAYERS)]
    for _ in range(rounds):
        for count in range(1, LAYERS + 1):
            start = time.perf_counter()
            run(count, own, bpf)
            taken[count - 1].append(time.perf_counter() - start)
    return [statistics.median(times) for times in taken]


def enter() -> int:
    """Own namespaces, as process 1 of the one of processes; returns a descriptor of it."""
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER, "NEWUSER")
    for name, text in (("setgroups", "deny"), ("uid_map", f"1000 {uid} 1"), ("gid_map", f"1000 {gid} 1")):
        Path(f"/proc/self/{name}").write_text(text)
    others = kernel.CLONE_NEWIPC | kernel.CLONE_NEWNET | kernel.CLONE_NEWUTS | kernel.CLONE_NEWPID
    kernel.unshare(kernel.CLONE_NEWNS | others, "NEWNS")
    root.BOX = tempfile.mkdtemp()
    root.WORK, root.TEMPORARY = f"{root.BOX}/work", f"{root.BOX}/tmp"
    if (pid := os.fork()) != 0:
        status = os.waitpid(pid, 0)[1]
        Path(root.BOX).rmdir()
        os._exit(os.waitstatus_to_exitcode(status))
    return os.pidfd_open(os.getpid())


def run(layers: int, own: int, bpf: bytes) -> None:
    """One run with so many layers."""
    if layers > 1:
        kernel.unshare(kernel.CLONE_NEWPID, "NEWPID")
    pid = kernel.fork()
    if pid == 0:
        confined(layers, bpf)
    if layers > 1:
        kernel.setns(own, kernel.CLONE_NEWPID)
    _, status = os.waitpid(pid, 0)
    assert status == 0, (layers, status)
    if layers > 2:
        kernel.unmount(root.BOX)


def confined(layers: int, bpf: bytes) -> None:
    """The child's part; does not return."""
    try:
        if layers > 2:
            root.mount_box(JOB["disk_mb"])
        if layers > 3:
            child._limit(JOB, True, True)
        if layers > 4:
            kernel.set_capabilities(0)
        if layers > 5:
            filters.install(bpf)
        if layers > 6:
            os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
            program.start({"deterministic": True})
            program.main(CODE)
        os._exit(0)
    except BaseException as error:
        os.write(2, f"layer {layers}: {type(error).__name__}: {error}\n".encode())
        os._exit(1)


if __name__ == "__main__":
    print(json.dumps(stages(int(sys.argv[2]))))
