"""Hostile programs that reach for what is not theirs: files, descriptors, the network, the kernel."""

from __future__ import annotations

from hostile import add

# -------------------------------------------------------------------------------------------------------------- files

add("files", "shadow", "must_fail('shadow', lambda: open('/etc/shadow').read())")
add("files", "host_secret", "must_fail('secret', lambda: open('{secret}').read())")
add(
    "files",
    "symlink",
    """
try: os.symlink('{secret}', 'link')
except OSError: pass
must_fail('symlink', lambda: open('link').read())
""",
)
add(
    "files",
    "hard_link",
    """
must_fail('link to secret', lambda: (os.link('{secret}', 'hard'), open('hard').read()))
must_fail('link to a program', lambda: os.link(os.path.realpath('/usr/bin/env'), 'env'))
""",
)
add(
    "files",
    "dot_dot",
    """
must_fail('dots', lambda: open('../' * 40 + '{secret}').read())
for _ in range(50): os.chdir('..') if os.access('..', os.X_OK) else None
must_fail('cwd', lambda: open('.{secret}').read())
""",
)
add(
    "files",
    "proc_of_others",
    """
for pid in ('1', '{pid}', '{supervisor}', str(os.getppid())):
    for name in ('environ', 'maps', 'mem', 'cmdline', 'root/etc/shadow', 'cwd'):
        if pid != str(os.getpid()): must_fail(name, lambda: open(f'/proc/{{pid}}/{{name}}', 'rb').read(10))
""",
)
add(
    "files",
    "proc_sys",
    """
for name in ('kernel/core_pattern', 'kernel/hostname', 'vm/drop_caches', 'kernel/modprobe'):
    must_fail(name, lambda: open('/proc/sys/' + name, 'w').write('x'))
must_fail('sysrq', lambda: open('/proc/sysrq-trigger', 'w').write('h'))
must_fail('oom', lambda: open('/proc/self/oom_score_adj', 'w').write('-1000'))
""",
)
add("files", "handle", "must_fail('handle', lambda: syscall(304, 265, -100, b'12345678' * 4, 0))")
add(
    "files",
    "device_nodes",
    """
must_fail('mknod', lambda: os.mknod('sda', 0o60666, os.makedev(8, 0)))
for name in ('mem', 'kmsg', 'sda', 'vda', 'tty', 'ptmx', 'kvm', 'fuse', 'net/tun'):
    must_fail(name, lambda: open('/dev/' + name, 'rb').read(1))
""",
)
add(
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
add(
    "files",
    "git_and_home",
    """
for path in ('/root', '/home', os.path.dirname('{secret}')):
    must_fail(path, lambda: [n for n in os.listdir(path) if n not in ('.pyenv',)][0])
""",
)

# --------------------------------------------------------------------------------------------------- inherited things

add(
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
add(
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
add(
    "descriptors",
    "environment",
    """
for name in os.environ:
    if any(word in name.upper() for word in ('TOKEN', 'SECRET', 'KEY', 'AWS', 'PYTEST')): escaped(name)
""",
)
add(
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

add(
    "network",
    "loopback",
    """
def connect(family, address):
    s = socket.socket(family); s.settimeout(1); s.connect(address)
must_fail('tcp', lambda: connect(socket.AF_INET, ('127.0.0.1', {port})))
must_fail('tcp6', lambda: connect(socket.AF_INET6, ('::1', {port})))
""",
)
add(
    "network",
    "external",
    """
must_fail('dns', lambda: socket.getaddrinfo('example.org', 80))
must_fail('tcp', lambda: socket.create_connection(('1.1.1.1', 80), 1))
""",
)
add("network", "listen", "must_fail('listen', lambda: socket.create_server(('127.0.0.1', 0)))")
add(
    "network",
    "udp_and_raw",
    """
for family, kind in ((2, 2), (2, 3), (10, 2), (16, 3), (17, 3), (38, 5), (40, 1)):
    must_fail((family, kind), lambda: socket.socket(family, kind))
""",
)
add(
    "network",
    "abstract_socket",
    """
def connect():
    s = socket.socket(socket.AF_UNIX); s.connect(chr(0) + '{abstract}')
must_fail('abstract', connect)
""",
)
add(
    "network",
    "path_socket",
    """
def connect():
    s = socket.socket(socket.AF_UNIX); s.connect('{folder}/socket')
must_fail('path', connect)
""",
)
add(
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

add(
    "kernel",
    "ptrace",
    """
must_fail('traceme', lambda: syscall(101, 117, 0, 0, 0, 0))
must_fail('attach', lambda: syscall(101, 117, 16, {pid}, 0, 0))
must_fail('readv', lambda: syscall(310, 270, {pid}, 0, 0, 0, 0, 0))
""",
)
add("kernel", "io_uring", "must_fail('io_uring', lambda: syscall(425, 425, 8, ctypes.create_string_buffer(256)))")
add(
    "kernel",
    "new_namespaces",
    """
for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000, 0x2000000):
    must_fail(hex(flag), lambda: syscall(272, 97, flag))
    must_fail('clone ' + hex(flag), lambda: syscall(56, 220, flag | 17, 0, 0, 0, 0))
must_fail('clone3', lambda: syscall(435, 435, ctypes.create_string_buffer(88), 88))
""",
)
add(
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
add(
    "kernel",
    "clocks",
    """
must_fail('settime', lambda: time.clock_settime(time.CLOCK_REALTIME, 0))
must_fail('adjtimex', lambda: syscall(159, 171, ctypes.create_string_buffer(256)))
""",
)
add(
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
add(
    "kernel",
    "priorities",
    """
must_fail('nice', lambda: os.setpriority(os.PRIO_PROCESS, 0, -10))
must_fail('fifo', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
must_fail('affinity of others', lambda: os.sched_setaffinity({pid}, [0]))
""",
)
add(
    "kernel",
    "exotic_calls",
    """
for x86, arm in ((250, 219), (248, 217), (321, 280), (298, 241), (323, 282), (246, 104), (320, 294), (313, 273),
                 (169, 142), (170, 161), (103, 116), (29, 194), (68, 186), (64, 190), (240, 180), (300, 262),
                 (438, 438)):
    must_fail(x86, lambda: syscall(x86, arm, 0, 0, 0, 0, 0))
""",
)
add("kernel", "x32_calls", "X86 and must_fail('x32', lambda: syscall(0x40000000 + 39, 0))")
add(
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
add(
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
add("kernel", "segfault", "ctypes.string_at(0)", ("crashed",))
add("kernel", "abort", "os.abort()", ("crashed",))
add(
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
add(
    "kernel",
    "tiocsti",
    """
import fcntl
for fd in (0, 1, 2): must_fail('tiocsti', lambda: fcntl.ioctl(fd, 0x5412, b'x'))
""",
)
