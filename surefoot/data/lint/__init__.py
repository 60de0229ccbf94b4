"""Finds what is wrong with a file of tasks before a run learns from it: see `rules.RULES` and docs/data.md.

report = lint(Path("tasks.jsonl"), sandbox)
report.counts["reference-fails"]
"""

from __future__ import annotations

from surefoot.data.lint.fixing import fix
from surefoot.data.lint.page import to_html
from surefoot.data.lint.rules import RULES, Problem
from surefoot.data.lint.run import Options, Report, lint

__all__ = ["RULES", "Options", "Problem", "Report", "fix", "lint", "to_html"]
