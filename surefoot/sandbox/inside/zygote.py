"""The zygote: enters the jail, imports what runs need, then forks one confined child a run, one run at a time.

It never reads a payload: code, input and tests travel in descriptors that only the child opens, so nothing of one run
is in the memory that the next one inherits. It needs no /proc, so that it also works in containers that mask it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import os
import select
import signal
import socket
import sys
from typing import Any, NoReturn

from . import child, filter, kernel, landlock, program, root, warm, wire, work

PRELOAD = (
    "abc ast atexit bisect codecs collections contextlib copy ctypes dataclasses datetime decimal enum fractions "
    "functools heapq inspect io itertools json linecache math operator os random re string struct sys threading time "
    "traceback types typing warnings weakref"
)
"""What most programs import: here it is paid once, in the child in every run. No more than that: each module makes
every fork a little slower, by its pages and, if it is a shared library, by its mappings."""

_SHORT_MS = 10


def main(control_fd: int) -> NoReturn:
    """Serve the supervisor on `control_fd` until it goes away."""
    control = socket.socket(fileno=control_fd)
    config, _ = wire.receive(control)
    step = "start"
    try:
        if config["level"] == "namespaces":
            step = "enter namespaces"
            _enter_namespaces(config)
        else:
            step = "give up privileges"
            _become_nobody(config)
        step = "preload"
        handler = _preload(config)
    except BaseException as error:
        failure = {"failed": f"{type(error).__name__}: {error}", "step": step}
        with contextlib.suppress(OSError):
            wire.send(control, failure)
        os._exit(1)
    _serve(control, config, handler)
    _leave(config)


# ------------------------------------------------------------------------------------------------ entering the jail


def _enter_namespaces(config: dict[str, Any]) -> None:
    """New user, mount, pid, ipc, net and uts namespaces and a new root; returns as process 1 of the pid namespace."""
    proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    built = False
    if os.geteuid() == 0:
        # Real root can see the interpreter even where an unprivileged user could not, so it builds the root first.
        with contextlib.suppress(PermissionError):
            kernel.unshare(kernel.CLONE_NEWNS, "NEWNS")
            root.build(config["mounts"])
            built = True
        _switch_user(config["uid"])
    uid, gid = os.geteuid(), os.getegid()
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # else the files of /proc/self belong to root
    kernel.unshare(kernel.CLONE_NEWUSER, "NEWUSER")
    for name, text in (("setgroups", "deny"), ("uid_map", f"1000 {uid} 1"), ("gid_map", f"1000 {gid} 1")):
        _write_at(proc, f"self/{name}", text)
    os.close(proc)
    others = kernel.CLONE_NEWIPC | kernel.CLONE_NEWNET | kernel.CLONE_NEWUTS | kernel.CLONE_NEWCGROUP
    kernel.unshare(kernel.CLONE_NEWNS | others | kernel.CLONE_NEWPID, "NEWNS|NEWPID|NEWIPC|NEWNET|NEWUTS|NEWCGROUP")
    if not built:
        root.build(config["mounts"])
    socket.sethostname("sandbox")
    if (pid := os.fork()) != 0:
        _wait_for(pid)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)


def _wait_for(pid: int) -> NoReturn:
    """Stand outside the pid namespace until its process 1 is gone."""
    os.closerange(0, 256)
    os.waitpid(pid, 0)
    os._exit(0)


def _write_at(folder: int, path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.write(fd, text.encode())
    except OSError as error:
        raise OSError(error.errno, f"write to /proc/{path}: {error.strerror}") from None
    finally:
        os.close(fd)


def _become_nobody(config: dict[str, Any]) -> None:
    """Without namespaces: at least not root, where that can be chosen."""
    if os.geteuid() == 0:
        kernel.prctl(kernel.PR_SET_KEEPCAPS, 1)
        _switch_user(config["uid"])
        config["keep_capabilities"] = _reading_needs(config)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)


def _switch_user(uid: int) -> None:
    """Real root is exempt from RLIMIT_NPROC and owns the host's files: become `uid` where the container allows it."""
    with contextlib.suppress(OSError):
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def _reading_needs(config: dict[str, Any]) -> int:
    """CAP_DAC_READ_SEARCH if the interpreter lies where only root may look (then Landlock alone guards files)."""
    mask = 1 << kernel.CAP_DAC_READ_SEARCH
    kernel.set_capabilities(mask)
    return 0 if all(_readable_without(mask, path) for path in config["mounts"]) else mask


