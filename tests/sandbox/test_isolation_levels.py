"""Levels: what each gives, on this machine, as another user, and in an emulated container; errors that help."""

from __future__ import annotations

import errno
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from surefoot.errors import SandboxError
from surefoot.sandbox import Sandbox, doctor, open_sandbox
from surefoot.sandbox.inside import filter as seccomp
from surefoot.sandbox.inside import kernel
from surefoot.sandbox.inside.syscalls import AUDIT_ARCH, NUMBERS
from surefoot.sandbox.remedies import remedy

ROOT = Path(__file__).resolve().parents[2]
ALLOW, KILL = 0x7FFF_0000, 0x8000_0000


def decide(bpf: bytes, machine: str, number: int, *arguments: int) -> int:
    """What a filter returns for one call: a small interpreter of classic BPF."""
    words = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<iIQ6Q", number, AUDIT_ARCH[machine], 0, *words)
    code = [struct.unpack_from("HBBI", bpf, offset) for offset in range(0, len(bpf), 8)]
    accumulator, at = 0, 0
    while True:
        operation, jump_true, jump_false, value = code[at]
        at += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif operation == 0x06:
            return int(value)
        else:
            holds = {
                0x15: accumulator == value,
                0x45: bool(accumulator & value),
                0x35: accumulator >= value,
            }[operation]
            at += jump_true if holds else jump_false


def refused(error: int) -> int:
    return 0x0005_0000 | error


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filters_decisions(machine: str) -> None:
    nr = NUMBERS[machine]
    first = seccomp.for_zygote(machine)
    second = seccomp.for_run(forks=False, own_pid=77, machine=machine)

    def both(name: str, *arguments: int) -> int:
        return min(decide(bpf, machine, nr[name], *arguments) for bpf in (first, second))

    for name in (
        "ptrace",
        "bpf",
        "io_uring_setup",
        "keyctl",
        "memfd_create",
        "mount",
        "unshare",
        "setns",
        "pidfd_open",
    ):
        assert both(name) == refused(errno.EPERM), name
    assert both("socket", 1, 1, 0) == refused(errno.EACCES)
    assert both("clone3") == refused(errno.ENOSYS)
    assert both("clone", kernel.CLONE_NEWUSER | 17) == refused(errno.EPERM)
    assert both("clone", 17) == refused(errno.EAGAIN)
    assert both("clone", 0x0001_0000 | 0x100) == ALLOW
    assert both("prlimit64", 0, 7) == ALLOW and both("prlimit64", 5, 7) == refused(errno.EPERM)
    assert both("kill", 77, 9) == ALLOW and both("kill", 78, 9) == refused(errno.EPERM)
    assert both("kill", 2**32 - 1, 9) == refused(errno.EPERM)
    assert both("ioctl", 0, 0x5412) == refused(errno.EPERM) and both("ioctl", 0, 0x5401) == ALLOW
    assert both("execve") == ALLOW
    with_forks = seccomp.for_run(forks=True, machine=machine)
    assert decide(with_forks, machine, nr["clone"], 17) == ALLOW and decide(with_forks, machine, nr["kill"], 5) == ALLOW
    other = {"x86_64": "aarch64", "aarch64": "x86_64"}[machine]
    assert decide(first, other, 0) == KILL


def test_x32_calls_are_refused() -> None:
    assert decide(seccomp.for_zygote("x86_64"), "x86_64", 0x4000_0000 + 39) == refused(errno.ENOSYS)


def test_the_doctor_finds_what_holds(namespaces: Sandbox) -> None:
    report = doctor.LevelReport("namespaces", doctor.examine_level("namespaces").probes)
    assert report.holds and len(report.probes) >= 15


