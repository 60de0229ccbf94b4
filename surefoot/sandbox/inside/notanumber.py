"""A nan that came from a solution: as IEEE 754 has it, except that asking for its order is an error.

`assert not abs(f(x) - 5) > eps` would otherwise pass for a solution that gives nan.
"""

from __future__ import annotations

import math
from typing import Any


class Nan(float):
    """Arithmetic with it gives it again; `<`, `<=`, `>`, `>=` raise ValueError; it equals nothing."""

    def __new__(cls) -> Nan:
        return super().__new__(cls, math.nan)


def _contagious(*_: Any) -> Nan:
    return Nan()


def _unordered(*_: Any) -> bool:
    raise ValueError("the solution gave nan, which has no order")


for _name in ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]:
    setattr(Nan, f"__{_name}__", _contagious)
    setattr(Nan, f"__r{_name}__", _contagious)
for _name in ["neg", "pos", "abs"]:
    setattr(Nan, f"__{_name}__", _contagious)
for _name in ["lt", "le", "gt", "ge"]:
    setattr(Nan, f"__{_name}__", _unordered)
