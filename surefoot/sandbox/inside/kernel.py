"""The Linux calls that Python 3.11 does not offer, through ctypes; each raises OSError that names the call."""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS = 0x0002_0000, 0x0200_0000, 0x0400_0000
CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 1 << 14, 1 << 18
MNT_DETACH = 2
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV = 1, 2, 4

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 8, 22, 24
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
SECCOMP_MODE_FILTER = 2
CAP_DAC_READ_SEARCH = 2
CAP_LAST = 40

AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC, MOVE_MOUNT_F_EMPTY_PATH = 1, 0o2000000, 4

# The same numbers on x86-64 and aarch64, as for every call since Linux 5.1; pivot_root is the exception.
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR, _CLOSE_RANGE = 428, 429, 442, 436
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
MACHINE = os.uname().machine
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}.get(MACHINE, -1)
_CAPSET = {"x86_64": 126, "aarch64": 91}.get(MACHINE, -1)

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(number: int, *arguments: object, what: str) -> int:
    """A raw system call. Raises OSError that starts with `what`."""
    return _check(libc.syscall(ctypes.c_long(number), *arguments), what)


_process = ctypes.PyDLL(None, use_errno=True)  # keeps the interpreter's lock during the call


def fork() -> int:
    """fork(2) without Python's fork handlers: half the cost of a run would be the pages that those touch.

    Only for a process with a single thread, whose child needs neither new locks nor a new seed from the system: that is
    all that the handlers see to.
    """
    return _check(_process.fork(), "fork")


def unshare(flags: int, what: str) -> None:
    _check(libc.unshare(ctypes.c_int(flags)), f"unshare({what})")


def setns(fd: int, flags: int) -> None:
    _check(libc.setns(ctypes.c_int(fd), ctypes.c_int(flags)), "setns")


def prctl(option: int, *arguments: int) -> int:
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    return _check(libc.prctl(ctypes.c_int(option), *padded), f"prctl({option})")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [None if text is None else text.encode() for text in (source, target, kind, data)]
    src, dst, fs, options = encoded
    _check(libc.mount(src, dst, fs, ctypes.c_ulong(flags), options), f"mount({kind or 'flags'} on {target})")


def unmount(target: str) -> None:
    _check(libc.umount2(target.encode(), MNT_DETACH), f"umount({target})")


def clone_tree(path: str) -> int:
    """A descriptor of a detached copy of the mount tree at `path`, to be attached with `attach_tree`."""
    flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE
    return syscall(_OPEN_TREE, AT_FDCWD, path.encode(), ctypes.c_uint(flags), what=f"open_tree({path})")


def attach_tree(tree: int, target: str) -> None:
    flags = ctypes.c_uint(MOVE_MOUNT_F_EMPTY_PATH)
    syscall(_MOVE_MOUNT, tree, b"", AT_FDCWD, target.encode(), flags, what=f"move_mount({target})")


def set_mount_attributes(fd: int, attributes: int, recursive: bool) -> None:
    """Set MOUNT_ATTR_* on the mount that `fd` refers to."""
    values = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    flags = ctypes.c_uint(AT_EMPTY_PATH | (AT_RECURSIVE if recursive else 0))
    size = ctypes.c_size_t(ctypes.sizeof(values))
    syscall(_MOUNT_SETATTR, fd, b"", flags, ctypes.byref(values), size, what="mount_setattr")


def pivot_root_here() -> None:
    """Make the working directory the root and let go of the old root."""
    syscall(_PIVOT_ROOT, b".", b".", what="pivot_root")
    unmount(".")
    os.chdir("/")


def close_all_from(first: int) -> None:
    syscall(_CLOSE_RANGE, ctypes.c_uint(first), ctypes.c_uint(0xFFFF_FFFF), 0, what="close_range")


_HEADER = (ctypes.c_uint32 * 2)(0x2008_0522, 0)
_SETS = ctypes.c_uint32 * 6  # the type is made once: making it costs more than the call


def set_capabilities(mask: int) -> None:
    """Set the effective and permitted sets to `mask` and empty the inheritable set."""
    low, high = mask & 0xFFFF_FFFF, mask >> 32
    data = _SETS(low, low, 0, high, high, 0)
    syscall(_CAPSET, ctypes.byref(_HEADER), ctypes.byref(data), what="capset")


def forbid_new_privileges() -> None:
    """Empty the bounding and ambient sets and set no_new_privs: no exec can ever give a capability back."""
    for capability in range(CAP_LAST + 1):
        # EPERM without CAP_SETPCAP, EINVAL past the kernel's last: no_new_privs holds in either case.
        libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0)
    libc.prctl(PR_CAP_AMBIENT, ctypes.c_ulong(PR_CAP_AMBIENT_CLEAR_ALL), 0, 0, 0)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
