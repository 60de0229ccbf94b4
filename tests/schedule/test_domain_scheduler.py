"""The scheduler over pools: prompts rest, flat ones are skipped, hard ones return, and its log rebuilds its state."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from surefoot.config import ScheduleConfig
from surefoot.schedule import Arms, DomainScheduler, PromptPicker, make_rule, replay
from surefoot.types import Draw, Group, Reward, Rollout, Task, UpdateReport, Verdict, stable_seed


class Numbered:
    """A pool whose tasks are numbered: endless, or `size` of them over and over."""

    levels = 1

    def __init__(self, name: str, size: int | None = None) -> None:
        self.name, self.size, self.endless = name, size, size is None

    def train(self, cursor: int, level: int | None = None) -> tuple[Task, int]:
        number = cursor if self.size is None else cursor % self.size
        return Task(f"{self.name}/{number}", self.name, ({"role": "user", "content": str(number)},)), cursor + 1


def scheduler(rule: str = "adaptive", size: int | None = None, names: str = "abc") -> DomainScheduler:
    pools = {name: Numbered(name, size) for name in names}
    arms = Arms.of(dict.fromkeys(names, 1.0))
    made: Any = make_rule(ScheduleConfig(rule=rule), arms, samples=4, seed=7)  # type: ignore[arg-type]
    return DomainScheduler(pools, arms, made, dict.fromkeys(names, 16), prompts=6, samples=4, seed=7)


def graded(draw: Draw, step: int) -> Group:
    """Outcomes that depend on the step and the task only."""
    passes = [stable_seed(step, draw.task.id, i) % 3 == 0 for i in range(draw.samples)]
    rollouts = tuple(
        Rollout(draw.task.id, draw.task.domain, i, (1, 2, 3), (False, True, True), (0.0, -0.5, -1.0), "x", "stop")
        for i in range(draw.samples)
    )
    rewards = tuple(Reward(float(p)) for p in passes)
    return Group(draw.task, rollouts, tuple(Verdict("right" if p else "wrong") for p in passes), rewards)


def take(plan: DomainScheduler, first: int, last: int) -> list[Draw]:
    draws = []
    for step in range(first, last + 1):
        now = plan.draw(step)
        plan.observe([graded(draw, step) for draw in now], UpdateReport(step))
        draws += now
    return draws


def test_a_card_says_what_grading_costs_so_that_draws_do_not_depend_on_the_clock() -> None:
    def drawn(seconds: float, known: dict[str, float]) -> Counter[str]:
        plan = scheduler()
        plan.second_price, plan._grader_seconds = 10.0, known
        found: Counter[str] = Counter()
        for step in range(1, 41):
            now = plan.draw(step)
            groups = [graded(draw, step) for draw in now]
            slow = [replace(g, verdicts=tuple(replace(v, seconds=seconds) for v in g.verdicts)) for g in groups]
            plan.observe(slow, UpdateReport(step))
            found.update(draw.task.domain for draw in now)
        return found

    cards = {"a": 0.01, "b": 0.01, "c": 5.0}
    assert drawn(0.1, cards) == drawn(7.0, cards)
    assert drawn(0.1, cards)["c"] < 0.7 * drawn(0.1, {})["c"]


@pytest.mark.parametrize("rule", ["adaptive", "proportional", "uniform", "dapo", "sec", "dump"])
def test_a_restored_scheduler_draws_what_it_would_have_drawn(rule: str) -> None:
    whole, half, other = scheduler(rule, 30), scheduler(rule, 30), scheduler(rule, 30)
    expected = take(whole, 1, 20)
    begun = take(half, 1, 11)
    other.restore(json.loads(json.dumps(half.state())))
    assert begun + take(other, 12, 20) == expected
    assert json.dumps(other.state()) == json.dumps(whole.state())


def test_the_log_rebuilds_the_rule_bit_for_bit() -> None:
    plan, lines = scheduler(), []
    plan.log = lambda line: lines.append(json.dumps(line))
    take(plan, 1, 25)
    fresh = scheduler().rule
    replay(fresh, [json.loads(line) for line in lines], 6)
    assert json.dumps(fresh.state()) == json.dumps(plan.rule.state())


def test_replaying_a_foreign_log_is_refused() -> None:
    plan, lines = scheduler(), []
    plan.log = lines.append
    take(plan, 1, 5)
    lines[2]["groups"][0][0] = 2 - lines[2]["groups"][0][0] or 1
    with pytest.raises(ValueError, match="not of a run of this rule"):
        replay(scheduler().rule, lines, 6)


def test_every_sample_has_a_seed_of_its_own_and_no_task_comes_twice() -> None:
    draws = take(scheduler(), 1, 20)
    fresh = Counter(draw.task.id for draw in draws)
    seeds = [seed for draw in draws for seed in draw.seeds]
    assert len(set(seeds)) == len(seeds)
    assert sum(count > 1 for count in fresh.values()) <= len(draws) // 8  # replays of hard prompts, nothing else


def test_no_prompt_is_drawn_twice_within_the_window() -> None:
    picker, last = PromptPicker(Numbered("a", 40), 4, 20, 0), {}
    for step in range(1, 120):
        task = picker.pick(0, step, 0.5)
        assert task is not None
        assert step - last.get(task.id, -99) >= 20
        last[task.id] = step
        picker.observe(task.id, 2, 4)


def test_flat_prompts_are_skipped_but_tried_again() -> None:
    picker, drawn = PromptPicker(Numbered("a", 60), 4, 2, 0), Counter()
    for step in range(1, 600):
        task = picker.pick(0, step, 0.4)
        assert task is not None
        flat = int(task.id.split("/")[1]) % 2 == 0
        drawn["flat" if flat else "mixed"] += step > 300
        picker.observe(task.id, 0 if flat else 2, 4)
    assert 0 < drawn["flat"] < 0.5 * drawn["mixed"]


def test_hard_but_solved_prompts_come_back() -> None:
    picker, seen = PromptPicker(Numbered("a"), 4, 5, 0), Counter()
    for step in range(1, 100):
        task = picker.pick(0, step, 0.3)
        assert task is not None
        seen[task.id] += 1
        picker.observe(task.id, 1 if task.id == "a/3" else 2, 4)
    assert seen["a/3"] >= 5
    assert [name for name, count in seen.items() if count > 1] == ["a/3"]


def test_a_closed_domain_is_not_drawn() -> None:
    plan = scheduler()
    take(plan, 1, 3)
    assert {draw.task.domain for draw in plan.draw(4, {"a": 0.0})} <= {"b", "c"}


def test_more_draws_than_prompts_draw_each_once() -> None:
    ids = [draw.task.id for draw in scheduler("uniform", size=2, names="a").draw(1)]
    assert sorted(ids) == ["a/0", "a/1"]


@pytest.mark.parametrize("rule", ["adaptive", "proportional"])
def test_a_domain_that_is_scaled_down_is_drawn_less_also_after_a_restart(rule: str) -> None:
    plain, slowed = scheduler(rule), scheduler(rule)
    slowed.scale("b", 0.25)
    resumed = scheduler(rule)
    resumed.restore(json.loads(json.dumps(slowed.state())))
    before, after, again = (Counter(draw.task.domain for draw in take(s, 1, 40)) for s in (plain, slowed, resumed))
    assert 0 < after["b"] < 0.8 * before["b"]
    assert again == after


def test_tasks_that_cannot_be_sampled_are_replaced_and_not_seen_again() -> None:
    plan = scheduler("uniform", size=12)
    plan.refusal = lambda task: "too long" if int(task.id.split("/")[1]) % 3 == 0 else ""
    told: dict[str, str] = {}
    for step in range(1, 30):
        now = plan.draw(step)
        assert len(now) == 6 and not any(int(draw.task.id.split("/")[1]) % 3 == 0 for draw in now)
        for tasks in plan.refused.values():
            assert not told.keys() & tasks.keys()
            told |= tasks
        plan.observe([graded(draw, step) for draw in now], UpdateReport(step))
    assert len(told) == 12 and set(told.values()) == {"too long"}
    resumed = scheduler("uniform", size=12)
    resumed.restore(json.loads(json.dumps(plan.state())))
    assert [d.task.id for d in resumed.draw(30)] == [d.task.id for d in plan.draw(30)] and not resumed.refused


def test_a_domain_of_nothing_but_long_prompts_counts_as_failing() -> None:
    plan = scheduler("uniform")
    plan.refusal = lambda task: "the prompt has 9000 tokens" if task.domain == "b" else ""
    assert {draw.task.domain for draw in plan.draw(1)} == {"a", "c"}
    assert "9000 tokens" in plan.failures["b"] and plan.failures.keys() == {"b"}
