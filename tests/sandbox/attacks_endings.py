"""Hostile programs that do not end, end in an odd way, or stay for the next run."""

from __future__ import annotations

from hostile import FAILED, OK, TIMEOUT, add

# ------------------------------------------------------------------------------------------------- time and endings

add("time", "regex_bomb", "import re; re.match('(a+)+$', 'a' * 60 + 'b')", TIMEOUT)
add("time", "hang_in_c", "sum(range(10**15))", TIMEOUT)
add("time", "sleep_for_ever", "time.sleep(10**6)", TIMEOUT)
add("time", "wait_for_input", "import select; r, w = os.pipe(); os.read(r, 1)", TIMEOUT)
add(
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
add(
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
add(
    "endings",
    "thread_never_ends",
    """
import threading
def loop():
    while True: pass
threading.Thread(target=loop).start()
""",
    TIMEOUT,
)
add(
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
add("endings", "hook_replaced", "sys.excepthook = lambda *a: os._exit(0)\nraise ValueError", OK)

# --------------------------------------------------------------------------------------------------- the next run

add(
    "next_run",
    "leave_files",
    """
import tempfile
for folder in ('.', tempfile.gettempdir(), '/dev/shm', '/tmp'):
    try: open(folder + '/PREVIOUS-RUN-MARK', 'w').write('x')
    except OSError: pass
""",
)
add(
    "next_run",
    "leave_module",
    """
import builtins
builtins.PREVIOUS_RUN = os.environ['PREVIOUS_RUN'] = 'PREVIOUS-RUN-MARK'
sys.modules['PREVIOUS_RUN'] = sys
""",
)
add(
    "next_run",
    "sitecustomize",
    """
for name in ('sitecustomize.py', 'usercustomize.py', 'random.py', 'json.py', 'conftest.py'):
    open(name, 'w').write('raise SystemExit(0)')
sys.path.insert(0, '.'); sys.meta_path.insert(0, type('F', (), {{'find_spec': staticmethod(lambda *a: None)}}))
""",
)
