"""What people look at of a run, what their decisions prove, and that nothing of it gets lost."""

from __future__ import annotations

import json
import time

import pytest

from surefoot.errors import DataError, RunError
from surefoot.rewards.interval import upper_bound
from surefoot.rewards.review import Candidate, Judged, active_picks, audit_sample, bounds, cohen_kappa, queue
from surefoot.rewards.review.reading import double_judged
from surefoot.store.review import ReviewStore, candidates, open_review
from surefoot.store.rollouts import write_rollouts
from surefoot.types import Finding, Group, Reward, Rollout, Task, Verdict


def one(n: int, domain: str = "maths", step: int = 0, **changes) -> Candidate:
    usual = {"grade": "right", "reward": 1.0, "valid": True, "text_hash": n, "shape": (4.0, 0.6, 0.1)}
    return Candidate(step, f"{domain}/{n}", 0, domain, **{**usual, **changes})


def written(tmp_path, texts=("honest work", "a cheat"), findings=()):
    (tmp_path / "rollouts").mkdir(exist_ok=True)
    task = Task("m/0", "maths", ({"role": "user", "content": "What is 2 + 2?"},))
    rollouts = tuple(Rollout(task.id, "maths", i, (0,), (True,), (0.0,), text, "stop") for i, text in enumerate(texts))
    verdicts = tuple(Verdict("right", 1.0, findings=findings) for _ in texts)
    write_rollouts(tmp_path / "rollouts", 1, [Group(task, rollouts, verdicts, (Reward(1.0),) * len(texts))])
    return tmp_path


def test_sixty_clean_rollouts_bound_the_rate_below_five_percent():
    assert upper_bound(0, 60) == pytest.approx(1 - 0.05 ** (1 / 60))
    assert upper_bound(0, 60) < 0.05 < upper_bound(0, 58)
    assert upper_bound(0, 0) == 1.0 and upper_bound(3, 3) == 1.0


def test_the_audit_covers_the_true_rate_as_often_as_it_says():
    cheats = 0.1
    run = [one(n, text_hash=int(n % 10 == 0)) for n in range(2000)]
    held = 0
    for seed in range(200):
        picks = audit_sample(run, 40, seed)["maths"]
        rejected = sum(pick.candidate.text_hash for pick in picks)
        held += upper_bound(rejected, 40) >= cheats
    assert held >= 186  # 95% of 200, less two standard errors


def test_the_audit_is_by_domain_and_of_what_training_took_for_right():
    run = [*(one(n) for n in range(500)), *(one(n, "code") for n in range(7))]
    run += [one(n, "code", step=1, grade="wrong", reward=0.0) for n in range(100)]
    drawn = audit_sample(run, 20)
    assert {domain: len(picks) for domain, picks in drawn.items()} == {"code": 7, "maths": 20}
    assert all(pick.candidate.rewarded and pick.audit for picks in drawn.values() for pick in picks)


def test_active_picks_say_why_and_show_a_text_once():
    usual = [one(n, shape=(4.0 + n % 7 / 10, 0.6, 0.1)) for n in range(100)]
    suspects = [
        *(one(200 + n, findings=(("test_literals", "severe", "zero"),), text_hash=1000) for n in range(5)),
        one(300, shape=(0.7, 0.6, 0.1), text_hash=2000),
        one(301, failed=1, passed=3),
    ]
    reasons = [pick.why for pick in active_picks([*usual, *suspects], 10)]
    assert sorted(reasons) == [
        "disagreement: right, with 1 of 4 checks failed",
        "finding: test_literals (severe, zero)",
        "odd: rewarded, and short for its domain",
    ]


def test_the_same_text_judged_differently_is_a_disagreement():
    twins = [one(1, step=0), one(1, step=1, grade="wrong", reward=0.0)]
    assert "judged right and wrong" in active_picks(twins, 5)[0].why


