"""Hostile programs, by class, and the outcome that each must get.

A program prints `ESCAPED ...` when it reached something that it must not reach. `{secret}`, `{folder}`, `{port}`,
`{abstract}`, `{pid}` and `{supervisor}` are filled with real targets on the host.
"""

from __future__ import annotations

from dataclasses import dataclass

PRELUDE = """
import ctypes, os, signal, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
def escaped(*what): print("ESCAPED", *what, flush=True)
def must_fail(name, action):
    try: value = action()
    except BaseException: return
    escaped(name, repr(value)[:200])
def syscall(x86, arm, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(x86 if X86 else arm, *arguments)
    if result < 0: raise OSError(ctypes.get_errno(), "refused")
    return result
"""


@dataclass(frozen=True)
class Attack:
    """One hostile program."""

    kind: str
    name: str
    code: str
    outcomes: tuple[str, ...] = ("ok",)
    """Any of these; where there is more than one, the level or the moment decides."""


OK, FAILED, TIMEOUT = ("ok",), ("failed",), ("timeout",)

ATTACKS: list[Attack] = []


def _add(kind: str, name: str, code: str, outcomes: tuple[str, ...] = OK) -> None:
    ATTACKS.append(Attack(kind, name, PRELUDE + code, outcomes))


# ---------------------------------------------------------------------------------------------------------- processes

_add(
    "processes",
    "fork_bomb",
    """
while True:
    try: os.fork()
    except OSError: pass
""",
    TIMEOUT,
)
_add(
    "processes",
    "fork_until_refused",
    """
born = 0
try:
    for _ in range(500):
        if os.fork() == 0: time.sleep(30); os._exit(0)
        born += 1
except OSError: pass
if born > 16: escaped("processes", born)
""",
)
_add(
    "processes",
    "zombies",
    """
born = 0
try:
    for _ in range(500):
        if os.fork() == 0: os._exit(0)
        born += 1
except OSError: pass
if born > 16: escaped("zombies", born)
""",
)
_add(
    "processes",
    "thread_bomb",
    """
import threading
count = 0
try:
    for _ in range(2000):
        threading.Thread(target=time.sleep, args=(30,), daemon=True).start(); count += 1
except RuntimeError: pass
if count > 100: escaped("threads", count)
os._exit(0)
""",
)
_add(
    "processes",
    "daemonised_grandchild",
    """
try:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: time.sleep(60)
        os._exit(0)
except OSError: pass
""",
)
_add(
    "processes",
    "child_holds_stdout",
    """
try:
    if os.fork() == 0: time.sleep(60); os._exit(0)
except OSError: pass
print("parent ends")
""",
)
_add(
    "processes",
    "vfork_and_clone_bomb",
    """
for flags in (17, 0x4000 | 0x100 | 17):
    for _ in range(3):
        try: pid = syscall(56, 220, 17, 0, 0, 0, 0)
        except OSError: break
        if pid == 0: os._exit(0)
""",
)
_add(
    "processes",
    "subprocess_chain",
    """
import subprocess
try: subprocess.run(["sh", "-c", "sleep 60 & sleep 60 & exit 0"])
except OSError: pass
""",
)

# ------------------------------------------------------------------------------------------------------------ signals

