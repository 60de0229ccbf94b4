"""Programs: what becomes of them, what is seen of them, and that it is always the same."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from threading import Event, Thread

import pytest

from surefoot.errors import SandboxError
from surefoot.protocols import Limits, Program
from surefoot.sandbox import Image, Sandbox
from surefoot.types import Execution, dump, load

SMALL = Limits(cpu_seconds=0.4, wall_seconds=2, memory_mb=128, output_kb=4)

OUTCOMES = {
    "pass": ("ok", 0, None),
    "import sys; sys.exit(0)": ("ok", 0, None),
    "import sys; sys.exit(7)": ("failed", 7, None),
    "import sys; sys.exit('a reason')": ("failed", 1, None),
    "1 / 0": ("failed", 1, None),
    "def": ("failed", 1, None),
    "while True: pass": ("timeout", None, 9),
    "import time; time.sleep(60)": ("timeout", None, 9),
    "x = 'a' * (1 << 30)": ("out_of_memory", 1, None),
    "print('x' * 10**6)": ("output_limit", None, 9),
    "import ctypes; ctypes.string_at(0)": ("crashed", None, 11),
}


@pytest.mark.parametrize("code", OUTCOMES)
def test_outcomes_are_told_apart(sandbox: Sandbox, code: str) -> None:
    execution = sandbox.run(Program(code=code, limits=SMALL))
    outcome, exit_code, signal = OUTCOMES[code]
    assert execution.outcome == outcome, execution
    assert (execution.exit_code, execution.signal) == (exit_code, signal)
    assert execution.cpu_seconds > 0 and execution.wall_seconds > 0 and execution.peak_memory_mb > 1
    assert execution.image.startswith("python@") and execution.level == sandbox.level
    assert load(Execution, dump(execution)) == execution


def test_output_is_kept_and_cut(sandbox: Sandbox) -> None:
    execution = sandbox.run(Program(code="import sys; print('out'); print('err', file=sys.stderr)"))
    assert (execution.stdout, execution.stderr) == ("out\n", "err\n")
    flood = sandbox.run(Program(code="import sys; print('x' * 5000); sys.stdout.flush()", limits=SMALL))
    assert flood.outcome == "output_limit" and flood.stdout_truncated and not flood.stderr_truncated
    assert (flood.exit_code, flood.signal) == (None, 9)  # though it may have ended before it could be killed
    assert flood.stdout == "x" * 4096


def test_a_killed_run_keeps_what_it_printed(sandbox: Sandbox) -> None:
    execution = sandbox.run(Program(code="print('so far', flush=True)\nwhile True: pass", limits=SMALL))
    assert (execution.outcome, execution.stdout) == ("timeout", "so far\n")
    assert execution.cpu_seconds >= 0.4


def test_stdin_and_files(sandbox: Sandbox) -> None:
    files = {"data/a.txt": "content", "helper.py": "def double(x): return 2 * x"}
    code = "import helper; print(helper.double(int(input())), open('data/a.txt').read(), input())"
    execution = sandbox.run(Program(code=code, stdin="21\nlast é", files=files))
    assert (execution.stdout, execution.outcome) == ("42 content last é\n", "ok")


def test_a_traceback_shows_the_program_only(sandbox: Sandbox) -> None:
    execution = sandbox.run(Program(code="def f():\n    return 1 / 0\n\nf()\n"))
    assert execution.stderr.splitlines()[1:4] == [
        '  File "main.py", line 4, in <module>',
        "    f()",
        '  File "main.py", line 2, in f',
    ]
    assert execution.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_the_end_of_an_interpreter(sandbox: Sandbox) -> None:
    code = """
import atexit, sys, threading, time
class X:
    def __del__(self): print("destructor")
x = X()
atexit.register(print, "exit function")
threading.Thread(target=lambda: (time.sleep(0.02), print("thread"))).start()
print("main")
"""
    assert sandbox.run(Program(code=code)).stdout == "main\nthread\nexit function\ndestructor\n"


def test_memory_of_the_whole_tree_counts(namespaces: Sandbox) -> None:
    code = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        x = bytearray(30 << 20); time.sleep(0.3); os._exit(0)
for _ in range(3): os.wait()
"""
    execution = namespaces.run(Program(code=code, limits=Limits(memory_mb=256)))
    assert execution.outcome == "ok" and execution.peak_memory_mb > 85
    execution = namespaces.run(Program(code=code, limits=Limits(memory_mb=60)))
    assert execution.outcome == "out_of_memory"


