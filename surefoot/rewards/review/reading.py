"""What decisions say: how much cheating may have gone unseen, and how far reviewers agree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from surefoot.rewards.interval import upper_bound


@dataclass(frozen=True, slots=True)
class Judged:
    """One reviewer's decision on one rollout."""

    item: tuple[int, str, int]
    domain: str
    reviewer: str
    decision: str
    """`accept` (honest work), `reject` (a cheat) or `unsure`."""
    audit: bool = False
    """Whether the rollout is part of the random audit."""


@dataclass(frozen=True, slots=True)
class Bound:
    """How much of what a domain rewarded may be cheating that nothing saw."""

    domain: str
    judged: int
    rejected: int
    unsure: int
    high: float
    """Upper bound with 95% confidence (Clopper and Pearson), with `unsure` counted as a cheat; 1 if none is judged."""


def bounds(decisions: Iterable[Judged], domains: Iterable[str] = ()) -> list[Bound]:
    """The bound of each domain from the audit's decisions; the gravest decision on a rollout counts.

    Args:
        domains: Domains that are to be named even if nothing of them was judged.
    """
    worst: defaultdict[str, dict[tuple[int, str, int], str]] = defaultdict(dict)
    order = ("accept", "unsure", "reject")
    for one in decisions:
        if one.audit:
            before = worst[one.domain].get(one.item, "accept")
            worst[one.domain][one.item] = max(before, one.decision, key=order.index)
    found = []
    for domain in sorted({*worst, *domains}):
        kept = list(worst[domain].values())
        rejected, unsure = kept.count("reject"), kept.count("unsure")
        found.append(Bound(domain, len(kept), rejected, unsure, upper_bound(rejected + unsure, len(kept))))
    return found


def cohen_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Agreement beyond chance, `(observed - expected) / (1 - expected)` (Cohen 1960); None where it is undefined."""
    if not pairs:
        return None
    n = len(pairs)
    observed = sum(a == b for a, b in pairs) / n
    names = {name for pair in pairs for name in pair}
    expected = sum(sum(a == x for a, _ in pairs) * sum(b == x for _, b in pairs) for x in names) / n**2
    return None if expected == 1.0 else (observed - expected) / (1.0 - expected)


def double_judged(decisions: Iterable[Judged]) -> list[tuple[str, str]]:
    """The pairs of decisions on the same rollout, reviewers in the order of their names."""
    by_item: defaultdict[tuple[int, str, int], dict[str, str]] = defaultdict(dict)
    for one in decisions:
        by_item[one.item][one.reviewer] = one.decision
    return [(said[a], said[b]) for said in by_item.values() for a, b in combinations(sorted(said), 2)]
