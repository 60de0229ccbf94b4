"""What the charts need of a metrics line: runs of a hundred domains have long ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from surefoot.store.trace import critical_path

PLAIN = ("step", "reward", "pass_rate", "ungradable", "quarantined", "zeroed", "truncated", "answer_tokens")
LEARNER = ("kl", "entropy", "loss", "grad_norm", "lr", "clip_fraction", "gap/mean_abs", "gap/max", "mismatch")


def compact(line: Mapping[str, Any]) -> dict[str, Any]:
    """`n` are valid rollouts, of which `pass_rate` speaks. Domains: reward, pass rate, n, share of groups without
    signal, tokens an answer. Numbers that are not finite become null."""
    learner = line.get("learner", {})
    return {
        **{name: _finite(line.get(name)) for name in PLAIN},
        "n": _valid(line),
        "rollouts": line.get("rollouts", 0),
        "degenerate": _finite(line.get("degenerate_groups")),
        "learner": {name: _finite(learner[name]) for name in LEARNER if name in learner},
        "timing": _timing(line.get("timing", {})),
        "domains": {name: _domain(part) for name, part in line.get("domains", {}).items()},
    }


def _domain(part: Mapping[str, Any]) -> list[float | None]:
    values = [part.get("reward"), part.get("pass_rate"), _valid(part), part.get("degenerate_groups")]
    return [_finite(value) for value in (*values, part.get("answer_tokens"), part.get("rollouts"))]


def _valid(part: Mapping[str, Any]) -> int:
    return max(0, int(part.get("rollouts", 0)) - int(part.get("ungradable", 0)) - int(part.get("quarantined", 0)))


def _timing(timing: Mapping[str, float]) -> dict[str, float | None]:
    try:
        path = critical_path(timing)
    except KeyError:
        return {}
    return {**path, "tokens_per_second": _finite(timing.get("tokens_per_second"))}


def _finite(value: Any) -> float | None:
    return value if isinstance(value, int | float) and math.isfinite(value) else None