_add(
    "signals",
    "kill_all",
    """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
try: os.kill(-1, signal.SIGKILL)
except (ProcessLookupError, PermissionError): pass
""",
)
_add("signals", "kill_supervisor", "must_fail('kill', lambda: os.kill({supervisor}, 9))")
_add("signals", "kill_neighbour_process", "must_fail('kill', lambda: os.kill({pid}, 9))")
_add(
    "signals",
    "kill_every_number",
    """
own = os.getpid()
for pid in range(2, 5000):
    if pid != own:
        try: os.kill(pid, signal.SIGKILL)
        except OSError: continue
        escaped("killed", pid)
""",
)
_add("signals", "kill_parent", "must_fail('kill', lambda: os.kill(os.getppid() or 10**6, 9))")
_add("signals", "pidfd_signal", "must_fail('pidfd', lambda: signal.pidfd_send_signal(os.pidfd_open({pid}), 9))")
_add(
    "signals",
    "deaf_loop",
    """
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: pass
""",
    TIMEOUT,
)
_add(
    "signals",
    "deaf_sleeper",
    """
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True: time.sleep(60)
""",
    TIMEOUT,
)
_add("signals", "stop_self", "os.kill(os.getpid(), signal.SIGSTOP); time.sleep(60)", TIMEOUT)
_add(
    "signals",
    "cpu_limit_handler",
    """
signal.signal(signal.SIGXCPU, lambda *a: None)
while True: pass
""",
    TIMEOUT,
)
_add(
    "signals",
    "alarm_storm",
    """
signal.signal(signal.SIGALRM, lambda *a: None)
signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)
while True: pass
""",
    TIMEOUT,
)

# ------------------------------------------------------------------------------------------------------------- memory

_add("memory", "big_allocation", "x = bytearray(8 << 30)", ("out_of_memory",))
_add("memory", "growing_list", "x = []\nwhile True: x.append(bytes(1 << 20))", ("out_of_memory",))
_add(
    "memory",
    "caught_and_again",
    """
keep = []
while True:
    try: keep.append(bytearray(1 << 24))
    except MemoryError: keep.clear(); break
""",
    OK,
)
_add(
    "memory",
    "many_processes",
    """
children = []
for _ in range(6):
    try: pid = os.fork()
    except OSError: sys.exit(3)
    if pid == 0:
        x = bytearray(60 << 20); x[::4096] = b'x' * len(x[::4096]); time.sleep(30); os._exit(0)
    children.append(pid)
for pid in children: os.waitpid(pid, 0)
""",
    ("out_of_memory", "failed"),
)
_add(
    "memory",
    "shared_anonymous",
    """
import mmap
keep = []
while True:
    m = mmap.mmap(-1, 1 << 24); m.write(b'x' * (1 << 24)); keep.append(m)
""",
    ("out_of_memory", "failed"),
)
_add("memory", "memfd", "must_fail('memfd', lambda: os.memfd_create('x'))")
_add("memory", "locked", "must_fail('mlockall', lambda: 1 / (libc.mlockall(3) == 0))")
_add("memory", "deep_recursion", "def f(n): return f(n + 1) + 1\nf(0)", FAILED)
_add(
    "memory",
    "deep_recursion_unlimited",
    """
sys.setrecursionlimit(10**9)
def f(n): return f(n + 1) + 1
f(0)
""",
    ("out_of_memory", "crashed", "timeout", "failed"),
)
_add(
    "memory",
    "deep_c_recursion",
    """
x = []
for _ in range(10**6): x = [x]
sys.setrecursionlimit(10**9)
repr(x)
""",
    ("out_of_memory", "crashed", "timeout", "failed"),
)
_add(
    "memory",
    "pipe_buffers",
    """
import fcntl
pipes = []
try:
    while True:
        r, w = os.pipe(); fcntl.fcntl(w, 1031, 1 << 20); os.set_blocking(w, False)
        os.write(w, b'x' * (1 << 20)); pipes.append((r, w))
except OSError: pass
if len(pipes) > 300: escaped("pipes", len(pipes))
""",
)
_add("memory", "huge_number", "print(len(str(10 ** 10 ** 8)))", ("timeout", "failed", "out_of_memory"))

# ------------------------------------------------------------------------------------------------------ disk and output

