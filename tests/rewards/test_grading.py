from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from surefoot.errors import GraderError
from surefoot.protocols import Domain
from surefoot.rewards import GradingPool
from surefoot.types import Rollout, Task, Verdict

TASK = Task("t", "d", ({"role": "user", "content": "?"},), {"answer": "x"})
TASKS = {"t": TASK}
RIGHT = Verdict("right", 1.0)


@dataclass
class Calls:
    """A grader that calls a function of the rollout's text."""

    function: Callable[[str], Verdict]

    def grade(self, task: Task, rollout: Rollout, sandbox: object) -> Verdict:
        return self.function(rollout.text)


def pool(function: Callable[[str], Verdict], name: str = "d", **settings) -> GradingPool:
    domain = Domain(name, None, Calls(function))  # type: ignore[arg-type]
    return GradingPool([domain], None, **settings)  # type: ignore[arg-type]


def sampled(text: str, sample: int = 0, domain: str = "d") -> Rollout:
    return Rollout("t", domain, sample, (1,), (True,), (0.0,), text, "stop")


def test_every_rollout_gets_one_verdict():
    with pool(lambda text: Verdict("right", 1.0) if int(text) % 3 else Verdict("wrong"), workers=3) as graders:
        verdicts = graders.grade_all([sampled(str(i), i) for i in range(200)], TASKS)
    assert [v.grade for v in verdicts] == ["right" if i % 3 else "wrong" for i in range(200)]
    assert (graders.counts["d"].right, graders.counts["d"].wrong) == (133, 67)


def test_grading_goes_on_while_others_are_still_sampled():
    graded = threading.Event()

    def engine() -> Iterator[Rollout]:
        yield sampled("first")
        assert graded.wait(5), "the first rollout was not graded before the second was sampled"
        yield sampled("second", 1)

    def grader(text: str) -> Verdict:
        graded.set()
        return RIGHT

    with pool(grader) as graders:
        assert len(list(graders.grade(engine(), TASKS))) == 2


def test_verdicts_come_as_they_are_ready():
    def grader(text: str) -> Verdict:
        time.sleep(float(text))
        return RIGHT

    with pool(grader, workers=2) as graders:
        order = [r.text for r, _ in graders.grade([sampled("0.6"), sampled("0.0", 1), sampled("0.01", 2)], TASKS)]
    assert order[-1] == "0.6"


def test_the_engine_waits_when_too_many_wait_for_a_grader():
    taken = 0

    def engine() -> Iterator[Rollout]:
        nonlocal taken
        for i in range(50):
            taken += 1
            yield sampled("x", i)

    gate = threading.Event()

    def grader(text: str) -> Verdict:
        gate.wait(10)
        return RIGHT

    with pool(grader, workers=1, waiting=4) as graders:
        stream = graders.grade(engine(), TASKS)
        threading.Timer(0.3, gate.set).start()
        next(stream)
        assert taken == 4
        assert sum(1 for _ in stream) == 49


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda text: 1 / 0, "ZeroDivisionError"),
        (lambda text: (_ for _ in ()).throw(GraderError("no disk", where="grader.py")), "grader.py: no disk"),
        (lambda text: Verdict("right", float("nan")), "outside [0, 1]"),
        (lambda text: Verdict("right", 0.5), "says 'right'"),
        (lambda text: Verdict("wrong", 1.0), "says 'wrong'"),
        (lambda text: Verdict("wrong", dimensions={"format": float("inf")}), "outside [0, 1]"),
    ],
)
def test_a_grader_at_fault_is_ungradable_with_the_reason(function, reason):
    with pool(function) as graders:
        (verdict,) = graders.grade_all([sampled("x")], TASKS)
    assert verdict.grade == "ungradable"
    assert reason in verdict.reason
    assert reason in next(iter(graders.counts["d"].reasons))


def test_an_unknown_task_or_domain_is_ungradable():
    with pool(lambda text: RIGHT) as graders:
        lost, foreign = graders.grade_all([sampled("x"), sampled("x", domain="elsewhere")], {})
    assert lost.grade == foreign.grade == "ungradable"
    assert "elsewhere" in foreign.reason


def test_a_grader_that_hangs_is_left_behind_and_harms_no_other():
    gate = threading.Event()

    def grader(text: str) -> Verdict:
        if text == "hang":
            gate.wait(30)
        return RIGHT

    with pool(grader, workers=2, seconds=0.3) as graders:
        rollouts = [sampled("hang" if i in (0, 1) else "x", i) for i in range(10)]
        began = time.monotonic()
        verdicts = graders.grade_all(rollouts, TASKS)
        assert time.monotonic() - began < 5
        assert [v.grade for v in verdicts[:2]] == ["ungradable"] * 2
        assert all("0.3 s" in v.reason for v in verdicts[:2])
        stuck = [v.reason for v in verdicts[2:] if v.grade == "ungradable"]
        assert set(stuck) <= {"the domain's grader hangs"}
        assert graders.counts["d"].overdue == 2
        gate.set()
        time.sleep(0.2)
        assert [v.grade for v in graders.grade_all(rollouts[2:], TASKS)] == ["right"] * 8


def test_stopping_half_way_leaves_the_pool_usable_and_close_is_quick():
    def grader(text: str) -> Verdict:
        time.sleep(0.02)
        return RIGHT

    graders = pool(grader)
    stream = graders.grade([sampled("x", i) for i in range(100)], TASKS)
    next(stream)
    stream.close()
    assert len(graders.grade_all([sampled("y", i) for i in range(5)], TASKS)) == 5
    stream = graders.grade((sampled("x", i) for i in range(100)), TASKS)
    with pytest.raises(KeyboardInterrupt):
        for _ in stream:
            raise KeyboardInterrupt
    began = time.monotonic()
    graders.close()
    graders.close()
    assert time.monotonic() - began < 2


def test_an_engine_that_fails_is_heard():
    def engine() -> Iterator[Rollout]:
        yield sampled("x")
        raise RuntimeError("out of memory")

    with pool(lambda text: RIGHT) as graders, pytest.raises(RuntimeError, match="out of memory"):
        list(graders.grade(engine(), TASKS))


def test_the_time_of_each_grading_is_noted():
    def grader(text: str) -> Verdict:
        time.sleep(0.05)
        return RIGHT

    with pool(grader) as graders:
        (verdict,) = graders.grade_all([sampled("x")], TASKS)
    assert 0.04 < verdict.seconds < 1
    assert graders.counts["d"].seconds == verdict.seconds
