from __future__ import annotations

import pytest
from made_up import ListSource, ask, domain_of

from surefoot.domains import TaskPool, demonstration
from surefoot.domains.shots import PresentedSource, ShotSource, present
from surefoot.errors import ConfigError
from surefoot.rewards.extract import extract

QUESTIONS = [ask(f"question {i}", "yes" if i < 6 else f"answer {i}") for i in range(40)]
HELDOUT = [ask(f"held-out {i}") for i in range(5)]


def test_examples_are_chat_turns_before_the_question():
    source = ShotSource(ListSource(QUESTIONS, HELDOUT), 3, "made")
    messages = source.task("heldout", 2).messages
    assert [m["role"] for m in messages] == ["user", "assistant"] * 3 + ["user"]
    assert messages[-1]["content"] == "held-out 2"
    assert all(m == n for m, n in zip(messages[:6], source.task("train", 4).messages[:6], strict=True))


def test_examples_have_different_answers_where_there_are_any():
    source = ShotSource(ListSource(QUESTIONS, HELDOUT), 3, "made")
    answers = [m["content"] for m in source.turns if m["role"] == "assistant"]
    assert len(set(answers)) == 3


def test_neither_split_draws_an_example():
    inner = ListSource(QUESTIONS, [ask("question 0"), *HELDOUT])
    source = ShotSource(inner, 3, "made")
    shown = {m["content"] for m in source.turns if m["role"] == "user"}
    assert "question 0" in shown
    pool = TaskPool(domain_of(source), heldout=6)
    cursor, asked = 0, {t.messages[-1]["content"] for t in pool.heldout}
    for _ in range(60):
        task, cursor = pool.train(cursor)
        asked.add(task.messages[-1]["content"])
    assert not asked & shown
    assert len(pool.heldout) == 5
    assert source.size("train") == 40 - source.reserved


def test_a_repeated_question_is_not_drawn_though_it_is_an_example():
    source = ShotSource(ListSource([*QUESTIONS, *QUESTIONS], HELDOUT), 2, "made")
    shown = {m["content"] for m in source.turns if m["role"] == "user"}
    pool = TaskPool(domain_of(source), heldout=2)
    cursor = 0
    for _ in range(150):
        task, cursor = pool.train(cursor)
        assert task.messages[-1]["content"] not in shown


def test_a_system_message_stays_first_and_alone():
    def with_system(task):
        return type(task)(task.id, task.domain, ({"role": "system", "content": "Be brief."}, *task.messages),
                          task.checks, metadata=task.metadata)  # fmt: skip

    source = ShotSource(ListSource([with_system(t) for t in QUESTIONS], []), 2, "made")
    assert [m["role"] for m in source.task("train", 0).messages] == ["system", "user", "assistant"] * 1 + [
        "user",
        "assistant",
        "user",
    ]


@pytest.mark.parametrize("tasks", [QUESTIONS[:1], [ask(f"q{i}", None) for i in range(20)], [ask("same")] * 20])
def test_too_few_examples_are_an_error(tasks):
    with pytest.raises(ConfigError, match="worked examples"):
        ShotSource(ListSource(tasks, HELDOUT), 4, "made")


@pytest.mark.parametrize("how", ["whole", "first_line", "last_line", "tag", "boxed"])
def test_what_is_presented_is_extracted_again(how):
    for answer in ("42", "a b c", r"\frac{1}{2}"):
        assert extract(present(answer, how), how) == answer
        assert present(present(answer, how), how) == present(answer, how)


def test_the_instruction_follows_the_question_and_the_answer_has_the_asked_form():
    source = PresentedSource(ListSource(QUESTIONS, []), "tag", "Use a tag.")
    task = source.task("train", 7)
    assert task.messages[-1]["content"] == "question 7\nUse a tag."
    assert demonstration(domain_of(source), task) == "<answer>answer 7</answer>"
    assert task.checks["answer"] == "answer 7"