_add(
    "disk",
    "fill",
    """
try:
    with open('big', 'wb') as f:
        for i in range(256): f.write(b'x' * (1 << 20)); f.flush()
    escaped("disk", os.stat('big').st_size)
except OSError: pass
""",
    ("ok", "output_limit"),
)
_add(
    "disk",
    "many_files_filled",
    """
try:
    for i in range(200):
        with open(f'f{{i}}', 'wb') as f: f.write(b'x' * (1 << 20))
        time.sleep(0.002)
    escaped("disk", i)
except OSError: pass
""",
    ("ok", "output_limit"),
)
_add(
    "disk",
    "inodes",
    """
try:
    for i in range(200000):
        open(f'i{{i}}', 'w').close()
    escaped("inodes", i)
except OSError: pass
""",
    ("ok", "output_limit", "timeout"),
)
_add(
    "disk",
    "shared_memory",
    """
try:
    with open('/dev/shm/x', 'wb') as f:
        for i in range(256): f.write(b'x' * (1 << 20))
    escaped("shm")
except OSError: pass
""",
    ("ok", "output_limit"),
)
_add(
    "disk",
    "sparse_file",
    """
try:
    with open('sparse', 'wb') as f: f.truncate(1 << 40)
    escaped("sparse")
except OSError: pass
""",
)
_add(
    "disk",
    "write_everywhere",
    """
for folder in ('/', '/usr', '/etc', '/dev', '/root', '/home', '/var', '/opt', '/bin', '/lib', '/proc', '/sys', '/srv'):
    must_fail(folder, lambda: open(folder + '/surefoot-hit', 'w').write('x'))
for file in ('/etc/passwd', '/etc/hosts', sys.executable, os.__file__):
    must_fail(file, lambda: open(file, 'a').write('x'))
must_fail('the host', lambda: open('{folder}/hit', 'w'))
""",
)
_add(
    "disk",
    "remount_tmp_bigger",
    "must_fail('remount', lambda: syscall(165, 40, b'x', b'/box', b'tmpfs', 32, b'size=9g'))",
)
_add("output", "flood_stdout", "while True: print('x' * 65536)", ("output_limit",))
_add("output", "flood_stderr", "while True: print('x' * 65536, file=sys.stderr)", ("output_limit",))
_add(
    "output",
    "flood_ignoring_pipe_errors",
    """
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
while True:
    try: os.write(1, b'x' * 65536)
    except OSError: pass
""",
    ("output_limit",),
)
_add("output", "binary", "os.write(1, bytes(range(256)) * 4)")
_add(
    "output",
    "close_std_and_go_on",
    """
for fd in (0, 1, 2): os.close(fd)
while True: pass
""",
    TIMEOUT,
)
_add(
    "output",
    "core_dump",
    """
import resource
try: resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
except (ValueError, OSError): pass
else: escaped("core limit")
ctypes.string_at(0)
""",
    ("crashed",),
)

# -------------------------------------------------------------------------------------------------------------- files

