"""Graders and task sources that fail: the run goes on without them, and takes them back when they work again."""

from __future__ import annotations

import pytest
from fault_page import fault
from fault_runs import Place, events, metrics, train

from surefoot.errors import RunError
from surefoot.store.journal import read_lines

SHUT_OFF = {"run": "the domain is shut off, its share goes to the others, it is probed later"}


def assert_shut_off(place: Place, why: str) -> None:
    """The domain `odd` was shut off for that reason, its rollouts were masked, and the other domain learnt on."""
    opened = events(place.run, "breaker_opened")
    assert opened and {line["domain"] for line in opened} == {"odd"} and why in opened[0]["why"]
    assert "odd is shut off until step" in opened[0]["text"]
    assert not events(place.run, "breaker_closed")
    lines = metrics(place.run)
    seen = [line["domains"]["odd"] for line in lines if "odd" in line["domains"]]
    assert all(part["ungradable"] == part["rollouts"] and part["reward"] == 0 for part in seen)
    assert any("odd" not in line["domains"] and line["domains"]["calm"]["rollouts"] == 16 for line in lines)
    assert all(line["domains"]["calm"]["ungradable"] == 0 for line in lines)
    assert any(line["learner"]["tokens"] > 0 for line in lines), "nothing was learnt, so nothing was shown"


def shut_off(place: Place, mode: str, why: str, **faults: float) -> None:
    place.breaks(mode)
    train(place.recipe(faults={"wait": 2, **faults}), place.run)
    assert_shut_off(place, why)


@fault("a grader raises, whenever it is asked", **SHUT_OFF, seen="`odd is shut off until step 4: 8 of 8 rollouts ...`")
def test_raises(place: Place) -> None:
    shut_off(place, "raise", "ConnectionError: the data base of the grader is gone")


@fault("a grader calls `sys.exit`", **SHUT_OFF, seen="the same, with `SystemExit`")
def test_exits(place: Place) -> None:
    shut_off(place, "exit", "SystemExit: 3")


@fault("a grader hangs", **SHUT_OFF, lost="`faults.deadline` seconds for each of its threads", seen="`did not answer`")
def test_hangs(place: Place) -> None:
    shut_off(place, "hang", "grader", deadline=4)
    assert all(
        line["why"].endswith(("did not answer within 4 s", "hangs")) for line in events(place.run, "breaker_opened")
    )


@pytest.mark.parametrize("value", ["nan", "inf", "seven"])
@fault("a grader returns NaN, infinity, or a score outside [0, 1]", **SHUT_OFF, seen="`a score must lie in [0, 1]`")
def test_no_number(place: Place, value: str) -> None:
    shut_off(place, value, "a score must lie in [0, 1]")


@fault("a grader returns an object of no known kind", **SHUT_OFF, seen="`must return a Verdict, a score or a bool`")
def test_no_verdict(place: Place) -> None:
    shut_off(place, "object", "must return a Verdict, a score or a bool, not object")


@pytest.mark.parametrize(
    ("how", "why"), [("leak", "MemoryError"), ("end", "malformed"), ("segfault", "did not answer")]
)
@fault("a jailed grader leaks memory, ends its process, or crashes it", **SHUT_OFF, seen="what the jail saw")
def test_breaks_its_jail(place: Place, how: str, why: str) -> None:
    text = (place.folder / "doms.py").read_text()
    (place.folder / "doms.py").write_text(text.replace('os.environ.get("HOW", "")', repr(how)))
    train(place.recipe("calm", "hostile", faults={"wait": 3}), place.run)
    (opened, *_) = events(place.run, "breaker_opened")
    assert opened["domain"] == "hostile" and why in opened["why"], opened
    lines = metrics(place.run)
    assert all(line["domains"]["calm"]["ungradable"] == 0 for line in lines)
    assert "hostile" not in lines[1]["domains"]


@fault(
    "a grader gets slow (with `faults.slow` set)",
    run="the domain is shut off, although its verdicts count",
    seen="`a grading takes 0.8 s`",
)
def test_slow(place: Place) -> None:
    place.breaks("slow")
    train(place.recipe(steps=2, faults={"wait": 2, "slow": 0.6}), place.run)
    (opened,) = events(place.run, "breaker_opened")
    assert opened["why"] == "a grading takes 0.8 s"
    first, second = metrics(place.run)
    assert first["ungradable"] == 0 and "odd" not in second["domains"]


