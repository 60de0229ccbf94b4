"""The file system of a zygote: a small read-only root with the system's programs, and nothing of the host's data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from . import kernel

BOX = "/box"
"""Where a run's private tmpfs is mounted."""
WORK, TEMPORARY = f"{BOX}/work", f"{BOX}/tmp"
_LINKS = {"/tmp": TEMPORARY, "/var/tmp": TEMPORARY, "/dev/shm": TEMPORARY, "/work": WORK}
_DEVICES = ("null", "zero", "full", "random", "urandom")
_FILES = {
    "/etc/passwd": "user:x:1000:1000::/box/work:/bin/sh\n",
    "/etc/group": "user:x:1000:\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


def build(mounts: Sequence[str]) -> None:
    """Enter a new root that holds read-only copies of `mounts` (host paths, kept under the same names).

    Needs CAP_SYS_ADMIN over a mount namespace of its own. Raises OSError that names the step that the kernel refused.
    """
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    # Copies are taken before the new root hides anything (an interpreter may well live under /tmp).
    trees = [(path, _read_only_copy(path)) for path in _outermost(mounts)]
    devices = [(f"/dev/{name}", kernel.clone_tree(f"/dev/{name}")) for name in _DEVICES]
    kernel.mount("tmpfs", "/tmp", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=4m,nr_inodes=4k,mode=755")
    os.chdir("/tmp")
    for path, tree in [*trees, *devices]:
        _attach(path, tree)
    _system_links()
    for path, text in _FILES.items():
        _below(path).parent.mkdir(parents=True, exist_ok=True)
        if not _below(path).exists():
            _below(path).write_text(text)
    for path, target in _LINKS.items():
        _below(path).parent.mkdir(parents=True, exist_ok=True)
        if not _below(path).exists():  # something that is mounted may lie below it
            _below(path).symlink_to(target)
    for path in (BOX, "/proc"):
        _below(path).mkdir(exist_ok=True)
    kernel.pivot_root_here()
    top = os.open("/", os.O_PATH | os.O_DIRECTORY)
    attributes = kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV
    kernel.set_mount_attributes(top, attributes, recursive=False)
    os.close(top)


def mount_box(size_mb: int) -> None:
    """A fresh tmpfs of `size_mb` MiB with the work and temporary directories; the work directory becomes current."""
    flags = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("tmpfs", BOX, "tmpfs", flags, f"size={size_mb}m,nr_inodes={max(size_mb * 128, 256)},mode=755")
    os.mkdir(WORK)
    os.mkdir(TEMPORARY)
    os.chdir(WORK)


def _outermost(paths: Sequence[str]) -> list[str]:
    """Existing real paths without those that lie inside another one."""
    kept: list[str] = []
    for path in sorted({os.path.normpath(p) for p in paths if os.path.exists(p)}):
        if not any(path == other or path.startswith(other.rstrip("/") + "/") for other in kept):
            kept.append(path)
    return kept


def _read_only_copy(path: str) -> int:
    tree = kernel.clone_tree(os.path.realpath(path))
    attributes = kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NOSUID
    kernel.set_mount_attributes(tree, attributes, recursive=True)
    return tree


def _below(path: str) -> Path:
    return Path(path.lstrip("/"))


def _attach(path: str, tree: int) -> None:
    point = _below(path)
    if os.path.isdir(tree):
        point.mkdir(parents=True, exist_ok=True)
    else:
        point.parent.mkdir(parents=True, exist_ok=True)
        point.touch()
    kernel.attach_tree(tree, str(point))
    os.close(tree)


def _system_links() -> None:
    """/bin, /lib, ... as on a merged-/usr system; on others they are among the mounts."""
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        if not os.path.lexists(name) and os.path.isdir(f"usr/{name}"):
            os.symlink(f"usr/{name}", name)