def _readable_without(mask: int, path: str) -> bool:
    return os.access(path, os.R_OK) if os.path.exists(path) else True


# ---------------------------------------------------------------------------------------------------------- serving


def _preload(config: dict[str, Any]) -> Any:
    """Import what runs need and freeze it, so that forks share it. Returns the request handler, if there is one."""
    sys.path[:] = [*config["sys_path"]]
    sys.argv[:] = ["main.py"]
    sys.dont_write_bytecode = True
    for name in PRELOAD.split() + list(config["preload"]):
        importlib.import_module(name)
    handler = _load_handler(config["handler"]) if config.get("handler") else None
    warm.up()
    gc.collect()
    gc.freeze()
    return handler


def _load_handler(setup: str) -> Any:
    place, _, function = setup.rpartition(":")
    if place.endswith(".py"):
        spec = importlib.util.spec_from_file_location("grader", place)
        if spec is None or spec.loader is None:
            raise ImportError(f"{place} cannot be loaded")
        module = importlib.util.module_from_spec(spec)
        sys.modules["grader"] = module
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(place)
    return getattr(module, function)


def _serve(control: socket.socket, config: dict[str, Any], handler: Any) -> None:
    kernel.forbid_new_privileges()
    own = os.pidfd_open(os.getpid())
    wire.send(control, {"ready": True, "landlock_abi": landlock.abi()}, [own])
    filter.install(filter.for_zygote())
    program.make_deterministic(config)
    config["bpf"] = filter.for_run(forks=True)
    while True:
        try:
            job, fds = wire.receive(control)
        except (EOFError, ConnectionError):
            return
        try:
            ended = _run(control, config, handler, own, job, fds)
        except OSError as error:
            ended = {"failed": f"{error}"}
        finally:
            for fd in fds:
                os.close(fd)
        try:
            wire.send(control, ended)
        except OSError:
            return


def _run(
    control: socket.socket, config: dict[str, Any], handler: Any, own: int, job: dict[str, Any], fds: list[int]
) -> dict[str, Any]:
    """Fork a confined child, wait for it, and say how it ended."""
    confined, report = os.pipe()
    try:
        pid = _fork(config, own)
        if pid == 0:
            child.main(config, job, fds, report, handler)
        os.close(report)
        report = -1
        pidfd = os.pidfd_open(pid)
        try:
            if not _wait(pidfd, control):
                _leave(config)
        finally:
            os.close(pidfd)
        _, status, usage = os.wait4(pid, 0)
        if config["level"] == "namespaces" and job["kind"] != "argv":
            with contextlib.suppress(OSError):  # the child may have failed before it mounted
                kernel.unmount(root.BOX)
        if config["base"]:
            work.remove(os.path.join(config["base"], work.RUN))
        told = os.read(confined, 4096)
    finally:
        os.close(confined)
        if report >= 0:
            os.close(report)
    return _ending(told, status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)


def _fork(config: dict[str, Any], own: int) -> int:
    if config["level"] != "namespaces":
        return kernel.fork()
    kernel.unshare(kernel.CLONE_NEWPID, "NEWPID")
    pid = -1
    try:
        pid = kernel.fork()
    finally:
        if pid != 0:  # this process's next child shall not be born into the namespace of this one
            kernel.setns(own, kernel.CLONE_NEWPID)
    return pid


def _wait(pidfd: int, control: socket.socket) -> bool:
    """Until the child ends; if the supervisor goes away first, kill it and say False.

    The supervisor is told of the child only if it does not end at once, as most do: the message costs more than some
    of them.
    """
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    if poll.poll(_SHORT_MS):
        return True
    wire.send(control, {"started": True}, [pidfd])
    poll.register(control, select.POLLRDHUP)
    supervised = all(fd == pidfd for fd, _ in poll.poll())
    if not supervised:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOWAIT)
    return supervised


def _leave(config: dict[str, Any]) -> NoReturn:
    """The supervisor is gone, perhaps killed: leave nothing on the host."""
    if config["base"]:
        work.remove(config["base"])
    os._exit(0)


def _ending(told: bytes, status: int, cpu: float, rss_kib: int) -> dict[str, Any]:
    """What the child's trusted part told (before any untrusted code ran, or from its own process) and how it ended."""
    if not told.startswith(b"C"):
        return {"failed": told.decode(errors="replace") or "the child ended before it was confined"}
    if len(told) > 1:  # the status of a command, told by the process 1 that waited for it
        status = int(told[1:])
    return {"status": status, "cpu": cpu, "rss_kib": rss_kib}
