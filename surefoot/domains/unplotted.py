"""Lets packages that import matplotlib be loaded without it: it wants a writable folder, and takes a second."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def without_plots() -> None:
    """From now on, `import matplotlib...` gives empty modules whose every attribute is an empty class."""
    if "matplotlib" not in sys.modules:
        sys.meta_path.insert(0, _Finder())


PACKAGES = ("matplotlib", "mpl_toolkits")


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class _Loader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = _Module(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing in it."""


class _Finder(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, _Loader(), is_package=True) if name.split(".")[0] in PACKAGES else None
