"""The parts of the page that only some evaluations have: changed copies of tasks, and conversations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from surefoot.evaluate.calibration import calibrations
from surefoot.evaluate.curves import curve_plot
from surefoot.evaluate.intervals import Estimate
from surefoot.evaluate.layout import percent
from surefoot.evaluate.records import Conversation, Evaluation, Sample
from surefoot.evaluate.retention import breaking, retention_by_length, retention_by_turn, survival
from surefoot.evaluate.sensitivity import Sensitivity, sensitivities

MOST_TALKS = 12
"""Conversations that can be read in the page."""
ShowSample = Callable[[Sample], str]


def variants_part(evaluations: Sequence[Evaluation], stages: Sequence[str], sample: ShowSample) -> str:
    """What changed copies of tasks did at each stage, with the commonest way to fail and its shortest example."""
    parts = []
    for evaluation, stage in zip(evaluations, stages, strict=True):
        rows = "".join(_variant(row, sample) for row in sensitivities(evaluation))
        if rows:
            head = _head(["domain", "variant", "original", "changed", "points", "flips", "between seeds", "fails by"])
            parts.append(f"<h3>{escape(stage)}</h3><div class='wide'><table>{head}<tbody>{rows}</tbody></table></div>")
    if not parts:
        return ""
    note = (
        "pass@1 in percent, with 95% intervals clustered by task; ! Holm-adjusted paired test at 5%. Flips: how often "
        "a sample of the copy has another grade than one of the original; between seeds: two samples of the original. "
        "Domains of inputs grade the samples of the original on other arguments."
    )
    return f"<h2>Boundary conditions</h2>{''.join(parts)}<p class='note'>{note}</p>"


def _variant(row: Sensitivity, sample: ShowSample) -> str:
    points = f"{100 * row.difference.value:+.1f}{' !' if row.matters else ''}" if row.difference.known else "–"
    kind = ("worse" if row.difference.value < 0 else "better") if row.matters else ""
    fails = ""
    if row.failures:
        mode, count, example = row.failures[0]
        fails = f"{escape(mode)} ({count}){sample(example) if example else ''}"
    return (
        f"<tr class='first'><th>{escape(row.domain)}</th><td>{escape(row.variant)}</td><td>{percent(row.original)}</td>"
        f"<td>{percent(row.changed)}</td><td class='{kind}'>{points}</td><td>{_value(row.flip)}</td>"
        f"<td>{_value(row.seeds)}</td><td class='example'>{fails}</td></tr>"
    )


def calibration_part(evaluations: Sequence[Evaluation], stages: Sequence[str], sample: ShowSample) -> str:
    """How well stated confidence, and agreement with itself, tell right from wrong."""
    rows = "".join(
        f"<tr><td>{escape(stage)}</td><th>{escape(c.domain)}</th><td>{c.source}</td><td>{c.samples}</td>"
        f"<td>{100 * c.confidence:.0f}</td><td>{100 * c.right:.0f}</td><td>{c.ece:.3f}</td>"
        f"<td>{c.brier.value:.3f} <small>[{c.brier.low:.2f}, {c.brier.high:.2f}]</small></td><td>{c.base:.3f}</td></tr>"
        for evaluation, stage in zip(evaluations, stages, strict=True)
        for c in calibrations(evaluation)
    )
    if not rows:
        return ""
    head = _head(
        ["stage", "domain", "confidence", "samples", "mean, %", "right, %", "ECE", "Brier", "of the base rate"]
    )
    note = (
        "Stated: what answers say of themselves. Agreement: share of the task's other samples with the same answer. "
        "ECE: mean distance of confidence and share of right ones, in ten bins. Brier: mean squared distance; 0 is "
        "best; a confidence is of use where it is below the last column, the score of always saying the share "
        "of right ones."
    )
    table = f"<div class='wide'><table>{head}<tbody>{rows}</tbody></table></div>"
    return f"<details><summary><b>Calibration</b></summary>{table}<p class='note'>{note}</p></details>"


def left_out_part(evaluations: Sequence[Evaluation], stages: Sequence[str]) -> str:
    """The tasks that nothing could be sampled for, and why."""
    rows = "".join(
        f"<tr><td>{escape(stage)}</td><td>{escape(domain.name)}</td><td><code>{escape(task.id)}</code></td>"
        f"<td>{escape(task.reason)}</td></tr>"
        for evaluation, stage in zip(evaluations, stages, strict=True)
        for domain in evaluation.domains
        for task in domain.skipped
    )
    if not rows:
        return ""
    head = _head(["stage", "domain", "task", "why"])
    return f"<h2>Left out</h2><div class='wide'><table>{head}<tbody>{rows}</tbody></table></div>"


def conversations_part(evaluations: Sequence[Evaluation], stages: Sequence[str], sample: ShowSample) -> str:
    """Retention, survival, lengths, and which rules break first; then some conversations to read."""
    with_talks = [(e.conversations, stage) for e, stage in zip(evaluations, stages, strict=True) if e.conversations]
    if not with_talks:
        return ""
    kept = curve_plot([retention_by_turn(e.conversations) for e in evaluations], "rules kept by turn")
    alive = curve_plot([survival(e.conversations).values for e in evaluations], "without any violation so far")
    plots = (
        f"<figure><figcaption>rules kept, by turn</figcaption>{kept}</figure>"
        f"<figure><figcaption>conversations without any violation so far (Kaplan-Meier)</figcaption>{alive}</figure>"
    )
    tables = "".join(f"<h3>{escape(stage)}</h3>{_rules(talks)}{_lengths(talks)}" for talks, stage in with_talks)
    talks, stage = with_talks[-1]
    shown = "".join(_talk(talk, sample) for talk in talks[:MOST_TALKS])
    return (
        f"<h2>Rules kept over conversations</h2><div class='plots'>{plots}</div>{tables}"
        f"<p class='note'>Bands and intervals: 95%, clustered by script.</p>"
        f"<details class='domain'><summary>Conversations, {escape(stage)}</summary>{shown}</details>"
    )


def _rules(talks: Sequence[Conversation]) -> str:
    rows = "".join(
        f"<tr class='first'><th>{escape(rule.kind)}</th><td>{rule.conversations}</td><td>{rule.kept:.0%}</td>"
        f"<td>{rule.first:.0%}</td><td>{rule.never:.0%}</td><td>{rule.dropped:.0%}</td>"
        f"<td>{rule.survival.median or '–'}</td></tr>"
        for rule in breaking(talks)
    )
    head = _head(["rule", "conversations", "kept", "breaks first", "never kept", "dropped later", "median turn"])
    return f"<div class='wide'><table>{head}<tbody>{rows}</tbody></table></div>"


def _lengths(talks: Sequence[Conversation]) -> str:
    bins = retention_by_length(talks)
    if not bins:
        return ""
    cells = "".join(f"<td>{low}–{high - 1}: {percent(found)}</td>" for low, high, found in bins)
    return f"<div class='wide'><table><tbody><tr><th>kept, by tokens of context</th>{cells}</tr></tbody></table></div>"


def _talk(talk: Conversation, sample: ShowSample) -> str:
    tally = "".join(f"<i class='{'right' if all(rules) else 'wrong'}'></i>" for rules in talk.kept)
    turns = "".join(
        f"<div class='role'>user</div><pre>{escape(question)}</pre>{sample(reply)}"
        for question, reply in zip(talk.questions, talk.replies, strict=False)
    )
    name = f"<code>{escape(talk.script)}</code> #{talk.sample} <span class='tally'>{tally}</span>"
    return f"<details class='task'><summary>{name}</summary>{turns}</details>"


def _head(names: Sequence[str]) -> str:
    return f"<thead><tr>{''.join(f'<th>{escape(name)}</th>' for name in names)}</tr></thead>"


def _value(found: Estimate) -> str:
    return f"{100 * found.value:.1f}" if found.known else "–"