def test_a_jump_of_a_domain_is_looked_at():
    run = [
        one(1000 * step + n, step=step, grade="right" if n < (2 if step < 12 else 30) else "wrong")
        for step in range(20)
        for n in range(32)
    ]
    picks = [pick for pick in active_picks(run, 10) if pick.why.startswith("reward jump")]
    assert len(picks) == 10 and min(pick.candidate.step for pick in picks) >= 12


def test_a_bound_counts_unsure_and_the_graver_of_two_decisions_against_the_domain():
    said = [
        Judged((1, "a", 0), "maths", "ann", "accept", audit=True),
        Judged((1, "a", 0), "maths", "bob", "reject", audit=True),
        Judged((1, "b", 0), "maths", "ann", "unsure", audit=True),
        Judged((1, "c", 0), "maths", "ann", "reject", audit=False),
    ]
    maths, code = sorted(bounds(said, ["code"]), key=lambda b: b.domain, reverse=True)
    assert (maths.judged, maths.rejected, maths.unsure, maths.high) == (2, 1, 1, 1.0)
    assert (code.domain, code.judged, code.high) == ("code", 0, 1.0)
    assert double_judged(said) == [("accept", "reject")]


def test_kappa_is_cohens():
    pairs = [("a", "a")] * 20 + [("a", "b")] * 5 + [("b", "a")] * 10 + [("b", "b")] * 15
    assert cohen_kappa(pairs) == pytest.approx(0.4)  # the example of every textbook: 0.7 observed, 0.5 expected
    assert cohen_kappa([]) is None and cohen_kappa([("a", "a")]) is None


def test_double_review_is_blind_and_ends(tmp_path):
    store = ReviewStore(written(tmp_path))
    store.fill(queue(list(candidates(tmp_path)), 5, 5), twice=1.0)
    first = store.next("ann")
    store.decide(first.position, "ann", "accept")
    assert store.next("bob") == first and store.next("ann").position != first.position
    store.decide(first.position, "bob", "reject", note="copied")
    assert first.key not in {item.key for item in [store.next("cem")] if item}
    for who in ("ann", "bob"):
        while item := store.next(who):
            store.decide(item.position, who, "accept")
    assert store.next("cem") is None
    assert {d["decision"] for d in store.decisions()} == {"accept", "reject"}


def test_decisions_outlive_a_new_queue_and_a_mind_can_be_changed(tmp_path):
    store = open_review(written(tmp_path))
    item = store.next("ann")
    store.decide(item.position, "ann", "accept")
    store.decide(item.position, "ann", "reject", note="on second thoughts")
    again = open_review(tmp_path, renew=True, seed=5)
    assert [(d["decision"], d["note"], d["audit"]) for d in again.decisions()] == [
        ("reject", "on second thoughts", True)
    ]
    with pytest.raises(DataError, match="accept, reject, unsure"):
        store.decide(item.position, "ann", "maybe")


def test_a_run_without_rollouts_is_told(tmp_path):
    with pytest.raises(RunError, match="no rollouts yet"):
        open_review(tmp_path)


def test_what_is_shown_is_the_whole_rollout(tmp_path):
    found = Finding("early_exit", "warning", "exit(0)", span=(0, 3))
    store = open_review(written(tmp_path, findings=(found,)))
    row = store.rollout(store.next("ann").key)
    assert row["messages"][0]["content"] == "What is 2 + 2?"
    assert row["findings"][0]["kind"] == "early_exit" and row["text"] in ("honest work", "a cheat")


def test_a_queue_over_100_000_rollouts_is_made_in_seconds():
    run = [
        one(n, f"d{n % 20}", step=n // 1000, grade="right" if n % 3 else "wrong", shape=(4 + n % 11 / 10, 0.6, 0.1))
        for n in range(100_000)
    ]
    start = time.process_time()
    made = queue(run, 60, 10)
    assert time.process_time() - start < 15
    assert sum(pick.audit for pick in made) == 20 * 60
    assert json.dumps([pick.candidate.key for pick in made])