def test_cpu_time_of_the_whole_tree_counts(namespaces: Sandbox) -> None:
    code = """
import os
for _ in range(4):
    if os.fork() == 0:
        for _ in range(10**9): pass
for _ in range(4): os.wait()
"""
    execution = namespaces.run(Program(code=code, limits=SMALL))
    assert execution.outcome == "timeout" and execution.cpu_seconds < 1.5


@pytest.mark.parametrize("field", ["code and argv", "neither"])
def test_a_program_is_code_or_a_command(namespaces: Sandbox, field: str) -> None:
    program = Program(code="pass", argv=("true",)) if field == "code and argv" else Program()
    with pytest.raises(SandboxError, match="exactly one"):
        namespaces.run(program)


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x"])
def test_files_stay_in_the_work_directory(namespaces: Sandbox, path: str) -> None:
    with pytest.raises(SandboxError, match="leaves the work directory"):
        namespaces.run(Program(code="pass", files={path: ""}))


def test_an_unknown_image_is_named(namespaces: Sandbox) -> None:
    with pytest.raises(SandboxError, match=r"known images: .*python"):
        namespaces.run(Program(code="pass", image="cobol"))


# ----------------------------------------------------------------------------------------------------------- commands


def _need(*programs: str) -> None:
    for program in programs:
        if not any(shutil.which(program, path=folder) for folder in ("/usr/bin", "/bin", "/usr/local/bin")):
            pytest.skip(f"{program} is not installed")


def test_bash(namespaces: Sandbox) -> None:
    _need("bash")
    code = "read line; echo got $line; ls | wc -l; exit 3"
    execution = namespaces.run(Program(argv=("bash", "-c", code), stdin="x y\n", files={"a": "", "b": ""}))
    assert (execution.stdout, execution.exit_code, execution.outcome) == ("got x y\n2\n", 3, "failed")


def test_a_signal_of_a_command_is_its_own(namespaces: Sandbox) -> None:
    _need("bash")
    execution = namespaces.run(Program(argv=("bash", "-c", "kill -ABRT $$")))
    assert (execution.outcome, execution.signal) == ("crashed", 6)


def test_compile_and_run_c(namespaces: Sandbox) -> None:
    _need("gcc")
    source = '#include <stdio.h>\nint main(void) { int a, b; scanf("%d %d", &a, &b); printf("%d\\n", a + b); }'
    argv = ("sh", "-c", "gcc -O1 -o main main.c && ./main")
    limits = Limits(cpu_seconds=10, wall_seconds=60, memory_mb=1024)
    execution = namespaces.run(Program(argv=argv, stdin="40 2", files={"main.c": source}, limits=limits))
    assert (execution.stdout, execution.outcome) == ("42\n", "ok"), execution


def test_node(namespaces: Sandbox) -> None:
    _need("node")
    limits = Limits(cpu_seconds=10, wall_seconds=60, memory_mb=2048, processes=32)
    execution = namespaces.run(
        Program(argv=("node", "main.js"), files={"main.js": "console.log(6 * 7)"}, limits=limits)
    )
    assert (execution.stdout, execution.outcome) == ("42\n", "ok"), execution


def test_a_missing_command_fails(sandbox: Sandbox) -> None:
    execution = sandbox.run(Program(argv=("no-such-program",)))
    assert (execution.outcome, execution.exit_code) == ("failed", 127)
    assert "no-such-program" in execution.stderr


# ---------------------------------------------------------------------------------------------------- the same again

PORTRAIT = """
import datetime, json, os, random, secrets, sys, time, uuid
print(hash("a"), {"x", "y", "z", "w"}, random.random(), uuid.uuid4(), os.urandom(4).hex())
print(secrets.token_hex(4), random.SystemRandom().random())
print(sys.argv, __name__, os.getcwd() if level == "namespaces" else "", os.listdir("."), sys.flags.hash_randomization)
print(time.tzname, os.environ["LANG"], sys.stdout.encoding, sorted(k for k in os.environ))
print(datetime.datetime(2020, 1, 1).astimezone().isoformat(), os.getppid() if level == "namespaces" else "")
"""


