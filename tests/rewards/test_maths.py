from __future__ import annotations

import pytest

from surefoot.rewards.maths import MathGrader
from surefoot.types import Rollout, Task, Verdict


def judge(text: str, answer: str, sandbox) -> Verdict:
    rollout = Rollout("t", "d", 0, (1,), (True,), (0.0,), text, "stop")
    return MathGrader().grade(Task("t", "d", (), {"answer": answer}), rollout, sandbox)


@pytest.mark.parametrize(
    ("text", "answer", "grade"),
    [
        (r"so \boxed{\dfrac{1}{2}}", r"\frac12", "right"),
        (r"\boxed{0.5}", r"\frac{1}{2}", "right"),
        (r"\boxed{x+1}", "1+x", "right"),
        (r"\boxed{\left(3,\frac{\pi}{2}\right)}", r"(3, \frac{\pi}{2})", "right"),
        (r"\boxed{2\sqrt{2}}", r"\sqrt{8}", "right"),
        (r"\boxed{\text{Evelyn}}", "Evelyn", "right"),
        (r"\boxed{42}", "43", "wrong"),
        (r"\boxed{x+2}", "1+x", "wrong"),
        (r"\boxed{\text{even}}", r"\text{odd}", "wrong"),
        (r"\boxed{}", "0", "wrong"),
        ("42", "42", "wrong"),
        (r"\boxed{41} or \boxed{42}", "42", "wrong"),
        (r"\boxed{41, 42, 43}", "42", "wrong"),
        (r"\boxed{" + "1+" * 3000 + "1}", "3001", "wrong"),
        (r"\boxed{\frac{}", "1", "wrong"),
    ],
)
def test_maths(text, answer, grade, sandbox):
    assert judge(text, answer, sandbox).grade == grade


@pytest.mark.parametrize("bomb", [r"(((9^{999})^{999})^{999})^{999}", r"{" * 200 + "1" + "}" * 200, r"\int" * 50])
def test_an_expression_made_to_hang_is_wrong(bomb, sandbox):
    assert judge(rf"\boxed{{{bomb}}}", r"\frac{x}{2}", sandbox).grade == "wrong"
