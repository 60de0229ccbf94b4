"""Gates for continuous integration: `pass^4.code < 0.6` fails when pass^4 of the domain `code` is below 0.6.

    GATE   = METRIC [ "." DOMAIN ] [ ":" ( "low" | "high" ) ] OP NUMBER
    OP     = "<" | "<=" | ">" | ">="

Without a domain, or with the domain `mean`, it is the mean over domains; with `*` every domain is looked at. `:low`
and `:high` take the ends of the 95% interval: `pass@1.code:high < 0.6` fails only if it is surely below.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from surefoot.errors import ConfigError
from surefoot.evaluate.intervals import Estimate
from surefoot.evaluate.metric import KNOWN, Metric, estimate, overall, parse_metric
from surefoot.evaluate.records import Evaluation

End = Literal["value", "low", "high"]

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_GATE = re.compile(
    r"\s*(?P<metric>[a-z]+(?:[@^]\d+)?(?:\([\d.]+\))?)"
    r"(?:\.(?P<domain>[^\s<>=]+?))?(?::(?P<end>low|high))?"
    r"\s*(?P<operator><=|>=|<|>)\s*(?P<bound>[+-]?(?:\d+\.?\d*|\.\d+)(?P<percent>%?))\s*"
)


@dataclass(frozen=True, slots=True)
class Gate:
    """The condition under which an evaluation fails."""

    text: str
    metric: Metric
    domain: str
    """A domain's name, `mean`, or `*` for each."""
    end: End
    operator: str
    bound: float


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether an evaluation passes a gate, and a sentence that says why."""

    passed: bool
    message: str


def parse_gate(text: str) -> Gate:
    """Read a gate. Raises ConfigError that shows the form and the known metrics."""
    match = _GATE.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"cannot read the condition {text!r}",
            where="--fail-if",
            fix=f"write METRIC.DOMAIN < NUMBER, as in 'pass^4.code < 0.6'; metrics are {KNOWN}",
        )
    bound = float(match["bound"].rstrip("%")) / (100 if match["percent"] else 1)
    end: End = "low" if match["end"] == "low" else "high" if match["end"] == "high" else "value"
    metric = parse_metric(match["metric"])
    return Gate(text.strip(), metric, match["domain"] or "mean", end, match["operator"], bound)


def check_gate(gate: Gate | str, evaluation: Evaluation) -> GateResult:
    """Hold an evaluation against a gate.

    A value that cannot be known (all samples ungradable) fails: a gate must not open because nothing was measured.

    Raises:
        ConfigError: The domain does not exist, or the metric needs more samples than were drawn.
    """
    gate = parse_gate(gate) if isinstance(gate, str) else gate
    if gate.metric.k > evaluation.samples:
        raise ConfigError(
            f"{gate.metric} needs {gate.metric.k} samples a task, the evaluation has {evaluation.samples}",
            where=f"--fail-if '{gate.text}'",
            fix=f"evaluate with --samples {gate.metric.k}",
        )
    results = [_hold(gate, name, value) for name, value in _values(gate, evaluation)]
    failed = [message for passed, message in results if not passed]
    return GateResult(not failed, "; ".join(failed or [message for _, message in results]))


def _values(gate: Gate, evaluation: Evaluation) -> list[tuple[str, Estimate]]:
    if gate.domain == "*":
        return [(domain.name, estimate(gate.metric, domain)) for domain in evaluation.domains]
    domain = evaluation.domain(gate.domain)
    if domain is not None:
        return [(domain.name, estimate(gate.metric, domain))]
    if gate.domain == "mean":
        return [("mean", overall(gate.metric, evaluation))]
    names = [d.name for d in evaluation.domains]
    near = get_close_matches(gate.domain, names, 1)
    raise ConfigError(
        f"there is no domain {gate.domain!r}" + (f" (did you mean {near[0]!r}?)" if near else ""),
        where=f"--fail-if '{gate.text}'",
        fix=f"domains are {', '.join(names)}; or mean, or * for each",
    )


def _hold(gate: Gate, name: str, found: Estimate) -> tuple[bool, str]:
    what = f"{gate.metric}.{name}" + (f":{gate.end}" if gate.end != "value" else "")
    value: float = getattr(found, gate.end)
    if value != value:
        return False, f"{what} could not be measured"
    failed = OPERATORS[gate.operator](value, gate.bound)
    shown = f"{what} = {value:.4g} [{found.low:.4g}, {found.high:.4g}]"
    return not failed, f"{shown}: {'fails' if failed else 'passes'}, the gate is {gate.operator} {gate.bound:g}"
