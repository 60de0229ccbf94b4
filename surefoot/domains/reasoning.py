"""Domains made by reasoning-gym's 100-odd generators, scored by its own scorers inside the jail.

[[domains]]
name = "gcd"
source = "reasoning_gym:gcd"
options = {min_numbers = 2, max_numbers = 2, max_value = 30}   # settings of the generator
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.config import DomainConfig
from surefoot.domains.guessing import guess_rate
from surefoot.domains.reasoning_guards import admitted
from surefoot.domains.reasoning_maker import MAKER, Items, Maker
from surefoot.domains.seeds import split_seed
from surefoot.errors import ConfigError, GraderError
from surefoot.protocols import Domain, Sandbox
from surefoot.rewards.extract import extract
from surefoot.rewards.jail import Jail
from surefoot.rewards.memory import Memory
from surefoot.rewards.verdicts import no_answer, right, wrong
from surefoot.types import Finding, Rollout, Split, Task, Verdict

HANDLER = "surefoot.domains.reasoning_jail:handle"
BLOCK = 16
EXCLUDED = {
    "codeio": "it executes program text and its items cannot be repeated",
    "composite": "it mixes other data sets: list those as domains of their own",
}
"""Generators that are refused, and why."""
SLOW = frozenset(
    [
        *("countdown", "futoshiki", "intermediate_integration", "knight_swap", "polynomial_equations", "puzzle24"),
        *("rearc", "rubiks_cube", "sokoban", "sudoku", "zebra_puzzles", "polynomial_multiplication", "quantum_lock"),
        "word_ladder",
    ]
)
"""Generators that take 10 ms or more for an item: the chance level is not measured when they are built."""
CHANCE = {"polynomial_equations": 0.227, "zebra_puzzles": 0.313}
"""Chance level of slow generators: the share of the commonest answer in about 100 items; 0 for the others."""
EXACT = frozenset({"coin_flip", "game_of_life_halting"})
"""Generators whose scorers pay in full for answers that are wrong (`0`; any text at all): the reference must be met."""
INSTRUCTIONS = {
    "whole": "Reply with the final answer only.",
    "first_line": "Give the final answer on the first line.",
    "last_line": "Give the final answer on the last line.",
    "last_number": "End with the final answer.",
    "tag": "Give the final answer as <answer>...</answer>.",
    "boxed": "Give the final answer as \\boxed{...}.",
    "code": "Reply with the code only.",
}
"""What the model is told of the form of its answer, by how that is extracted."""


@dataclass(frozen=True)
class ReasoningGymSource:
    """Tasks of one generator; endless, and a pure function of (name, options, split, index)."""

    domain: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    suffix: str = ""
    maker: Maker | None = None
    """Process that makes the items; None for the one that all domains share."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_items", Items(self.maker or MAKER, self.name, self.options))

    def size(self, split: Split) -> int | None:
        return None

    def task(self, split: Split, index: int) -> Task:
        items: Items = self.__dict__["_items"]
        seed = split_seed(self.name, split, index)
        item = items.get(
            seed,
            [split_seed(self.name, split, i) for i in range(index + 1, index + (2 if self.name in SLOW else BLOCK))],
        )
        question, answer = item["question"], item["answer"]
        checks = {
            "dataset": self.name,
            "options": dict(self.options),
            "seed": seed,
            "plain": item["plain"] or self.name in EXACT,
        }
        checks |= {key: item[key] for key in ("answer", "entry") if item[key] is not None}
        return Task(
            id=f"{self.domain}/{split}/{index}",
            domain=self.domain,
            messages=({"role": "user", "content": question + self.suffix},),
            checks=checks,
            metadata={"source": f"reasoning_gym:{self.name}", **({"answer": answer} if answer else {})},
        )


