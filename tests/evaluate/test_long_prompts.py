"""Tasks whose prompts are too long: counted and listed apart, never dropped in silence, never the end of it all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from evaluation_stand_ins import CoinEngine, ExactGraders, domain

from surefoot.errors import DataError
from surefoot.evaluate import Evaluation, caveats, compare, evaluate, evaluate_until, findings, read, write_report
from surefoot.evaluate.conversations import converse
from surefoot.evaluate.scripts import make_scripts
from surefoot.types import Draw, Rollout, Sampling, Task

LONG = {"numbers/heldout/1", "numbers/heldout/4", "letters/heldout/0"}


class Narrow(CoinEngine):
    """Says beforehand which prompts it cannot take, as the local engine does."""

    def refusal(self, task: Task) -> str:
        return "the prompt has 9000 tokens" if task.id in LONG else ""

    def rollout(self, draws: Sequence[Draw], sampling: Sampling) -> Iterator[Rollout]:
        assert not any(draw.task.id in LONG for draw in draws)
        return super().rollout(draws, sampling)


class Remote(CoinEngine):
    """Finds out when it is asked, as an endpoint does."""

    def rollout(self, draws: Sequence[Draw], sampling: Sampling) -> Iterator[Rollout]:
        for draw in draws:
            if draw.task.id in LONG:
                why = "the prompt has 9000 tokens"
                yield from (
                    Rollout(draw.task.id, "numbers", i, (), (), (), why, "aborted") for i in range(draw.samples)
                )
        yield from super().rollout([draw for draw in draws if draw.task.id not in LONG], sampling)


def run(engine: CoinEngine, directory: Path | None = None) -> Evaluation:
    domains = [domain("numbers"), domain("letters", size=3)]
    more = {"tasks": 6, "samples": 4, "sampling": Sampling(), "seed": 1, "model": "toy"}
    return evaluate(domains, engine, ExactGraders(), directory=directory, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [Narrow, Remote])
def test_they_are_left_out_counted_and_listed(make: Callable[[], CoinEngine], tmp_path: Path) -> None:
    whole, got = run(CoinEngine()), run(make(), tmp_path)
    assert [len(d.tasks) for d in got.domains] == [4, 2]
    assert {t.id for d in got.domains for t in d.skipped} == LONG
    for before, after in zip(whole.domains, got.domains, strict=True):
        assert after.tasks == tuple(task for task in before.tasks if task.id not in LONG)
    told = "3 of 9 tasks were left out because their prompt is too long (numbers 2, letters 1)"
    assert told in " ".join(caveats(got)) and "left out" not in " ".join(caveats(whole))
    assert read(tmp_path) == got
    again = make()
    assert run(again, tmp_path) == got and again.drawn == []
    write_report([whole, got], tmp_path)
    page, marked = (tmp_path / "report.html").read_text(), (tmp_path / "report.md").read_text()
    listed = json.loads((tmp_path / "report.json").read_text())["stages"][1]["domains"]["numbers"]["skipped"]
    assert [row["id"] for row in listed] == ["numbers/heldout/1", "numbers/heldout/4"]
    assert all("Left out" in text and "the prompt has 9000 tokens" in text for text in (page, marked))
    assert "Tasks that only one of the two has are not compared: numbers 2, letters 1." in findings(whole, got)


def test_a_domain_without_any_task_left_spoils_no_other(tmp_path: Path) -> None:
    class NoLetters(CoinEngine):
        def refusal(self, task: Task) -> str:
            return "too long" if task.domain == "letters" else ""

    got = run(NoLetters(), tmp_path)
    assert [(len(d.tasks), len(d.skipped)) for d in got.domains] == [(6, 0), (0, 3)]
    assert compare(got, got).direction("letters") == "unclear"
    write_report([got], tmp_path)
    write_report([run(CoinEngine()), got], tmp_path)


def test_nothing_but_long_prompts_is_an_error() -> None:
    class Tiny(CoinEngine):
        def refusal(self, task: Task) -> str:
            return "the prompt has 70 tokens, rollout.max_prompt_tokens is 10"

    with pytest.raises(DataError, match=r"every prompt is too long.*max_prompt_tokens"):
        run(Tiny())


def test_rounds_of_tasks_go_on_behind_a_long_one() -> None:
    more = {"tasks": 40, "samples": 2, "sampling": Sampling(), "seed": 1, "start": 4, "half_width": 0.01}
    got = evaluate_until([domain("numbers", size=50)], Narrow(), ExactGraders(), **more)  # type: ignore[arg-type]
    assert (len(got.domains[0].tasks), len(got.domains[0].skipped)) == (38, 2)


def test_a_conversation_ends_where_the_window_does() -> None:
    class Short(CoinEngine):
        """Has room for two turns."""

        def refusal(self, task: Task) -> str:
            return "the prompt is too long" if len(task.messages) > self.most else ""

        def rollout(self, draws: Sequence[Draw], sampling: Sampling) -> Iterator[Rollout]:
            for draw in draws:
                yield Rollout(draw.task.id, "d", 0, (1, 2), (False, True), (0.0, -1.0), "yes", "stop")

    plan = {"samples": 2, "sampling": Sampling(), "seed": 1, "max_new_tokens": 4, "max_context": 9999}
    engine = Short()
    engine.most = 3  # type: ignore[attr-defined]
    talks = converse(make_scripts(2, 4), engine, **plan)  # type: ignore[arg-type]
    assert [len(talk.replies) for talk in talks] == [2] * 4
    engine.most = 0  # type: ignore[attr-defined]
    with pytest.raises(DataError, match="cannot even begin"):
        converse(make_scripts(2, 4), engine, **plan)  # type: ignore[arg-type]
