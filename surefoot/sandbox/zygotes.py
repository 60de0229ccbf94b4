"""The supervisor's handle of a zygote: starts it in its jail, sends it runs, ends it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

from surefoot.errors import SandboxError
from surefoot.sandbox.images import Layout
from surefoot.sandbox.inside import wire
from surefoot.sandbox.remedies import remedy
from surefoot.sandbox.scratch import Scratch
from surefoot.types import IsolationLevel

INSIDE = Path(__file__).resolve().parent / "inside"
START_SECONDS = 120.0
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Zygote:
    """One jailed process that forks a confined child for each run, one at a time.

    Raises SandboxError from the constructor if the kernel refuses the level; the error names the refused step.
    """

    def __init__(self, layout: Layout, level: IsolationLevel, handler: str | None = None) -> None:
        self.layout, self.level = layout, level
        self.runs = 0
        self._scratch = None if level == "namespaces" else Scratch("box")
        self.base = str(self._scratch.path) if self._scratch else None
        # A user of its own for each zygote, so that no two share a process count; it has no entry in /etc/passwd.
        uid = random.SystemRandom().randrange(61_000, 64_900)
        self.own_user = os.geteuid() == 0
        if self.base is not None and self.own_user:
            os.chown(self.base, uid, uid)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [layout.interpreter, "-s", "-P", "-S", str(INSIDE), str(theirs.fileno())],
                env=dict(layout.env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                cwd="/",
                start_new_session=True,  # Ctrl-C is for the supervisor
            )
        self._greet(self._config(uid, handler))

    def _config(self, uid: int, handler: str | None) -> dict[str, Any]:
        layout = self.layout
        mounts = [*layout.mounts, *([handler.rpartition(":")[0]] if handler and ".py:" in handler else [])]
        return {
            "level": self.level,
            "uid": uid,
            "own_user": self.own_user,
            "base": self.base,
            "mounts": mounts,
            "sys_path": list(layout.search),
            "preload": list(layout.preload),
            "handler": handler,
            "deterministic": layout.image.deterministic,
            "clock": layout.image.clock,
        }

    def _greet(self, config: dict[str, Any]) -> None:
        try:
            self.control.settimeout(START_SECONDS)
            wire.send(self.control, config)
            answer, fds = wire.receive(self.control)
            self.control.settimeout(None)
        except (OSError, EOFError, ValueError) as error:
            self.close()
            raise SandboxError(f"a sandbox zygote did not start: {error or 'it ended'}") from None
        if "failed" in answer:
            self.close()
            raise remedy(self.level, answer["step"], answer["failed"])
        try:
            self.pid = pid_of(fds[0])
        finally:
            os.close(fds[0])
        self.landlock_abi: int = answer["landlock_abi"]
        fields = Path(f"/proc/{self.pid}/statm").read_text().split()
        self.space_mb = int(fields[0]) * _PAGE / 2**20
        self.rss_mb = int(fields[1]) * _PAGE / 2**20
        if len(list(Path(f"/proc/{self.pid}/task").iterdir())) > 1:
            self.close()
            names = ", ".join(self.layout.preload)
            raise SandboxError(f"a module that the sandbox preloads starts threads, so it cannot be forked: {names}")

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def send(self, job: dict[str, Any], fds: list[int]) -> None:
        """Start a run. Raises OSError if the zygote is gone."""
        self.runs += 1
        wire.send(self.control, job, fds)

    def close(self) -> None:
        """End the zygote and whatever runs in it; waits until it is gone. Safe to call twice."""
        self.control.close()
        try:
            self._process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                if hasattr(self, "pid"):
                    os.kill(self.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()
        if self._scratch:
            self._scratch.close()


def pid_of(pidfd: int) -> int:
    """The process id, in our namespace, of the process behind a pidfd; -1 if it is gone."""
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text().splitlines():
        if line.startswith("Pid:"):
            return int(line.split()[1])
    return -1
