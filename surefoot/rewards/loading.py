"""Loads an attribute of a Python file that a recipe names."""

from __future__ import annotations

import difflib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from surefoot.errors import ConfigError


def load_attribute(path: Path, attribute: str) -> Any:
    """`attribute` of the file. Raises ConfigError if the file is missing or broken, or has no such attribute."""
    module = load_module(path)
    try:
        return getattr(module, attribute)
    except AttributeError:
        public = [name for name in vars(module) if not name.startswith("_")]
        near = difflib.get_close_matches(attribute, public, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise ConfigError(f"there is no {attribute!r} in it{hint}", where=str(path)) from None


def load_module(path: Path) -> ModuleType:
    """The file as a module, run once a process; modules beside it can be imported by it."""
    path = path.resolve()
    name = f"surefoot_user_{abs(hash(str(path)))}_{path.stem}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ConfigError(
            "there is no such Python file", where=str(path), fix="give its path relative to the current folder"
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ConfigError(
            f"the file cannot be loaded: {type(error).__name__}: {error}", where=f"{path}{_line(error, path)}"
        ) from error
    return module


def _line(error: BaseException, path: Path) -> str:
    """`:LINE` of the deepest frame inside the file, if there is one."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f":{line}" if line else ""
