"""Shares are kept, nobody starves, and a restored scheduler draws what it would have drawn."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from surefoot.schedule import ProportionalScheduler
from surefoot.types import Task


class Endless:
    """A pool whose tasks are numbered."""

    def __init__(self, name: str) -> None:
        self.name = name

    def train(self, cursor: int) -> tuple[Task, int]:
        return Task(f"{self.name}/{cursor}", self.name, ({"role": "user", "content": str(cursor)},)), cursor + 1


def scheduler(weights: dict[str, float], prompts: int = 5, seed: int = 0) -> ProportionalScheduler:
    pools = {name: Endless(name) for name in weights}
    return ProportionalScheduler(pools, weights, dict.fromkeys(weights, 16), prompts=prompts, samples=3, seed=seed)


weights = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0.05, 10), min_size=1)


@given(weights, st.integers(1, 9))
def test_every_domain_gets_its_share(shares: dict[str, float], prompts: int) -> None:
    plan = scheduler(shares, prompts)
    drawn: Counter[str] = Counter()
    for step in range(1, 30):
        drawn.update(draw.task.domain for draw in plan.draw(step))
        for name, weight in shares.items():
            assert abs(drawn[name] - step * prompts * weight / sum(shares.values())) <= len(shares)


@given(weights, st.integers(0, 12))
def test_a_restored_scheduler_goes_on_the_same(shares: dict[str, float], done: int) -> None:
    one, other = scheduler(shares), scheduler(shares)
    for step in range(done):
        one.draw(step)
    other.restore(json.loads(json.dumps(one.state())))
    assert [one.draw(step) for step in range(done, done + 5)] == [other.draw(step) for step in range(done, done + 5)]


def test_no_task_twice_and_every_sample_a_seed_of_its_own() -> None:
    plan = scheduler({"a": 1, "b": 2})
    draws = [draw for step in range(20) for draw in plan.draw(step)]
    assert len({draw.task.id for draw in draws}) == len(draws)
    seeds = [seed for draw in draws for seed in draw.seeds]
    assert len(set(seeds)) == len(seeds) == 3 * len(draws)


def test_seeds_depend_on_the_run() -> None:
    first, second = scheduler({"a": 1}, seed=1).draw(1)[0], scheduler({"a": 1}, seed=2).draw(1)[0]
    assert first.task == second.task
    assert first.seeds != second.seeds


def test_a_domain_without_weight_is_not_drawn() -> None:
    plan = scheduler({"a": 1, "b": 0})
    assert {draw.task.domain for step in range(9) for draw in plan.draw(step)} == {"a"}


def test_domains_come_and_go_on_resume() -> None:
    before = scheduler({"a": 1, "gone": 1})
    for step in range(4):
        before.draw(step)
    after = scheduler({"a": 1, "new": 1})
    after.restore(before.state())
    first = after.draw(5)
    assert {draw.task.domain for draw in first} == {"a", "new"}
    numbers = [int(draw.task.id.split("/")[1]) for draw in first if draw.task.domain == "a"]
    assert all(b == a + 1 for a, b in pairwise(numbers))
    assert numbers[0] == before.cursors["a"]
