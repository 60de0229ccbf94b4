"""Looks for signs of cheating in a rollout, and says what is to be done about each."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from surefoot.config import IntegrityConfig
from surefoot.errors import ConfigError
from surefoot.rewards.integrity.answers import in_answers
from surefoot.rewards.integrity.code import in_code
from surefoot.rewards.integrity.degeneration import in_text
from surefoot.rewards.integrity.kinds import KINDS, finding
from surefoot.types import Finding, Group, Rollout, Task, Verdict

Family = Callable[[Task, Rollout, Verdict], Iterator[Finding]]
FAMILIES: tuple[Family, ...] = (in_code, in_answers, in_text)


def inspect(task: Task, rollout: Rollout, verdict: Verdict) -> tuple[Finding, ...]:
    """All signs of cheating in one rollout, besides those that its grader found. A pure function; it runs no code.

    What the task's own reference answer does as well (a grid that repeats itself, a table of names) is no sign of it.
    """
    found = _signs(task, rollout, verdict)
    reference = task.metadata.get("answer", task.checks.get("answer"))
    if not found or not isinstance(reference, str):
        return found
    asked_for = {sign.kind for sign in _signs(task, replace(rollout, text=reference), verdict)}
    return tuple(sign for sign in found if sign.kind not in asked_for)


def _signs(task: Task, rollout: Rollout, verdict: Verdict) -> tuple[Finding, ...]:
    return tuple(found for family in FAMILIES for found in family(task, rollout, verdict))


@dataclass(frozen=True)
class Inspector:
    """Inspects as `[reward.integrity]` says. Raises ConfigError for a kind of finding that there is not."""

    config: IntegrityConfig

    def __post_init__(self) -> None:
        for kind in self.config.actions:
            if kind not in KINDS:
                near = difflib.get_close_matches(kind, KINDS, n=1)
                hint = f" (did you mean {near[0]!r}?)" if near else ""
                where, fix = f"reward.integrity.actions.{kind}", f"kinds: {', '.join(KINDS)}"
                raise ConfigError(f"there is no finding of the kind {kind!r}{hint}", where=where, fix=fix)

    def examine(self, group: Group) -> Group:
        """The group with findings added to its verdicts and the recipe's action set on each."""
        if not self.config.enabled or not group.rollouts:
            return group
        pairs = zip(group.rollouts, group.verdicts, strict=True)
        return replace(group, verdicts=tuple(self.verdict(group.task, rollout, verdict) for rollout, verdict in pairs))

    def verdict(self, task: Task, rollout: Rollout, verdict: Verdict) -> Verdict:
        """The verdict with the findings of its rollout; an ungradable one is left as it is."""
        if verdict.grade == "ungradable":
            return verdict
        found = (*verdict.findings, *inspect(task, rollout, verdict), *self._phrases(rollout.text))
        return replace(verdict, findings=tuple(kept for f in found if (kept := self._decided(f)) is not None))

    def _phrases(self, text: str) -> Iterator[Finding]:
        """The recipe's phrases in a text; plain search, so that no text can make it slow."""
        plain = " ".join(text.casefold().split()) if self.config.phrases else ""
        for phrase, action in self.config.phrases.items():
            wanted = " ".join(phrase.casefold().split())
            if wanted and wanted in plain:
                yield replace(finding("rejected_phrase", phrase), action=action)

    def _decided(self, found: Finding) -> Finding | None:
        action = self.config.actions.get(found.kind)
        if action == "ignore":
            return None
        return found if action is None else replace(found, action=action)
