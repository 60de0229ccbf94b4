"""One answer or none: every mode of extraction."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.errors import ConfigError
from surefoot.rewards.extract import MODES, extract

FUNCTION = "def double(n):\n    return 2 * n"
PIECES = st.sampled_from(
    ["<answer>", "</answer>", "\\boxed{", "{", "}", "\\", "```", "```python\n", "\n", "def f(x):", "    return x", "12",
     "-", "3.5", "1,000", "/", "import os", '"""', "The answer", " "]
)  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(PIECES, max_size=30).map("".join))


@given(text=TEXTS, how=st.sampled_from(MODES))
@settings(max_examples=600, deadline=None)
def test_never_raises_and_never_gives_blank_text(text: str, how: str) -> None:
    answer = extract(text, how)
    assert answer is None or answer.strip()


@pytest.mark.parametrize("how", MODES)
def test_long_hostile_text_is_linear(how: str) -> None:
    for text in (
        "\\boxed{" * 20000,
        "1," * 50000,
        "<answer>" * 20000,
        "def f(" * 20000,
        "\\boxed{1}" * 20000,
        "a" * 200000,
        "1" * 200000,
    ):
        extract(text, how)
        extract("if " + text, how)
        extract("def f():\nx[" + text, how)


def test_unknown_mode_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="last_number"):
        extract("x", "last_word")


def test_lines() -> None:
    assert extract("\n  one \ntwo\n\n", "first_line") == "one"
    assert extract("\n  one \ntwo\n\n", "last_line") == "two"
    assert extract("  \n ", "whole") is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("The answer is 42.", "42"), ("#### 1,234", "1,234"), ("costs $1,234.50.", "1,234.50"), ("7 - 9 = -2", "-2"),
        ("it is 5-3", "3"), ("1,2,3", "3"), ("a half is 1/2", "1/2"), ("x2 is none", None),
        ("about 1e5", "1e5"), ("no number", None), ("−4", "-4"), ("50%", "50"), ("0.5 then .25", ".25"), ("5kg", "5"),
    ],
)  # fmt: skip
def test_last_number(text: str, number: str | None) -> None:
    assert extract(text, "last_number") == number


def test_tag_accepts_exactly_one() -> None:
    assert extract("so <answer> 7 </answer>.", "tag") == "7"
    assert extract("<answer>7</answer> or <answer>8</answer>", "tag") is None
    assert extract("<answer>7</answer> <answer>7</answer>", "tag") is None
    assert extract("<answer><answer>7</answer>", "tag") is None
    assert extract("</answer>7<answer>", "tag") is None
    assert extract("<answer>7", "tag") is None
    assert extract("<answer> </answer>", "tag") is None


def test_several_boxes_that_agree_are_one_answer() -> None:
    assert extract(r"so \boxed{4}, that is \boxed{ 4 }", "boxed") == "4"
    assert extract(r"\boxed{\boxed{4}}", "boxed") == "4"
    assert extract(r"\boxed{4} \boxed{4} \boxed{5}", "boxed") is None
    assert extract(r"\boxed{4} \boxed{}", "boxed") is None
    assert extract(r"\boxed{4 \boxed{5}}", "boxed") is None
    assert extract(r"\boxed{4} \boxed{4", "boxed") is None
    assert extract("\\boxed{" * 20_000 + "4" + "}" * 20_000, "boxed") is None


def test_boxed_accepts_exactly_one_that_is_balanced() -> None:
    assert extract(r"so \boxed{\frac{1}{2}} it is", "boxed") == r"\frac{1}{2}"
    assert extract(r"\boxed{\{1, 2\}}", "boxed") == r"\{1, 2\}"
    assert extract(r"\boxed{1} \boxed{2}", "boxed") is None
    assert extract(r"\boxed{1", "boxed") is None


@pytest.mark.parametrize(
    "text",
    [
        FUNCTION,
        f"```python\n{FUNCTION}\n```",
        f"Sure! Here it is:\n\n```python\n{FUNCTION}\n```\nThis function doubles.",
        f"```\n{FUNCTION}\n",
        f"Here is the function:\n{FUNCTION}\n\nThis function takes a number and returns its double.",
        f"{FUNCTION}\nExample:\nprint(double(2))",
        f"{FUNCTION}\nif you want to double a number then call it",
        f"```python\n{FUNCTION}\n```\nUse it:\n```python\nprint(double(2))\n```",
        f"```text\n4\n```\n~~~py\n{FUNCTION}\n~~~",
        "1. The code:\n   def double(n):\n       return 2 * n\nIt doubles.",
    ],
)
def test_code(text: str) -> None:
    assert extract(text, "code") == FUNCTION


def test_code_keeps_helpers_constants_and_strings_at_the_margin() -> None:
    source = (
        "import math\nimport os.path as p, sys\n\nLIMIT: int = 3\nTABLE = {\n    1: 2,\n}\n\n@cache\ndef f(x):\n"
        '    """One\nof two\n    """\n    return x'
    )
    kept = extract(source + "\n\nf(1)", "code")
    assert kept == source
    ast.parse(kept)


@pytest.mark.parametrize(
    "line",
    [
        "from operator import itemgetter ",
        "import os, sys",
        "if n in seen and n not in done:\n    pass",
        "for x in y:\n    pass",
    ],
)
def test_code_that_reads_like_prose_is_kept(line: str) -> None:
    assert extract(f"{FUNCTION}\n{line}\n{FUNCTION}", "code") == f"{FUNCTION}\n{line}\n{FUNCTION}"


@pytest.mark.parametrize(
    "line", ["for example you can call it like this:", "Note: it doubles.", "print the result of it"]
)
def test_prose_that_reads_like_code_ends_it(line: str) -> None:
    assert extract(f"{FUNCTION}\n{line}\nx = double(1)", "code") == FUNCTION


def test_prose_alone_is_no_code() -> None:
    assert extract("I import the list from the class and define it.", "code") is None
    assert extract("import is a word, from the list we take", "code") is None
    assert extract("```\n\n```", "code") is None