def test_the_same_program_prints_the_same(sandbox: Sandbox) -> None:
    program = Program(code=f"level = {sandbox.level!r}\n" + PORTRAIT, files={"b": "", "a": ""})
    seen = {sandbox.run(program).stdout for _ in range(5)}
    with Sandbox(sandbox.level, workers=1) as fresh:
        seen.add(fresh.run(program).stdout)
    assert len(seen) == 1, seen


def test_numpy_is_seeded_and_warm(sandbox: Sandbox) -> None:
    program = Program(code="import numpy; print(numpy.random.rand(), numpy.arange(3).sum())", image="python-scientific")
    first, second = sandbox.run(program), sandbox.run(program)
    assert first.stdout == second.stdout and first.outcome == "ok", first


def test_the_clock_can_be_frozen_and_the_seed_left_free() -> None:
    images = {
        "frozen": Image(clock=1_000_000_000.0),
        "free": Image(deterministic=False),
    }
    code = "import time, datetime, random; print(time.time(), datetime.datetime.now().isoformat(), random.random())"
    with Sandbox("namespaces", workers=1, images=images) as sandbox:
        frozen = sandbox.run(Program(code=code, image="frozen")).stdout
        assert frozen.startswith("1000000000.0 2001-09-09T01:46:40 ")
        free = {
            sandbox.run(Program(code="import random; print(random.random())", image="free")).stdout for _ in range(3)
        }
        assert len(free) == 3


def test_an_image_shows_its_paths_and_environment(tmp_path: Path) -> None:
    folder = tmp_path / "shown"
    folder.mkdir()
    (folder / "shown.txt").write_text("shown")
    image = Image(paths=(str(folder),), env={"MODE": "test"})
    with Sandbox("namespaces", workers=1, images={"mine": image}) as sandbox:
        code = f"import os; print(open('{folder}/shown.txt').read(), os.environ['MODE'])"
        execution = sandbox.run(Program(code=code, image="mine"))
        assert execution.stdout == "shown test\n", execution
        assert "FileNotFoundError" in sandbox.run(Program(code=code)).stderr
        write = sandbox.run(Program(code=f"open('{folder}/new', 'w')", image="mine"))
        assert write.outcome == "failed"


def test_a_missing_package_or_interpreter_is_named() -> None:
    with pytest.raises(SandboxError, match="no_such_package"):
        Sandbox("namespaces", images={"x": Image(packages=("no_such_package",))})
    with pytest.raises(SandboxError, match="does not run"):
        Sandbox("namespaces", images={"x": Image(python="/no/such/python")})


@pytest.mark.slow
def test_verdicts_do_not_depend_on_how_busy_the_machine_is(sandbox: Sandbox) -> None:
    """A program of known CPU time under four busy loops: under the limit it is never a timeout, over it always."""
    burn = "import time\nwhile time.process_time() < {}: pass"
    limits = Limits(cpu_seconds=0.3, wall_seconds=2)
    under, over = Program(code=burn.format(0.15), limits=limits), Program(code=burn.format(0.6), limits=limits)
    with Sandbox(sandbox.level, workers=4) as neighbours:
        busy = Program(code="while True: pass", limits=Limits(cpu_seconds=60, wall_seconds=300))
        done = Event()
        threads = [Thread(target=neighbours.run, args=(busy,), kwargs={"cancel": done}) for _ in range(4)]
        for thread in threads:
            thread.start()
        seen = [(sandbox.run(under).outcome, sandbox.run(over).outcome) for _ in range(10)]
        done.set()
        for thread in threads:
            thread.join()
    assert set(seen) == {("ok", "timeout")}


def test_near_the_limit_a_run_is_repeated_alone(namespaces: Sandbox) -> None:
    code = "import time\nwhile time.process_time() < 0.45: pass"
    execution = namespaces.run(Program(code=code, limits=Limits(cpu_seconds=0.5)))
    assert execution.outcome == "ok" and "run again alone" in execution.detail


def test_python_runs_the_zygote_with_a_fixed_hash_seed(namespaces: Sandbox) -> None:
    execution = namespaces.run(Program(code="import sys; print(sys.flags.isolated, sys.flags.no_site, hash('a'))"))
    assert execution.stdout.startswith("0 1 ") and sys.version_info >= (3, 11)
