"""Short ways to write a verdict."""

from __future__ import annotations

import math

from surefoot.errors import GraderError
from surefoot.types import Check, Finding, Verdict

EVIDENCE = 300
"""Characters of an answer that are quoted as evidence."""


def right(name: str, evidence: str = "") -> Verdict:
    """A right answer; `name` is the one check that it passed."""
    return Verdict("right", 1.0, checks=(Check(name, True, evidence[:EVIDENCE]),))


def wrong(name: str, evidence: str = "", *, findings: tuple[Finding, ...] = (), score: float = 0.0) -> Verdict:
    """A wrong answer; `name` is the one check that it failed."""
    return Verdict("wrong", score, checks=(Check(name, False, evidence[:EVIDENCE]),), findings=findings)


def no_answer(how: str) -> Verdict:
    """Nothing could be extracted from what the model wrote."""
    return wrong("answer found", f"no answer of the form {how!r}")


def ungradable(reason: str) -> Verdict:
    """The grader or the infrastructure failed: masked out of training, never a 0."""
    return Verdict("ungradable", 0.0, reason=reason)


def as_verdict(value: object, name: str = "grader") -> Verdict:
    """What a grader function may return (verdict, score, truth value) as a sound verdict.

    Raises GraderError for anything else, a score that is NaN or outside [0, 1], or a verdict that contradicts itself.
    """
    if isinstance(value, Verdict):
        return sound(value)
    if isinstance(value, bool):
        return right(name) if value else wrong(name)
    try:
        score = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        kind = type(value).__name__
        raise GraderError(f"a grader must return a Verdict, a score or a bool, not {kind}", where=name) from None
    if math.isnan(score) or not 0.0 <= score <= 1.0:
        raise GraderError(f"a score must lie in [0, 1], not {score}", where=name)
    return right(name, f"score {score:g}") if score == 1.0 else wrong(name, f"score {score:g}", score=score)


def sound(verdict: Verdict) -> Verdict:
    """The verdict itself. Raises GraderError if its numbers or its grade cannot be meant."""
    numbers = [verdict.score, *verdict.dimensions.values()]
    if any(math.isnan(x) or not 0.0 <= x <= 1.0 for x in numbers):
        raise GraderError(f"the grader gave a number outside [0, 1]: {numbers}")
    if verdict.grade not in ("right", "wrong", "ungradable"):
        raise GraderError(f"the grader gave the grade {verdict.grade!r}")
    if (verdict.grade == "right") != (verdict.score == 1.0):
        raise GraderError(f"the grader says {verdict.grade!r} and gives the score {verdict.score:g}")
    return verdict
