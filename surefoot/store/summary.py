"""What a step's metrics line says about its rollouts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from surefoot.types import Action, Group, Reward, Rollout, UpdateReport, Verdict

Sampled = tuple[Rollout, Verdict, Reward]


def summarise(groups: Sequence[Group], update: UpdateReport | None = None) -> dict[str, Any]:
    """Plain numbers over all rollouts of a step; under `domains` the same for each, and what its update says of it."""
    by_domain: dict[str, list[Group]] = {}
    for group in groups:
        by_domain.setdefault(group.task.domain, []).append(group)
    learnt = update.domains if update else {}
    domains = {name: {**_numbers(part), **learnt.get(name, {})} for name, part in sorted(by_domain.items())}
    return {**_numbers(groups), "domains": domains}


def _numbers(groups: Sequence[Group]) -> dict[str, float]:
    samples = [sample for g in groups for sample in zip(g.rollouts, g.verdicts, g.rewards, strict=True)]
    valid = [sample for sample in samples if sample[2].valid]
    return {
        "reward": _mean(reward.value for _, _, reward in valid),
        "pass_rate": _mean(float(verdict.grade == "right") for _, verdict, _ in valid),
        "rollouts": len(samples),
        "ungradable": sum(verdict.grade == "ungradable" for _, verdict, _ in samples),
        "findings": sum(len(verdict.findings) for _, verdict, _ in samples),
        "quarantined": sum(_has(verdict, "quarantine") for _, verdict, _ in samples),
        "zeroed": sum(_has(verdict, "zero") for _, verdict, _ in samples),
        "truncated": _mean(float(rollout.stop == "length") for rollout, _, _ in samples),
        "answer_tokens": _mean(float(rollout.sampled) for rollout, _, _ in samples),
        "degenerate_groups": _mean(float(group.degenerate) for group in groups),
    }


def _has(verdict: Verdict, action: Action) -> bool:
    return verdict.grade != "ungradable" and any(finding.action == action for finding in verdict.findings)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0
