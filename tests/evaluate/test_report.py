"""Reports: what they say, and that nothing a model wrote can become markup."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from evaluation_stand_ins import evaluation
from rich.console import Console

from surefoot.errors import ConfigError
from surefoot.evaluate.html import to_html
from surefoot.evaluate.publish import read_stages, write_report
from surefoot.evaluate.records import Evaluation, save
from surefoot.evaluate.report import findings, report_findings, summary, summary_json, table, to_markdown
from surefoot.types import Sampling

BASE = evaluation({"up": [2, 3] * 8, "down": [6] * 16, "same": [3, 4] * 8, "zero": [0] * 16}, label="base")
WARM = evaluation({"up": [3, 3] * 8, "down": [6] * 16, "same": [4, 3] * 8, "zero": [0] * 16}, label="warm start")
AFTER = evaluation({"up": [8, 7] * 8, "down": [1] * 16, "same": [4, 3] * 8, "zero": [0] * 16}, label="after RL")


def printed(*evaluations: Evaluation, width: int = 140) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(table(evaluations))
    return out.getvalue()


def test_table_shows_every_stage_and_metric() -> None:
    shown = printed(BASE, WARM, AFTER)
    for part in [
        "base",
        "warm start",
        "after RL",
        "pass@8",
        "pass^8",
        "realised ceiling",
        "mean of 4",
        "▲",
        "▼",
        "93.8 [",
    ]:
        assert part in shown
    assert "0.0 [0, 12]" in shown  # nothing right in 16 tasks is not "0% for sure"
    assert "mean" not in printed(evaluation({"one": [1]}))
    assert "pass^" not in printed(evaluation({"one": [1] * 4}, samples=1))
    with pytest.raises(ConfigError):
        table([])


def test_domains_that_a_stage_lacks_show_a_dash() -> None:
    shown = printed(BASE, evaluation({"up": [3] * 16, "new": [1] * 16}, label="other"))
    assert "–" in shown and "new" in shown and "mean" not in shown  # one shared domain needs no mean


def test_findings_are_honest() -> None:
    said = findings(BASE, AFTER)
    text = "\n".join(said)
    assert said[0].startswith("Mean pass@1 over 4 domains")
    assert "up improved: pass@1 from 31.2% to 93.8% (+62.5 points" in text
    assert "down got worse: pass@1 from 75.0% to 12.5%" in text
    assert "No detectable change in pass@1: same (" in text
    assert "Not above chance before or after: zero (0.0%, chance 0%)." in text
    assert "Steadier, 4 of 4 samples right (pass^4): up" in text and "Less steady, 4 of 4 samples right" in text
    assert said[-1] == "after RL: all 512 samples could be graded."
    assert "Caution" not in text


def test_a_lift_to_chance_is_not_sold_as_learning() -> None:
    before, after = evaluation({"truth": [0] * 16}, chance=0.5), evaluation({"truth": [4] * 16}, chance=0.5)
    text = "\n".join(findings(before, after))
    assert "no higher than the 50% that blind answers in the right format reach" in text
    assert "Not above chance before or after: truth (50.0%, chance 50%)." in text


def test_what_the_figures_leave_out_is_said() -> None:
    tasks = list(AFTER.domains[0].tasks)
    lost = [replace(s, grade="ungradable") for s in tasks[0].samples[:3]]
    cut = [replace(s, stop="length") for s in tasks[0].samples[3:5]]
    tasks[0] = replace(tasks[0], samples=(*lost, *cut, *tasks[0].samples[5:]))
    after = replace(AFTER, domains=(replace(AFTER.domains[0], tasks=tuple(tasks)), *AFTER.domains[1:]))
    text = "\n".join(findings(BASE, after))
    assert "after RL: 3 of 512 samples could not be graded and are in no figure (up 3)" in text
    assert "after RL: 2 of 512 samples were cut off at the token limit (up 2)." in text
    assert "*" in printed(after) and "left out" in printed(after) and "left out" in to_markdown([after])


def test_what_makes_a_comparison_unfair_is_said() -> None:
    other = replace(evaluation({"up": [8] * 20, "new": [1]}, samples=10, label="other"), sampling=Sampling(0.5))
    text = "\n".join(findings(BASE, other))
    assert "Evaluated only for base, and not compared: down, same, zero." in text
    assert "Evaluated only for other, and not compared: new." in text
    assert "Caution: sampled differently (base: temperature 1," in text and "Caution: 8 samples a task for base" in text
    assert "Tasks that only one of the two has are not compared: up 4." in text
    assert findings(BASE, evaluation({"else": [1]}))[0].startswith("The two evaluations share no domain")


def test_three_stages_tell_the_last_step_and_the_whole() -> None:
    said = report_findings([BASE, WARM, AFTER])
    assert said[0].startswith("From base to after RL: Mean pass@1")
    assert said[1] == "What follows compares after RL with warm start."
    assert any("up improved: pass@1 from 37.5%" in sentence for sentence in said)
    assert report_findings([BASE]) == ["Not above chance: zero.", "base: all 512 samples could be graded."]


def test_markdown_is_a_table_that_survives_odd_names() -> None:
    odd = replace(BASE, domains=(replace(BASE.domains[0], name="a|b_<i>"), *BASE.domains[1:]))
    page = to_markdown([odd, AFTER])
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert len({row.replace("\\|", "").count("|") for row in rows}) == 1
    assert "a\\|b\\_\\<i\\>" in page and "## " not in page and page.endswith("\n")


def test_summary_is_json_with_every_metric() -> None:
    data = json.loads(summary_json([BASE, AFTER]))
    up = data["stages"][1]["domains"]["up"]
    assert up["metrics"]["pass@1"]["value"] == 0.9375 and up["tasks"] == 16 and up["samples"] == 128
    assert {"pass^8", "mgpass@8", "gpass@8(0.5)", "maj@8", "ceiling@8", "entropy"} <= set(up["metrics"])
    assert data["stages"][0]["domains"]["zero"]["metrics"]["ceiling@8"]["value"] is None
    assert data["findings"] == report_findings([BASE, AFTER])
    assert "pass^1" not in summary(evaluation({"d": [1]}, samples=1))["mean"]


EVIL = "</pre><script>alert(1)</script><img src=x onerror=alert(1)> \"'& \ud800"


def _evil() -> Evaluation:
    task = BASE.domains[0].tasks[0]
    samples = tuple(replace(s, text=EVIL, answer=EVIL, reason=EVIL, grade="wrong") for s in task.samples)
    bad = replace(task, id=EVIL, samples=samples, reference=EVIL, messages=({"role": EVIL, "content": EVIL},))
    domain = replace(BASE.domains[0], name=EVIL, tasks=(bad, *BASE.domains[0].tasks[1:]))
    return replace(BASE, model=EVIL, label=EVIL, domains=(domain, *BASE.domains[1:]))


class Reader(HTMLParser):
    """Collects tags, and sees that each that opens closes in order."""

    void = frozenset({"meta", "circle", "line"})

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_well_formed_and_nothing_written_by_a_model_is_markup() -> None:
    page = to_html([_evil(), AFTER], title=EVIL)
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    assert not {"script", "img", "iframe", "link"} & set(reader.tags) and "svg" in reader.tags
    assert not any(name.startswith("on") or name in {"src", "href"} for name in reader.attributes)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    page.encode("utf-8")


def test_page_has_findings_plots_table_and_samples() -> None:
    page = to_html([BASE, WARM, AFTER], max_tasks=3, max_chars=4)
    assert page.count("<svg") == 3 and "prefers-color-scheme:dark" in page and "width=device-width" in page
    assert "up improved" in page and "realised ceiling" in page and "3 of 16 tasks, those that changed most" in page
    assert "text … (2 more characters)" in page
    assert page.count("class='task'") == 4 * 3 and page.count("class='sample ") == 4 * 3 * 3 * 8
    assert "http" not in page.replace("http-equiv", "")


def test_single_evaluation_makes_a_page_too() -> None:
    assert "<svg" in to_html([evaluation({"only": [1, 2]}, samples=1 + 1)])
    assert "<svg" in to_html([evaluation({"only": [1, 0]}, samples=1)])


def test_files_make_a_report(tmp_path: Path) -> None:
    for name, stage in [("a", BASE), ("b", AFTER)]:
        save(replace(stage, label=""), tmp_path / name / "evaluation.json")
    stages = read_stages([tmp_path / "a", tmp_path / "b" / "evaluation.json"])
    assert [stage.title for stage in stages] == ["a", "b"]
    written = write_report(stages, tmp_path / "out", title="a against b")
    assert [path.name for path in written] == ["report.html", "report.json", "report.md"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(path.name for path in written)
    assert "a against b" in written[0].read_text() and json.loads(written[1].read_text())["stages"]
    save(BASE, tmp_path / "c.json")
    save(AFTER, tmp_path / "d.json")
    assert [stage.title for stage in read_stages([tmp_path / "c.json", tmp_path / "d.json"])] == ["base", "after RL"]
    twins = [tmp_path / "c.json", tmp_path / "e.json"]
    save(BASE, twins[1])
    assert [stage.title for stage in read_stages(twins)] == ["c.json", "e.json"]
