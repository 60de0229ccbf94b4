"""Grades whether an answer keeps the instructions of its task, and says something at all.

`Task.constraints` holds the instructions (`{"kind": ..., **arguments}`, see `constraint_kinds`).
`Task.checks["content"]` says what makes an answer one: `mentions` (at least one of these words), `least_words`
(different words), `members` (each entry of an enumeration is one of these, and none comes twice). Answers that repeat
themselves or the prompt have no content.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.errors import GraderError
from surefoot.protocols import Sandbox
from surefoot.rewards.constraint_kinds import KINDS, items, occurrences, words
from surefoot.rewards.extract import extract
from surefoot.rewards.verdicts import no_answer
from surefoot.types import Check, Rollout, Task, Verdict

DIMENSION = "constraints"
SHORT = 8
"""Texts of fewer words are not looked at for repetition."""
LEAST_DISTINCT = 0.5
"""Share of a text's words that are different; a half of this in texts of more than forty words."""
RUN = 4
"""Words in a row that count as taken from the prompt."""


@dataclass(frozen=True)
class ConstraintGrader:
    """Right if every instruction is kept and the answer has content; the score is the share of instructions kept.

    An answer without content scores 0 whatever its form. Raises GraderError for a constraint that there is not.
    """

    extract: str = "whole"

    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict:
        text = extract(rollout.text, self.extract)
        if text is None:
            return no_answer(self.extract)
        checks = examine(text, task)
        right = all(check.passed for check in checks)
        kept = [check.passed for check in checks if check.dimension == DIMENSION]
        has_content = all(check.passed for check in checks if check.dimension != DIMENSION)
        share = sum(kept) / len(kept) if kept and has_content else 0.0
        reason = next((f"{c.name}: {c.evidence}" for c in checks if not c.passed), "")
        return Verdict("right" if right else "wrong", 1.0 if right else share, checks=checks, reason=reason)


def examine(text: str, task: Task) -> tuple[Check, ...]:
    """One check for each instruction of the task, and those for content."""
    if not task.constraints:
        raise GraderError("the task has no constraints to check", where=task.id)
    kept = [
        Check(str(c.get("kind")), keeps(text, c), describe(c), hidden=False, dimension=DIMENSION)
        for c in task.constraints
    ]
    prompt = next((m["content"] for m in reversed(task.messages) if m["role"] == "user"), "")
    return (*kept, *_content(text, prompt, task.checks.get("content") or {}))


def keeps(text: str, constraint: Mapping[str, Any]) -> bool:
    """Whether the text keeps one constraint. Raises GraderError for an unknown kind or arguments that do not fit it."""
    kind, arguments = _parts(constraint)
    try:
        return KINDS[kind].check(text, **arguments)
    except (TypeError, AttributeError) as error:
        raise GraderError(f"the constraint {dict(constraint)} does not fit its kind: {error}") from error


def describe(constraint: Mapping[str, Any]) -> str:
    """The constraint as a sentence. Raises GraderError for an unknown kind or a missing argument."""
    kind, arguments = _parts(constraint)
    shown: dict[str, Any] = {"n": 1, "marker": "P.S.", **arguments}
    count = shown["n"]
    if "words" in shown:
        count = len(shown["words"])
        shown["words"] = " or ".join(f'"{word}"' for word in shown["words"])
    try:
        says = KINDS[kind].says.format(**shown)
    except (KeyError, IndexError) as error:
        raise GraderError(f"the constraint {dict(constraint)} lacks {error}") from None
    return says.replace(" at least 1 time(s)", "").replace("(s)", "" if count == 1 else "s")


def _parts(constraint: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    kind = constraint.get("kind")
    if kind not in KINDS:
        raise GraderError(f"there is no constraint of the kind {kind!r}", fix=f"kinds: {', '.join(KINDS)}")
    return str(kind), {key: value for key, value in constraint.items() if key != "kind"}


def _content(text: str, prompt: str, content: Mapping[str, Any]) -> list[Check]:
    used = words(text)
    least, mentions, members = int(content.get("least_words", 1)), content.get("mentions"), content.get("members")
    checks = [Check("content: words", len(set(used)) >= least, f"{len(set(used))} different words, at least {least}")]
    checks.append(Check("content: no repetition", not repetitive(used), "the text repeats itself"))
    checks.append(Check("content: not the prompt", not _copied(used, words(prompt)), "most of it is the prompt"))
    if mentions:
        found = any(occurrences(text, word) for word in mentions)
        checks.append(Check("content: topic", found, f"one of: {', '.join(mentions)}"[:200]))
    if members:
        entries = items(text)
        strange = [entry for entry in entries if entry not in members]
        fine = bool(entries) and not strange and len(set(entries)) == len(entries)
        checks.append(
            Check("content: entries", fine, f"not such a thing: {strange[0]}"[:200] if strange else "distinct")
        )
    return checks


def repetitive(used: Sequence[str]) -> bool:
    """Whether a text of these words says the same over and over."""
    total = len(used)
    if total < SHORT:
        return False
    distinct = len(set(used)) / total
    commonest = Counter(used).most_common(1)[0][1]
    least = LEAST_DISTINCT if total <= 40 else LEAST_DISTINCT / 2
    return distinct < least or commonest > max(3, 0.3 * total)


def _copied(used: Sequence[str], prompt: Sequence[str]) -> bool:
    """Whether most of a text was taken from the prompt, a few words in a row at a time."""
    runs = [tuple(used[i : i + RUN]) for i in range(len(used) - RUN + 1)]
    known = {tuple(prompt[i : i + RUN]) for i in range(len(prompt) - RUN + 1)}
    return bool(runs) and sum(run in known for run in runs) > len(runs) / 2
