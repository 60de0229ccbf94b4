"""The seccomp filter of a run: a deny list as classic BPF, assembled here (seccomp(2), linux/filter.h).

A deny list, not an allow list: solutions may use threads, subprocesses and any library. What it takes away is every
way to another process, to the network, to a new namespace or mount, and the corners of the kernel with the worst
record of holes (io_uring, bpf, keyctl, userfaultfd, perf, ...).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from . import kernel
from .syscalls import AUDIT_ARCH, number

_LD_ABS, _JEQ, _JSET, _JGE, _AND, _RET = 0x20, 0x15, 0x45, 0x35, 0x54, 0x06
_KILL, _ERRNO, _ALLOW = 0x8000_0000, 0x0005_0000, 0x7FFF_0000
_NR, _ARCH, _ARGS = 0, 4, 16  # offsets in struct seccomp_data
_X32_BIT = 0x4000_0000
_NAMESPACES = (
    kernel.CLONE_NEWNS | kernel.CLONE_NEWCGROUP | kernel.CLONE_NEWUTS | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUSER | kernel.CLONE_NEWPID | kernel.CLONE_NEWNET
)  # fmt: skip
_CLONE_THREAD = 0x0001_0000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

_REFUSED_NAMES = """
ptrace process_vm_readv process_vm_writev process_madvise process_mrelease kcmp pidfd_getfd
pivot_root chroot move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr
io_uring_setup io_uring_enter io_uring_register keyctl add_key request_key bpf perf_event_open userfaultfd
kexec_load kexec_file_load init_module finit_module delete_module create_module get_kernel_syms query_module
reboot swapon swapoff sethostname setdomainname iopl ioperm modify_ldt quotactl quotactl_fd acct
settimeofday clock_settime clock_adjtime adjtimex nfsservctl open_by_handle_at name_to_handle_at lookup_dcookie
vhangup syslog personality uselib _sysctl ustat sysfs mknod mknodat
shmget shmat shmctl msgget msgsnd msgrcv msgctl semget semop semctl semtimedop mq_open mq_unlink
memfd_create memfd_secret fanotify_init fanotify_mark sched_setscheduler sched_setparam sched_setattr setpriority
ioprio_set migrate_pages move_pages set_mempolicy mbind tkill seccomp
"""

_ZYGOTE_NAMES = "unshare setns mount umount2 pidfd_open pidfd_send_signal"

Instruction = tuple[int, int, int, int]


def _errno(value: int) -> Instruction:
    return (_RET, 0, 0, _ERRNO | value)


class _Assembler:
    """Rules in order; a rule that does not match falls through to the next."""

    def __init__(self, machine: str) -> None:
        self.machine = machine
        self.code: list[Instruction] = [
            (_LD_ABS, 0, 0, _ARCH),
            (_JEQ, 1, 0, AUDIT_ARCH[machine]),
            (_RET, 0, 0, _KILL),
            (_LD_ABS, 0, 0, _NR),
        ]
        if machine == "x86_64":
            self.code += [(_JGE, 0, 1, _X32_BIT), _errno(errno.ENOSYS)]

    def refuse(self, name: str, error: int) -> None:
        if (nr := number(name, self.machine)) >= 0:
            self.code += [(_JEQ, 0, 1, nr), _errno(error)]

    def refuse_if(self, name: str, argument: int, test: list[Instruction], error: int) -> None:
        """Refuse `name` when `test`, run on the low word of an argument, falls off its end; its last jump skips 1."""
        if (nr := number(name, self.machine)) < 0:
            return
        body = [(_LD_ABS, 0, 0, _ARGS + 8 * argument), *test, _errno(error), (_LD_ABS, 0, 0, _NR)]
        self.code += [(_JEQ, 0, len(body), nr), *body]

    def finish(self) -> bytes:
        return b"".join(struct.pack("HBBI", *line) for line in [*self.code, (_RET, 0, 0, _ALLOW)])


def for_zygote(machine: str = os.uname().machine) -> bytes:
    """The larger part, as BPF: all that neither a zygote nor a run needs. Installing it costs more than the rest of a
    jail, so it is done once, and every run inherits it."""
    assembler = _Assembler(machine)
    for name in _REFUSED_NAMES.split():
        assembler.refuse(name, errno.EPERM)
    assembler.refuse("socket", errno.EACCES)
    assembler.refuse("clone3", errno.ENOSYS)  # its flags are behind a pointer; libc falls back to clone
    assembler.refuse_if("clone", 0, [(_JSET, 0, 1, _NAMESPACES)], errno.EPERM)
    assembler.refuse_if("prlimit64", 0, [(_JEQ, 1, 0, 0)], errno.EPERM)
    assembler.refuse_if("sched_setaffinity", 0, [(_JEQ, 1, 0, 0)], errno.EPERM)
    assembler.refuse_if("ioctl", 1, [(_JEQ, 0, 1, _TIOCSTI)], errno.EPERM)
    assembler.refuse_if("ioctl", 1, [(_JEQ, 0, 1, _TIOCLINUX)], errno.EPERM)
    return assembler.finish()


def for_run(*, forks: bool, own_pid: int | None = None, machine: str = os.uname().machine) -> bytes:
    """What a run loses besides, as BPF: the calls that its zygote needs.

    Args:
        forks: Whether the run may start processes (threads it always may).
        own_pid: If given, signals may be sent to this process only: for levels without a pid namespace.
    """
    assembler = _Assembler(machine)
    for name in _ZYGOTE_NAMES.split():
        assembler.refuse(name, errno.EPERM)
    assembler.refuse_if("prctl", 0, [(_JEQ, 0, 1, kernel.PR_SET_PDEATHSIG)], errno.EPERM)
    if not forks:
        assembler.refuse("fork", errno.EAGAIN)
        assembler.refuse("vfork", errno.EAGAIN)
        assembler.refuse_if("clone", 0, [(_JSET, 1, 0, _CLONE_THREAD)], errno.EAGAIN)
    if own_pid is not None:
        for name in ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
            assembler.refuse_if(name, 0, [(_JEQ, 1, 0, own_pid)], errno.EPERM)
    return assembler.finish()


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def install(bpf: bytes) -> None:
    """Put the filter on this process and all that it starts. Needs no_new_privs. Raises OSError."""
    program = _Program(len(bpf) // 8, bpf)
    kernel.prctl(kernel.PR_SET_SECCOMP, kernel.SECCOMP_MODE_FILTER, ctypes.addressof(program))
