"""The report as one page without scripts or outside resources. Whatever stands in the data is escaped."""

from __future__ import annotations

from html import escape

from surefoot.data.lint.rules import RULES
from surefoot.data.lint.run import Report

SHOWN = 200
"""Findings of a rule on the page; the JSON has more."""
CSS = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #8884; vertical-align: top; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; font: 13px/1.4 ui-monospace, monospace; }
.error { color: #c0392b; font-weight: 600; } .warning { color: #a86400; font-weight: 600; }
.scroll { overflow-x: auto; } details { margin: .8rem 0; } summary { cursor: pointer; font-weight: 600; }
"""


def to_html(report: Report) -> str:
    """The page: a table of the rules that found something, then their findings."""
    title = f"Lint report: {report.file}"
    head = (
        f"<p>{report.rows:,} rows; references of {report.graded:,} graded; {report.of('error'):,} errors, "
        f"{report.of('warning'):,} warnings, {report.of('info'):,} notes. "
        f"SHA-256 <code>{escape(report.sha256)}</code></p>"
    )
    found = [name for name in RULES if report.counts[name]]
    rows = "".join(
        f"<tr><td><a href='#{name}'>{name}</a></td><td class='{RULES[name].severity}'>{RULES[name].severity}</td>"
        f"<td>{report.counts[name]:,}</td><td>{escape(RULES[name].finds)}</td></tr>"
        for name in found
    )
    table = f"<div class='scroll'><table><tr><th>rule<th>severity<th>rows<th>finds</tr>{rows}</table></div>"
    body = f"<h1>{escape(title)}</h1>{head}{table if found else '<p>Nothing was found.</p>'}"
    body += "".join(_section(name, report) for name in found)
    page = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{CSS}</style></head><body>{body}</body></html>\n"
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def _section(name: str, report: Report) -> str:
    rule, count = RULES[name], report.counts[name]
    mine = [problem for problem in report.problems if problem.rule == name][:SHOWN]
    rows = "".join(
        f"<tr><td>{problem.line or ''}</td><td>{escape(problem.id)}</td><td>{escape(problem.message)}</td>"
        f"<td><pre>{escape(problem.evidence)}</pre></td></tr>"
        for problem in mine
    )
    more = f"<p>{count - len(mine):,} more are not shown.</p>" if count > len(mine) else ""
    fixed = f" <code>--fix</code>: {escape(rule.fixed)}." if rule.fixed else ""
    return (
        f"<details open id='{name}'><summary>{name}: {count:,}</summary><p>{escape(rule.finds)}. "
        f"For example: {escape(rule.example)}. What to do: {escape(rule.remedy)}.{fixed}</p>"
        f"<div class='scroll'><table><tr><th>line<th>id<th>what<th>evidence</tr>{rows}</table></div>{more}</details>"
    )
