"""Packing: every target is predicted by the right row, budgets hold, nothing is lost."""

from __future__ import annotations

import pytest
from learner_stand_ins import make_group, make_rollout

from surefoot.learner.packing import Pack, group_trees, lay_out, pack
from surefoot.types import Group, Reward, Rollout, Task


def trees_of(group: Group) -> list:
    return group_trees(group, [float(i + 1) for i in range(len(group.rollouts))])


def context_of(packed: Pack, target: int) -> list[int]:
    """The tokens that the row predicting `target` may see, read off the layout alone."""
    row = int(packed.source[target])
    span = next(s for s in packed.spans if s.start <= row < s.end)
    prompt_end = span.start + span.prompt
    if row < prompt_end:
        return packed.tokens[span.start : row + 1].tolist()
    start = prompt_end
    for length in span.suffixes:
        if row < start + length:
            break
        start += length
    return packed.tokens[span.start : prompt_end].tolist() + packed.tokens[start : row + 1].tolist()


def examples(packs: list[Pack]) -> set[tuple[tuple[int, ...], int, float]]:
    """(context, target, old log-prob) of every target."""
    return {
        (tuple(context_of(p, i)), int(p.targets[i]), round(float(p.old_logprobs[i]), 5))
        for p in packs
        for i in range(len(p.targets))
    }


def wanted(rollouts: list[Rollout]) -> set[tuple[tuple[int, ...], int, float]]:
    return {
        (r.tokens[:i], r.tokens[i], round(r.logprobs[i], 5))
        for r in rollouts
        for i in range(1, len(r.tokens))
        if r.mask[i]
    }


@pytest.mark.parametrize("budget", [10, 16, 40, 1000])
def test_targets_are_predicted_from_exactly_their_own_past(budget: int) -> None:
    groups = [make_group([0.0, 1.0, 0.5, 1.0], seed=i, prompt=3 + i) for i in range(4)]
    packs = pack([tree for g in groups for tree in trees_of(g)], budget)
    assert examples(packs) == wanted([r for g in groups for r in g.rollouts])
    for p in packs:
        assert len(p.tokens) <= budget or p.samples == 1
        assert p.sequence.max() + 1 == p.samples


def test_prompt_is_laid_down_once_and_last_tokens_not_at_all() -> None:
    group = make_group([0.0, 1.0, 2.0], prompt=20)
    (packed,) = pack(trees_of(group), 1000)
    assert len(packed.tokens) == 20 + sum(r.sampled - 1 for r in group.rollouts)
    assert packed.positions[:20].tolist() == list(range(20))
    assert packed.positions[20] == 20
    assert packed.source.tolist().count(19) == 3


def test_turns_of_others_are_seen_but_not_learnt() -> None:
    mask = [True, True, False, False, True, False]
    rollouts = (make_rollout([1, 2, 3], [4, 5, 6, 7, 8, 9], mask=mask), make_rollout([1, 2, 3], [4], sample=1))
    group = Group(Task("t/0", "d", ()), rollouts, (), (Reward(1.0), Reward(0.0)))
    packs = pack(trees_of(group), 100)
    assert examples(packs) == wanted(list(rollouts))
    assert packs[0].tokens.tolist() == [1, 2, 3, 4, 5, 6, 7]  # neither the last written token nor what follows it


def test_invalid_and_empty_samples_are_left_out() -> None:
    rollouts = (
        make_rollout([1, 2], [3, 4]),
        make_rollout([1, 2], [5, 6], sample=1),
        make_rollout([1, 2], [], sample=2),
    )
    group = Group(Task("t/0", "d", ()), rollouts, (), (Reward(1.0), Reward(0.0, valid=False), Reward(0.0)))
    (tree,) = trees_of(group)
    assert [b.tokens for b in tree.branches] == [(3, 4)]


def test_a_rollout_without_prompt_learns_from_its_second_token_on() -> None:
    rollout = make_rollout([], [5, 6, 7])
    group = Group(Task("t/0", "d", ()), (rollout,), (), (Reward(1.0),))
    assert examples(pack(trees_of(group), 100)) == {((5,), 6, -2.0), ((5, 6), 7, -2.0)}


def test_different_prompts_in_one_group_become_two_trees() -> None:
    rollouts = (make_rollout([1, 2], [3]), make_rollout([1, 9], [3], sample=1))
    group = Group(Task("t/0", "d", ()), rollouts, (), (Reward(1.0), Reward(0.0)))
    assert [t.prompt for t in trees_of(group)] == [(1, 2), (1, 9)]


def test_packing_is_deterministic_and_tight() -> None:
    trees = [tree for i in range(12) for tree in trees_of(make_group([0.0, 1.0], seed=i))]
    first, second = pack(trees, 64), pack(trees, 64)
    assert [p.tokens.tolist() for p in first] == [p.tokens.tolist() for p in second]
    assert len(first) <= 1.25 * sum(t.size for t in trees) / 64 + 1


def test_advantages_follow_their_sample() -> None:
    group = make_group([0.0, 1.0, 0.5])
    packed = lay_out(trees_of(group))
    assert packed.advantages.tolist() == [float(s + 1) for s in packed.sequence.tolist()]
