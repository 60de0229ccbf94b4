"""The supervisor's part of a verdict: what goes to the jails, and what may be believed of what comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from surefoot.errors import SandboxError
from surefoot.protocols import Call, CallResult, Limits
from surefoot.sandbox.inside import codec
from surefoot.types import Check, Execution


def checker_limits(limits: Limits) -> Limits:
    """Limits of the process that runs the tests: trusted code, but fed by the solution."""
    return replace(
        limits,
        cpu_seconds=limits.cpu_seconds * 2 + 10,
        wall_seconds=limits.wall_seconds * 2 + 10,
        memory_mb=max(limits.memory_mb, 512),
    )


def encode_calls(calls: Sequence[Call]) -> list[dict[str, Any]]:
    """Calls as JSON-ready data. Raises SandboxError that names an argument which is not plain data."""
    encoded = []
    for call in calls:
        try:
            args = [codec.encode(arg) for arg in call.args]
            kwargs = {name: codec.encode(arg) for name, arg in call.kwargs.items()}
        except codec.CodecError as error:
            raise SandboxError(str(error), where=f"call of {call.function}") from None
        encoded.append({"f": call.function, "a": args, "k": kwargs})
    return encoded


def decode_results(data: bytes, calls: Sequence[Call]) -> tuple[CallResult, ...]:
    """As many results as calls ended. What is malformed, and all after it, did not end."""
    results: list[CallResult] = []
    lines = data.split(b"\n")[:-1]  # what follows the last line break was cut off
    for line, call in zip(lines, calls, strict=False):
        try:
            results.append(_result(codec.loads(line), call))
        except (codec.CodecError, KeyError, ValueError, TypeError, AttributeError, IndexError):
            break
    return tuple(results)


def _result(reply: dict[str, Any], call: Call) -> CallResult:
    after = None
    if changes := reply.get("m"):
        changed = {int(index): codec.decode(raw) for index, raw in changes.items()}
        after = tuple(changed.get(index, arg) for index, arg in enumerate(call.args))
    if "e" in reply:
        name, message, _ = reply["e"]
        return CallResult(error=f"{name!s}: {message!s}"[:2000], args_after=after)
    raw = reply["r"]
    if isinstance(raw, dict) and "same" in raw:
        index = int(raw["same"])
        return CallResult(value=(after or call.args)[index], args_after=after)
    return CallResult(value=codec.decode(raw), args_after=after)


def checks(data: bytes, nonce: str, judged: Execution) -> tuple[Check, ...]:
    """The checks that the tests reported. No report, or one that is not theirs, is one failed check."""
    try:
        report = codec.loads(data)
        if report["nonce"] != nonce:
            raise ValueError("a report that is not from the tests")
        found = [Check(str(name), passed is True, str(evidence)) for name, passed, evidence in report["checks"]]
        trouble = str(report["trouble"])
    except (codec.CodecError, ValueError, KeyError, TypeError) as error:
        ended = judged.detail or judged.outcome
        return (Check("the tests run to their end", False, f"no report from the tests ({ended}; {error})"),)
    if judged.outcome not in ("ok", "output_limit") and not trouble:
        trouble = f"the tests' process ended badly: {judged.outcome} {judged.detail}"
    if trouble:
        found.append(Check("the tests run to their end", False, trouble))
    if not found:
        found.append(Check("at least one assertion runs", False, "the tests hold no assertion that was reached"))
    return tuple(found)
