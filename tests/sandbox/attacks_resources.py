"""Hostile programs that take more than their share of processes, memory, disk or output."""

from __future__ import annotations

from hostile import FAILED, OK, TIMEOUT, add

# ---------------------------------------------------------------------------------------------------------- processes

add(
    "processes",
    "fork_bomb",
    """
while True:
    try: os.fork()
    except OSError: pass
""",
    TIMEOUT,
)
add(
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
add(
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
add(
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
    ("ok", "failed", "timeout", "out_of_memory"),  # a thread without memory may leave its parent waiting
)
add(
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
add(
    "processes",
    "child_holds_stdout",
    """
try:
    if os.fork() == 0: time.sleep(60); os._exit(0)
except OSError: pass
print("parent ends")
""",
)
add(
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
add(
    "processes",
    "subprocess_chain",
    """
import subprocess
try: subprocess.run(["sh", "-c", "sleep 60 & sleep 60 & exit 0"])
except OSError: pass
""",
)

# ------------------------------------------------------------------------------------------------------------ signals

add(
    "signals",
    "kill_all",
    """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
try: os.kill(-1, signal.SIGKILL)
except (ProcessLookupError, PermissionError): pass
""",
)
add("signals", "kill_supervisor", "must_fail('kill', lambda: os.kill({supervisor}, 9))")
add("signals", "kill_neighbour_process", "must_fail('kill', lambda: os.kill({pid}, 9))")
add(
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
add("signals", "kill_parent", "must_fail('kill', lambda: os.kill(os.getppid() or 10**6, 9))")
add("signals", "pidfd_signal", "must_fail('pidfd', lambda: signal.pidfd_send_signal(os.pidfd_open({pid}), 9))")
add(
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
add(
    "signals",
    "deaf_sleeper",
    """
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True: time.sleep(60)
""",
    TIMEOUT,
)
add("signals", "stop_self", "os.kill(os.getpid(), signal.SIGSTOP); time.sleep(60)", TIMEOUT)
add(
    "signals",
    "cpu_limit_handler",
    """
signal.signal(signal.SIGXCPU, lambda *a: None)
while True: pass
""",
    TIMEOUT,
)
add(
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

add("memory", "big_allocation", "x = bytearray(8 << 30)", ("out_of_memory",))
add("memory", "growing_list", "x = []\nwhile True: x.append(bytes(1 << 20))", ("out_of_memory",))
add(
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
add(
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
add(
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
add("memory", "memfd", "must_fail('memfd', lambda: os.memfd_create('x'))")
add("memory", "locked", "must_fail('mlockall', lambda: 1 / (libc.mlockall(3) == 0))")
add("memory", "deep_recursion", "def f(n): return f(n + 1) + 1\nf(0)", FAILED)
add(
    "memory",
    "deep_recursion_unlimited",
    """
sys.setrecursionlimit(10**9)
def f(n): return f(n + 1) + 1
f(0)
""",
    ("out_of_memory", "crashed", "timeout", "failed"),
)
add(
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
add(
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
add("memory", "huge_number", "print(len(str(10 ** 10 ** 8)))", ("timeout", "failed", "out_of_memory"))

# ------------------------------------------------------------------------------------------------------ disk and output

add(
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
add(
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
add(
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
add(
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
add(
    "disk",
    "sparse_file",
    """
try:
    with open('sparse', 'wb') as f: f.truncate(1 << 40)
    escaped("sparse")
except OSError: pass
""",
)
add(
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
add(
    "disk",
    "remount_tmp_bigger",
    "must_fail('remount', lambda: syscall(165, 40, b'x', b'/box', b'tmpfs', 32, b'size=9g'))",
)
add("output", "flood_stdout", "while True: print('x' * 65536)", ("output_limit",))
add("output", "flood_stderr", "while True: print('x' * 65536, file=sys.stderr)", ("output_limit",))
add(
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
add("output", "binary", "os.write(1, bytes(range(256)) * 4)")
add(
    "output",
    "close_std_and_go_on",
    """
for fd in (0, 1, 2): os.close(fd)
while True: pass
""",
    TIMEOUT,
)
add(
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
