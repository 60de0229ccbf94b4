"""Work of the kind that every run does, done a few times before the first fork.

What it sets up (the types behind `ast`, specialised bytecode, caches) is then shared by all runs; else each would set
it up again, in pages of its own.
"""

from __future__ import annotations

import contextlib
import io
import json
import linecache
import secrets
import sys
import types

from . import checker, codec, program, proxy, solution

_TIMES = 10  # the interpreter specialises code that has run eight times
_TESTS = "def check(candidate):\n    for i in [1]:\n        assert candidate(i, [2]) == {3: (4.5, None, 'x')}\n"


def up() -> None:
    """Leaves no trace in `sys.modules`, `sys.path` or `linecache`."""
    path, modules, lines = list(sys.path), dict(sys.modules), dict(linecache.cache)
    for _ in range(_TIMES):
        _tests()
        _solution()
        with contextlib.redirect_stdout(io.StringIO()):
            program.run_guarded("print('x')", program.new_main("print('x')"))
    sys.path[:] = path
    linecache.cache.clear()
    linecache.cache.update(lines)
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]
    sys.modules.update(modules)


def _tests() -> None:
    tree = checker._Rewriter(_TESTS).rewrite()
    checker._foreign_names(tree)
    compile(tree, "warm.py", "exec")
    secrets.token_hex(8)


def _solution() -> None:
    server = solution.Server(None)
    server.module = types.ModuleType("warm")
    server.module.__dict__["f"] = lambda a, b: {3: (4.5, None, "x")}
    raw = [codec.encode(value) for value in (1, [2])]
    reply = server.answer("call_name", "f", raw, {})
    codec.decode(codec.loads(codec.dumps(reply))["r"])
    proxy.Exceptions().made_from(["ValueError", "x", ["ValueError", "Exception"]])
    json.loads(json.dumps({"code": "x", "files": {}}))
