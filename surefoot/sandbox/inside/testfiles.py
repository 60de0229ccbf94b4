"""pytest in the tests' own process: test files run here, and what they import of the project lives in the other jail.

The files of the project are not even here, so nothing in them (a `conftest.py`, a plugin, a changed test) has a say.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import io
import os
import sys
import types
from collections.abc import Sequence
from typing import Any, NoReturn

from . import codec, program
from .channel import Channel
from .notanumber import Nan
from .proxy import Peer, SolutionGoneError

_OPTIONS = ["-p", "no:cacheprovider", "-p", "no:terminal", "--rootdir=.", "-o", "addopts=", "--import-mode=prepend"]


def main(payload: dict[str, Any], solution_fd: int, report_fd: int) -> NoReturn:
    """Run the test files of `payload["paths"]` and write one check per test to `report_fd`."""
    peer = Peer(Channel(solution_fd, Nan))
    recorder = _Recorder(peer)
    trouble = ""
    if not peer.wait_until_loaded():
        trouble = "the project's process did not start"
    else:
        sys.meta_path.insert(0, _Finder(peer, frozenset(payload["modules"])))
        sys.path.insert(0, os.getcwd())
        trouble = _run(payload["paths"], recorder)
    report = {"nonce": payload["nonce"], "checks": recorder.checks, "trouble": trouble}
    with open(report_fd, "wb") as pipe:
        pipe.write(codec.dumps(report))
    program.finish(0)


def _run(paths: list[str], recorder: _Recorder) -> str:
    pytest = importlib.import_module("pytest")
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = int(pytest.main([*_OPTIONS, *paths], plugins=[recorder]))
    return (
        "" if status in (0, 1) else recorder.trouble or f"pytest ended with status {status}: {said.getvalue()[-500:]}"
    )


class _Recorder:
    """A pytest plugin that keeps how each test ended. A skipped or expected failure is no pass."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.checks: list[list[Any]] = []
        self.trouble = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or not report.passed:
            passed = report.when == "call" and report.outcome == "passed" and not hasattr(report, "wasxfail")
            evidence = "" if passed else f"{report.outcome} in {report.when}: {report.longrepr}"[-1000:]
            self.checks.append([report.nodeid, passed, evidence])

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.trouble = f"{report.nodeid} cannot be collected: {report.longrepr}"[-1000:]


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the project's modules in the other process."""

    def __init__(self, peer: Peer, names: frozenset[str]) -> None:
        self._peer, self._names = peer, names

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> Any:
        if fullname.partition(".")[0] not in self._names:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        try:
            self._peer.request("module", spec.name)
        except SolutionGoneError:
            raise
        except Exception as error:
            raise ImportError(f"{type(error).__name__}: {error}", name=spec.name) from None
        return _ProjectModule(spec.name, self._peer)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class _ProjectModule(types.ModuleType):
    """A module of the project: its names are stand-ins."""

    def __init__(self, name: str, peer: Peer) -> None:
        super().__init__(name)
        self.__dict__["_surefoot_peer"] = peer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self.__dict__["_surefoot_peer"].function(f"{self.__name__}:{name}")
        except KeyError as error:
            raise AttributeError(str(error)) from None
