"""Attacks on a sandbox by programs of our own: what a level promises is believed only after it held."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from surefoot.protocols import Limits, Program
from surefoot.sandbox.sandbox import Sandbox
from surefoot.sandbox.scratch import Scratch


@dataclass(frozen=True, slots=True)
class Probe:
    """One attack and whether the sandbox held."""

    name: str
    held: bool
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Bait:
    """Things on the host that an attack would hit if it got out."""

    secret: str
    folder: str
    port: int
    abstract: str
    pid: int


_TRY = """
import os, socket, ctypes
def attempt(name, action):
    try:
        print(name, 'GOT', repr(action())[:100])
    except BaseException as error:
        print(name, 'held', type(error).__name__, error)
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    if libc.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), 'refused')
    return 'done'
def connect(family, address):
    with socket.socket(family) as sock:
        sock.settimeout(1); sock.connect(address)
"""

_QUICK = """
attempt('read a file of the host', lambda: open({secret!r}).read())
attempt('write to the host', lambda: open({folder!r} + '/hit', 'w').write('x'))
attempt('connect to loopback', lambda: connect(socket.AF_INET, ('127.0.0.1', {port})))
attempt('connect to an abstract socket', lambda: connect(socket.AF_UNIX, chr(0) + {abstract!r}))
attempt('kill a process of the host', lambda: os.kill({pid}, 9))
attempt('read the supervisor', lambda: open('/proc/{supervisor}/environ').read())
attempt('enter a new user namespace', lambda: call(272 if os.uname().machine == 'x86_64' else 97, 0x10000000))
attempt('ptrace', lambda: call(101 if os.uname().machine == 'x86_64' else 117, 0, 0, 0, 0))
attempt('io_uring', lambda: call(425, 1, 0))
attempt('mount', lambda: call(165 if os.uname().machine == 'x86_64' else 40, b'x', b'/', b'tmpfs', 0, 0))
"""


@contextmanager
def bait() -> Iterator[Bait]:
    """A readable secret, a writable folder, two listeners and a process."""
    with ExitStack() as stack:
        folder = stack.enter_context(Scratch("probe")).path
        folder.chmod(0o777)
        secret = folder / "secret"
        secret.write_text("the secret of the host")
        secret.chmod(0o644)
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        abstract = f"surefoot-probe-{os.getpid()}-{listener.getsockname()[1]}"
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind("\0" + abstract)
        unix.listen()
        # Waits for the end of its input, which comes at the latest with the end of this process.
        sleeper = subprocess.Popen([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
        stack.callback(sleeper.wait)
        stack.callback(sleeper.kill)
        yield Bait(str(secret), str(folder), listener.getsockname()[1], abstract, sleeper.pid)


def quick(sandbox: Sandbox) -> tuple[Probe, ...]:
    """The attacks that matter most, in one run: files, network, processes, escapes. About 50 ms."""
    with bait() as target:
        code = _TRY + _QUICK.format(**asdict(target), supervisor=os.getpid())
        execution = sandbox.run(Program(code=code))
        hit = (Path(target.folder) / "hit").exists()
    probes = [Probe(*_parse(line)) for line in execution.stdout.splitlines()]
    if hit:
        probes.append(Probe("write to the host", False, "a file of the sandbox appeared on the host"))
    if len(probes) < _QUICK.count("attempt("):
        probes.append(Probe("run at all", False, f"{execution.outcome}: {execution.detail} {execution.stderr[-300:]}"))
    return tuple(probes)


def _parse(line: str) -> tuple[str, bool, str]:
    for word, held in ((" held ", True), (" GOT ", False)):
        if word in line:
            name, _, evidence = line.partition(word)
            return name, held, evidence
    return line, False, "unexpected output"


def limits(sandbox: Sandbox) -> tuple[Probe, ...]:
    """Whether processes, memory, output, disk and time are bounded, and nothing passes from one run to the next."""
    small = Limits(cpu_seconds=0.3, wall_seconds=1.0, memory_mb=128, processes=8, output_kb=16, disk_mb=4)
    attacks: list[tuple[str, str, Callable[[str, str], bool]]] = [
        ("fork bomb", _FORKS, lambda outcome, out: outcome == "ok" and int(out or 99) <= 8),
        ("memory bomb", "x = bytearray(1 << 30)", lambda outcome, _: outcome == "out_of_memory"),
        ("endless loop", "while True: pass", lambda outcome, _: outcome == "timeout"),
        ("deaf sleeper", _DEAF, lambda outcome, _: outcome == "timeout"),
        ("output flood", "while True: print('x' * 4096)", lambda outcome, _: outcome == "output_limit"),
        ("disk fill", _DISK, lambda outcome, out: outcome == "output_limit" or (outcome == "ok" and float(out) <= 5)),
    ]
    probes = []
    for name, code, held in attacks:
        execution = sandbox.run(Program(code=code, limits=small))
        good = held(execution.outcome, execution.stdout.strip())
        evidence = f"{execution.outcome} {execution.detail} {execution.stdout.strip()[:40]}"
        probes.append(Probe(name, good, evidence.strip()))
    sandbox.run(Program(code=f"{_TEMPORARY}; open('left', 'w').write('x'); open(temporary + '/left', 'w')"))
    found = sandbox.run(Program(code=f"{_TEMPORARY}; import os; print(os.listdir('.'), os.listdir(temporary))"))
    probes.append(Probe("leave a file for the next run", found.stdout.strip() == "[] []", found.stdout.strip()[:100]))
    return tuple(probes)


_TEMPORARY = "import tempfile; temporary = tempfile.gettempdir()"
_FORKS = """
import os, time
born = 0
for _ in range(64):
    try:
        if os.fork() == 0:
            time.sleep(5); os._exit(0)
    except OSError:
        break
    born += 1
print(born)
"""
_DEAF = """
import signal, time
for number in range(1, 32):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
time.sleep(600)
"""
_DISK = """
import time
written = 0
try:
    for index in range(64):
        with open(f'f{index}', 'wb') as file:
            file.write(b'x' * (1 << 20)); file.flush()
            written += 1
        time.sleep(0.005)
except OSError:
    pass
print(written)
"""