_add("files", "shadow", "must_fail('shadow', lambda: open('/etc/shadow').read())")
_add("files", "host_secret", "must_fail('secret', lambda: open('{secret}').read())")
_add(
    "files",
    "symlink",
    """
try: os.symlink('{secret}', 'link')
except OSError: pass
must_fail('symlink', lambda: open('link').read())
""",
)
_add(
    "files",
    "hard_link",
    """
must_fail('link to secret', lambda: (os.link('{secret}', 'hard'), open('hard').read()))
must_fail('link to a program', lambda: os.link(os.path.realpath('/usr/bin/env'), 'env'))
""",
)
_add(
    "files",
    "dot_dot",
    """
must_fail('dots', lambda: open('../' * 40 + '{secret}').read())
for _ in range(50): os.chdir('..') if os.access('..', os.X_OK) else None
must_fail('cwd', lambda: open('.{secret}').read())
""",
)
_add(
    "files",
    "proc_of_others",
    """
for pid in ('1', '{pid}', '{supervisor}', str(os.getppid())):
    for name in ('environ', 'maps', 'mem', 'cmdline', 'root/etc/shadow', 'cwd'):
        if pid != str(os.getpid()): must_fail(name, lambda: open(f'/proc/{{pid}}/{{name}}', 'rb').read(10))
""",
)
_add(
    "files",
    "proc_sys",
    """
for name in ('kernel/core_pattern', 'kernel/hostname', 'vm/drop_caches', 'kernel/modprobe'):
    must_fail(name, lambda: open('/proc/sys/' + name, 'w').write('x'))
must_fail('sysrq', lambda: open('/proc/sysrq-trigger', 'w').write('h'))
must_fail('oom', lambda: open('/proc/self/oom_score_adj', 'w').write('-1000'))
""",
)
_add("files", "handle", "must_fail('handle', lambda: syscall(304, 265, -100, b'12345678' * 4, 0))")
_add(
    "files",
    "device_nodes",
    """
must_fail('mknod', lambda: os.mknod('sda', 0o60666, os.makedev(8, 0)))
for name in ('mem', 'kmsg', 'sda', 'vda', 'tty', 'ptmx', 'kvm', 'fuse', 'net/tun'):
    must_fail(name, lambda: open('/dev/' + name, 'rb').read(1))
""",
)
_add(
    "files",
    "setuid_programs",
    """
os.close(0); os.open('/dev/null', os.O_RDONLY)
for path in ('/bin/su', '/usr/bin/sudo', '/bin/mount', '/usr/bin/newgrp'):
    if os.path.exists(path):
        try: pid = os.fork()
        except OSError: continue
        if pid == 0:
            try: os.execv(path, [path, '-c', 'id'])
            except OSError: os._exit(9)
        os.waitpid(pid, 0)
must_fail('setuid', lambda: os.setuid(0) if os.getuid() else 1 / 0)
""",
)
_add(
    "files",
    "git_and_home",
    """
for path in ('/root', '/home', os.path.dirname('{secret}')):
    must_fail(path, lambda: [n for n in os.listdir(path) if n not in ('.pyenv',)][0])
""",
)

# --------------------------------------------------------------------------------------------------- inherited things

_add(
    "descriptors",
    "inherited",
    """
for fd in range(3, 1024):
    try: os.write(fd, b'ok'); escaped('wrote to', fd)
    except OSError: pass
    try: os.read(fd, 1); escaped('read from', fd)
    except OSError: pass
""",
)
_add(
    "descriptors",
    "exhaust",
    """
fds = []
try:
    while True: fds.append(os.open('/dev/null', os.O_RDONLY))
except OSError: pass
if len(fds) > 1000: escaped(len(fds))
""",
)
_add(
    "descriptors",
    "environment",
    """
for name in os.environ:
    if any(word in name.upper() for word in ('TOKEN', 'SECRET', 'KEY', 'AWS', 'PYTEST')): escaped(name)
""",
)
_add(
    "descriptors",
    "memory_of_the_zygote",
    """
import gc
for thing in gc.get_objects():
    try: text = repr(thing) if isinstance(thing, (str, bytes)) else ''
    except Exception: continue
    if 'PREVIOUS-' + 'RUN-MARK' in text: escaped('memory')
""",
)

# ------------------------------------------------------------------------------------------------------------ network

_add(
    "network",
    "loopback",
    """
def connect(family, address):
    s = socket.socket(family); s.settimeout(1); s.connect(address)
must_fail('tcp', lambda: connect(socket.AF_INET, ('127.0.0.1', {port})))
must_fail('tcp6', lambda: connect(socket.AF_INET6, ('::1', {port})))
""",
)
_add(
    "network",
    "external",
    """
must_fail('dns', lambda: socket.getaddrinfo('example.org', 80))
must_fail('tcp', lambda: socket.create_connection(('1.1.1.1', 80), 1))
""",
)
_add("network", "listen", "must_fail('listen', lambda: socket.create_server(('127.0.0.1', 0)))")
_add(
    "network",
    "udp_and_raw",
    """
for family, kind in ((2, 2), (2, 3), (10, 2), (16, 3), (17, 3), (38, 5), (40, 1)):
    must_fail((family, kind), lambda: socket.socket(family, kind))
""",
)
_add(
    "network",
    "abstract_socket",
    """
def connect():
    s = socket.socket(socket.AF_UNIX); s.connect(chr(0) + '{abstract}')
must_fail('abstract', connect)
""",
)
_add(
    "network",
    "path_socket",
    """
def connect():
    s = socket.socket(socket.AF_UNIX); s.connect('{folder}/socket')
must_fail('path', connect)
""",
)
_add(
    "network",
    "socketpair_connect",
    """
a, b = socket.socketpair()
must_fail('connect', lambda: a.connect(chr(0) + '{abstract}'))
d = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0]
must_fail('sendto', lambda: d.sendto(b'x', chr(0) + '{abstract}'))
must_fail('sendto path', lambda: d.sendto(b'x', '{folder}/socket'))
""",
)