@pytest.mark.slow
def test_the_doctors_report(namespaces: Sandbox, landlock: Sandbox, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main_report() == 0
    printed = capsys.readouterr().out
    assert "namespaces: holds" in printed and "landlock: holds" in printed and "rlimits: does NOT hold" in printed
    assert 'Use [sandbox] level = "namespaces".' in printed


def test_rlimits_only_on_demand() -> None:
    with pytest.raises(SandboxError, match="allow_weak"):
        open_sandbox("rlimits")
    with open_sandbox("rlimits", allow_weak=True) as sandbox:
        assert sandbox.level == "rlimits"


def test_a_sandbox_needs_a_worker() -> None:
    with pytest.raises(SandboxError, match="at least one worker"):
        Sandbox("namespaces", workers=0)


@pytest.mark.parametrize(
    ("failure", "way_out"),
    [
        ("PermissionError: unshare(NEWUSER): Operation not permitted", "seccomp=unconfined"),
        ("OSError: landlock_create_ruleset: Function not implemented", "Linux 5.13"),
        ("OSError: open_tree(/usr): Function not implemented", "Linux 5.12"),
    ],
)
def test_a_refusal_names_the_way_out(failure: str, way_out: str) -> None:
    error = remedy("namespaces", "enter namespaces", failure)
    assert failure.split(": ")[1].split("(")[0] in str(error) and way_out in str(error)
    assert 'level = "landlock"' in str(error)


# ------------------------------------------------------------------------------------- other users, other containers

EXAMINE = """
from surefoot.sandbox import doctor
for level in ("namespaces", "landlock"):
    report = doctor.examine_level(level)
    broken = [probe for probe in report.probes if not probe.held]
    print(level, "holds" if report.holds else f"refused {report.refused} {broken}".replace("\\n", " "))
"""
CONTAINER = """
import ctypes, errno
from surefoot.sandbox.inside import filter, kernel
assembler = filter._Assembler(kernel.MACHINE)
for name in "unshare setns mount umount2 pivot_root move_mount open_tree fsopen mount_setattr keyctl bpf".split():
    assembler.refuse(name, errno.EPERM)
assembler.refuse("clone3", errno.ENOSYS)
assembler.refuse_if("clone", 0, [(filter._JSET, 0, 1, filter._NAMESPACES)], errno.EPERM)
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
filter.install(assembler.finish())
"""


def _python_for_others() -> list[str]:
    """An interpreter and its packages that any user may read, as the start of a command."""
    import pydantic

    packages = Path(pydantic.__file__).parents[1]
    candidates = [sys.executable, shutil.which("python3", path="/usr/local/bin:/usr/bin") or sys.executable]
    for python in dict.fromkeys(candidates):
        command = ["env", f"PYTHONPATH={ROOT}:{packages}", "PYTHONDONTWRITEBYTECODE=1", python]
        tried = subprocess.run(
            [*command, "-c", "import surefoot.sandbox"], user=65534, group=65534, extra_groups=[], capture_output=True
        )
        if tried.returncode == 0:
            return command
    pytest.skip("no interpreter with the packages is readable for other users")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become someone else")
def test_as_an_ordinary_user(namespaces: Sandbox, landlock: Sandbox) -> None:
    command = [*_python_for_others(), "-c", EXAMINE]
    done = subprocess.run(command, user=65534, group=65534, extra_groups=[], capture_output=True, text=True, cwd="/")
    assert done.stdout.splitlines() == ["namespaces holds", "landlock holds"], done


def test_in_a_container_that_denies_namespaces(landlock: Sandbox) -> None:
    """The calls that Docker's default profile denies are denied here by a filter of the same kind."""
    done = subprocess.run([sys.executable, "-c", CONTAINER + EXAMINE], capture_output=True, text=True, cwd=ROOT)
    first, second = done.stdout.splitlines()
    assert (
        first.startswith("namespaces refused") and "unshare" in first and "docs/sandbox.md" in first
    ) or "seccomp" in first
    assert second == "landlock holds", done


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become someone else")
def test_in_such_a_container_as_an_ordinary_user(landlock: Sandbox) -> None:
    command = [*_python_for_others(), "-c", CONTAINER + EXAMINE]
    done = subprocess.run(command, user=65534, group=65534, extra_groups=[], capture_output=True, text=True, cwd="/")
    assert "landlock holds" in done.stdout, done
