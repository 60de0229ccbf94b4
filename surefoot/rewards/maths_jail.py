"""Compares mathematical answers with math-verify. Runs inside the jail, one fork for each answer."""

from __future__ import annotations

import logging
from typing import Any

from math_verify import LatexExtractionConfig, parse, verify

logging.disable(logging.CRITICAL)
_CONFIG = [LatexExtractionConfig()]


def handle(request: dict[str, Any]) -> dict[str, Any]:
    """`{"equal": bool, "read": how many values were understood}` for `answer` against `reference`, both LaTeX.

    The jail's own limits take the place of math-verify's timers.
    """
    wanted = parse(f"${request['reference']}$", _CONFIG, parsing_timeout=None)
    given = parse(f"${request['answer']}$", _CONFIG, parsing_timeout=None)
    if not wanted:
        return {"equal": False, "read": 0, "unreadable": True}
    return {"equal": bool(verify(wanted, given, timeout_seconds=None)), "read": len(given)}


WARM = (
    *(r"7+x", r"\frac{x+1}{2}", r"0.5(x-1)", r"3\sqrt{5}", r"(1,2)", r"\left(3,\frac{\pi}{2}\right)"),
    *(r"\{1,2\}", r"[0,1)"),
    *(r"x^2-4x", r"12\%", r"x=5", r"5,6", r"\begin{pmatrix}1\\2\end{pmatrix}", r"2\pi r", r"10^{-3}"),
    *(r"\log_2 3", r"|x|"),
    *(r"(-\infty,3]\cup[5,\infty)", r"y=2x+3", r"90^\circ", r"1\frac{1}{2}", r"\binom{5}{2}", r"5!", r"\sin x"),
)
"""Parsed before the first fork: the parser builds its tables as it meets new forms, which takes half a second."""

for latex in WARM:
    handle({"reference": latex, "answer": "1"})
