"""Running, recording and resuming an evaluation."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from evaluation_stand_ins import CoinEngine, ExactGraders, domain

from surefoot.errors import ConfigError, DataError, RunError
from surefoot.evaluate.answers import answer_in
from surefoot.evaluate.evaluator import Progress, evaluate, heldout_tasks, plan
from surefoot.evaluate.records import Evaluation, from_json, read, save, to_json
from surefoot.types import Sampling, stable_seed

SAMPLING = Sampling(temperature=0.7)


def run(
    engine: CoinEngine, directory: Path | None = None, *, tasks: int = 6, samples: int = 5, **more: object
) -> Evaluation:
    domains = [domain("numbers", chance=0.1), domain("letters", size=4, max_new_tokens=8)]
    plan_ = {"tasks": tasks, "samples": samples, "sampling": SAMPLING, "seed": 1, "model": "toy", **more}
    return evaluate(domains, engine, ExactGraders(), directory=directory, **plan_)  # type: ignore[arg-type]


def test_every_sample_is_drawn_once_with_its_own_seed() -> None:
    engine, seen = CoinEngine(), list[Progress]()
    got = run(engine, progress=seen.append)
    assert [(d.name, len(d.tasks), d.drawn) for d in got.domains] == [("numbers", 6, 30), ("letters", 4, 20)]
    want = {(t.id, stable_seed("eval", 1, t.id, i)) for d in got.domains for t in d.tasks for i in range(5)}
    assert set(engine.drawn) == want and len(engine.drawn) == 50
    for task in got.domains[0].tasks:
        assert [s.sample for s in task.samples] == list(range(5))
        assert [s.seed for s in task.samples] == [stable_seed("eval", 1, task.id, i) for i in range(5)]
        assert task.reference is not None and all(
            (s.answer == task.reference) == bool(s.seed % 3) for s in task.samples
        )
    assert sum(d.ungradable for d in got.domains) > 0 and sum(d.truncated for d in got.domains) > 0
    assert (seen[0].done, seen[0].remaining_seconds) == (0, None)
    assert (seen[-1].done, seen[-1].total, seen[-1].tokens, seen[-1].remaining_seconds) == (50, 50, 100, 0.0)
    assert got.policy_version == 3 and got.title == "toy"


def test_plan_says_what_it_will_cost() -> None:
    cost = plan([domain("numbers"), domain("letters", size=4, max_new_tokens=8)], tasks=6, samples=5)
    assert (cost.tasks, cost.samples, cost.max_tokens) == (10, 50, (6 * 64 + 4 * 8) * 5)
    assert len(heldout_tasks(domain(size=3), 10)) == 3


def test_no_more_tasks_than_asked_for_whatever_the_source_gives() -> None:
    got = run(CoinEngine(), tasks=2, heldout=lambda d, n: heldout_tasks(d, 99))
    assert [len(d.tasks) for d in got.domains] == [2, 2]


def test_round_trip_and_files(tmp_path: Path) -> None:
    got = run(CoinEngine(), tmp_path / "new" / "eval", label="base")
    assert from_json(to_json(got)) == got == read(tmp_path / "new" / "eval")
    assert sorted(p.name for p in (tmp_path / "new" / "eval").iterdir()) == ["evaluation.json", "samples.jsonl"]


def test_nothing_is_drawn_twice_and_more_draws_only_what_is_new(tmp_path: Path) -> None:
    first = run(CoinEngine(), tmp_path)
    again = CoinEngine()
    assert run(again, tmp_path) == first and again.drawn == []
    more = CoinEngine()
    bigger = run(more, tmp_path, samples=7)
    assert len(more.drawn) == 20 and bigger == run(CoinEngine(), samples=7)
    smaller = CoinEngine()
    assert run(smaller, tmp_path, tasks=2, samples=3) == run(CoinEngine(), tasks=2, samples=3) and not smaller.drawn


def test_torn_last_line_is_drawn_again(tmp_path: Path) -> None:
    whole = run(CoinEngine(), tmp_path)
    log = tmp_path / "samples.jsonl"
    content = log.read_bytes()
    for cut in [1, 30, len(content.splitlines(keepends=True)[-1])]:
        log.write_bytes(content[:-cut])
        engine = CoinEngine()
        assert run(engine, tmp_path) == whole and len(engine.drawn) == 1
        assert all(json.loads(line) for line in log.read_text().splitlines())
    log.write_bytes(content[:20])  # torn within the first line
    assert run(CoinEngine(), tmp_path) == whole


@pytest.mark.parametrize("other", [{"seed": 2}, {"model": "b"}, {"sampling": Sampling()}])
def test_samples_of_another_plan_are_refused(tmp_path: Path, other: dict[str, object]) -> None:
    run(CoinEngine(), tmp_path)
    with pytest.raises(RunError, match=next(iter(other))):
        run(CoinEngine(), tmp_path, **other)


def test_damage_in_the_middle_names_the_line(tmp_path: Path) -> None:
    run(CoinEngine(), tmp_path)
    log = tmp_path / "samples.jsonl"
    lines = log.read_text().splitlines()
    for damage in ["{oops", '{"task":"x"}', "7"]:
        log.write_text("\n".join([*lines[:3], damage, *lines[4:]]) + "\n")
        with pytest.raises(RunError, match=r"samples\.jsonl:4"):
            run(CoinEngine(), tmp_path)


CHILD = """
import sys; from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_evaluator import run, CoinEngine
run(CoinEngine(delay=0.02), Path(sys.argv[2]))
"""


@pytest.mark.parametrize("after", [3, 20])
def test_kill_nine_loses_nothing_and_draws_nothing_twice(tmp_path: Path, after: int) -> None:
    here = Path(__file__).parent
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(here.parents[1]), os.environ.get("PYTHONPATH", "")])}
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(here), str(tmp_path)], env=env)
    log = tmp_path / "samples.jsonl"
    deadline = time.monotonic() + 60
    while not (log.exists() and log.read_bytes().count(b"\n") > after):
        assert child.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    with pytest.raises(RunError, match="another evaluation"):
        run(CoinEngine(), tmp_path)
    child.send_signal(signal.SIGKILL)
    child.wait()
    kept = log.read_bytes().count(b"\n") - 1
    assert after <= kept < 50 and not (tmp_path / "evaluation.json").exists()
    engine = CoinEngine()
    assert run(engine, tmp_path) == run(CoinEngine())
    assert len(engine.drawn) == 50 - kept
    seeds = [json.loads(line)["seed"] for line in log.read_text().splitlines()[1:]]
    assert len(seeds) == len(set(seeds)) == 50


def test_bad_plans_are_refused() -> None:
    with pytest.raises(ConfigError):
        run(CoinEngine(), samples=0)
    with pytest.raises(DataError, match="no held-out"):
        evaluate([domain(size=0)], CoinEngine(), ExactGraders(), tasks=1, samples=1, sampling=SAMPLING, seed=0)
    with pytest.raises(DataError, match="share this name"):
        evaluate([domain(), domain()], CoinEngine(), ExactGraders(), tasks=1, samples=1, sampling=SAMPLING, seed=0)
    with pytest.raises(DataError, match="share this id"):
        run(CoinEngine(), heldout=lambda d, n: [heldout_tasks(d, 1)[0]] * 2)


def test_lost_verdicts_are_an_error_that_keeps_the_rest(tmp_path: Path) -> None:
    class Forgetful(ExactGraders):
        def grade(self, rollouts, tasks):  # type: ignore[no-untyped-def]
            yield from list(super().grade(rollouts, tasks))[:-1]

    with pytest.raises(RunError, match="1 of 12 samples"):
        evaluate(
            [domain()], CoinEngine(), Forgetful(), tasks=6, samples=2, sampling=SAMPLING, seed=0, directory=tmp_path
        )
    engine = CoinEngine()
    evaluate([domain()], engine, ExactGraders(), tasks=6, samples=2, sampling=SAMPLING, seed=0, directory=tmp_path)
    assert len(engine.drawn) == 1


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError, match="cannot write samples here"):
        run(CoinEngine(), tmp_path / "file" / "eval")


def test_unreadable_evaluations_say_why(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such evaluation"):
        read(tmp_path)
    good = run(CoinEngine())
    for text, why in [
        ("{", "not JSON"),
        ("[]", "schema None"),
        (to_json(replace(good, schema=99)), "schema 99"),
        (to_json(good).replace('"grade":"right"', '"grade":"splendid"', 1), "grade"),
    ]:
        with pytest.raises(DataError, match=why):
            from_json(text)
    save(good, tmp_path / "a.json")
    assert read(tmp_path / "a.json") == good


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<answer>1</answer> no, <ANSWER> Yes.\n</ANSWER>", "yes"),
        ("thinking\nso:\n\n 42. \n", "42"),
        ("```python\ndef f():\n    pass\n```\nDone.", "def f(): pass"),
        ("", None),
        (" \n", None),
        ("<answer> </answer>", None),
    ],
)
def test_final_answer(text: str, answer: str | None) -> None:
    assert answer_in(text) == answer
