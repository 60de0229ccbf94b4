"""Readability can be lost and not bought: no padding raises it."""

from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import strategies as st

from surefoot.rewards.code import CodeGrader
from surefoot.rewards.readability import readability, statements, unreachable
from surefoot.sandbox import Sandbox
from surefoot.types import Rollout, Task

GOOD = "def sum_even(numbers):\n    return sum(n for n in numbers if n % 2 == 0)\n"
MESSY = "import os\ndef sum_even(numbers):\n    x = 1\n    return sum(n for n in numbers if n % 2 == 0)\n    return 3\n"
PADDING = (
    "# a comment\n",
    "\n\n",
    '"""A docstring."""\n',
    "import os\n",
    "x = 1\n",
    GOOD,
    "def helper():\n    return 1\n",
    "if False:\n    pass\n",
    "def f():\n    return 1\n    return 2\n",
)


@given(st.sampled_from([GOOD, MESSY]), st.lists(st.sampled_from(PADDING), max_size=8), st.booleans())
def test_no_padding_or_repeating_raises_it(code, padding, after):
    added = "".join(padding)
    assert readability(code + added if after else added + code, GOOD) <= readability(code, GOOD)


@given(st.text(max_size=100))
def test_any_text_has_a_bounded_measure(text):
    assert 0.0 <= readability(text) <= 1.0


def test_what_costs() -> None:
    assert readability(GOOD, GOOD) == 1.0
    assert readability(MESSY, GOOD) < 0.5
    tangled = "def f(x):\n" + "".join(f"    if x == {i}:\n        return {i}\n" for i in range(30))
    assert readability(tangled) == 0.0 and readability("def f(") == 0.0
    assert readability("def f(x):\n    return 1" + " + 1" * 40) < 1
    assert (statements(ast.parse(MESSY)), unreachable(ast.parse(MESSY))) == (5, 1)


def test_right_answers_get_the_dimension_from_the_jail(sandbox: Sandbox) -> None:
    cases = [{"args": [[1, 2]], "expected": 2}, {"args": [[4, 3]], "expected": 4}]
    task = Task("t", "d", (), {"function": "sum_even", "cases": cases}, metadata={"answer": GOOD})

    def dimensions(code: str) -> dict[str, float]:
        rollout = Rollout("t", "d", 0, (), (), (), f"```python\n{code}\n```", "stop")
        return dict(CodeGrader(readability=True).grade(task, rollout, sandbox).dimensions)

    assert dimensions(GOOD) == {"readability": 1.0}
    assert 0 < dimensions(MESSY)["readability"] < 0.5
    assert dimensions("def sum_even(numbers):\n    return 2") == {}
