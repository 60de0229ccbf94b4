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


handle({"reference": r"\frac{1}{2}", "answer": "0.5"})  # loads the parser's tables before the first fork