# ------------------------------------------------------------------------------------------------------------- kernel

_add(
    "kernel",
    "ptrace",
    """
must_fail('traceme', lambda: syscall(101, 117, 0, 0, 0, 0))
must_fail('attach', lambda: syscall(101, 117, 16, {pid}, 0, 0))
must_fail('readv', lambda: syscall(310, 270, {pid}, 0, 0, 0, 0, 0))
""",
)
_add("kernel", "io_uring", "must_fail('io_uring', lambda: syscall(425, 425, 8, ctypes.create_string_buffer(256)))")
_add(
    "kernel",
    "new_namespaces",
    """
for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000, 0x2000000):
    must_fail(hex(flag), lambda: syscall(272, 97, flag))
    must_fail('clone ' + hex(flag), lambda: syscall(56, 220, flag | 17, 0, 0, 0, 0))
must_fail('clone3', lambda: syscall(435, 435, ctypes.create_string_buffer(88), 88))
""",
)
_add(
    "kernel",
    "mounts",
    """
must_fail('mount', lambda: syscall(165, 40, b'tmpfs', b'/tmp', b'tmpfs', 0, 0))
must_fail('umount', lambda: syscall(166, 39, b'/', 2))
must_fail('fsopen', lambda: syscall(430, 430, b'tmpfs', 0))
must_fail('open_tree', lambda: syscall(428, 428, -100, b'/', 1))
must_fail('pivot', lambda: syscall(155, 41, b'.', b'.'))
must_fail('chroot', lambda: os.chroot('.'))
""",
)
_add(
    "kernel",
    "clocks",
    """
must_fail('settime', lambda: time.clock_settime(time.CLOCK_REALTIME, 0))
must_fail('adjtimex', lambda: syscall(159, 171, ctypes.create_string_buffer(256)))
""",
)
_add(
    "kernel",
    "raise_limits",
    """
import resource
for which in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE):
    soft, hard = resource.getrlimit(which)
    if hard == resource.RLIM_INFINITY: escaped('unlimited', which)
    must_fail(which, lambda: resource.setrlimit(which, (hard + 1, hard + 1)))
must_fail('of others', lambda: resource.prlimit({pid}, resource.RLIMIT_NOFILE, (0, 0)))
""",
)
_add(
    "kernel",
    "priorities",
    """
must_fail('nice', lambda: os.setpriority(os.PRIO_PROCESS, 0, -10))
must_fail('fifo', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
must_fail('affinity of others', lambda: os.sched_setaffinity({pid}, [0]))
""",
)
_add(
    "kernel",
    "exotic_calls",
    """
for x86, arm in ((250, 219), (248, 217), (321, 280), (298, 241), (323, 282), (246, 104), (320, 294), (313, 273),
                 (169, 142), (170, 161), (103, 116), (29, 194), (68, 186), (64, 190), (240, 180), (300, 262),
                 (438, 438)):
    must_fail(x86, lambda: syscall(x86, arm, 0, 0, 0, 0, 0))
""",
)
_add("kernel", "x32_calls", "X86 and must_fail('x32', lambda: syscall(0x40000000 + 39, 0))")
_add(
    "kernel",
    "i386_calls",
    """
import mmap
if X86:
    code = mmap.mmap(-1, 4096, prot=7)
    code.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))   # mov eax, 20 (getpid); int 0x80; ret
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    value = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    if value > 0: escaped('i386', value)
else:
    os.abort()
""",
    ("crashed", "ok"),
)
_add(
    "kernel",
    "unload_filter",
    """
must_fail('seccomp off', lambda: 1 / (libc.prctl(22, 0, 0, 0, 0) == 0))
must_fail('new privileges', lambda: 1 / (libc.prctl(38, 0, 0, 0, 0) == 0))
must_fail('capabilities', lambda: 1 / (libc.capset(ctypes.byref((ctypes.c_uint32 * 2)(0x20080522, 0)),
                                       ctypes.byref((ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6))) == 0))
must_fail('survive the zygote', lambda: 1 / (libc.prctl(1, 0, 0, 0, 0) == 0))
""",
)
_add("kernel", "segfault", "ctypes.string_at(0)", ("crashed",))
_add("kernel", "abort", "os.abort()", ("crashed",))
_add(
    "kernel",
    "huge_argv",
    """
try: pid = os.fork()
except OSError: sys.exit(0)
if pid == 0:
    try: os.execv('/bin/true', ['true'] + ['x' * 100000] * 100)
    except OSError: os._exit(3)
os.waitpid(pid, 0)
""",
)
_add(
    "kernel",
    "tiocsti",
    """
import fcntl
for fd in (0, 1, 2): must_fail('tiocsti', lambda: fcntl.ioctl(fd, 0x5412, b'x'))
""",
)

