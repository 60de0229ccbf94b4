"""An audit as plain data, and the domain card: the few numbers of it that others read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from surefoot.domains.audit.result import Audit, Rate
from surefoot.errors import DataError

VERSION = 1


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
    """Mean time of one grading."""
    false_accept: float
    false_reject: float
    oracle_failures: float
    tasks: int
    problems: tuple[str, ...] = ()
    version: int = VERSION

    def rebased(self, score: float) -> float:
        """`score` in [0, 1] with the floor taken off: 0 for what a non-answer earns."""
        return max(0.0, (score - self.floor) / (1.0 - self.floor)) if self.floor < 1.0 else 0.0


def card_of(audit: Audit) -> DomainCard:
    """The card of an audited domain."""
    best = audit.best_guess
    return DomainCard(
        domain=audit.domain,
        source=audit.source,
        fingerprint=audit.fingerprint,
        floor=audit.floor,
        guess_rate=max(audit.guess_rate, audit.chance),
        best_guess=best.name if best else "",
        grader_seconds=audit.mean_seconds,
        false_accept=audit.fooled.share,
        false_reject=audit.refused.share,
        oracle_failures=audit.oracle_failures.share,
        tasks=audit.tasks,
        problems=audit.problems,
    )


def as_data(audit: Audit) -> dict[str, Any]:
    """Everything that was found, ready for JSON, rates with their intervals."""
    data = asdict(audit)
    for name in ("fooled", "refused", "oracle_failures", "leaked"):
        data[name] |= {"share": getattr(audit, name).share, "interval": list(getattr(audit, name).interval)}
    return {**data, "floor": audit.floor, "guess_rate": audit.guess_rate, "problems": list(audit.problems)}


def from_data(data: dict[str, Any]) -> Audit:
    """The inverse of `as_data`. Raises pydantic.ValidationError for anything else."""
    plain = {key: value for key, value in data.items() if key not in ("floor", "guess_rate", "problems")}
    for name in ("fooled", "refused", "oracle_failures", "leaked"):
        plain[name] = Rate(plain[name]["hits"], plain[name]["tries"])
    return TypeAdapter(Audit).validate_python(plain)


def write_cards(audits: Sequence[Audit], directory: Path) -> list[Path]:
    """Write `cards/DOMAIN.json` below the directory for every domain that could be audited."""
    folder = directory / "cards"
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for audit in audits:
        if not audit.error:
            path = folder / f"{audit.domain}.json"
            path.write_text(json.dumps(asdict(card_of(audit)), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            paths.append(path)
    return paths


def read_cards(directory: Path) -> dict[str, DomainCard]:
    """The cards of a folder by domain. Raises DataError for a missing folder or a file that is no card."""
    folder = directory / "cards" if (directory / "cards").is_dir() else directory
    if not folder.is_dir():
        fix = "surefoot audit DOMAIN... --out DIR makes one"
        raise DataError("there is no folder of domain cards", where=str(directory), fix=fix)
    cards: dict[str, DomainCard] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            card = TypeAdapter(DomainCard).validate_json(path.read_bytes())
        except ValidationError as error:
            fix = "write it anew with surefoot audit"
            raise DataError(f"not a domain card: {error.errors()[0]['msg']}", where=str(path), fix=fix) from None
        cards[card.domain] = card
    return cards
