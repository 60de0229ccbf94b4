"""Curves with confidence bands as inline SVG: shares over turns, a colour a stage."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from surefoot.evaluate.intervals import Estimate

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 400.0, 190.0, 34.0, 24.0, 8.0
TICKS = (0, 25, 50, 75, 100)


def curve_plot(stages: Sequence[Sequence[Estimate]], title: str) -> str:
    """The SVG of one curve a stage, over turns 1, 2, ...; unknown points are left out."""
    longest = max((len(points) for points in stages), default=0)
    parts = [_grid(longest)]
    parts += [_curve(points, longest, stage) for stage, points in enumerate(stages) if points]
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )


def _x(turn: int, turns: int) -> float:
    return LEFT + (WIDTH - LEFT - 8) * (turn - 1) / max(1, turns - 1)


def _y(share: float) -> float:
    return TOP + (HEIGHT - BOTTOM - TOP) * (1 - min(max(share, 0.0), 1.0))


def _grid(turns: int) -> str:
    lines = "".join(
        f'<line class="grid" x1="{LEFT:g}" x2="{WIDTH - 8:g}" y1="{_y(t / 100):.1f}" y2="{_y(t / 100):.1f}"/>'
        f'<text class="tick" x="{LEFT - 16:g}" y="{_y(t / 100) + 3:.1f}">{t}%</text>'
        for t in TICKS
    )
    step = max(1, turns // 8)
    marks = "".join(
        f'<text class="tick" x="{_x(turn, turns):.1f}" y="{HEIGHT - 8:g}">{turn}</text>'
        for turn in range(1, turns + 1, step)
    )
    return lines + marks


def _curve(points: Sequence[Estimate], turns: int, stage: int) -> str:
    known = [(turn, found) for turn, found in enumerate(points, start=1) if found.known]
    upper = [f"{_x(turn, turns):.1f},{_y(found.high):.1f}" for turn, found in known]
    lower = [f"{_x(turn, turns):.1f},{_y(found.low):.1f}" for turn, found in reversed(known)]
    line = " ".join(f"{_x(turn, turns):.1f},{_y(found.value):.1f}" for turn, found in known)
    dots = "".join(
        f'<circle cx="{_x(turn, turns):.1f}" cy="{_y(found.value):.1f}" r="3"><title>turn {turn}: {found.value:.1%} '
        f"[{found.low:.0%}, {found.high:.0%}]</title></circle>"
        for turn, found in known
    )
    return (
        f'<g class="stage-{stage % 5}"><polygon class="band" points="{" ".join(upper + lower)}"/>'
        f'<polyline class="curve" points="{line}"/>{dots}</g>'
    )
