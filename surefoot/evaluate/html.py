"""`report.html`: one file without scripts or outside resources, for any browser, light or dark, phone or desk.

Everything that a model or a task wrote is escaped; nothing in it can become markup.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from html import escape

from surefoot.evaluate.html_more import calibration_part, conversations_part, left_out_part, variants_part
from surefoot.evaluate.layout import LEFT_OUT, LEGEND, MARKS, Block, any_left_out, blocks, headings, percent
from surefoot.evaluate.modes import modes, smallest
from surefoot.evaluate.plot import dot_plot
from surefoot.evaluate.records import Evaluation, Sample, TaskRecord
from surefoot.evaluate.report import report_findings, setup
from surefoot.evaluate.style import CSS

SIGNS = {"right": "✓", "wrong": "✗", "ungradable": "?"}


def to_html(
    evaluations: Sequence[Evaluation], *, title: str = "Evaluation", max_tasks: int = 20, max_chars: int = 4000
) -> str:
    """The report as a page: findings, plots, table, and the samples behind them.

    Args:
        max_tasks: How many tasks of a domain can be opened; those that changed most come first.
        max_chars: How much of a text is shown.
    """
    made, stages = blocks(evaluations), headings(evaluations)
    more = "".join(
        part(evaluations, stages, lambda sample: _sample(sample, max_chars))
        for part in (calibration_part, variants_part, conversations_part)
    )
    said = "".join(f"<li>{_text(sentence)}</li>" for sentence in report_findings(evaluations))
    setups = "".join(f"<li><b>{_text(s)}</b>: {_text(setup(e))}</li>" for s, e in zip(stages, evaluations, strict=True))
    body = (
        f"<h1>{_text(title)}</h1><ul class='findings'>{said}</ul>"
        f"<h2>By domain</h2>{_legend(stages)}{_plots(made, stages)}{_table(made, stages)}"
        f"{more}"
        f"<h2>How samples failed</h2>{_failures(evaluations, stages, max_chars)}"
        f"<h2>Samples</h2>{_samples(evaluations, stages, max_tasks, max_chars)}"
        f"{left_out_part(evaluations, stages)}"
        f"<h2>How it was measured</h2><ul>{setups}</ul>{_reading_help()}"
    )
    page = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta name='color-scheme' content='light dark'>"
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{_text(title)}</title><style>{CSS}</style></head><body><main>{body}</main></body></html>\n"
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def _text(value: str) -> str:
    return escape(value, quote=True)


def _legend(stages: Sequence[str]) -> str:
    dots = "".join(f"<span class='stage-{i % 5}'><i></i>{_text(stage)}</span>" for i, stage in enumerate(stages))
    return f"<p class='legend'>{dots}<span class='chance-key'>chance level</span></p>"


def _plots(made: Sequence[Block], stages: Sequence[str]) -> str:
    names = [str(line.metric) for line in made[0].lines if line.metric.name != "ceiling@"]
    figures = [
        f"<figure><figcaption>{_text(name)}</figcaption>{dot_plot(made, name, stages)}</figure>" for name in names
    ]
    return f"<div class='plots'>{''.join(figures)}</div>"


def _table(made: Sequence[Block], stages: Sequence[str]) -> str:
    head = "".join(f"<th>{_text(name)}</th>" for name in ["domain", "chance", "metric", *stages])
    rows = "".join(_rows(block) for block in made)
    notes = f"Percentages, with 95% intervals clustered by task. {LEGEND}."
    if any_left_out(made):
        notes += f" {LEFT_OUT}."
    return (
        f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        f"<p class='note'>{_text(notes)}</p>"
    )


def _rows(block: Block) -> str:
    rows = []
    for row, line in enumerate(block.lines):
        span = len(block.lines)
        lead = f"<th rowspan='{span}'>{_text(block.name)}</th><td rowspan='{span}'>{block.chance:.0%}</td>"
        cells = "".join(
            f"<td class='{cell.direction}'>{percent(cell.estimate)} {MARKS[cell.direction]}</td>" for cell in line.cells
        )
        kind = " class='first'" if row == 0 else ""
        rows.append(f"<tr{kind}>{lead if row == 0 else ''}<td>{_text(line.metric.label)}</td>{cells}</tr>")
    return "".join(rows)


def _failures(evaluations: Sequence[Evaluation], stages: Sequence[str], max_chars: int) -> str:
    """A row a mode: its share of all samples at each stage, and its shortest example at the last stage that has one."""
    samples = [[sample for domain in e.originals.domains for sample in domain] for e in evaluations]
    counts = [modes(drawn) for drawn in samples]
    head = "".join(f"<th>{_text(name)}</th>" for name in ["", *stages, "shortest example"])
    rows = []
    for mode, _ in sum(counts, Counter[str]()).most_common():
        found = (smallest(drawn, mode) for drawn in reversed(samples))
        example = next((s for s in found if s), None)
        cells = "".join(
            f"<td>{100 * count[mode] / max(len(drawn), 1):.1f} <small>({count[mode]})</small></td>"
            for count, drawn in zip(counts, samples, strict=True)
        )
        shown = _sample(example, max_chars) if example else ""
        rows.append(f"<tr class='first'><th>{_text(mode)}</th>{cells}<td class='example'>{shown}</td></tr>")
    if not rows:
        return "<p>None did.</p>"
    return (
        f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        "<p class='note'>Percentage of all samples, and their number.</p>"
    )


def _samples(evaluations: Sequence[Evaluation], stages: Sequence[str], max_tasks: int, max_chars: int) -> str:
    names = list(dict.fromkeys(d.name for evaluation in evaluations for d in evaluation.domains))
    return "".join(_domain(name, evaluations, stages, max_tasks, max_chars) for name in names)


Stages = list[TaskRecord | None]
"""One task at each stage; None where the stage does not have it."""


def _domain(name: str, evaluations: Sequence[Evaluation], stages: Sequence[str], max_tasks: int, max_chars: int) -> str:
    by_stage = [
        {task.id: task for task in domain.tasks} if (domain := evaluation.domain(name)) else {}
        for evaluation in evaluations
    ]
    ids = list(dict.fromkeys(id_ for tasks in by_stage for id_ in tasks))
    rows: list[Stages] = sorted(([tasks.get(id_) for tasks in by_stage] for id_ in ids), key=_change, reverse=True)
    shown = "".join(_task(row, stages, max_chars) for row in rows[:max_tasks])
    cut = len(rows) > max_tasks
    more = f"<p class='note'>{max_tasks} of {len(rows)} tasks, those that changed most.</p>" if cut else ""
    head = f"<summary>{_text(name)} <small>{len(rows)} tasks</small></summary>"
    return f"<details class='domain'>{head}{more}{shown}</details>"


def _change(row: Stages) -> float:
    """How far the pass rate moved from the first stage to the last; -1 where that cannot be known."""
    first, last = row[0], row[-1]
    moved = abs(last.rate - first.rate) if first and last else math.nan
    return -1.0 if math.isnan(moved) else moved


def _task(row: Stages, stages: Sequence[str], max_chars: int) -> str:
    task = next(task for task in row if task)
    dots = " → ".join(_dots(at) for at in row)
    prompt = "".join(
        f"<div class='role'>{_text(m['role'])}</div><pre>{_clip(m['content'], max_chars)}</pre>" for m in task.messages
    )
    wanted = f"<div class='role'>reference</div><pre>{_clip(task.reference, max_chars)}</pre>" if task.reference else ""
    columns = "".join(
        f"<section class='stage-{i % 5}'><h4><i></i>{_text(stage)}</h4>"
        f"{''.join(_sample(s, max_chars) for s in at.samples) if at else '<p>not evaluated</p>'}</section>"
        for i, (stage, at) in enumerate(zip(stages, row, strict=True))
    )
    return (
        f"<details class='task'><summary><code>{_text(task.id)}</code> <span class='dots'>{dots}</span></summary>"
        f"{prompt}{wanted}<div class='columns'>{columns}</div></details>"
    )


def _dots(task: TaskRecord | None) -> str:
    if task is None:
        return "–"
    count = f"{sum(s.right for s in task.graded)}/{len(task.graded)}"
    return f"<span class='tally'>{''.join(f'<i class={s.grade}></i>' for s in task.samples)}</span> {count}"


def _sample(sample: Sample, max_chars: int) -> str:
    notes = [f"{sample.tokens} tokens", f"seed {sample.seed}"]
    notes += [sample.mode] if sample.mode and not sample.right else []
    notes += ["cut off at the token limit"] if sample.truncated else []
    answer = f" <span class='answer'>{_clip(sample.answer, 60)}</span>" if sample.answer else ""
    reason = f"<p class='note'>{_clip(sample.reason, max_chars)}</p>" if sample.reason else ""
    return (
        f"<details class='sample {sample.grade}'><summary><b>{SIGNS[sample.grade]}</b>{answer}</summary>"
        f"{reason}<pre>{_clip(sample.text, max_chars)}</pre><p class='note'>{_text(', '.join(notes))}</p></details>"
    )


def _clip(text: str, max_chars: int) -> str:
    """Escaped text, cut to a length; the whole of it is in `evaluation.json`."""
    return _text(text if len(text) <= max_chars else f"{text[:max_chars]} … ({len(text) - max_chars} more characters)")


def _reading_help() -> str:
    return (
        "<dl><dt>pass@1</dt><dd>how often one sample is right</dd>"
        "<dt>pass@k</dt><dd>how often at least one of k is right: the ceiling that selection could reach</dd>"
        "<dt>pass^k</dt><dd>how often all k are right: what can be relied on</dd>"
        "<dt>realised ceiling</dt><dd>pass@1 / pass@k: the part of what the model can do that it does</dd>"
        "<dt>chance</dt><dd>pass rate of blind answers in the right format</dd></dl>"
    )
