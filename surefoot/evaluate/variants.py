"""Changed copies of a task that leave its answer alone (or change it in a known way): what a steady model shrugs off.

A variant is a function of a task and a source of chance; it gives the changed task, or None where the task has nothing
to change. `derive` makes a domain `NAME~VARIANT` of the changed tasks of a domain, which is then sampled, graded and
reported like any other; `sensitivity` holds it against the original, task by task.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from surefoot.errors import ConfigError
from surefoot.evaluate.inputs import INPUT_CLASSES, boundary_tasks
from surefoot.evaluate.wording import DISTRACTORS, FRAMES, NAMES, SYNONYMS
from surefoot.protocols import Domain, Sandbox
from surefoot.types import Message, Split, Task, stable_seed

OF = "variant_of"
"""Key of a task's metadata: id of the task that it is a variant of."""
MARK = "~"
"""Between a domain's name and its variant's."""
INPUTS = "inputs"
"""Variant that re-grades samples on boundary inputs, one domain for each class of input; see `inputs`."""
FAR = 1_000_000
"""Held-out index from which `numbers` draws: far from the tasks that are evaluated themselves."""

Change = Callable[[Task, Random], Task | None]

_OPTION = re.compile(r"^\(?([A-Z])[).:][ \t]+(.+)$", re.MULTILINE)
_CODE = re.compile(r"((?s:```.*?```)|`[^`\n]*`|^[ \t]*(?:>>>|def |assert |return ).*$|^.*==.*$)", re.MULTILINE)


def paraphrase(task: Task, random: Random) -> Task:
    """Other words for the same: common verbs of requests replaced, and a friendly sentence around it."""
    text = _prose(_question(task), lambda part: _reworded(part, random))
    return _asking(task, random.choice(FRAMES).format(question=text))


def distractor(task: Task, random: Random) -> Task:
    """An irrelevant remark with a number in it before the question (GSM-IC, arXiv 2302.00093)."""
    return _asking(task, f"{random.choice(DISTRACTORS)}\n\n{_question(task)}")


def unicode(task: Task, random: Random) -> Task | None:
    """Typographic signs that look the same: no-break spaces, curly apostrophes and quotes, outside of code."""
    text = _prose(_question(task), _typographic)
    return None if text == _question(task) else _asking(task, text)


def spacing(task: Task, random: Random) -> Task:
    """Blank lines around the question and spaces at the ends of its lines."""
    return _asking(task, "\n\n" + _question(task).replace("\n", "  \n") + "  \n")


def options(task: Task, random: Random) -> Task | None:
    """The options of a multiple choice in another order, relettered; the answer follows its option."""
    text, found = _question(task), list(_OPTION.finditer(_question(task)))
    letters = [match[1] for match in found]
    answer = task.checks.get("answer")
    wanted = re.fullmatch(r"(\(?)([A-Z])(\)?)", answer.strip()) if isinstance(answer, str) else None
    if len(found) < 2 or letters != [chr(ord("A") + i) for i in range(len(found))] or wanted is None:
        return None
    if wanted[2] not in letters:
        return None
    order = _deranged(len(found), random)
    shuffled = text
    for place in reversed(range(len(found))):
        match = found[place]
        shuffled = shuffled[: match.start(2)] + found[order[place]][2] + shuffled[match.end(2) :]
    letter = letters[order.index(letters.index(wanted[2]))]
    checks = {**task.checks, "answer": f"{wanted[1]}{letter}{wanted[3]}"}
    listed = task.checks.get("choices")
    if isinstance(listed, list) and len(listed) == len(order):
        checks["choices"] = [listed[i] for i in order]
    metadata = dict(task.metadata)
    if isinstance(metadata.get("answer"), str):
        metadata["answer"] = metadata["answer"].replace(answer, checks["answer"])
    return replace(_asking(task, shuffled), checks=checks, metadata=metadata)


def renamed(task: Task, random: Random) -> Task | None:
    """Every first name in the question replaced by another one of the same kind, in the answer, too."""
    text = _question(task)
    swaps: dict[str, str] = {}
    for kind in NAMES:
        present = [name for name in kind if re.search(rf"\b{name}\b", text)]
        free = [name for name in kind if name not in text]
        swaps |= zip(present, random.sample(free, min(len(free), len(present))), strict=False)
    if not swaps:
        return None
    pattern = re.compile(rf"\b({'|'.join(swaps)})\b")

    def swap(value: Any) -> Any:
        if isinstance(value, str):
            return pattern.sub(lambda match: swaps[match[1]], value)
        if isinstance(value, list):
            return [swap(inner) for inner in value]
        return {key: swap(inner) for key, inner in value.items()} if isinstance(value, Mapping) else value

    return replace(_asking(task, swap(text)), checks=swap(task.checks), metadata=swap(task.metadata))