@fault("a grader fails now and then", run="asks it again after a short random pause", seen="nothing")
def test_flaky(place: Place) -> None:
    train(place.recipe(), place.run)
    place.run.rename(place.folder / "calm")
    place.breaks("flaky")
    train(place.recipe(), place.run)
    assert metrics(place.run) == metrics(place.folder / "calm")
    place.run.rename(place.folder / "retried")
    train(place.recipe(seed=1, steps=1, faults={"retries": 0}), place.run)
    assert metrics(place.run)[0]["ungradable"] == 8, "without retries they would have been lost"


@fault(
    "one task cannot be graded, its domain's others can",
    run="the task is never drawn again; prompt, answers and reasons are in `quarantine.jsonl`",
    lost="the task",
    seen="`task odd/train/3 is set aside`",
)
def test_poison(place: Place) -> None:
    place.breaks("poison")
    train(place.recipe("odd", steps=8, faults={"trip": 1.0}), place.run)
    (line,) = read_lines(place.run / "quarantine.jsonl")
    assert line["task"] == "odd/train/3" and "number 3" in line["messages"][0]["content"]
    assert len(line["rollouts"]) == 4 and all("data base" in r["reason"] for r in line["rollouts"])
    (event,) = events(place.run, "task_quarantined")
    assert "task odd/train/3 is set aside" in event["text"] and not events(place.run, "breaker_opened")
    assert sum(step["ungradable"] for step in metrics(place.run)) == 4, "it was drawn again"


@fault("a grader that failed works again", run="the next probe takes the domain back", seen="`odd is back: 4 of 4 ...`")
def test_recovers(place: Place) -> None:
    place.breaks("raise")
    train(place.recipe(steps=7), place.run, after=lambda step: place.breaks("raise" if step < 3 else ""))
    assert [
        (e["event"], e["domain"]) for e in (*events(place.run, "breaker_opened"), *events(place.run, "breaker_closed"))
    ][-1] == ("breaker_closed", "odd")
    last = metrics(place.run)[-1]["domains"]["odd"]
    assert last["ungradable"] == 0 and last["rollouts"] == 8, "its share is back"


@fault("a domain fails again at each probe", run="each wait is twice as long as the one before", seen="each opening")
def test_waits_grow(place: Place) -> None:
    place.breaks("raise")
    train(place.recipe(steps=12), place.run)
    opened = events(place.run, "breaker_opened")
    waits = [line["again"] - line["step"] - 1 for line in opened]
    assert waits == [1, 2, 4, 8][: len(waits)] and len(waits) >= 3


@fault(
    "every domain fails",
    run="probes all of them each step; after `faults.give_up` steps it saves and ends",
    seen="`nothing could be graded for 3 steps`, exit code 2; `--resume` goes on",
)
def test_all_fail(place: Place) -> None:
    place.breaks("raise")
    recipe = place.recipe("odd", steps=6, faults={"wait": 4, "give_up": 3})
    with pytest.raises(RunError, match="nothing could be graded for 3 steps"):
        train(recipe, place.run)
    assert [line["rollouts"] for line in metrics(place.run)] == [16, 16, 16]
    place.breaks("")
    train(recipe, place.run, resume=True)
    assert [line["ungradable"] for line in metrics(place.run)] == [16, 16, 16, 0, 0, 0]


@fault("the source of a domain's tasks raises", **SHUT_OFF, seen="`it has no tasks to give: OSError: ...`")
def test_source(place: Place) -> None:
    train(
        place.recipe(steps=5),
        place.run,
        after=lambda step: place.breaks("source" if step < 3 else ""),
    )
    opened = events(place.run, "breaker_opened")
    assert opened and "it has no tasks to give: OSError: the server of the tasks" in opened[0]["why"]
    assert events(place.run, "breaker_closed")
    assert "odd" in metrics(place.run)[-1]["domains"]


@fault(
    "one task cannot be graded, and few others of its domain are drawn",
    run="waits for the next one: if that can be graded the task is set aside, if not the domain is shut off",
    lost="the task",
    seen="as above",
)
def test_poison_in_a_small_share(place: Place) -> None:
    place.breaks("poison")
    recipe = place.recipe("odd", steps=14, rollout={"prompts": 1, "samples": 8}, faults={"give_up": 3})
    train(recipe, place.run)
    (line,) = read_lines(place.run / "quarantine.jsonl")
    assert line["task"] == "odd/train/3" and line["step"] == line["drawn"] + 1
    assert not events(place.run, "breaker_opened") and len(metrics(place.run)) == 14
    assert sum(step["ungradable"] for step in metrics(place.run)) == 8
