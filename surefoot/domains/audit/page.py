"""The audit as one page without scripts or outside resources. Whatever tasks or probes hold is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from surefoot.domains.audit.result import Audit, ProbeResult, Rate

CSS = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid #8884; vertical-align: top; }
td code { overflow-wrap: anywhere; }
.bad { color: #c0392b; font-weight: 600; }
.scroll { overflow-x: auto; }
details { margin: .8rem 0; } summary { cursor: pointer; font-weight: 600; }
"""
COLUMNS = (
    *("domain", "tasks", "false accepts", "false rejects", "oracle failures", "floor", "best blind guess"),
    *("ungradable", "ms"),
)


def to_html(audits: Sequence[Audit], fail_over: float) -> str:
    """The page: a table of all domains, then each with its problems and every probe.

    Args:
        fail_over: Rate above which a domain fails; its name is then marked.
    """
    failed = sum(audit.fails(fail_over) for audit in audits)
    rows = "".join(_row(audit, fail_over) for audit in audits)
    details = "".join(_detail(audit, fail_over) for audit in audits)
    page = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Audit of {len(audits)} domains</title><style>{CSS}</style></head><body>"
        f"<h1>Audit of {len(audits)} domains</h1><p>{failed} fail at a rate above {fail_over:.1%}. Rates are shares of "
        "tasks with exact 95% intervals (Clopper and Pearson).</p>"
        f"<div class='scroll'><table><thead><tr>{_cells(COLUMNS, 'th')}</tr></thead><tbody>{rows}</tbody></table></div>"
        f"{details}</body></html>\n"
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def _row(audit: Audit, fail_over: float) -> str:
    name = f"<td class='bad'>{_text(audit.domain)}</td>" if audit.fails(fail_over) else _cells([audit.domain])
    best = audit.best_guess
    values = [
        str(audit.tasks),
        *(_rate(rate) for rate in (audit.fooled, audit.refused, audit.oracle_failures)),
        f"{audit.floor:.3f}",
        f"{audit.guess_rate:.0%} {best.name}" if best else "none",
        str(audit.ungradable),
        f"{1000 * audit.mean_seconds:.1f}",
    ]
    return f"<tr>{name}{_cells(values)}</tr>"


def _detail(audit: Audit, fail_over: float) -> str:
    problems = "".join(f"<li>{_text(problem)}</li>" for problem in audit.problems) or "<li>none</li>"
    facts = (
        f"source {audit.source or 'unknown'}, fingerprint {audit.fingerprint}; chance given as {audit.chance:.1%}; "
        f"{audit.disagreements} of {audit.compared} verdicts differed when asked again; "
        f"{audit.unstable} tasks changed; "
        f"held-out prompts in the training split of the bare source: {_rate(audit.leaked)}; slowest grading "
        f"{audit.slowest_seconds:.2f} s"
    )
    probes = "".join(_probe(probe) for probe in audit.probes)
    heads = _cells(("probe", "kind", "accepted", "mean score", "example"), "th")
    opened = " open" if audit.fails(fail_over) and len(audit.problems) else ""
    return (
        f"<details{opened}><summary>{_text(audit.domain)}</summary><ul>{problems}</ul><p>{_text(facts)}</p>"
        f"<details><summary>every probe</summary><div class='scroll'><table><thead><tr>{heads}</tr></thead>"
        f"<tbody>{probes}</tbody></table></div></details></details>"
    )


def _probe(probe: ProbeResult) -> str:
    values = [probe.name, probe.kind, f"{probe.accepted} of {probe.tried}", f"{probe.score:.3f}"]
    return f"<tr>{_cells(values)}<td><code>{_text(probe.example)}</code></td></tr>"


def _rate(rate: Rate) -> str:
    return str(rate)


def _cells(values: Sequence[str], tag: str = "td") -> str:
    return "".join(f"<{tag}>{_text(value)}</{tag}>" for value in values)


def _text(value: str) -> str:
    return escape(value, quote=True)
