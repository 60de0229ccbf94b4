from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.errors import GraderError
from surefoot.rewards.text import ChoiceGrader, ExactGrader, NumberGrader, chosen, normalised, number
from surefoot.rewards.verdicts import as_verdict
from surefoot.types import Rollout, Task, Verdict


def grade(grader, text: str, answer: Any, **checks) -> str:
    task = Task("t", "d", (), {"answer": answer, **checks})
    rollout = Rollout("t", "d", 0, (1,), (True,), (0.0,), text, "stop")
    return grader.grade(task, rollout, None).grade


@pytest.mark.parametrize(
    ("text", "answer", "grade_"),
    [
        ("Paris", "paris", "right"),
        ("  Paris. ", "Paris", "right"),
        ('"Paris"', "Paris", "right"),
        ("**new   york**", "New York", "right"),
        ("B", ["A", "B"], "right"),
        ("Paris or London", "Paris", "wrong"),
        ("Not Paris", "Paris", "wrong"),
        ("", "Paris", "wrong"),
        ("...", "Paris", "wrong"),
        ("...", "...", "right"),
        ("3.5", "35", "wrong"),
        ("7", 7, "right"),
    ],
)
def test_exact(text, answer, grade_):
    assert grade(ExactGrader(), text, answer) == grade_


@pytest.mark.parametrize(
    ("text", "grade_"),
    [
        ("B", "right"),
        ("(B)", "right"),
        ("b.", "right"),
        ("B)", "right"),
        ("B) a dog", "right"),
        ("(B) a dog", "right"),
        ("The answer is B", "right"),
        ("The correct answer is (B).", "right"),
        ("option b", "right"),
        ("a dog", "right"),
        ("A", "wrong"),
        ("A or B", "wrong"),
        ("(A) (B)", "wrong"),
        ("A, B, C", "wrong"),
        ("B) a cat", "wrong"),
        ("B C", "wrong"),
        ("Z", "wrong"),
        ("a cat a dog", "wrong"),
        ("", "wrong"),
    ],
)
def test_choice(text, grade_):
    assert grade(ChoiceGrader(), text, "B", choices=["a cat", "a dog", "a fish"]) == grade_
    assert grade(ChoiceGrader(), text, "a dog", choices={"A": "a cat", "B": "a dog", "C": "a fish"}) == grade_


def test_a_choice_that_is_not_among_the_options_is_the_tasks_fault():
    with pytest.raises(GraderError, match="none of the choices"):
        grade(ChoiceGrader(), "A", "nothing", choices=["a cat", "a dog"])


@pytest.mark.parametrize(
    ("text", "answer", "grade_"),
    [
        ("72", "72", "right"),
        ("The answer is 72.", "72", "right"),
        ("so 3 + 4 = 7", "7", "right"),
        ("1,234.50", "1234.5", "right"),
        ("$1,000", "1000", "right"),
        ("1/3", "0.33333333", "right"),
        ("-5", "5", "wrong"),
        ("−5", "-5", "right"),
        ("1e3", "1000", "right"),
        ("71.9", "72", "wrong"),
        ("nan", "72", "wrong"),
        ("inf", "72", "wrong"),
        ("9" * 5000, "72", "wrong"),
        ("1/0", "72", "wrong"),
        ("none", "72", "wrong"),
    ],
)
def test_number(text, answer, grade_):
    assert grade(NumberGrader(), text, answer) == grade_


def test_the_whole_text_must_be_one_number_where_nothing_is_extracted():
    whole = NumberGrader(extract="whole")
    assert grade(whole, "72", "72") == "right"
    assert grade(whole, "72 or 73", "72") == "wrong"
    assert grade(whole, "72, 73", "72") == "wrong"


def test_tolerance():
    assert grade(NumberGrader(), "3.14", "3.14159") == "wrong"
    assert grade(NumberGrader(), "3.14", "3.14159", tolerance=0.01) == "right"


@pytest.mark.parametrize("answer", [None, "", [], "seven"])
def test_a_task_without_a_number_to_compare_with_is_at_fault(answer):
    with pytest.raises(GraderError):
        grade(NumberGrader(), "7", answer)


def test_separators_group_three_digits():
    assert number("1,234") == 1234 and number("12,34") is None and number("3, 4") is None
    assert number("1 000 000") == 1_000_000


@given(st.text(max_size=60))
def test_text_graders_never_fail_on_what_a_model_writes(text):
    for grader, answer in ((ExactGrader(), "x"), (ChoiceGrader(), "B"), (NumberGrader("whole"), "7")):
        assert grade(grader, text, answer, choices=["a", "b"]) in ("right", "wrong")
    assert normalised(normalised(text)) == normalised(text)
    assert chosen(text, {"A": "a", "B": "b"}) in (None, "A", "B")


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=4))
def test_a_written_number_reads_back(value):
    assert number(f"{value:f}") == value
    assert number(f"{value:,f}") == Decimal(value)


@pytest.mark.parametrize(
    ("value", "grade_", "score"), [(True, "right", 1), (False, "wrong", 0), (1, "right", 1), (0.4, "wrong", 0.4)]
)
def test_what_a_function_may_return(value, grade_, score):
    verdict = as_verdict(value)
    assert (verdict.grade, verdict.score) == (grade_, score)


@pytest.mark.parametrize("value", [None, "yes", float("nan"), 1.2, -0.1, Verdict("right", 0.0), [1]])
def test_what_a_function_may_not_return(value):
    with pytest.raises(GraderError):
        as_verdict(value)
