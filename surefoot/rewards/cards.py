"""Domain cards: the few numbers of an audit that others read, written by `surefoot audit --out`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from surefoot.errors import DataError
from surefoot.protocols import Grader, Sandbox
from surefoot.types import Rollout, Task, Verdict

VERSION = 2
"""2: the fingerprint does not depend on the domain's name."""
_FIX = "write it anew: surefoot audit DOMAIN --out DIR"


@dataclass(frozen=True, slots=True)
class DomainCard:
    """What a scheduler or a rewarder should know of a domain before it spends anything on it."""

    domain: str
    source: str
    fingerprint: str
    """Changes if tasks or grader do: then the card is out of date."""
    floor: float
    """Mean score that the best-paid non-answer earns; partial credit means something only above it."""
    guess_rate: float
    """Pass rate of the best blind guess: a lift is measured against it, and a policy that sits there learns nothing."""
    best_guess: str
    grader_seconds: float
    """Mean time of one grading; with a price for it, the scheduler reckons with this in place of measured time."""
    false_accept: float
    false_reject: float
    oracle_failures: float
    tasks: int
    problems: tuple[str, ...] = ()
    version: int = VERSION

    def rebased(self, score: float) -> float:
        """`score` in [0, 1] with the floor taken off: 0 for what a non-answer earns."""
        return max(0.0, (score - self.floor) / (1.0 - self.floor)) if self.floor < 1.0 else 0.0


@dataclass(frozen=True)
class RebasedGrader:
    """Another grader whose partial credit counts from the floor that the domain's audit measured."""

    inner: Grader
    card: DomainCard

    @property
    def extract(self) -> str:
        return str(getattr(self.inner, "extract", "whole"))

    def grade(self, task: Task, rollout: Rollout, sandbox: Sandbox) -> Verdict:
        verdict = self.inner.grade(task, rollout, sandbox)
        return verdict if verdict.grade != "wrong" else replace(verdict, score=self.card.rebased(verdict.score))


def read_card(path: Path) -> DomainCard:
    """One card. Raises DataError for a missing file or one that is no card."""
    try:
        card = TypeAdapter(DomainCard).validate_json(path.read_bytes())
    except OSError as error:
        raise DataError(f"the domain card cannot be read: {error.strerror}", where=str(path), fix=_FIX) from None
    except ValidationError as error:
        raise DataError(f"not a domain card: {error.errors()[0]['msg']}", where=str(path), fix=_FIX) from None
    if card.version != VERSION:
        raise DataError(f"the card is of version {card.version}, not {VERSION}", where=str(path), fix=_FIX)
    return card


def read_cards(directory: Path) -> dict[str, DomainCard]:
    """The cards of a folder by domain. Raises DataError for a missing folder or a file that is no card."""
    folder = directory / "cards" if (directory / "cards").is_dir() else directory
    if not folder.is_dir():
        raise DataError("there is no folder of domain cards", where=str(directory), fix=_FIX)
    return {card.domain: card for card in map(read_card, sorted(folder.glob("*.json")))}
