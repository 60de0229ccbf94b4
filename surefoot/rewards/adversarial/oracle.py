"""What a program makes of inputs, found in the sandbox: the reference is not trusted more than what a model wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.protocols import Call, CallResult, Limits, Sandbox
from surefoot.rewards.adversarial.inputs import Args, key
from surefoot.rewards.equal import same

CHUNK = 50
"""Inputs that share one run of the reference, and so its CPU time."""
MOST_STOPS = 6
"""Inputs that may kill the program before the rest of them is given up."""
LONGEST_VALUE = 4000
"""Encoded bytes of an expected value."""


LIMITS = Limits(cpu_seconds=1.0, wall_seconds=10.0)


@dataclass(frozen=True)
class Program:
    """A function of some code, and how it is run."""

    code: str
    function: str
    image: str = "python"
    limits: Limits = LIMITS

    def results(self, inputs: Sequence[Args], sandbox: Sandbox) -> list[CallResult | None]:
        """What each call gave, all in one run; None from the one on that killed the run."""
        calls = [Call(self.function, args) for args in inputs]
        found, _ = sandbox.call(self.code, calls, image=self.image, limits=self.limits)
        return [*found, *[None] * (len(inputs) - len(found))]

    def answers(self, inputs: Sequence[Args], sandbox: Sandbox) -> list[CallResult | None]:
        """What each call gave; None only for those that kill the run they are in."""
        found: list[CallResult | None] = []
        stops = 0
        while len(found) < len(inputs) and stops < MOST_STOPS:
            chunk = inputs[len(found) : len(found) + CHUNK]
            ended = [result for result in self.results(chunk, sandbox) if result is not None]
            found += ended
            if len(ended) < len(chunk):
                found.append(None)
                stops += 1
        return [*found, *[None] * (len(inputs) - len(found))]


@dataclass(frozen=True)
class Answered:
    """An input that the reference answers, always the same."""

    args: Args
    expected: Any
    after: Args | None = None
    """The arguments afterwards, for a function that gives nothing back and changes them."""


def ask(reference: Program, inputs: Sequence[Args], sandbox: Sandbox) -> list[Answered]:
    """The inputs that the reference answers with plain data, within its limits, always the same.

    An input for which it raises breaks its precondition and is left out, as is one that kills it, and one whose answer
    depends on chance or on the calls before it.
    """
    once = reference.answers(inputs, sandbox)
    kept = [(args, result) for args, result in zip(inputs, once, strict=True) if _usable(result)]
    # Each twice in the other order, so at another place: programs that draw numbers are seeded alike in every run.
    again = reference.answers([args for args, _ in reversed(kept) for _ in range(2)], sandbox)[::-1]
    answered = []
    for (args, first), *others in zip(kept, again[::2], again[1::2], strict=True):
        assert first is not None
        if all(other is not None and other.error is None and same(other.value, first.value) for other in others):
            in_place = first.value is None and first.args_after is not None
            answered.append(Answered(args, first.value, first.args_after if in_place else None))
    return answered


def holds(precondition: Program, inputs: Sequence[Args], sandbox: Sandbox) -> list[bool]:
    """Whether a given precondition, a function of the same arguments, is true of each input; raising is false."""
    results = precondition.answers(inputs, sandbox)
    return [result is not None and result.error is None and result.value is True for result in results]


def agrees(result: CallResult | None, wanted: Answered) -> bool:
    """Whether a call gave what the reference did."""
    if result is None or result.error is not None:
        return False
    if wanted.after is not None and not same(list(result.args_after or ()), list(wanted.after)):
        return False
    return same(result.value, wanted.expected, truth_is_number=True)


def _usable(result: CallResult | None) -> bool:
    if result is None or result.error is not None:
        return False
    size = key((result.value,))
    return size is not None and len(size) <= LONGEST_VALUE
