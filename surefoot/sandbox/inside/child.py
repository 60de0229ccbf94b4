"""One run, from the fork to its end: confine this process, then do the job that it was forked for."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
from typing import Any, NoReturn

from . import checker, command, filter, kernel, landlock, program, root, solution, testfiles, work

MIB = 1 << 20
_READABLE = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/passwd", "/etc/group", "/etc/localtime")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def main(config: dict[str, Any], job: dict[str, Any], fds: list[int], report: int, handler: Any) -> NoReturn:
    """Never returns. `fds` are payload, stdin, stdout, stderr and what the job needs besides (from 3 on)."""
    try:
        payload = _read_all(fds[0])
        report = _arrange(fds[1:], report)
        _confine(config, job)
        work.lay_out(payload.get("files", {}))
        os.write(report, b"C")
        if job["kind"] != "argv":
            os.close(report)
    except BaseException as error:
        os.write(report, f"E{type(error).__name__}: {error}".encode()[:4000])
        os._exit(1)
    _do(job["kind"], config, payload, report, handler)


def _do(kind: str, config: dict[str, Any], payload: dict[str, Any], report: int, handler: Any) -> NoReturn:
    if kind == "argv":
        command.main(payload["argv"], report)
    program.start(config)
    if kind == "solution":
        solution.main(payload, 3)
    if kind == "calls":
        solution.run_calls(payload["code"], payload["calls"], 3)
    if kind == "checker":
        checker.main(payload, 3, 4)
    if kind == "testfiles":
        testfiles.main(payload, 3, 4)
    if kind == "request":
        program.answer(handler, payload["request"], 3)
    program.main(payload["code"])


def _read_all(fd: int) -> dict[str, Any]:
    size = os.fstat(fd).st_size
    payload: dict[str, Any] = json.loads(os.pread(fd, size, 0)) if size else {}
    return payload


def _arrange(fds: list[int], report: int) -> int:
    """Put `fds` at 0, 1, 2, ... and `report` after them; close everything else. Returns the new `report`."""
    safe = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64) for fd in [*fds, report]]
    for target, fd in enumerate(safe):
        os.dup2(fd, target, inheritable=target < len(fds))
    kernel.close_all_from(len(safe))
    return len(fds)


def _confine(config: dict[str, Any], job: dict[str, Any]) -> None:
    """Own files, limits, no privileges, and the filter: after this, untrusted code may run."""
    os.setpgid(0, 0)  # not setsid: a new session is a new scheduling group, which waits its turn on a busy machine
    namespaces = config["level"] == "namespaces"
    if namespaces:
        if job["kind"] == "argv":
            kernel.unshare(kernel.CLONE_NEWNS, "NEWNS")
            command.mount_proc()
        # Others mount in the zygote's namespace, which runs one at a time and unmounts when all of the run is dead:
        # taking a mount namespace down costs the kernel a fifth of a run.
        root.mount_box(job["disk_mb"])
    else:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        work.enter(config["base"])
    _limit(job, namespaces, config["own_user"])
    kernel.set_capabilities(config.get("keep_capabilities", 0))
    if config["level"] == "landlock":
        landlock.restrict(_rules(config))
    filter.install(config["bpf"] if namespaces else filter.for_run(forks=False, own_pid=os.getpid()))


def _limit(job: dict[str, Any], namespaces: bool, own_user: bool) -> None:
    space = resource.RLIMIT_DATA if job["kind"] == "argv" else resource.RLIMIT_AS
    cpu = int(2 * job["cpu_seconds"]) + 2  # a backstop only: it counts ticks, up to a fifth early
    limits = {
        space: job["space_mb"] * MIB,
        resource.RLIMIT_CPU: cpu,
        resource.RLIMIT_FSIZE: job["disk_mb"] * MIB,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_STACK: (8 if job["kind"] == "argv" else 64) * MIB,
    }
    if namespaces:  # the count is per user namespace: the zygote and the process that waits for it are in it
        limits[resource.RLIMIT_NPROC] = job["processes"] + (3 if job["kind"] == "argv" else 2)
    elif own_user:
        limits[resource.RLIMIT_NPROC] = job["processes"] + 1
    for which, value in limits.items():
        _, hard = resource.getrlimit(which)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))


def _rules(config: dict[str, Any]) -> list[tuple[str, int]]:
    readable = [(path, landlock.READ) for path in (*config["mounts"], *_READABLE)]
    devices = [(path, landlock.DEVICE) for path in _DEVICES]
    return [*readable, *devices, (os.path.dirname(os.getcwd()), landlock.WORK)]
