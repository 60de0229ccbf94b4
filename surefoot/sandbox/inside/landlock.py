"""Landlock (landlock(7)): which files a process may touch, without privilege and without namespaces."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable

from . import kernel

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_REG, _MAKE_SYM = 1 << 4, 1 << 5, 1 << 7, 1 << 8, 1 << 12
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
READ = _EXECUTE | _READ_FILE | _READ_DIR
DEVICE = _READ_FILE | _WRITE_FILE
WORK = READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_SYM | _REFER | _TRUNCATE
_FILE_ONLY = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_NET_BIND_CONNECT = 3
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 3


def abi() -> int:
    """Version of Landlock in this kernel; 0 if there is none."""
    try:
        return kernel.syscall(kernel.LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), 1, what="landlock")
    except OSError:
        return 0


def _handled(version: int) -> int:
    bits = {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)
    return (1 << bits) - 1


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("fd", ctypes.c_int32))


def restrict(rules: Iterable[tuple[str, int]]) -> None:
    """Confine this process and all that it starts to `rules`: (path, access) pairs. Needs no_new_privs.

    TCP and, from ABI 6, abstract sockets and signals to the outside are closed too. Raises OSError.
    """
    version = abi()
    handled = _handled(version)
    words = [handled, _NET_BIND_CONNECT if version >= 4 else 0, _SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS]
    used = 1 if version < 4 else 2 if version < 6 else 3
    attributes = (ctypes.c_uint64 * used)(*words[:used])
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    call = kernel.LANDLOCK_CREATE_RULESET
    ruleset = kernel.syscall(call, ctypes.byref(attributes), size, 0, what="landlock_create_ruleset")
    try:
        for path, access in rules:
            _allow(ruleset, path, access & handled)
        kernel.syscall(kernel.LANDLOCK_RESTRICT_SELF, ruleset, 0, what="landlock_restrict_self")
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        is_folder = os.path.isdir(path)
        rule = _PathRule(access if is_folder else access & _FILE_ONLY, fd)
        kernel.syscall(kernel.LANDLOCK_ADD_RULE, ruleset, 1, ctypes.byref(rule), 0, what=f"landlock_add_rule({path})")
    finally:
        os.close(fd)
