"""Two runs held against each other: what their recipes differ in, and how the domains did in the end."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.evaluate.intervals import wilson
from surefoot.store.journal import read_lines
from surefoot.web.lines import compact

Z = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Row:
    """A domain in both runs, over the last steps of each."""

    domain: str
    rates: tuple[float | None, float | None]
    counts: tuple[int, int]
    low: float | None
    high: float | None
    """95% interval of the difference, second minus first."""

    @property
    def verdict(self) -> str:
        if self.low is None or self.high is None:
            return "unknown"
        return "better" if self.low > 0 else "worse" if self.high < 0 else "no difference seen"


def recipe_differences(runs: Sequence[Path]) -> list[tuple[str, str, str]]:
    """Key, value in the first run, value in the second; `-` where a key is only in one."""
    first, second = (dict(_flat(tomllib.loads((run / "config.toml").read_text()))) for run in runs)
    keys = sorted({*first, *second})
    return [(k, first.get(k, "-"), second.get(k, "-")) for k in keys if first.get(k) != second.get(k)]


def domain_rows(runs: Sequence[Path], last: int) -> list[Row]:
    """Pass rates over the last `last` steps that each run has."""
    sums = [_pooled([compact(line) for line in read_lines(run / "metrics.jsonl")[-last:]]) for run in runs]
    return [_row(name, *(pooled.get(name, (0.0, 0)) for pooled in sums)) for name in sorted({*sums[0], *sums[1]})]


def newcombe(p: float, n: int, q: float, m: int) -> tuple[float, float]:
    """95% interval of q - p from Wilson's intervals of both (Newcombe 1998, method 10)."""
    lows, highs = wilson([p, q], [n, m], Z)
    low = q - p - math.hypot(q - lows[1], highs[0] - p)
    return low, q - p + math.hypot(highs[1] - q, p - lows[0])


def _row(name: str, first: tuple[float, int], second: tuple[float, int]) -> Row:
    (right, n), (right2, m) = first, second
    rates = (right / n if n else None, right2 / m if m else None)
    low = high = None
    if n and m:
        low, high = newcombe(right / n, n, right2 / m, m)
    return Row(name, rates, (n, m), low, high)


def _pooled(lines: Sequence[Mapping[str, Any]]) -> dict[str, tuple[float, int]]:
    """By domain: right answers, valid rollouts."""
    found: dict[str, tuple[float, int]] = {}
    for line in lines:
        for name, (_, rate, n, *_) in line["domains"].items():
            right, count = found.get(name, (0.0, 0))
            found[name] = (right + (rate or 0.0) * n, count + n)
    return found


def _flat(values: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(values, dict):
        for key, value in values.items():
            yield from _flat(value, f"{prefix}.{key}" if prefix else key)
    elif isinstance(values, list) and values and all(isinstance(v, dict) and "name" in v for v in values):
        for value in values:
            yield from _flat({k: v for k, v in value.items() if k != "name"}, f"{prefix}.{value['name']}")
    else:
        yield prefix, str(values)
