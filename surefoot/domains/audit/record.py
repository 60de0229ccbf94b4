"""An audit as plain data, and its domain card."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from surefoot.domains.audit.result import Audit, Rate
from surefoot.rewards.cards import DomainCard

RATES = ("fooled", "refused", "oracle_failures", "leaked", "cases")


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
    for name in RATES:
        data[name] |= {"share": getattr(audit, name).share, "interval": list(getattr(audit, name).interval)}
    return {**data, "floor": audit.floor, "guess_rate": audit.guess_rate, "problems": list(audit.problems)}


def from_data(data: dict[str, Any]) -> Audit:
    """The inverse of `as_data`. Raises pydantic.ValidationError for anything else."""
    plain = {key: value for key, value in data.items() if key not in ("floor", "guess_rate", "problems")}
    for name in RATES:
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
