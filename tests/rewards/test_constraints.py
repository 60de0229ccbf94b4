"""Constraint checkers one by one, the grader over them, and answers without content."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.errors import GraderError
from surefoot.protocols import Sandbox
from surefoot.rewards.constraint_kinds import KINDS
from surefoot.rewards.constraints import DIMENSION, ConstraintGrader, describe, keeps, repetitive
from surefoot.types import Rollout, Task, Verdict

NO_SANDBOX = cast(Sandbox, None)
LONG = "Cats sleep. Dogs bark! Do birds sing?"

# kind, arguments, texts that keep it, texts that do not
CASES: list[tuple[str, dict[str, Any], list[str], list[str]]] = [
    ("words_at_least", {"n": 3}, ["one two three", "it's well-known here"], ["one two", "", "... !"]),
    ("words_at_most", {"n": 2}, ["one", "one, two."], ["one two three", "", "."]),
    ("words_exactly", {"n": 2}, ["Hello, world!"], ["hello", "a b c"]),
    ("sentences_exactly", {"n": 3}, [LONG, '"One." "Two." Three'], ["One.", "", "pi is 3.14"]),
    ("sentences_at_least", {"n": 2}, [LONG], ["One sentence only."]),
    ("sentences_at_most", {"n": 1}, ["It costs 3.50 now."], [LONG, ""]),
    ("paragraphs", {"n": 2}, ["a\n\nb", "a\nb\n \n\nc"], ["a\nb", "a", "a\n\nb\n\nc"]),
    ("lowercase", {}, ["all lower, 3."], ["One upper", "", "123"]),
    ("uppercase", {}, ["ALL UPPER, 3."], ["One upper", "", "123"]),
    ("no_commas", {}, ["no commas here"], ["a, b", ""]),
    ("no_digits", {}, ["none"], ["a1", ""]),
    ("keyword", {"word": "cat", "n": 2}, ["Cat and cat", "a cat, the cat."], ["cats cat", "concatenate cat"]),
    ("keyword_exactly", {"word": "cat", "n": 1}, ["one cat"], ["cat cat", "none"]),
    ("forbidden", {"words": ["the", "an"]}, ["a cat then and there"], ["The cat", "AN owl", ""]),
    ("starts_with", {"start": "Today"}, ["today we go", '"Today, we go'], ["Todays news", "We go today"]),
    ("ends_with", {"end": "every day"}, ["I run every day.", "EVERY DAY"], ["every day I run", "daily"]),
    ("ends_with", {"end": "!"}, ["Go!", '"Go!"'], ["Go.", "Go! now"]),
    ("bullets", {"n": 2}, ["* a\n* b", "List:\n- a\n- b"], ["* a", "*bold* text\n* a", "a\nb"]),
    ("only_bullets", {"n": 2}, ["* a\n* b"], ["List:\n- a\n- b", "* a\n* b\n* c"]),
    (
        "listed",
        {"n": 3},
        ["red, blue, green", "red, blue, and green."],
        ["red, blue", "red\nblue\ngreen", "a, b, c, d"],
    ),
    ("listed", {"n": 3}, ["a, b, c"], [",,a, b, c", "a b c", "a,, b, c"]),
    ("alphabetical", {}, ["apple, pear", "* a\n* b\n* c"], ["pear, apple", "apple", ""]),
    ("json", {}, ['{"a": 1}', "[1, 2]", '```json\n{"a": 1}\n```'], ["{a: 1}", "3", "", '{"a": 1} done', "[" * 100000]),
    ("json", {"keys": ["a"]}, ['{"a": 1}'], ['{"a": 1, "b": 2}', "[1]", "{}"]),
    ("quoted", {}, ['"a sentence."'], ['a "word"', '""', '"a" and "b"']),
    ("title", {}, ["<<My Day>>\nIt was fine."], ["<<>>", "<My Day>", "<< >>"]),
    ("letter_at_least", {"letter": "e", "n": 2}, ["Eel"], ["end"]),
    ("letter_at_most", {"letter": "e", "n": 1}, ["end"], ["eel", ""]),
    ("postscript", {}, ["Dear you.\nP.S. Write."], ["P.S. only", "No P.S. here", "Text\nP.S."]),
    ("placeholders", {"n": 2}, ["Dear [name], on [date]"], ["Dear [name]", "[] []"]),
]


@pytest.mark.parametrize(("kind", "arguments", "good", "bad"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_kinds(kind: str, arguments: dict[str, Any], good: list[str], bad: list[str]) -> None:
    constraint = {"kind": kind, **arguments}
    assert [text for text in good if not keeps(text, constraint)] == []
    assert [text for text in bad if keeps(text, constraint)] == []
    assert "{" not in describe(constraint)


def test_every_kind_is_tested() -> None:
    assert {case[0] for case in CASES} == set(KINDS)
    assert len(KINDS) >= 12


@given(text=st.one_of(st.text(), st.text('*[]<>"{}.,! \nab-P.S:', max_size=60)))
@settings(max_examples=200, deadline=None)
def test_no_text_makes_a_check_raise_and_the_empty_text_keeps_nothing(text: str) -> None:
    for kind, arguments, _, _ in CASES:
        assert isinstance(keeps(text, {"kind": kind, **arguments}), bool)
        assert not keeps("", {"kind": kind, **arguments})


@pytest.mark.timeout(20)
def test_long_text_takes_no_long_time() -> None:
    pieces = ("<<", "<<a", "\n", "\n ", "P.S.", "[", "[a", "* ", "a. ", "!", " ", ",", '"', "a")
    for text in [end.join(["x", piece * 20000, "x"]) for piece in pieces for end in ("", "```", "<<")]:
        for kind, arguments, _, _ in CASES:
            assert isinstance(keeps(text, {"kind": kind, **arguments}), bool)


def test_descriptions_read_well() -> None:
    assert describe({"kind": "keyword", "word": "cat"}) == 'Use the word "cat".'
    assert describe({"kind": "keyword", "word": "cat", "n": 2}) == 'Use the word "cat" at least 2 times.'
    assert describe({"kind": "forbidden", "words": ["a", "b"]}) == 'Do not use the words "a" or "b".'
    assert describe({"kind": "sentences_exactly", "n": 1}) == "Write exactly 1 sentence."


@pytest.mark.parametrize(
    "constraint", [{"kind": "rhymes"}, {"kind": "words_at_least"}, {"kind": "lowercase", "n": 1}, {}]
)
def test_a_constraint_that_makes_no_sense_is_the_graders_fault(constraint: dict[str, Any]) -> None:
    with pytest.raises(GraderError):
        keeps("text", constraint)


def grade(text: str, constraints: list[dict[str, Any]], content: dict[str, Any] | None = None) -> Verdict:
    messages = ({"role": "user", "content": "Write one sentence about cats. Use only lowercase letters."},)
    checks = {"content": content or {}}
    task = Task("t", "d", messages, checks, tuple(constraints))  # type: ignore[arg-type]
    rollout = Rollout("t", "d", 0, (), (), (), text, "stop")
    return ConstraintGrader().grade(task, rollout, NO_SANDBOX)


LOWER = {"kind": "lowercase"}
CATS = {"mentions": ["cat", "cats"], "least_words": 4}


def test_right_only_if_all_constraints_are_kept() -> None:
    short = {"kind": "words_at_most", "n": 3}
    verdict = grade("my cats sleep a lot.", [LOWER, short], CATS)
    assert (verdict.grade, verdict.score) == ("wrong", 0.5)
    assert [(c.name, c.passed) for c in verdict.checks if c.dimension == DIMENSION] == [
        ("lowercase", True),
        ("words_at_most", False),
    ]
    assert grade("my cats sleep a lot.", [LOWER], CATS).grade == "right"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cats",
        "cats cats cats cats cats cats cats cats",
        "dogs like to bark all day",
        "write one sentence about cats. use only lowercase letters.",
        "cats sleep " * 10,
        "cats a b c " + "very " * 30,
    ],
)
def test_an_answer_without_content_is_wrong_and_worth_nothing(text: str) -> None:
    verdict = grade(text, [LOWER], CATS)
    assert (verdict.grade, verdict.score) == ("wrong", 0.0)


def test_members_must_belong_and_differ() -> None:
    content = {"members": ["red", "blue", "green"]}
    two = {"kind": "listed", "n": 2}
    assert grade("Red, Blue.", [two], content).grade == "right"
    for text in ("red, red", "red, table", "the color red, blue", "red and blue"):
        assert grade(text, [two], content).grade == "wrong", text


def test_a_task_without_constraints_is_the_graders_fault() -> None:
    with pytest.raises(GraderError):
        grade("text", [])


def test_ordinary_text_is_not_repetitive() -> None:
    text = "the cat sat on the mat and the dog lay by the door while the rain fell on the roof of the old house"
    assert not repetitive(text.split())
