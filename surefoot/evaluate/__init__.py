"""Evaluation of stability: how reliably a model is right, with error bars, before and after a run.

`evaluate` samples and grades, `table` / `findings` / `to_markdown` / `to_html` report, `compare` tests what changed,
`check_gate` decides for continuous integration. The metrics themselves are pure functions in `passk`, `agreement`,
`intervals` and `paired`.
"""

from surefoot.evaluate.adaptive import evaluate_until
from surefoot.evaluate.comparison import Change, Comparison, compare
from surefoot.evaluate.evaluator import HeldOut, Plan, Progress, evaluate, heldout_tasks, plan
from surefoot.evaluate.gate import Gate, GateResult, check_gate, parse_gate
from surefoot.evaluate.html import to_html
from surefoot.evaluate.intervals import Estimate
from surefoot.evaluate.metric import Metric, estimate, overall, parse_metric
from surefoot.evaluate.publish import read_stages, write_report
from surefoot.evaluate.records import DomainRecord, Evaluation, Sample, TaskRecord, from_json, read, save, to_json
from surefoot.evaluate.report import caveats, findings, report_findings, summary, table, to_markdown
from surefoot.protocols import Graders

__all__ = [
    "Change",
    "Comparison",
    "DomainRecord",
    "Estimate",
    "Evaluation",
    "Gate",
    "GateResult",
    "Graders",
    "HeldOut",
    "Metric",
    "Plan",
    "Progress",
    "Sample",
    "TaskRecord",
    "caveats",
    "check_gate",
    "compare",
    "estimate",
    "evaluate",
    "evaluate_until",
    "findings",
    "from_json",
    "heldout_tasks",
    "overall",
    "parse_gate",
    "parse_metric",
    "plan",
    "read",
    "read_stages",
    "report_findings",
    "save",
    "summary",
    "table",
    "to_html",
    "to_json",
    "to_markdown",
    "write_report",
]
