"""Wrong solutions of `add` that try to be judged right. The tests: `assert candidate(2, 3) == 5`, and two more."""

# ruff: noqa: E501 - some of these are one-liners on purpose
from __future__ import annotations

CORRECT = "def add(a, b): return a + b\n"
_WRONG = "def add(a, b): return 0\n"

TESTS = """
EXPECTED = [5, 7, 100]
def check(candidate):
    assert candidate(2, 3) == 5
    assert candidate(3, 4) == EXPECTED[1]
    assert candidate(40, 60) == EXPECTED[2], "sum of 40 and 60"
"""

SPOOFS: dict[str, str] = {
    "exit_at_import": "import os; os._exit(0)",
    "sys_exit_at_import": "import sys; sys.exit(0)",
    "exit_in_call": "import os\ndef add(a, b): os._exit(0)",
    "system_exit_in_call": "def add(a, b): raise SystemExit(0)",
    "always_equal": """
class E:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return True
    def __hash__(self): return 5
def add(a, b): return E()
""",
    "int_subclass": """
class E(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
def add(a, b): return E(0)
""",
    "class_lies": """
class E:
    __class__ = int
    def __eq__(self, other): return True
    def __index__(self): return 5
def add(a, b): return E()
""",
    "float_subclass": "class E(float):\n    __eq__ = lambda s, o: True\ndef add(a, b): return E(0)",
    "string_subclass": "class E(str):\n    __eq__ = lambda s, o: True\ndef add(a, b): return E('5')",
    "reflected_equality": "class E(int):\n    __req__ = __eq__ = __le__ = __ge__ = lambda s, o: True\ndef add(a, b): return E()",
    "metaclass": """
class M(type):
    def __eq__(cls, other): return True
    __hash__ = type.__hash__
class E(metaclass=M): pass
def add(a, b): return E
""",
    "excepthook": "import sys, os\nsys.excepthook = lambda *a: os._exit(0)\n" + _WRONG,
    "atexit": "import atexit, os\natexit.register(os._exit, 0)\n" + _WRONG,
    "alarm": "import signal, os\nsignal.signal(14, lambda *a: os._exit(0))\nsignal.setitimer(0, 0.001)\n" + _WRONG,
    "thread": "import threading, os, time\nthreading.Thread(target=lambda: (time.sleep(0.001), os._exit(0))).start()\n"
    + _WRONG,
    "fork_parent_exits": "import os\ntry:\n    os.fork() and os._exit(0)\nexcept OSError: pass\n" + _WRONG,
    "patched_builtins": """
import builtins
builtins.AssertionError = type('E', (Exception,), {})
builtins.abs = builtins.len = builtins.sum = lambda *a: 0
builtins.__build_class__ = builtins.isinstance = lambda *a: True
"""
    + _WRONG,
    "frame_walk": """
import sys
def add(a, b):
    frame = sys._getframe()
    while frame:
        for scope in (frame.f_locals, frame.f_globals):
            for name, value in list(scope.items()):
                if name in ('EXPECTED', 'check', 'tests', 'expected'): return value[0]
        frame = frame.f_back
    return 0
""",
    "caller_constants": """
import sys
def add(a, b):
    code = sys._getframe(1).f_code
    numbers = [c for c in code.co_consts if type(c) is int and c not in (a, b)]
    return numbers[0] if numbers else 0
""",
    "gc_walk": """
import gc
def add(a, b):
    for thing in gc.get_objects():
        if type(thing) is list and thing[-1:] == [100] and len(thing) == 3: return thing[{5: 0, 7: 1}.get(a + b - 0, 2)] + 0
        if type(thing).__name__ == 'function' and thing.__name__ == 'check': return 5
    return 0
""",
    "traceback_walk": """
import sys
def add(a, b):
    try: raise ValueError
    except ValueError as e:
        tb = e.__traceback__
        while tb: 
            if 'EXPECTED' in tb.tb_frame.f_globals: return tb.tb_frame.f_globals['EXPECTED'][0]
            tb = tb.tb_next
    return 0
""",
    "read_own_files": """
import glob
def add(a, b):
    for path in glob.glob('**', recursive=True) + glob.glob('/box/**', recursive=True) + ['tests.py', 'main.py']:
        try: text = open(path).read()
        except OSError: continue
        if 'EXPECTED' in text: return 5
    return 0
""",
    "replace_check": """
import sys
for module in list(sys.modules.values()):
    if hasattr(module, 'check'): module.check = lambda *a: None
def check(candidate): pass
EXPECTED = [0, 0, 0]
"""
    + _WRONG,
    "settrace": """
import sys
def trace(frame, event, arg):
    if event == 'return': frame.f_trace_lines = False
    return trace
sys.settrace(trace); sys.setprofile(lambda *a: None)
"""
    + _WRONG,
    "print_passed": 'print(\'passed\'); print(\'{"checks": [["all", true, ""]]}\')\n' + _WRONG,
    "write_to_every_descriptor": """
import os
for fd in range(0, 300):
    try: os.write(fd, b'{"nonce": "", "checks": [["all", true, ""]], "trouble": ""}\\n')
    except OSError: pass
"""
    + _WRONG,
    "replies_ahead": """
import os, struct, json
def add(a, b):
    for _ in range(20):
        data = json.dumps({"id": "0" * 16, "r": 5}).encode()
        os.write(3, struct.pack('>I', len(data)) + data)
    return 0
""",
    "reply_with_last_id": """
import gc, os, struct, json, sys
def add(a, b):
    frame = sys._getframe()
    while frame:
        if 'identifier' in frame.f_locals:
            for value in (5, 7, 100):
                data = json.dumps({"id": frame.f_locals['identifier'], "r": value}).encode()
                os.write(3, struct.pack('>I', len(data)) + data)
            break
        frame = frame.f_back
    return 0
""",
    "deep_reply": """
import os, struct
def add(a, b):
    data = b'[' * 100000 + b']' * 100000
    os.write(3, struct.pack('>I', len(data)) + data)
    return 0
""",
    "huge_reply": "def add(a, b): return 'x' * (64 << 20)",
    "huge_header": "import os\ndef add(a, b): os.write(3, b'\\xff\\xff\\xff\\xff' + b'x' * 1000)",
    "not_json": "import os\ndef add(a, b): os.write(3, b'\\0\\0\\0\\3abc')",
    "duplicate_keys": """
import os, struct
def add(a, b):
    data = b'{"id": "x", "r": 0, "r": 5, "id": "y"}'
    os.write(3, struct.pack('>I', len(data)) + data)
    return 0
""",
    "unknown_tag": """
import os, struct, sys, json
def add(a, b):
    frame = sys._getframe()
    while 'identifier' not in frame.f_locals: frame = frame.f_back
    data = json.dumps({"id": frame.f_locals['identifier'], "r": {"__reduce__": ["os.system", "true"]}}).encode()
    os.write(3, struct.pack('>I', len(data)) + data)
    return 0
""",
    "descriptor_in_message": """
import socket, array, os
def add(a, b):
    s = socket.socket(fileno=os.dup(3))
    s.sendmsg([b'\\0\\0\\0\\1'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0]))])
    return 0
""",
    "close_the_channel": "import os\ndef add(a, b): os.close(3)",
    "callback_into_the_tests": """
import os, struct, json
def add(a, b):
    for number in range(4):
        data = json.dumps({"back": "call", "of": number, "a": [], "k": {}}).encode()
        os.write(3, struct.pack('>I', len(data)) + data)
    return 0
""",
    "nan": "def add(a, b): return float('nan')",
    "mutate_to_match": "def add(a, b): return [a, b]",
    "raise_assertion": "def add(a, b): raise AssertionError",
    "raise_stop_iteration": "def add(a, b): raise StopIteration",
    "raise_keyboard_interrupt": "def add(a, b): raise KeyboardInterrupt",
    "generator": "def add(a, b): yield from (5, 7, 100)",
    "endless": "def add(a, b):\n    while True: pass",
    "import_hook": """
import sys
class Hook:
    def find_spec(self, name, path=None, target=None):
        import os; os._exit(0)
sys.meta_path.insert(0, Hook())
"""
    + _WRONG,
    "patch_the_server": """
import sys
for name, module in list(sys.modules.items()):
    if name.startswith('inside'):
        for attribute in ('encode', 'decode', 'dumps', 'loads', 'finish'):
            if hasattr(module, attribute): setattr(module, attribute, lambda *a, **k: b'{"r": 5}')
"""
    + _WRONG,
}
