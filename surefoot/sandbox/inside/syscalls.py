"""System call numbers of x86-64 and aarch64 for the names that the filter mentions (-1: not on that machine)."""

from __future__ import annotations

import os

AUDIT_ARCH = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}

_TABLE = """
socket 41 198 | ptrace 101 117 | process_vm_readv 310 270 | process_vm_writev 311 271 | process_madvise 440 440
kcmp 312 272 | pidfd_getfd 438 438 | pidfd_open 434 434 | pidfd_send_signal 424 424 | mount 165 40
umount2 166 39 | pivot_root 155 41 | chroot 161 51 | move_mount 429 429 | open_tree 428 428 | fsopen 430 430
fsconfig 431 431 | fsmount 432 432 | fspick 433 433 | mount_setattr 442 442 | unshare 272 97 | setns 308 268
clone 56 220 | clone3 435 435 | fork 57 -1 | vfork 58 -1 | io_uring_setup 425 425 | io_uring_enter 426 426
io_uring_register 427 427 | keyctl 250 219 | add_key 248 217 | request_key 249 218 | bpf 321 280
perf_event_open 298 241 | userfaultfd 323 282 | kexec_load 246 104 | kexec_file_load 320 294
init_module 175 105 | finit_module 313 273 | delete_module 176 106 | reboot 169 142 | swapon 167 224
swapoff 168 225 | sethostname 170 161 | setdomainname 171 162 | iopl 172 -1 | ioperm 173 -1 | quotactl 179 60
quotactl_fd 443 443 | acct 163 89 | settimeofday 164 170 | clock_settime 227 112 | clock_adjtime 305 266
adjtimex 159 171 | nfsservctl 180 42 | open_by_handle_at 304 265 | name_to_handle_at 303 264
lookup_dcookie 212 18 | vhangup 153 58 | syslog 103 116 | personality 135 92 | shmget 29 194 | shmat 30 196
shmctl 31 195 | msgget 68 186 | msgsnd 69 189 | msgrcv 70 188 | msgctl 71 187 | semget 64 190 | semop 65 193
semctl 66 191 | semtimedop 220 192 | mq_open 240 180 | mq_unlink 241 181 | memfd_create 319 279
memfd_secret 447 447 | fanotify_init 300 262 | fanotify_mark 301 263 | sched_setscheduler 144 119
sched_setparam 142 118 | sched_setattr 314 274 | setpriority 141 140 | ioprio_set 251 30 | migrate_pages 256 238
move_pages 279 239 | set_mempolicy 238 237 | mbind 237 235 | prlimit64 302 261 | ioctl 16 29 | prctl 157 167
kill 62 129 | tkill 200 130 | tgkill 234 131 | rt_sigqueueinfo 129 138 | rt_tgsigqueueinfo 297 240
seccomp 317 277 | sched_setaffinity 203 122 | process_mrelease 448 448 | landlock_create_ruleset 444 444
modify_ldt 154 -1 | setuid 105 146 | setgid 106 144 | setreuid 113 145 | setregid 114 143 | setresuid 117 147
setresgid 119 149 | setgroups 116 159 | capset 126 91 | mknod 133 -1 | mknodat 259 33 | uselib 134 -1
_sysctl 156 -1 | ustat 136 -1 | sysfs 139 -1 | create_module 174 -1 | get_kernel_syms 177 -1
query_module 178 -1 | execve 59 221 | execveat 322 281 | link 86 -1 | linkat 265 37 | inotify_init 253 -1
inotify_init1 294 26 | inotify_add_watch 254 27
"""


def _numbers(column: int) -> dict[str, int]:
    entries = (entry.split() for line in _TABLE.strip().splitlines() for entry in line.split("|"))
    return {fields[0]: int(fields[column]) for fields in entries}


NUMBERS = {"x86_64": _numbers(1), "aarch64": _numbers(2)}


def number(name: str, machine: str = os.uname().machine) -> int:
    """Number of the system call `name`, or -1 where the machine does not have it. Raises KeyError if unlisted."""
    return NUMBERS[machine][name]
