"""Generated tests, in the real sandbox: what they notice, and that they hold nothing against right solutions."""

from __future__ import annotations

import ast
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.rewards.adversarial import Settings, strengthen
from surefoot.rewards.adversarial.inputs import candidates, edges, key, mutate
from surefoot.rewards.adversarial.mutants import mutants
from surefoot.rewards.adversarial.oracle import Program, ask
from surefoot.rewards.adversarial.seeds import one_right_answer, seed_inputs
from surefoot.rewards.adversarial.shapes import admits, learn, relations
from surefoot.rewards.code import CodeGrader
from surefoot.sandbox import Sandbox
from surefoot.types import Rollout, Task, Verdict

SMALL = Settings(mutated=60, drawn=30, mutants=10)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


LARGEST = """
def largest(numbers):
    best = numbers[0]
    for n in numbers:
        if n > best:
            best = n
    return best"""
CHECKS = {
    "tests": "def check(candidate):\n    assert candidate([1, 2, 3]) == 3\n    assert candidate([2, 5]) == 5\n"
    "    assert candidate([4, 7, 9, 12]) == 12\n",
    "entry": "largest",
}


def grade(code: str, checks: dict, sandbox: Sandbox) -> Verdict:
    return CodeGrader().grade(
        Task("t", "d", (), checks), Rollout("t", "d", 0, (), (), (), f"```python\n{code}\n```", "stop"), sandbox
    )


def test_a_wrong_solution_that_the_tests_accept_is_refused_afterwards(sandbox: Sandbox) -> None:
    last = "def largest(numbers):\n    return numbers[-1]"
    assert grade(last, CHECKS, sandbox).grade == "right"
    unordered = {**CHECKS, "tests": CHECKS["tests"] + "    assert candidate([9, 3, 20]) == 20\n"}
    assert grade(last, unordered, sandbox).grade == "right"
    checks = strengthen(unordered, LARGEST, sandbox, settings=SMALL).checks(unordered)
    assert grade(last, checks, sandbox).grade == "wrong"
    right = grade(LARGEST, checks, sandbox)
    assert (right.grade, right.dimensions) == ("right", {"robustness": 1.0})


def test_what_the_examples_have_in_common_is_taken_for_a_precondition(sandbox: Sandbox) -> None:
    made = strengthen(CHECKS, LARGEST, sandbox, settings=SMALL)
    assert made.hidden and made.adversarial and made.refused  # the reference raises for []
    for test in made.hidden:
        (numbers,) = test.args
        assert numbers == sorted(numbers) and all(n > 0 for n in numbers)
    careless = "def largest(numbers):\n    return max([0, *numbers])"  # right for what the examples promise only
    verdict = grade(careless, made.checks(CHECKS), sandbox)
    assert verdict.grade == "right" and 0 < verdict.dimensions["robustness"] < 1


def test_a_given_precondition_takes_the_place_of_the_inferred_one(sandbox: Sandbox) -> None:
    says = "def precondition(numbers):\n    return len(numbers) > 0 and all(abs(n) < 1000 for n in numbers)"
    made = strengthen(CHECKS, LARGEST, sandbox, precondition=says, settings=SMALL)
    assert made.hidden and not made.adversarial
    assert all(abs(n) < 1000 for test in made.hidden for n in test.args[0])
    assert any(n < 0 for test in made.hidden for n in test.args[0])


def test_the_same_task_gives_the_same_tests(sandbox: Sandbox) -> None:
    first, second = (strengthen(CHECKS, LARGEST, sandbox, settings=SMALL) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("code", "checks", "reason"),
    [
        ("def f(x):\n    return 1 / 0", {"entry": "f", "tests": ["assert f(1) == 2"]}, "answers none"),
        ("def f(x):\n    return x", {"entry": "f", "tests": ["assert 1 == 2"]}, "no call"),
        ("def f(x):\n    return x", {"entry": "f", "tests": ["assert abs(g(f(1))) < 1"]}, "more than one answer"),
        (
            "import random\ndef f(x):\n    return random.random()",
            {"entry": "f", "tests": ["assert f(1) == 2"]},
            "answers none",
        ),
    ],
)
def test_a_reference_that_is_no_oracle_is_skipped(code: str, checks: dict, reason: str, sandbox: Sandbox) -> None:
    made = strengthen(checks, code, sandbox, settings=SMALL)
    assert reason in made.skipped and not made.hidden and made.checks(checks) == checks


def test_inputs_that_hang_or_raise_are_left_out(sandbox: Sandbox) -> None:
    code = "def f(n):\n    while n == 3: pass\n    return [1, 2, 3][n] if n < 5 else object()"
    kept = ask(Program(code, "f"), [(0,), (3,), (1,), (4,), (7,), (2,)], sandbox)
    assert [(test.args, test.expected) for test in kept] == [((0,), 1), ((1,), 2), ((2,), 3)]


def test_calls_of_tests_are_recorded_whatever_their_form(sandbox: Sandbox) -> None:
    checks = {"tests": "def check(candidate):\n    for i in range(3):\n        assert candidate([i]) == 7\n"}
    code = "def f(x):\n    x.append(1)\n    return 7"
    assert seed_inputs(checks, code, "f", sandbox, Program(code, "f").limits) == [([0],), ([1],), ([2],)]


def test_only_tests_of_a_value_make_the_reference_an_oracle() -> None:
    head = "def check(candidate):\n    "
    for exact in ("candidate(1) == 2", "candidate(1)", "not candidate(1)", "abs(candidate(1) - 2.0) < 1e-6"):
        assert one_right_answer({"tests": f"{head}assert {exact}"})
    for loose in (
        "assert abs(poly(candidate(1))) < 1",
        "x = candidate(1)\n    assert x * x == 4",
        "assert candidate(1) > 0",
    ):
        assert not one_right_answer({"tests": head + loose})


def test_mutants_are_programs_with_one_change() -> None:
    found = mutants(LARGEST, 50, Random(0))
    assert len(found) == len(set(found)) >= 5
    assert all(ast.unparse(ast.parse(code)) != ast.unparse(ast.parse(LARGEST)) for code in found)
    assert found == mutants(LARGEST, 50, Random(0)) and mutants("def f(:", 5, Random(0)) == []


@given(st.lists(plain, max_size=3).map(tuple), st.integers(0, 2**32))
def test_making_inputs_never_fails_and_never_repeats(args, seed):
    made = candidates([args], Random(seed), mutated=10, drawn=0)
    names = [key(one) for one in (args, *made)]
    assert len(names) == len(set(names))
    for value in args:
        assert all(edge is not value for edge in edges(value) if isinstance(edge, (list, dict)))
        assert isinstance(mutate(value, Random(seed), [1, "a"]), type(value) if value is not None else object)


@given(st.lists(plain, min_size=1, max_size=5))
def test_examples_fit_the_shapes_learnt_from_them(values):
    finite = [v for v in values if not (isinstance(v, float) and not abs(v) < 1e300)]
    shapes = learn(finite)
    for value in finite:
        if "nan" not in repr(value) and "inf" not in repr(value):
            assert admits(shapes, value)


def test_shapes_tell_ordinary_inputs_from_strange_ones() -> None:
    shapes = learn(["(())", "()()", "((()))"])
    assert admits(shapes, "()(())") and not any(admits(shapes, s) for s in (")(", "", "a", "( )", 3))
    assert relations([(1, [4, 5]), (0, [7]), (2, [8, 9, 9])])[0] == (0, 1, "within the size of")