# ------------------------------------------------------------------------------------------------- time and endings

_add("time", "regex_bomb", "import re; re.match('(a+)+$', 'a' * 60 + 'b')", TIMEOUT)
_add("time", "hang_in_c", "sum(range(10**15))", TIMEOUT)
_add("time", "sleep_for_ever", "time.sleep(10**6)", TIMEOUT)
_add("time", "wait_for_input", "import select; r, w = os.pipe(); os.read(r, 1)", TIMEOUT)
_add(
    "endings",
    "exit_in_destructor",
    """
class X:
    def __del__(self): os._exit(0)
x = X()
sys.exit(3)
""",
    ("ok", "failed"),
)
_add(
    "endings",
    "exit_hook_loops",
    """
import atexit
@atexit.register
def loop():
    while True: pass
""",
    TIMEOUT,
)
_add(
    "endings",
    "thread_never_ends",
    """
import threading
threading.Thread(target=lambda: [None for _ in iter(int, 1)]).start()
""",
    TIMEOUT,
)
_add(
    "endings",
    "exception_without_text",
    """
class E(Exception):
    def __str__(self): raise self
    __repr__ = __str__
raise E
""",
    FAILED,
)
_add("endings", "hook_replaced", "sys.excepthook = lambda *a: os._exit(0)\nraise ValueError", OK)

# --------------------------------------------------------------------------------------------------- the next run

_add(
    "next_run",
    "leave_files",
    """
import tempfile
for folder in ('.', tempfile.gettempdir(), '/dev/shm', '/tmp'):
    try: open(folder + '/PREVIOUS-RUN-MARK', 'w').write('x')
    except OSError: pass
""",
)
_add(
    "next_run",
    "leave_module",
    """
import builtins
builtins.PREVIOUS_RUN = os.environ['PREVIOUS_RUN'] = 'PREVIOUS-RUN-MARK'
sys.modules['PREVIOUS_RUN'] = sys
""",
)
_add(
    "next_run",
    "sitecustomize",
    """
for name in ('sitecustomize.py', 'usercustomize.py', 'random.py', 'json.py', 'conftest.py'):
    open(name, 'w').write('raise SystemExit(0)')
sys.path.insert(0, '.'); sys.meta_path.insert(0, type('F', (), {{'find_spec': staticmethod(lambda *a: None)}}))
""",
)
