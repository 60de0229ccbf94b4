"""What to do when the kernel or the container refuses a level."""

from __future__ import annotations

from surefoot.errors import SandboxError
from surefoot.types import IsolationLevel

_FIXES: dict[str, str] = {
    "unshare(NEWUSER)": (
        "user namespaces are denied here. Docker: --security-opt seccomp=unconfined (and apparmor=unconfined); "
        "Kubernetes: seccompProfile.type: Unconfined, or hostUsers: false; bare host: sysctl "
        "kernel.unprivileged_userns_clone=1, user.max_user_namespaces=10000, and on Ubuntu "
        "kernel.apparmor_restrict_unprivileged_userns=0"
    ),
    "unshare": "namespaces are denied here; see docs/sandbox.md for Docker, Kubernetes and Slurm",
    "open_tree": "the mount calls of Linux 5.12 are needed; newer kernel, or a seccomp profile that lets them through",
    "mount": "mounts are denied here (AppArmor or seccomp); see docs/sandbox.md",
    "pivot_root": "pivot_root is denied here; see docs/sandbox.md",
    "landlock": "Landlock is missing: Linux 5.13 with CONFIG_SECURITY_LANDLOCK and `landlock` in the lsm= list",
    "prctl(22": "seccomp filters are missing: CONFIG_SECCOMP_FILTER",
}


def remedy(level: IsolationLevel, step: str, failure: str) -> SandboxError:
    """The error for a level that cannot be had: what was refused, and the way to get it."""
    fix = next((text for key, text in _FIXES.items() if key in failure), "run `surefoot sandbox doctor`")
    if level == "namespaces" and step == "enter namespaces":
        fix += '; or accept level = "landlock", which needs no privilege'
    return SandboxError(f"the sandbox level {level!r} cannot be had: {failure}", where=step, fix=fix)