@dataclass(frozen=True)
class ReasoningGymGrader:
    """Right if and only if the generator's scorer gives the answer its full score.

    Equality with the reference answer is decided here, and where the scorer is nothing but that (a third of the
    generators) inequality too; all else is scored in the jail.
    """

    extract: str = "whole"
    jail: Jail = field(default_factory=lambda: Jail(HANDLER, seconds=3.0))
    known: Memory[Verdict] = field(default_factory=lambda: Memory(4096))
    """Verdicts by task and answer: samples of one task often agree, and scorers do not change their minds."""

    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict:
        answer = extract(rollout.text, self.extract)
        if answer is None:
            return no_answer(self.extract)
        reference = task.checks.get("answer")
        if reference is not None and answer == reference:
            return right("score", answer)
        if task.checks["plain"]:
            return wrong("score", f"{answer!r} is not the reference answer")
        if not admitted(task.checks["dataset"], answer, reference):
            return wrong("score", f"{answer!r} has not the form of the reference answer")
        key = (task.checks["dataset"], str(task.checks["options"]), task.checks["seed"], answer)
        return self.known.get(key, lambda: self._score(task, answer, reference, sandbox))

    def _score(self, task: Task, answer: str, reference: str | None, sandbox: Sandbox) -> Verdict:
        request = {key: task.checks.get(key) for key in ("dataset", "options", "seed", "entry")}
        harmless = None if reference is None else {**request, "answer": reference}
        reply = self.jail.ask_about({**request, "answer": answer}, harmless, sandbox)
        if reply is None:
            return wrong("score", answer, findings=(_breaks("hangs or kills it", answer),))
        if "raised" in reply:
            if not isinstance(reply["oracle"], float):
                raise GraderError(f"the scorer raised {reply['raised']}, for the reference answer too", where=task.id)
            return wrong("score", f"{answer!r}: {reply['raised']}")
        return right("score", answer) if reply["score"] == 1.0 else wrong("score", f"{answer!r}: {reply['score']:g}")


def build(config: DomainConfig) -> Domain:
    """The domain of `reasoning_gym:NAME`. Raises ConfigError for an unknown generator or option."""
    name = config.source.partition(":")[2]
    if name in EXCLUDED:
        raise ConfigError(
            f"reasoning_gym:{name} is not offered: {EXCLUDED[name]}", where=f"domains.{config.name}.source"
        )
    how = config.extract or "whole"
    suffix = "" if config.instruction is not None else f"\n{INSTRUCTIONS[how]}"
    source = ReasoningGymSource(config.name, name, config.options, suffix)
    try:
        source.task("train", 0)
    except ConfigError as error:
        place = f"domains.{config.name}"
        raise ConfigError(error.what, where=f"{place} ({error.where})", fix=error.fix) from None
    return Domain(
        name=config.name,
        source=source,
        grader=ReasoningGymGrader(how),
        chance=CHANCE.get(name, 0.0) if name in SLOW else guess_rate(source),
        description=f"reasoning-gym generator {name}",
    )


def described() -> list[tuple[str, str]]:
    """The generators that are offered, with their kind; none if the package is missing. Loads nothing of it."""
    spec = importlib.util.find_spec("reasoning_gym")
    found: dict[str, str] = {}
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in Path(folder).rglob("*.py"):
            kind = path.relative_to(folder).parts[0]
            found.update((name, f"procedural, {kind}") for name in _registered(path.read_text(errors="replace")))
    return sorted((name, text) for name, text in found.items() if name not in EXCLUDED)


def _registered(source: str) -> set[str]:
    """Names under which a module of the package registers data sets."""
    if "register_dataset(" not in source:
        return set()
    tree = ast.parse(source)
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    calls = (n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "register_dataset")
    firsts = (call.args[0] for call in calls if call.args)
    return {
        str(first.value) if isinstance(first, ast.Constant) else constants[first.id]
        for first in firsts
        if isinstance(first, ast.Constant) or (isinstance(first, ast.Name) and first.id in constants)
    }


def _breaks(how: str, answer: str) -> Finding:
    return Finding("breaks_grader", "warning", f"the scorer answers the reference, and this {how}: {answer[:200]!r}")
