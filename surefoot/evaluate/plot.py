"""A dot plot as inline SVG: a row a domain, a dot with its interval a stage, a dashed line at the chance level.

Sizes are in units of the view box, which is as wide as a phone, so that the text stays legible there.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from surefoot.evaluate.layout import Block, Line, percent

WIDTH, MARGIN = 400.0, 14.0
LABEL, STEP, GAP, AXIS = 17.0, 12.0, 9.0, 22.0
TICKS = (0, 25, 50, 75, 100)


def dot_plot(made: Sequence[Block], metric: str, stages: Sequence[str]) -> str:
    """The SVG of one metric, given by its printed name. Colours come from the page's classes `stage-0` to `stage-4`."""
    rows = [(block, line) for block in made for line in block.lines if str(line.metric) == metric]
    each = LABEL + STEP * len(stages) + GAP
    height = each * len(rows) + AXIS
    parts = [_axis(height)]
    parts += [_row(block, line, each * i, stages) for i, (block, line) in enumerate(rows)]
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH:g} {height:g}" role="img" '
        f'aria-label="{escape(metric)} by domain, with 95% intervals">{"".join(parts)}</svg>'
    )


def _x(share: float) -> float:
    return MARGIN + (WIDTH - 2 * MARGIN) * min(max(share, 0.0), 1.0)


def _axis(height: float) -> str:
    floor = height - AXIS
    lines = "".join(
        f'<line class="grid" x1="{_x(t / 100):.1f}" y1="0" x2="{_x(t / 100):.1f}" y2="{floor:.1f}"/>' for t in TICKS
    )
    marks = "".join(f'<text class="tick" x="{_x(t / 100):.1f}" y="{height - 6:.1f}">{t}%</text>' for t in TICKS)
    return lines + marks


def _row(block: Block, line: Line, top: float, stages: Sequence[str]) -> str:
    name = "mean" if block.is_mean else "name"
    parts = [f'<text class="{name}" x="{MARGIN:g}" y="{top + 12:.1f}">{escape(block.name)}</text>']
    if line.metric.k == 1 and block.chance > 0:
        bottom = top + LABEL + STEP * len(stages)
        at = f'x1="{_x(block.chance):.1f}" x2="{_x(block.chance):.1f}" y1="{top + LABEL:.1f}" y2="{bottom:.1f}"'
        parts.append(f'<line class="chance" {at}><title>chance {block.chance:.0%}</title></line>')
    for i, (cell, stage) in enumerate(zip(line.cells, stages, strict=True)):
        found, y = cell.estimate, top + LABEL + STEP * (i + 0.5)
        if found.known:
            said = escape(f"{block.name}, {stage}: {percent(found)}")
            parts.append(
                f'<g class="stage-{i % 5}"><title>{said}</title>'
                f'<line class="whisker" x1="{_x(found.low):.1f}" x2="{_x(found.high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
                f'<circle cx="{_x(found.value):.1f}" cy="{y:.1f}" r="4"/></g>'
            )
    return "".join(parts)
