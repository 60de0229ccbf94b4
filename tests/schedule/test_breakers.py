"""Circuit breakers on made-up outcomes: when they move, that they are deterministic, and that shares go to others."""

from __future__ import annotations

import json

import numpy as np
import pytest

from surefoot.config import FaultsConfig
from surefoot.schedule import Arms, FixedRule
from surefoot.schedule.breakers import LONGEST, Breakers
from surefoot.types import Group, Rollout, Task, Verdict

ROLLOUT = Rollout("t", "d", 0, (1,), (True,), (0.0,), "", "stop")


def group(domain: str, good: int, bad: int, seconds: float = 0.0) -> Group:
    verdicts = [Verdict("wrong", seconds=seconds)] * good + [Verdict("ungradable", reason="lost\nmore")] * bad
    task = Task("t", domain, ({"role": "user", "content": "?"},))
    return Group(task, (ROLLOUT,) * len(verdicts), tuple(verdicts))


def breakers(*names: str, **settings: float) -> Breakers:
    return Breakers(names or ("a", "b"), FaultsConfig(**settings), prompts=4)  # type: ignore[arg-type]


def test_wrong_answers_never_open_a_breaker() -> None:
    made = breakers()
    for step in range(1, 50):
        assert made.observe(step, [group("a", 16, 0)], {}) == [] and made.available(step) == {}


@pytest.mark.parametrize(("bad", "opens"), [(3, False), (4, True), (8, True)])
def test_it_opens_at_the_share_that_trips_it(bad: int, opens: bool) -> None:
    made = breakers(trip=0.5, evidence=8)
    changes = made.observe(1, [group("a", 8 - bad, bad)] * 2, {})
    assert [(c.domain, c.state, c.why) for c in changes] == (
        [("a", "opened", f"{2 * bad} of 16 rollouts ungradable: lost")] if opens else []
    )
    assert made.available(2) == ({"a": 0.0} if opens else {})


def test_one_task_is_not_the_domain() -> None:
    made = breakers()
    made.observe(1, [group("a", 8, 0)], {})
    assert made.observe(2, [group("a", 0, 8)], {}) == [] and made.is_closed("a")
    assert made.observe(3, [group("a", 8, 0)], {}) == []
    other = breakers()
    assert other.observe(1, [group("a", 0, 8)], {}) == []
    assert [c.state for c in other.observe(2, [group("a", 0, 8)], {})] == ["opened"]


def test_little_evidence_is_not_enough_and_adds_up() -> None:
    made = breakers(evidence=8)
    assert made.observe(1, [group("a", 0, 4)], {}) == []
    assert made.observe(2, [group("a", 0, 4)], {}) == [], "the first four have faded"
    assert [c.state for c in made.observe(3, [group("a", 0, 4)], {})] == ["opened"]


def test_it_waits_probes_and_closes() -> None:
    made = breakers(wait=3)
    (opened,) = made.observe(1, [group("a", 0, 4)] * 2, {})
    assert opened.again == 5
    assert [made.available(step).get("a") for step in (2, 3, 4)] == [0.0] * 3
    assert made.available(5) == {"a": made.probe} and 0 < made.probe < 1
    assert made.observe(5, [group("b", 8, 0)], {}) == [] and made.available(6) == {"a": made.probe}, "not drawn yet"
    (closed,) = made.observe(6, [group("a", 3, 1)], {})
    assert (closed.state, closed.why) == ("closed", "3 of 4 rollouts could be graded")
    assert made.available(7) == {} and "a" not in made.state()


def test_waits_double_up_to_a_bound() -> None:
    made, step, waits = breakers("a", "b", wait=2), 1, []
    while len(waits) < 7:
        made.available(step)
        for change in made.observe(step, [group("a", 0, 8)] * 2, {}):
            waits.append(change.again - step - 1)
            step = change.again - 1
        step += 1
    assert waits == [2, 4, 8, 16, 32, 32, 32] and waits[-1] == 2 * LONGEST


def test_all_shut_off_means_all_are_probed() -> None:
    made = breakers(wait=50)
    made.observe(1, [group("a", 0, 8), group("b", 0, 8)] * 2, {})
    assert made.available(2) == {"a": made.probe, "b": made.probe}


def test_slow_graders_and_failing_sources() -> None:
    made = breakers(slow=1.0)
    (change,) = made.observe(1, [group("a", 4, 0, seconds=2.0)], {})
    assert change.why == "a grading takes 2.0 s"
    (change,) = made.observe(2, [], {"b": "gone\nfor good"})
    assert (change.domain, change.why) == ("b", "it has no tasks to give: gone")
    assert breakers().observe(1, [group("a", 4, 0, seconds=1e9)], {}) == [], "without `slow`, time is of no account"


def test_its_state_survives_json_and_changed_domains() -> None:
    made = breakers("a", "b", "c")
    made.observe(1, [group("a", 0, 8), group("a", 0, 8), group("b", 3, 2)], {})
    again = breakers("b", "a", "new")
    again.restore(json.loads(json.dumps(made.state())))
    assert again.available(2) == {"a": 0.0}
    for each in (made, again):
        assert [c.domain for c in each.observe(2, [group("b", 0, 8)], {})] == ["b"]
    left, right = made.state(), again.state()
    assert left["a"] == right["a"] and left["b"] == right["b"]


def test_the_share_goes_to_the_others() -> None:
    rule = FixedRule(Arms.of({"a": 1.0, "b": 1.0}), samples=4, seed=0)
    counts = np.zeros(2)
    for step in range(1, 9):
        counts += np.bincount(rule.allocate(step, 4, np.array([0.0, 1.0])).domain, minlength=2)
    assert counts.tolist() == [0, 32]
