"""Long-text domains: their length is what was asked for, and each answer follows from the text by its rule."""

from __future__ import annotations

import re
from collections import Counter
from typing import cast

import pytest

from surefoot.config import DomainConfig
from surefoot.domains import TaskPool, build_domain
from surefoot.errors import ConfigError
from surefoot.protocols import Domain, Sandbox
from surefoot.types import Rollout, Task


def made(kind: str, **options: int) -> Domain:
    return build_domain(DomainConfig(name=kind, source=f"long:{kind}", options=options))


def tasks(domain: Domain, count: int = 40) -> list[Task]:
    return [domain.source.task("train", i) for i in range(count)]


def text_of(task: Task) -> str:
    return task.messages[0]["content"]


def grade(domain: Domain, task: Task, text: str) -> str:
    rollout = Rollout(task.id, task.domain, 0, (), (), (), text, "stop")
    return domain.grader.grade(task, rollout, cast(Sandbox, None)).grade


@pytest.mark.parametrize("asked", [1, 3])
def test_needles_are_where_the_question_says(asked: int) -> None:
    domain = made("needle", words=400, asked=asked, distractors=6)
    for task in tasks(domain):
        told = dict(re.findall(r"The code of the (\w+ \w+) is (\d+)\.", text_of(task)))
        question = text_of(task).rpartition("\n\n")[2].partition(" Reply")[0]
        wanted = re.findall(r"the ([a-z]+ [a-z]+)(?=[,?])", question.replace("codes of", "").replace("code of", ""))
        assert len(told) == asked + 6
        assert task.checks["answer"] == ", ".join(told[name] for name in wanted)
        assert grade(domain, task, task.checks["answer"]) == "right"
        assert grade(domain, task, next(c for c in told.values() if c not in task.checks["answer"])) == "wrong"


def test_variables_are_followed_to_the_value_that_they_started_from() -> None:
    for task in tasks(made("variables", words=300, asked=4, distractors=10)):
        values: dict[str, str] = {}
        for name, value, before in re.findall(r"Let (\w+) be (?:(\d+)|the same as (\w+))\.", text_of(task)):
            values[name] = value or values[before]  # a KeyError here would be a variable that is used before it is set
        last = re.search(r"the value of (\w+)\?", text_of(task))
        assert last and values[last.group(1)] == task.checks["answer"]
        assert len(set(values.values())) > 1


def test_documents_answer_questions_on_one_and_on_several_people() -> None:
    for task in tasks(made("document", words=300, distractors=8)):
        sentence = next(s for s in text_of(task).split(". ") if _person(task) in s)
        assert task.checks["answer"] in sentence
    for task in tasks(made("document", words=300, asked=3, distractors=8)):
        said = re.search(r"that each (.*)\?", text_of(task))
        assert said and str(text_of(task).partition("\n\n")[0].count(f" {said.group(1)}.")) == task.checks["answer"]


@pytest.mark.parametrize(("kind", "asked"), [("needle", 3), ("variables", 3), ("document", 1), ("document", 4)])
def test_no_constant_answer_is_right_often(kind: str, asked: int) -> None:
    answers = Counter(task.checks["answer"] for task in tasks(made(kind, words=200, asked=asked, distractors=8), 80))
    assert max(answers.values()) <= 40


def _person(task: Task) -> str:
    found = re.search(r"([A-Z]\w+ [A-Z]\w+)(?: live| work| keep)", text_of(task).rpartition("\n\n")[2])
    assert found
    return found.group(1)


@pytest.mark.parametrize("kind", ["needle", "variables", "document"])
@pytest.mark.parametrize("words", [200, 30_000])
def test_texts_have_the_length_that_was_asked_for(kind: str, words: int) -> None:
    task = made(kind, words=words).source.task("heldout", 3)
    assert words * 0.95 < len(text_of(task).split()) < words * 1.05 + 40
    assert task == made(kind, words=words).source.task("heldout", 3)


def test_needles_lie_at_every_depth() -> None:
    domain = made("needle", words=1000, distractors=0)
    depths = [text_of(t).index("The code of") / len(text_of(t)) for t in tasks(domain, 60)]
    assert min(depths) < 0.15 and max(depths) > 0.85


def test_splits_are_apart_and_bad_options_are_refused() -> None:
    pool = TaskPool(made("needle"), 20)
    assert not {t.prompt_hash for t in pool.heldout} & {pool.train(i)[0].prompt_hash for i in range(50)}
    with pytest.raises(ConfigError, match="did you mean 'words'"):
        made("needle", word=3)
    with pytest.raises(ConfigError, match="did you mean 'needle'"):
        made("needles")
    with pytest.raises(ConfigError, match="not so many"):
        made("needle", distractors=500)
