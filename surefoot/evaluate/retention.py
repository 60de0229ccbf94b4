"""How long instructions are kept: retention by turn and by length, time to the first violation, what breaks first.

Conversations of one script are not independent, as samples of one task are not: every interval is over scripts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from surefoot.evaluate.intervals import Estimate, mean_interval, wilson
from surefoot.evaluate.passk import Floats
from surefoot.evaluate.records import Conversation


@dataclass(frozen=True, slots=True)
class Survival:
    """S(t): the share of conversations without any violation up to and including turn t."""

    turns: tuple[int, ...]
    values: tuple[Estimate, ...]

    @property
    def median(self) -> int | None:
        """The first turn by which half of the conversations have seen a violation; None if it never came to that."""
        return next((turn for turn, found in zip(self.turns, self.values, strict=True) if found.value <= 0.5), None)


@dataclass(frozen=True, slots=True)
class Breaking:
    """How one kind of rule fares."""

    kind: str
    conversations: int
    """That have it."""
    kept: float
    """Share of replies that keep it."""
    first: float
    """Share of the conversations that have it in which it is (among) the first to break."""
    never: float
    """Share in which the very first reply breaks it: it was not understood rather than forgotten."""
    dropped: float
    """Share in which the first reply keeps it, and a later one does not."""
    survival: Survival


def retention_by_turn(talks: Sequence[Conversation]) -> list[Estimate]:
    """For each turn, the share of rules that the reply keeps, averaged over scripts."""
    longest = max((len(talk.kept) for talk in talks), default=0)
    return [
        _mean({(i, t.script): t.kept[turn] for i, t in enumerate(talks) if turn < len(t.kept)})
        for turn in range(longest)
    ]


def retention_by_length(talks: Sequence[Conversation], bins: int = 5) -> list[tuple[int, int, Estimate]]:
    """The same by the tokens of context that a reply was written in: `(from, below, share)`, bins of equal count."""
    lengths = np.array([reply.context for talk in talks for reply in talk.replies])
    if not len(lengths) or lengths.max() == lengths.min():
        return []
    edges = np.unique(np.quantile(lengths, np.linspace(0, 1, bins + 1)).astype(int))
    edges[-1] += 1
    found = []
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        replies = {
            (f"{i}/{turn}", talk.script): kept
            for i, talk in enumerate(talks)
            for turn, (reply, kept) in enumerate(zip(talk.replies, talk.kept, strict=True))
            if low <= reply.context < high
        }
        found.append((low, high, _mean(replies)))
    return found


def first_violation(kept: Sequence[Sequence[bool]]) -> int | None:
    """The turn, from 1, of the first reply that breaks any rule; None if none does."""
    return next((turn for turn, rules in enumerate(kept, start=1) if not all(rules)), None)


def survival(talks: Sequence[Conversation], kind: str | None = None, *, level: float = 0.95) -> Survival:
    """Time to the first violation of any rule, or of those of one kind, after Kaplan and Meier (1958).

    A conversation that ends without a violation is censored at its last turn. The point estimate is scipy's `ecdf` of
    censored data. Its variance is that of a jackknife over scripts, which counts correlated conversations of a script
    as what they are; it gives the effective number of conversations for Wilson's interval, which stays sensible at 0
    and 1 where Greenwood's has no width.
    """
    groups: dict[str, list[tuple[int, bool]]] = {}
    for talk in talks:
        rules = [
            [ok for ok, c in zip(row, talk.constraints, strict=True) if kind in (None, c["kind"])] for row in talk.kept
        ]
        if rules and rules[0]:
            broke = first_violation(rules)
            groups.setdefault(talk.script, []).append((broke or len(rules), broke is not None))
    everything = [entry for group in groups.values() for entry in group]
    turns = tuple(range(1, max((turn for turn, _ in everything), default=0) + 1))
    whole = _kaplan_meier(everything, turns)
    left_out = [_kaplan_meier([e for g in groups if g != name for e in groups[g]], turns) for name in groups]
    spread = _jackknife_variance(np.array(left_out)) if len(groups) > 1 else np.full(len(turns), np.nan)
    sizes = len(groups), len(everything)
    values = [_wilson(float(s), float(v), sizes, level) for s, v in zip(whole, spread, strict=True)]
    return Survival(turns, tuple(values))


def breaking(talks: Sequence[Conversation]) -> list[Breaking]:
    """Every kind of rule, those that break first in the largest share of conversations before the others."""
    kinds = dict.fromkeys(str(c["kind"]) for talk in talks for c in talk.constraints)
    return sorted((_breaking(talks, kind) for kind in kinds), key=lambda b: (-b.first, b.kept))


def retention_findings(talks: Sequence[Conversation]) -> list[str]:
    """What the conversations say, in sentences."""
    if not talks:
        return []
    kept, alive = retention_by_turn(talks), survival(talks)
    ends = f"{kept[0].value:.0%} of the rules in the first reply, {kept[-1].value:.0%} in reply {len(kept)}"
    half = f"half have seen a violation by turn {alive.median}" if alive.median else "fewer than half see any"
    told = [f"Rules kept in conversations: {ends}; {half}."]
    rules = [rule for rule in breaking(talks) if rule.first > 0]
    if rules:
        shown = ", ".join(f"{rule.kind} ({rule.first:.0%})" for rule in rules[:3])
        told.append(f"Rules that break first, of the conversations that have them: {shown}.")
    dropped = [rule for rule in breaking(talks) if rule.dropped > 0]
    if dropped:
        most = max(dropped, key=lambda rule: rule.dropped)
        told.append(f"Forgotten most often, kept at first and broken later: {most.kind} ({most.dropped:.0%}).")
    return told


def _breaking(talks: Sequence[Conversation], kind: str) -> Breaking:
    rows = []
    for talk in talks:
        place = next((i for i, c in enumerate(talk.constraints) if c["kind"] == kind), None)
        if place is not None and talk.kept:
            rows.append((talk, [turn[place] for turn in talk.kept]))
    first = [_is_first(talk, mine) for talk, mine in rows]
    return Breaking(
        kind,
        len(rows),
        kept=_share([ok for _, mine in rows for ok in mine]),
        first=_share(first),
        never=_share([not mine[0] for _, mine in rows]),
        dropped=_share([mine[0] and not all(mine) for _, mine in rows]),
        survival=survival([talk for talk, _ in rows], kind),
    )


def _is_first(talk: Conversation, mine: Sequence[bool]) -> bool:
    broke = first_violation([[ok] for ok in mine])
    return broke is not None and broke == first_violation(talk.kept)


def _mean(kept: Mapping[tuple[Any, str], tuple[bool, ...]]) -> Estimate:
    """Mean share of rules kept; keys are (anything, script), and scripts are the clusters."""
    by_script: dict[str, list[float]] = {}
    for (_, script), rules in kept.items():
        by_script.setdefault(script, []).append(_share(rules))
    rules_each = np.mean([len(rules) for rules in kept.values()]) if kept else 1.0
    replies = len(kept) / max(1, len(by_script))
    return mean_interval([np.mean(shares) for shares in by_script.values()], floor=float(1 / (rules_each * replies)))


def _kaplan_meier(entries: Sequence[tuple[int, bool]], turns: Sequence[int]) -> Floats:
    """S at each of `turns`, from (turn, whether a violation was seen there)."""
    if not entries:
        return np.full(len(turns), np.nan)
    data = stats.CensoredData(
        uncensored=[t for t, seen in entries if seen], right=[t for t, seen in entries if not seen]
    )
    return np.asarray(stats.ecdf(data).sf.evaluate(np.array(turns, dtype=float)), dtype=np.float64)


def _jackknife_variance(left_out: Floats) -> Floats:
    """Variance of an estimate from its values with each of m clusters left out [m, turns] -> [turns]."""
    m = len(left_out)
    spread: Floats = (m - 1) / m * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0)
    return spread


def _wilson(share: float, variance: float, sizes: tuple[int, int], level: float) -> Estimate:
    """Wilson's interval at the effective size `share (1 - share) / variance`, kept between clusters and members."""
    clusters, members = sizes
    if math.isnan(share):
        return Estimate(math.nan, math.nan, math.nan, clusters)
    size = float(clusters)
    if 0 < share < 1 and variance > 0:
        size = min(max(share * (1 - share) / variance, 1.0), float(members))
    t = float(stats.t.ppf((1 + level) / 2, max(1, clusters - 1)))
    low, high = wilson(share, size, t)
    return Estimate(share, float(low), float(high), clusters)


def _share(values: Sequence[bool]) -> float:
    return sum(values) / len(values) if values else math.nan