HARMLESS: dict[str, Change] = {
    "paraphrase": paraphrase,
    "distractor": distractor,
    "unicode": unicode,
    "spacing": spacing,
    "options": options,
    "renamed": renamed,
}
"""Variants whose right answer is that of the original, up to the names and letters that were exchanged."""
VARIANTS = (*HARMLESS, "numbers", INPUTS)
"""All variants. `numbers`: other tasks of the same generator, whose answers differ."""


@dataclass(frozen=True)
class ListedTasks:
    """A source of some tasks that are there already; all of them are held out."""

    tasks: tuple[Task, ...]

    def task(self, split: Split, index: int) -> Task:
        if split == "train" or not 0 <= index < len(self.tasks):
            raise IndexError(index)
        return self.tasks[index]

    def size(self, split: Split) -> int:
        return 0 if split == "train" else len(self.tasks)


def check_variants(names: Sequence[str], where: str) -> None:
    """Raise ConfigError for a variant that there is not."""
    for name in names:
        if name not in VARIANTS:
            near = difflib.get_close_matches(name, VARIANTS, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ConfigError(
                f"there is no variant {name!r}{hint}", where=where, fix=f"variants: {', '.join(VARIANTS)}"
            )


def derive(domain: Domain, tasks: Sequence[Task], variant: str) -> Domain | None:
    """The domain `NAME~VARIANT` of changed copies of `tasks`; None if no task has anything to change.

    Each changed task has the id of its original with the variant's name, and the original's id in its metadata.
    """
    name = f"{domain.name}{MARK}{variant}"
    if variant == "numbers":
        changed = _other_numbers(domain, tasks)
    else:
        made = ((task, HARMLESS[variant](task, Random(stable_seed(variant, task.id)))) for task in tasks)
        changed = [(task, new) for task, new in made if new is not None]
    listed = tuple(marked(new, of=task, domain=name, variant=variant) for task, new in changed)
    return replace(domain, name=name, source=ListedTasks(listed)) if listed else None


def marked(changed: Task, *, of: Task, domain: str, variant: str) -> Task:
    """A changed task as one of the domain of its variant."""
    return replace(changed, id=f"{of.id}{MARK}{variant}", domain=domain, metadata={**changed.metadata, OF: of.id})


def derive_inputs(domain: Domain, tasks: Sequence[Task], sandbox: Sandbox) -> list[Domain]:
    """The domains `NAME~empty-input` ... of code tasks with the cases of one class of inputs; see `inputs`."""
    by_class: dict[str, list[Task]] = {}
    for task in tasks:
        for name, changed in boundary_tasks(task, sandbox).items():
            place = f"{domain.name}{MARK}{name}"
            by_class.setdefault(name, []).append(marked(changed, of=task, domain=place, variant=name))
    return [
        replace(domain, name=f"{domain.name}{MARK}{name}", source=ListedTasks(tuple(made)))
        for name, made in by_class.items()
    ]


def regrades(domain: Domain) -> bool:
    """Whether a domain is one of boundary inputs: its samples are those of the original, graded again."""
    return domain.name.partition(MARK)[2] in INPUT_CLASSES


def _other_numbers(domain: Domain, tasks: Sequence[Task]) -> list[tuple[Task, Task]]:
    """As many tasks again, where the source makes them without end."""
    if domain.source.size("heldout") is not None:
        return []
    return [(task, domain.source.task("heldout", FAR + i)) for i, task in enumerate(tasks)]


def _question(task: Task) -> str:
    return task.messages[-1]["content"]


def _asking(task: Task, question: str) -> Task:
    """The task with another question; examples before it stay."""
    last: Message = {**task.messages[-1], "content": question}
    return replace(task, messages=(*task.messages[:-1], last))


def _prose(text: str, change: Callable[[str], str]) -> str:
    """`text` with everything changed that is not code."""
    return "".join(part if i % 2 else change(part) for i, part in enumerate(_CODE.split(text)))


def _reworded(text: str, random: Random) -> str:
    for word, others in SYNONYMS.items():
        text = re.sub(rf"\b{word}\b", lambda _, others=others: random.choice(others), text)  # type: ignore[misc]
    return text


def _typographic(text: str) -> str:
    text = re.sub(r"(?<=\w)'(?=\w)", "’", text)
    text = re.sub(r'"([^"\n]*)"', r"“\1”", text)
    return re.sub(r"(?<=\w) (?=\w+ )", "\u00a0", text)


def _deranged(size: int, random: Random) -> list[int]:
    """A random order in which at least one thing has moved."""
    order = list(range(size))
    while order == list(range(size)):
        random.shuffle(order)
    return order
