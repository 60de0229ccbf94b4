"""Levels of difficulty: from a recipe to the tasks that the scheduler draws."""

from __future__ import annotations

from itertools import islice

import pytest

from surefoot.config import DomainConfig, ScheduleConfig
from surefoot.domains import TaskPool, build_domain
from surefoot.errors import ConfigError
from surefoot.schedule import Arms, DomainScheduler, make_rule
from surefoot.types import Group, Reward, Rollout, UpdateReport, Verdict

STEPS = ({"min_value": 1, "max_value": 9}, {"min_value": 10, "max_value": 99}, {"min_value": 100, "max_value": 999})


def gcd(levels: object) -> DomainConfig:
    return DomainConfig.model_validate({"name": "gcd", "source": "reasoning_gym:gcd", "levels": levels})


def largest(text: str) -> int:
    return max(int(word.strip(".,?")) for word in text.split() if word.strip(".,?").isdigit())


def test_levels_are_walked_apart_and_evaluated_in_turn() -> None:
    pool = TaskPool(build_domain(gcd(STEPS)), heldout=9)
    assert pool.levels == 3 and pool.endless
    for level, step in enumerate(STEPS):
        task, _ = pool.train(0, level)
        assert step["min_value"] <= largest(task.messages[0]["content"]) <= step["max_value"]
        assert task.metadata["level"] == level
    assert sorted(task.metadata["level"] for task in pool.heldout) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    ids = [task.id for level in range(3) for task in [pool.train(0, level)[0], pool.train(1, level)[0]]]
    assert len(set(ids)) == 6


def test_a_generators_own_curriculum_gets_harder() -> None:
    domain = build_domain(gcd(3))
    assert len(domain.levels) == 3
    sizes = [max(largest(level.task("train", i).messages[0]["content"]) for i in range(8)) for level in domain.levels]
    assert sizes[0] < sizes[-1]


def test_levels_that_the_generator_refuses_are_left_out() -> None:
    domain = build_domain(gcd(2).model_copy(update={"source": "reasoning_gym:caesar_cipher", "levels": 20}))
    assert 2 <= len(domain.levels) < 20
    assert all(level.task("train", 0).checks for level in domain.levels)


def test_demonstrations_of_all_levels_are_not_drawn_again() -> None:
    pool = TaskPool(build_domain(gcd(STEPS)), heldout=0)
    shown = {task.id for task in islice(pool.training_tasks(), 7)}
    drawn = {pool.train(cursor, level)[0].id for level, cursor in enumerate(pool.behind(7))}
    assert pool.behind(7) == [3, 2, 2]
    assert not shown & drawn


def test_what_has_no_levels_says_so() -> None:
    code = DomainConfig(name="c", source="code:lists", levels=3)
    with pytest.raises(ConfigError, match="no curriculum"):
        build_domain(code)
    with pytest.raises(ConfigError, match="only 1 level"):
        build_domain(gcd([{"max_value": 9}]))
    with pytest.raises(ConfigError, match="no option 'max_valu'"):
        build_domain(gcd([{"max_valu": 9}, {}]))


def test_the_adaptive_rule_goes_up_as_levels_are_passed() -> None:
    pool = TaskPool(build_domain(gcd(STEPS)), heldout=3)
    arms = Arms.of({"gcd": 1.0}, levels={"gcd": 3})
    rule = make_rule(ScheduleConfig(rule="adaptive"), arms, samples=4, seed=0)
    scheduler = DomainScheduler({"gcd": pool}, arms, rule, {"gcd": 8}, prompts=4, samples=4, seed=0)
    opened = []
    for step in range(1, 41):
        draws = scheduler.draw(step)
        opened += list(scheduler.opened.values())
        groups = []
        for draw in draws:
            passed = (True, True, True, draw.task.metadata["level"] == 0)  # mixed but mostly passed, above level 0 too
            rollouts = tuple(
                Rollout(draw.task.id, "gcd", sample, (1, 2), (False, True), (0.0, -0.1), "x", "stop")
                for sample in range(4)
            )
            verdicts = tuple(Verdict("right" if ok else "wrong", float(ok)) for ok in passed)
            rewards = tuple(Reward(float(ok)) for ok in passed)
            groups.append(Group(draw.task, rollouts, verdicts, rewards))
        scheduler.observe(groups, UpdateReport(step))
    assert opened == sorted(set(opened)) and opened[-1] == 2
    fresh = DomainScheduler({"gcd": pool}, arms, rule, {"gcd": 8}, prompts=4, samples=4, seed=0)
    fresh.restore(scheduler.state())
    fresh.draw(41)
    assert not fresh.opened
