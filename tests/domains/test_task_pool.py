from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import EndlessSource, ListSource, ask, domain_of

from surefoot.domains import TaskPool
from surefoot.domains.seeds import permuted, split_seed
from surefoot.errors import DataError


def numbered(count: int) -> list:
    return [ask(f"question {i}") for i in range(count)]


def test_heldout_tasks_are_the_first_distinct_prompts():
    source = ListSource(numbered(3), [ask("a"), ask("b"), ask(" a "), ask("c"), ask("d")])
    pool = TaskPool(domain_of(source), heldout=3)
    assert [t.messages[0]["content"] for t in pool.heldout] == ["a", "b", "c"]
    assert ("heldout", 4) not in source.made


def test_fewer_heldout_tasks_where_there_are_no_more():
    pool = TaskPool(domain_of(ListSource(numbered(3), [ask("a"), ask("a")])), heldout=24)
    assert len(pool.heldout) == 1


def test_training_never_shows_a_heldout_prompt():
    heldout = numbered(4)
    pool = TaskPool(domain_of(ListSource(numbered(12), heldout)), heldout=4)
    drawn = {t.prompt_hash for t in islice(pool.training_tasks(), 40)}
    assert len(drawn) == 8
    assert not drawn & {t.prompt_hash for t in heldout}


def test_a_finite_source_is_walked_whole_and_reordered_each_time():
    pool = TaskPool(domain_of(ListSource(numbered(10), [ask("h")])), heldout=1)
    first, second = ([t.id for t in islice(pool.training_tasks(start), 10)] for start in (0, 10))
    assert sorted(first) == sorted(second) and len(set(first)) == 10
    assert first != second


def test_the_cursor_is_all_the_state():
    def pool(seed: int = 0) -> TaskPool:
        return TaskPool(domain_of(ListSource(numbered(10), numbered(3))), heldout=3, seed=seed)

    whole = list(islice(pool().training_tasks(), 20))
    cursor = 0
    for _ in range(9):
        _, cursor = pool().train(cursor)
    assert list(islice(pool().training_tasks(cursor), 11)) == whole[9:]
    assert list(islice(pool(seed=1).training_tasks(), 20)) != whole


def test_nothing_is_made_before_it_is_asked_for():
    source = ListSource(numbered(10_000), numbered(10_000))
    pool = TaskPool(domain_of(source), heldout=5)
    pool.train(0)
    assert len(source.made) < 12


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (ListSource([], [ask("h")]), "no training tasks"),
        (ListSource(numbered(3), []), "no held-out tasks"),
        (ListSource(numbered(2), numbered(2)), "every training prompt"),
        (ListSource([ask("q", None)], [ask("h")]), "nothing to check"),
        (ListSource([ask("  ")], [ask("h")]), "empty prompt"),
        (EndlessSource(distinct=3), "every training prompt"),
    ],
)
def test_a_source_that_cannot_be_trained_on_says_so(source, says):
    pool = TaskPool(domain_of(source), heldout=5)
    with pytest.raises(DataError, match=says) as raised:
        pool.train(0)
    assert "made" in (raised.value.where or "")


def test_a_task_with_constraints_alone_is_enough():
    task = ask("q", None, constraints=({"kind": "no_commas"},))
    assert TaskPool(domain_of(ListSource([task], [])), heldout=0).train(0)[0] is task


@given(st.integers(1, 300), st.integers(0, 2**63 - 1))
def test_permuted_is_a_permutation(size, seed):
    assert sorted(permuted(i, size, seed) for i in range(size)) == list(range(size))


def test_the_seeds_of_the_splits_are_disjoint():
    train, heldout = ({split_seed("x", split, i) for i in range(3000)} for split in ("train", "heldout"))
    assert not train & heldout
    assert len(train) == 3000 and max(train | heldout) < 2**32
