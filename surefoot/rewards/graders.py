"""Graders by the names that a recipe uses."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

from surefoot.errors import ConfigError
from surefoot.protocols import Grader
from surefoot.rewards.extracting import ExtractingGrader
from surefoot.rewards.function import JailedFunctionGrader
from surefoot.rewards.grid import GridGrader
from surefoot.rewards.maths import MathGrader
from surefoot.rewards.text import ChoiceGrader, ExactGrader, NumberGrader


def named_grader(name: str, *, extract: str | None = None, where: str = "grader") -> Grader:
    """The grader called `name`, or the function of a Python file (`path.py:function`).

    Args:
        extract: How the answer is found in the text; None for the grader's own way.
        where: Place of the name, for the error.

    Raises ConfigError for an unknown name, with the nearest, or a file that is missing.
    """
    path, colon, attribute = name.rpartition(":")
    if colon and path.endswith(".py"):
        grader = JailedFunctionGrader(Path(path).expanduser(), attribute)
        return grader if extract is None else ExtractingGrader(grader, extract)
    if name not in GRADERS:
        near = difflib.get_close_matches(name, GRADERS, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        fix = f"known graders: {', '.join(GRADERS)}; or path.py:function"
        raise ConfigError(f"there is no grader {name!r}{hint}", where=where, fix=fix)
    return GRADERS[name](extract)


def _exact(extract: str | None) -> Grader:
    return ExactGrader(extract or "whole")


def _choice(extract: str | None) -> Grader:
    return ChoiceGrader(extract or "whole")


def _number(extract: str | None) -> Grader:
    return NumberGrader(extract or "last_number")


def _math(extract: str | None) -> Grader:
    return MathGrader(extract or "boxed")


def _code(extract: str | None) -> Grader:
    from surefoot.rewards.code import CodeGrader

    return CodeGrader(extract=extract or "code", efficiency=True, readability=True)


def _constraints(extract: str | None) -> Grader:
    from surefoot.rewards.constraints import ConstraintGrader

    return ConstraintGrader(extract or "whole")


def _calls(extract: str | None) -> Grader:
    from surefoot.rewards.function_calls import FunctionCallGrader

    return FunctionCallGrader(extract or "whole")


def _ifeval(extract: str | None) -> Grader:
    from surefoot.rewards.ifeval_grader import IFEvalGrader

    return IFEvalGrader(extract or "whole")


def _json(extract: str | None) -> Grader:
    from surefoot.rewards.json_answer import JsonGrader

    return JsonGrader(extract or "whole")


def _pytest(extract: str | None) -> Grader:
    from surefoot.rewards.project import PytestGrader

    return PytestGrader(extract=extract or "code")


def _grid(extract: str | None) -> Grader:
    return GridGrader(extract or "whole")


GRADERS: dict[str, Callable[[str | None], Grader]] = {
    "exact": _exact,
    "choice": _choice,
    "number": _number,
    "math": _math,
    "code": _code,
    "constraints": _constraints,
    "function_calls": _calls,
    "ifeval": _ifeval,
    "grid": _grid,
    "json": _json,
    "pytest": _pytest,
}
