"""Failure modes: one cause for each failed sample, and the shortest example of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from evaluation_stand_ins import evaluation

from surefoot.evaluate.html import to_html
from surefoot.evaluate.modes import mode_of, modes, smallest
from surefoot.evaluate.report import caveats, summary
from surefoot.types import Check, Execution, Rollout, Verdict

ROLLOUT = Rollout("t", "d", 0, (1,), (True,), (0.0,), "the answer is 5", "stop")
WRONG = Verdict("wrong", checks=(Check("answer", False, "5"),))


@pytest.mark.parametrize(
    ("text", "stop", "verdict", "mode"),
    [
        ("5", "stop", Verdict("right", 1.0), "right"),
        ("5", "stop", Verdict("ungradable"), "ungradable"),
        ("5", "stop", WRONG, "wrong answer"),
        ("5", "length", replace(WRONG, executions=(Execution("timeout"),)), "truncated"),
        ("5", "stop", replace(WRONG, executions=(Execution("ok"), Execution("timeout"))), "timeout"),
        ("5", "stop", replace(WRONG, executions=(Execution("crashed"),)), "crash"),
        ("5", "stop", replace(WRONG, executions=(Execution("failed"),)), "wrong answer"),
        (" \n", "stop", WRONG, "empty"),
        ("I'm sorry, but I can't help with that.", "stop", WRONG, "refusal"),
        ("As an AI model I have no opinion", "stop", WRONG, "refusal"),
        ("I cannot help but notice 5", "stop", WRONG, "wrong answer"),
        ("maybe", "stop", Verdict("wrong", checks=(Check("answer found", False),)), "wrong format"),
        ("maybe", "stop", Verdict("wrong", checks=(Check("json", False, dimension="format"),)), "wrong format"),
    ],
)
def test_mode_of(text: str, stop: str, verdict: Verdict, mode: str) -> None:
    assert mode_of(replace(ROLLOUT, text=text, stop=stop), verdict) == mode  # type: ignore[arg-type]


def test_modes_are_counted_shown_and_exemplified() -> None:
    base = evaluation({"d": [6, 8]}, label="base")
    task = base.domains[0].tasks[0]
    failed = [
        replace(task.samples[6], mode="refusal", text="I'm sorry, no."),
        replace(task.samples[7], mode="refusal", text="I cannot do <b>"),
    ]
    domain = replace(
        base.domains[0], tasks=(replace(task, samples=(*task.samples[:6], *failed)), base.domains[0].tasks[1])
    )
    base = replace(base, domains=(domain,))
    assert modes(domain) == {"refusal": 2}
    short = smallest(domain, "refusal")
    assert short is not None and short.text == "I'm sorry, no." and smallest(domain, "crash") is None
    assert summary(base)["domains"]["d"]["failures"] == {"refusal": 2}
    assert "base: how samples failed, of all: refusal 12%." in caveats(base)
    page = to_html([base])
    assert "12.5 <small>(2)</small>" in page and "I&#x27;m sorry, no." in page and "<b>" + " " not in page
    assert "None did" in to_html([evaluation({"d": [8]})])
