"""APPS and LiveCodeBench: tasks with pairs of input and output, published in several wrappings."""

from __future__ import annotations

import base64
import json
import pickletools
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.domains.formats import Format, Row
from surefoot.errors import DataError
from surefoot.types import Message

PROGRAM = "Write a Python program that reads standard input and prints the answer. Reply with one code block."
FUNCTION = "Write the Python function `{}`. Reply with the whole function in one code block."
LARGEST = 64_000_000
"""Bytes that compressed tests may have when they are unpacked."""


@dataclass(frozen=True)
class ProgramFormat(Format):
    """APPS and LiveCodeBench: programs that read standard input, or functions, with pairs of input and output."""

    def messages(self, row: Row, place: str) -> tuple[Message, ...]:
        checks = self.checks(row, place)
        request = FUNCTION.format(checks["function"]) if "function" in checks else PROGRAM
        start = str(row.get("starter_code") or "").strip()
        text = str(row[self.prompt]).strip()
        if not text:
            raise DataError("the row has no prompt", where=place)
        return ({"role": "user", "content": "\n\n".join([text, *([start] if start else []), request])},)

    def checks(self, row: Row, place: str) -> dict[str, Any]:
        try:
            return _apps(row) if "input_output" in row else _livecodebench(row)
        except (KeyError, TypeError, ValueError, AttributeError, zlib.error, IndexError, RecursionError) as error:
            raise DataError(f"the tests cannot be read ({type(error).__name__}: {error})"[:300], where=place) from None

    def reference(self, row: Row, checks: Mapping[str, Any]) -> str | None:
        given = row.get(self.solution) if self.solution else None
        try:
            code = (json.loads(given) if isinstance(given, str) else given or [])[0]
        except (ValueError, IndexError, KeyError):
            return None
        if "function" in checks and re.search(r"^class Solution\b", code, re.MULTILINE):
            name = checks["function"]
            code += f"\n\ndef {name}(*args):\n    return Solution().{name}(*args)\n"
        return f"```python\n{code.strip()}\n```"


def _apps(row: Row) -> dict[str, Any]:
    given = row["input_output"]
    tests = json.loads(given) if isinstance(given, str) else given
    pairs = list(zip(tests["inputs"], tests["outputs"], strict=True))
    if not pairs:
        raise ValueError("there are none")
    if name := tests.get("fn_name"):
        single = all(isinstance(out, list) and len(out) == 1 for _, out in pairs)  # wrapped once more, as published
        cases = [{"args": list(args), "expected": out[0] if single else out} for args, out in pairs]
        return {"function": name, "cases": cases}
    return {"io": [{"input": _lines(given), "output": _lines(out), "hidden": True} for given, out in pairs]}


def _livecodebench(row: Row) -> dict[str, Any]:
    shown, hidden = json.loads(row["public_test_cases"]), _private(row.get("private_test_cases") or "[]")
    tests = [*((t, False) for t in shown), *((t, True) for t in hidden)]
    if not tests:
        raise ValueError("there are none")
    if tests[0][0].get("testtype") != "functional":
        return {"io": [{"input": t["input"], "output": t["output"], "hidden": secret} for t, secret in tests]}
    given = row.get("metadata") or "{}"
    name = (json.loads(given) if isinstance(given, str) else given)["func_name"]
    cases = []
    for test, secret in tests:
        args = [json.loads(line) for line in test["input"].splitlines() if line.strip()]
        cases.append({"args": args, "expected": json.loads(test["output"]), "hidden": secret})
    return {"function": name, "cases": cases}


def _private(text: str) -> list[dict[str, Any]]:
    """Hidden tests: JSON, or JSON as a pickled string, zipped, in base64. Nothing is unpickled: its text is read."""
    try:
        found = json.loads(text)
    except ValueError:
        unpacker = zlib.decompressobj()
        packed = unpacker.decompress(base64.b64decode(text), LARGEST)
        if unpacker.unconsumed_tail:
            raise ValueError(f"they unpack to more than {LARGEST} bytes") from None
        texts = [arg for op, arg, _ in pickletools.genops(packed) if isinstance(arg, str) and "UNICODE" in op.name]
        if len(texts) != 1:
            raise ValueError("the pickle holds more than one string") from None
        found = json.loads(texts[0])
    return list(found)


def _lines(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)
