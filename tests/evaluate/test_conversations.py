"""Scripted conversations with a stand-in that forgets its rules, and killed in the middle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from surefoot.errors import RunError
from surefoot.evaluate.conversations import converse
from surefoot.evaluate.records import Conversation
from surefoot.evaluate.scripts import RULES, make_scripts, rules_of
from surefoot.rewards.constraints import describe, keeps
from surefoot.types import Draw, Rollout, Sampling


class Forgetful:
    """Keeps lowercase for two turns, then shouts; stops the process after `most` replies."""

    version = 0

    def __init__(self, most: int = 10**6) -> None:
        self.asked: list[str] = []
        self.most = most

    def rollout(self, draws: Sequence[Draw], sampling: Sampling) -> Iterator[Rollout]:
        for draw in reversed(draws):
            if len(self.asked) == self.most:
                raise KeyboardInterrupt
            self.asked.append(draw.task.id)
            turn = sum(m["role"] == "assistant" for m in draw.task.messages)
            text = f"reply {turn} of {draw.seeds[0] % 97}"
            words = sum(len(m["content"].split()) for m in draw.task.messages)
            yield Rollout(
                draw.task.id,
                draw.task.domain,
                0,
                (1,) * (words + 3),
                (False,) * words + (True,) * 3,
                (0.0,) * (words + 3),
                text.upper() if turn > 1 else text,
                "stop",
            )

    def close(self) -> None: ...


def talks(engine: Forgetful, directory: Path | None = None, **more: object) -> tuple[Conversation, ...]:
    plan = {"samples": 2, "sampling": Sampling(), "seed": 1, "max_new_tokens": 9, "max_context": 9999, **more}
    return converse(make_scripts(3, 4, padding=10), engine, directory=directory, **plan)  # type: ignore[arg-type]


def test_scripts_are_repeatable_and_state_their_rules() -> None:
    scripts = make_scripts(20, 6, padding=30)
    assert scripts == make_scripts(24, 6, padding=30)[:20] and len(rules_of(scripts)) >= 8
    for script in scripts:
        assert all(describe(rule) in script.questions[0] for rule in script.constraints)
        assert len({rule["kind"] for rule in script.constraints}) == 3 and len(script.questions) == 6
        assert all(len(question.split()) > 30 for question in script.questions[1:])
    assert all(isinstance(keeps("well, maybe", rule), bool) for group in RULES for rule in group)


def test_replies_become_the_history_and_every_one_is_checked() -> None:
    engine = Forgetful()
    got = talks(engine)
    assert len(got) == 6 and len(engine.asked) == len(set(engine.asked)) == 24
    for talk in got:
        assert [len(talk.replies), len(talk.kept)] == [4, 4]
        assert [r.context for r in talk.replies] == sorted({r.context for r in talk.replies})
        for place, rule in enumerate(talk.constraints):
            assert [row[place] for row in talk.kept] == [keeps(r.text, rule) for r in talk.replies]
    lower = [t for t in got for c in t.constraints if c["kind"] == "lowercase"]
    assert lower and all([all(row) or not row[0] for row in t.kept] for t in lower)


@pytest.mark.parametrize("most", [0, 5, 13, 23])
def test_a_killed_evaluation_goes_on_in_the_middle(tmp_path: Path, most: int) -> None:
    first = Forgetful(most)
    with pytest.raises(KeyboardInterrupt):
        talks(first, tmp_path)
    second = Forgetful()
    assert talks(second, tmp_path) == talks(Forgetful())
    assert len(second.asked) == 24 - most and not set(first.asked) & set(second.asked)
    with pytest.raises(RunError, match="seed"):
        talks(Forgetful(), tmp_path, seed=2)


def test_a_conversation_ends_where_the_context_is_full() -> None:
    got = talks(Forgetful(), max_context=150)
    assert all(1 <= len(t.replies) < 4 and len(t.questions) == 4 for t in got)
    assert max(r.context for t in got for r in t.replies) <= 150
