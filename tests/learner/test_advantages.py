"""Advantages on the scale of a group, a domain or a step."""

from __future__ import annotations

import numpy as np
import pytest
from learner_stand_ins import make_group

from surefoot.learner.advantages import group_advantages, step_advantages
from surefoot.types import Group, Reward, Task

REWARDS = {"a": [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]], "b": [[10.0, 0.0, 5.0], [10.0, 10.0, 0.0]]}


def groups() -> list[Group]:
    found = []
    for domain, lists in REWARDS.items():
        for number, values in enumerate(lists):
            task = Task(f"{domain}{number}", domain, ({"role": "user", "content": "?"},))
            found.append(Group(task, (), (), tuple(map(Reward, values))))
    return found


def plain(domains: list[str]) -> np.ndarray:
    """Deviation of the centred rewards of some domains."""
    centred = np.concatenate([np.array(v) - np.mean(v) for d in domains for v in REWARDS[d]])
    return np.sqrt((centred**2).sum() / (len(centred) - 1))


def test_within_domains_scales_of_rewards_do_not_leak() -> None:
    found = step_advantages(groups(), ["domain_std"] * 4)
    for group, advantages in zip(groups(), found, strict=True):
        values = np.array([reward.value for reward in group.rewards])
        wanted = (values - values.mean()) / (plain([group.task.domain]) + 1e-4)
        np.testing.assert_allclose(advantages, wanted)
    assert max(map(max, found[2:])) < 2 * max(map(max, found[:2]))  # though its rewards are ten times as large


def test_over_the_whole_step() -> None:
    found = step_advantages(groups(), ["batch_std"] * 4)
    values = np.array(REWARDS["b"][0])
    np.testing.assert_allclose(found[2], (values - values.mean()) / (plain(["a", "b"]) + 1e-4))


def test_each_group_by_its_own_estimator() -> None:
    step = groups()
    found = step_advantages(step, ["group_std", "leave_one_out", "domain_std", "group_mean"])
    assert found[0] == group_advantages(step[0].rewards, "group_std")
    assert found[1] == group_advantages(step[1].rewards, "leave_one_out")
    assert found[3] == group_advantages(step[3].rewards, "group_mean")
    assert found[2] != found[3]


@pytest.mark.parametrize("estimator", ["domain_std", "batch_std"])
def test_samples_that_are_not_valid_count_for_nothing(estimator: str) -> None:
    first, *others = groups()
    spoilt = Group(first.task, (), (), (*first.rewards, Reward(1e9, valid=False)))
    found = step_advantages([spoilt, *others], [estimator] * 4)
    assert found[0][-1] == 0.0
    np.testing.assert_allclose(found[0][:-1], step_advantages([first, *others], [estimator] * 4)[0])


def test_nothing_to_compare_is_no_advantage() -> None:
    alone = Group(groups()[0].task, (), (), (Reward(1.0),))
    assert step_advantages([alone], ["domain_std"]) == [[0.0]]
    flat = make_group([1.0, 1.0])
    assert step_advantages([flat], ["batch_std"]) == [[0.0, 0.0]]
