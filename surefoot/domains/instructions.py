"""Short answers that keep instructions on form, wording and length; all of it is checked by program.

    [[domains]]
    name = "instructions"
    source = "instructions"
    options = {level = 0, forms = ["sentence"]}

A request is a subject with a set of constraints. A quarter of these combinations is held out, in all wordings: held-out
tasks measure whether constraints and subjects that were practised, though not together, are put together rightly.
Level 0 has one constraint, level 1 two (or one that is rare), level 2 exact counts and combinations of both.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from surefoot.config import DomainConfig
from surefoot.domains.instruction_forms import FORMS, LEVELS, Constraints, Form
from surefoot.domains.instruction_topics import CATEGORIES
from surefoot.errors import ConfigError
from surefoot.protocols import Domain, TaskSource
from surefoot.rewards.constraints import ConstraintGrader, describe
from surefoot.types import Split, Task, stable_seed

OPTIONS = ("level", "forms")
HELDOUT_SHARE = 4
MAX_NEW_TOKENS = 48
GROUPS = tuple(dict.fromkeys(form.name.split()[0] for form in FORMS))
"""Names of forms that an option can choose: `list` stands for lists of every length."""


@dataclass(frozen=True)
class Request:
    """A subject with a set of constraints, in one form."""

    form: Form
    level: int
    subject: str
    extra: Constraints

    @property
    def name(self) -> str:
        extra = "; ".join(describe(constraint) for constraint in self.extra)
        return f"{self.form.name}: {self.subject}: {extra}"

    @property
    def split(self) -> Split:
        """The side of the split that the request is on, in every wording."""
        return "heldout" if stable_seed("instructions split", self.name) % HELDOUT_SHARE == 0 else "train"

    @property
    def constraints(self) -> Constraints:
        """All constraints, those of the form first."""
        key = {"kind": "json", "keys": [CATEGORIES[self.subject][0]]} if self.form.name == "json" else None
        return (*self.form.base, *((key,) if key else ()), *self.extra)

    def prompt(self, way: int) -> str:
        asks = self.form.asks[way % len(self.form.asks)]
        key = CATEGORIES[self.subject][0] if self.subject in CATEGORIES else ""
        return " ".join([asks.format(subject=self.subject, key=key), *(describe(x) for x in self.extra)])

    def answer(self) -> str:
        """A demonstration."""
        return self.form.demonstrate(self.subject, self.constraints, Random(stable_seed("answer", self.name)))


@dataclass(frozen=True)
class InstructionSource:
    """Tasks of some requests: each in each of its form's wordings, the first ones all of different requests."""

    domain: str
    train: tuple[tuple[Request, int], ...]
    heldout: tuple[tuple[Request, int], ...]

    def size(self, split: Split) -> int:
        return len(self._side(split))

    def task(self, split: Split, index: int) -> Task:
        side = self._side(split)
        if not 0 <= index < len(side):
            raise IndexError(f"{self.domain} has {len(side)} {split} tasks, there is no number {index}")
        request, way = side[index]
        return Task(
            id=f"{self.domain}/{split}/{index}",
            domain=self.domain,
            messages=({"role": "user", "content": request.prompt(way)},),
            checks={"content": request.form.content(request.subject)},
            constraints=request.constraints,
            metadata={
                "source": "instructions",
                "form": request.form.name,
                "level": request.level,
                "request": request.name,
                "answer": request.answer(),
            },
        )

    def _side(self, split: Split) -> tuple[tuple[Request, int], ...]:
        return self.train if split == "train" else self.heldout


def source(options: Mapping[str, Any], *, domain: str = "instructions") -> TaskSource:
    """The tasks that `options` (`level`, `forms`) choose. Raises ConfigError for what there is not."""
    for key in options:
        if key not in OPTIONS:
            raise ConfigError(f"there is no option {key!r}{_near(key, OPTIONS)}", where="options")
    levels, names = _listed(options.get("level", list(LEVELS))), _listed(options.get("forms", list(GROUPS)))
    for level in levels:
        if level not in LEVELS or isinstance(level, bool):
            raise ConfigError(
                f"there is no level {level!r}", where="options.level", fix="levels: 0, 1, 2, or a list of them"
            )
    for name in names:
        if name not in GROUPS:
            fix = f"forms: {', '.join(GROUPS)}"
            raise ConfigError(f"there is no form {name!r}{_near(name, GROUPS)}", where="options.forms", fix=fix)
    chosen = [r for r in requests() if r.level in levels and r.form.name.split()[0] in names]
    train, heldout = (_ordered([r for r in chosen if r.split == side]) for side in ("train", "heldout"))
    if not train or not heldout:
        raise ConfigError("no request has that form and level", where="options", fix="choose more of them")
    return InstructionSource(domain, train, heldout)


def requests() -> list[Request]:
    """All requests of all forms."""
    return [Request(form, *request) for form in FORMS for request in form.requests()]


def build(config: DomainConfig) -> Domain:
    """The domain of `instructions`. Raises ConfigError for an unknown option."""
    try:
        tasks = source(config.options, domain=config.name)
    except ConfigError as error:
        raise ConfigError(error.what, where=f"domains.{config.name} ({error.where})", fix=error.fix) from None
    return Domain(
        name=config.name,
        source=tasks,
        grader=ConstraintGrader(config.extract or "whole"),
        max_new_tokens=config.max_new_tokens or MAX_NEW_TOKENS,
        weight=config.weight,
        chance=config.chance or 0.0,
        description="short answers that keep instructions on form, wording and length",
    )


def _ordered(side: list[Request]) -> tuple[tuple[Request, int], ...]:
    """Every wording of every request; all first wordings before any second."""
    mixed = sorted(side, key=lambda request: stable_seed("instructions order", request.name))
    first = [(request, place) for place, request in enumerate(mixed)]
    return (*first, *((request, place + 1) for request, place in first if len(request.form.asks) > 1))


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]


def _near(name: Any, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    return f" (did you mean {near[0]!r}?)" if near else ""
