"""Runs test code against a solution in another jail, and reports every check: one `assert` is one check.

Asserts are rewritten so that each is recorded and a failing one does not hide those after it. The report goes out on a
pipe that only this process has; a report that never comes is a failure, not a pass.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import sys
import types
from collections.abc import Iterator
from typing import Any, NoReturn

from . import codec, program
from .channel import Channel
from .notanumber import Nan
from .proxy import Function, Peer, SolutionGoneError

FILE = "tests.py"
_RECORDER = "__surefoot_check__"
_MAX_EVIDENCE = 1000


def main(payload: dict[str, Any], solution_fd: int, report_fd: int) -> NoReturn:
    """Run `payload["tests"]` and write the checks as JSON to `report_fd`."""
    peer = Peer(Channel(solution_fd, Nan))
    session = Session(payload["tests"], payload.get("entry"), peer, payload.get("core"))
    session.run()
    report = {"nonce": payload["nonce"], "checks": session.recorder.report(), "trouble": session.trouble}
    with open(report_fd, "wb") as pipe:
        pipe.write(codec.dumps(report))
    program.finish(0)


class Recorder:
    """What became of each check, in the order of the source."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._results: dict[int, tuple[str, bool, str]] = {}

    def passed(self, index: int, name: str) -> None:
        self._results.setdefault(index, (name, True, ""))

    def failed(self, index: int, name: str, why: str) -> None:
        if not self._results.get(index, ("", True, ""))[1]:
            return  # the first failure of a check in a loop is the one to show
        call = self._peer.last_call()
        evidence = f"{name}\n{why}" + (f"\nlast call: {call}" if call else "")
        self._results[index] = (name, False, evidence[:_MAX_EVIDENCE])

    @contextlib.contextmanager
    def __call__(self, index: int, name: str) -> Iterator[None]:
        """Record the statement inside the `with`. Its exception ends there, unless the solution is gone."""
        try:
            yield
        except SolutionGoneError as gone:
            self.failed(index, name, str(gone))
            raise
        except AssertionError as error:
            self.failed(index, name, f"AssertionError: {error}" if str(error) else "is false")
        except Exception as error:
            self.failed(index, name, f"{type(error).__name__}: {error}")
            if isinstance(error, RecursionError):
                raise  # tests that call themselves would go on for ever
        else:
            self.passed(index, name)

    def report(self) -> list[list[Any]]:
        return [list(self._results[index]) for index in sorted(self._results)]


class Session:
    """One set of tests against one solution."""

    def __init__(self, tests: str, entry: str | None, peer: Peer, core: int | None = None) -> None:
        self.trouble = ""
        """Why the tests did not run to their end; empty if they did."""
        self.recorder = Recorder(peer)
        self._tests, self._entry, self._peer, self._core = tests, entry, peer, core

    def run(self) -> None:
        try:
            tree = _Rewriter(self._tests).rewrite()
        except SyntaxError as error:
            self.trouble = f"the tests are not Python: {error}"
            return
        if not self._peer.wait_until_loaded():
            self.trouble = "the solution could not be loaded"
            return
        program.stay_on(self._core)
        try:
            module = program.new_main(self._tests, "__main__", FILE)
            code = compile(tree, FILE, "exec")
            module.__dict__[_RECORDER] = self.recorder
            self._bind(tree, module)
            exec(code, module.__dict__)
            check = module.__dict__.get("check")
            if self._entry and isinstance(check, types.FunctionType) and not self.recorder.report():
                check(Function(self._peer, self._entry))
        except SolutionGoneError as gone:
            self.trouble = str(gone)
        except BaseException as error:
            call = self._peer.last_call()
            self.trouble = f"{type(error).__name__}: {error}" + (f"\nlast call: {call}" if call else "")

    def _bind(self, tree: ast.Module, module: types.ModuleType) -> None:
        """Give the tests the solution's names, where they use one that is neither theirs nor Python's."""
        for name in sorted(_foreign_names(tree)):
            if hasattr(builtins, name):
                continue
            if name in sys.stdlib_module_names or name == "np":
                # Never the solution's: its `math.isclose` would say what it likes.
                with contextlib.suppress(ImportError):
                    module.__dict__[name] = importlib.import_module("numpy" if name == "np" else name)
            elif name in self._peer.names:
                module.__dict__[name] = self._peer.function(name)
        if self._entry and self._entry not in module.__dict__:
            module.__dict__[self._entry] = Function(self._peer, self._entry)


def _foreign_names(tree: ast.Module) -> set[str]:
    """Names that the tests use and do not define at top level."""
    used: set[str] = set()
    defined: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            used.add(node.id)
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            defined.add(statement.name)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            defined.update((alias.asname or alias.name).partition(".")[0] for alias in statement.names)
        else:
            inner = ast.walk(statement)
            defined.update(n.id for n in inner if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return used - defined


class _Rewriter:
    """Wraps every `assert` at top level, or in the body of a test function, as `with recorder(index, source): ...`."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._count = 0

    def rewrite(self) -> ast.Module:
        tree = ast.parse(self._source)
        tree.body = self._block(tree.body)
        return ast.fix_missing_locations(tree)

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [self._statement(statement) for statement in body]

    def _statement(self, node: ast.stmt) -> ast.stmt:
        if isinstance(node, ast.Assert):
            return self._recorded(node)
        if isinstance(node, ast.FunctionDef) and (node.name == "check" or node.name.startswith("test")):
            node.body = self._block(node.body)
        elif isinstance(node, (ast.For, ast.While, ast.If)):
            node.body, node.orelse = self._block(node.body), self._block(node.orelse)
        return node

    def _recorded(self, node: ast.Assert) -> ast.With:
        text = ast.get_source_segment(self._source, node) or ast.unparse(node)
        call = ast.Call(ast.Name(_RECORDER, ast.Load()), [ast.Constant(self._count), ast.Constant(text[:300])], [])
        self._count += 1
        return ast.copy_location(ast.With([ast.withitem(call)], [node]), node)
