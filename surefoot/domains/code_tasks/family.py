"""A family of function-writing problems: one template, many parameters."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

from surefoot.domains.code_tasks.inputs import KINDS
from surefoot.types import Split, stable_seed

HIDDEN, BOUNDARY, EXAMPLES = 7, 6, 2
ATTEMPTS = 200
SHOWN = 80
"""Characters that a shown example should not exceed, as the repr of the case."""
TELLING = frozenset({"a", "b", "c", "s", "key"})
"""Parameters whose text should occur in inputs; others are only words of the specification or parts of the source."""
HELDOUT_SHARE = 4
"""One problem in so many is held out."""


@dataclass(frozen=True)
class Family:
    """A template of problems. `{name}` in its texts stands for a parameter, `{name!r}` for it as a literal.

    Args:
        function: Name and arguments, as `add_to_each(numbers)`.
        says: What it does, in words that follow "a function that"; one or more ways to put it.
        body: The reference implementation, below the `def` line, without indentation.
        takes: The kind of each argument, names of `inputs.KINDS`.
        level: 0 (one idea, one line), 1 (a condition or a key), 2 (two ideas).
        params: Values of each parameter; every combination is a problem. A key `a,b` has pairs as its values.
    """

    function: str
    says: tuple[str, ...]
    body: str
    takes: tuple[str, ...]
    level: int = 0
    params: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def problems(self, topic: str) -> Iterator[Problem]:
        """The family with each combination of its parameters."""
        for chosen in itertools.product(*self.params.values()):
            values: dict[str, Any] = {}
            for key, value in zip(self.params, chosen, strict=True):
                values |= zip(key.split(","), value, strict=True) if "," in key else {key: value}.items()
            yield Problem(topic, self, values)


@dataclass(frozen=True)
class Case:
    """Arguments and what the reference makes of them."""

    args: tuple[Any, ...]
    expected: Any


@dataclass(frozen=True)
class Problem:
    """One function to write: a family with its parameters filled in."""

    topic: str
    family: Family
    values: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Unique among all problems."""
        settings = ",".join(f"{key}={value!r}" for key, value in self.values.items())
        return f"{self.topic}.{self.family.function.partition('(')[0]}({settings})"

    @property
    def signature(self) -> str:
        return self.family.function.format(**self.values)

    @property
    def function(self) -> str:
        """Name of the function to write."""
        return self.signature.partition("(")[0]

    @property
    def level(self) -> int:
        return self.family.level

    @property
    def split(self) -> Split:
        """The side of the split that the whole problem is on, decided by its reference: equal bodies stay together."""
        return "heldout" if stable_seed("code split", self._body) % HELDOUT_SHARE == 0 else "train"

    def says(self, way: int) -> str:
        """What the function does, in one of the ways to put it."""
        return self.family.says[way % len(self.family.says)].format(**self.values)

    @cached_property
    def reference(self) -> str:
        """Source of the reference implementation."""
        return "\n".join([f"def {self.signature}:", *(f"    {line}" for line in self._body.splitlines())])

    @property
    def _body(self) -> str:
        return self.family.body.format(**self.values)

    @cached_property
    def examples(self) -> tuple[Case, ...]:
        """The cases that the prompt shows: small, and with different results; one only if they are long."""
        taken = {repr(case.args) for case in self.boundary}
        cases = self._spread(Random(stable_seed("examples", self.name)), EXAMPLES, taken, longest=SHOWN)
        return cases if sum(len(repr(case)) for case in cases) <= 1.7 * SHOWN else cases[:1]

    @cached_property
    def hidden(self) -> tuple[Case, ...]:
        """Random cases, none of them shown; no single result is right for all of them."""
        taken = {repr(case.args) for case in self.examples}
        return self._spread(Random(stable_seed("hidden", self.name)), HIDDEN, taken)

    @cached_property
    def boundary(self) -> tuple[Case, ...]:
        """Empty, single, equal and extreme inputs."""
        columns = [KINDS[kind].edges(self.focus) for kind in self.family.takes]
        combined = [tuple(column[i % len(column)] for column in columns) for i in range(max(map(len, columns)))]
        distinct = list({repr(args): args for args in combined}.values())
        return tuple(self._case(args) for args in distinct[:BOUNDARY])

    @property
    def focus(self) -> list[Any]:
        """Parameter values, around which inputs are the most telling."""
        return [v for key, v in self.values.items() if isinstance(v, int) or key in TELLING]

    def _spread(self, random: Random, wanted: int, taken: set[str], longest: int = 1000) -> tuple[Case, ...]:
        """Distinct random cases; as far as possible, no result (and no argument) is right for over half of them."""
        found: list[Case] = []
        results: dict[str, int] = {}
        for attempt in range(ATTEMPTS):
            case = self._case(tuple(KINDS[kind].make(random, self.focus) for kind in self.family.takes))
            result = "unchanged" if repr(case.expected) in map(repr, case.args) else repr(case.expected)
            poor = results.get(result, 0) >= (wanted + 1) // 2 or len(repr(case)) > longest
            if repr(case.args) in taken or (poor and attempt < ATTEMPTS - 10 * wanted):
                continue
            taken.add(repr(case.args))
            results[result] = results.get(result, 0) + 1
            found.append(case)
            if len(found) == wanted:
                break
        return tuple(found)

    def _case(self, args: tuple[Any, ...]) -> Case:
        return Case(args, self._run(*[_copy(arg) for arg in args]))

    @cached_property
    def _run(self) -> Callable[..., Any]:
        """The reference as a function of this process: its source is ours, and takes no input but its parameters."""
        namespace: dict[str, Any] = {}
        exec(compile(self.reference, f"<{self.name}>", "exec"), namespace)
        function: Callable[..., Any] = namespace[self.function]
        return function


def _copy(value: Any) -> Any:
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return dict(value) if isinstance(value, dict) else value
