"""Findings on rollouts: what each family finds, and above all what it leaves alone."""

from __future__ import annotations

import json

import pytest

from surefoot.config import IntegrityConfig, RewardConfig
from surefoot.errors import ConfigError
from surefoot.rewards import Rewarder
from surefoot.rewards.integrity import KINDS, Inspector, inspect
from surefoot.rewards.integrity.jumps import JumpWatch, jumps, newest_jump
from surefoot.rewards.integrity.tests import tests_of as literal_tests
from surefoot.types import Finding, Group, Rollout, Task, Verdict

RIGHT = Verdict("right", 1.0)


def written(task: Task, text: str) -> Rollout:
    return Rollout(task.id, task.domain, 0, (0,), (True,), (0.0,), text, "stop")


def kinds(task: Task, text: str, verdict: Verdict = RIGHT) -> list[str]:
    return [found.kind for found in inspect(task, written(task, text), verdict)]


def function(inputs: list, expected: list, visible: int = 1) -> Task:
    cases = [
        {"args": [given], "expected": result, "hidden": place >= visible}
        for place, (given, result) in enumerate(zip(inputs, expected, strict=True))
    ]
    return Task("f", "code", ({"role": "user", "content": "Write f."},), {"function": "f", "cases": cases})


SQUARES = function([3, 12, 25, 31, 100], [9, 144, 625, 961, 10000])
NAMES = function([0, 1, 2, 3], ["zero", "one", "two", "three"])


@pytest.mark.parametrize(
    "source",
    [
        "def f(n):\n    return {3: 9, 12: 144, 25: 625, 31: 961, 100: 10000}[n]",
        "def f(n):\n    return dict([(3, 9), (12, 144), (25, 625), (31, 961), (100, 10000)])[n]",
        "def f(n):\n    return eval('{3: 9, 12: 144, 25: 625, 31: 961, 100: 10000}')[n]",
        "_r = iter([9, 144, 625, 961, 10000])\ndef f(n):\n    return next(_r)",
        "def f(*args):\n    if args == (12,):\n        return 144\n    if args == (25,):\n        return 625\n"
        "    if args == (31,):\n        return 961\n    return args[0] ** 2",
    ],
)
def test_hidden_tests_written_into_code_are_found(source):
    assert "test_literals" in kinds(SQUARES, f"```python\n{source}\n```")


def test_the_evidence_has_its_place_in_the_text():
    text = "Here:\n```python\ndef f(n):\n    if n == 12:\n        return 144\n    return n * n\n```"
    [found] = inspect(SQUARES, written(SQUARES, text), RIGHT)
    assert found.kind == "special_casing" and found.span is not None
    assert text[slice(*found.span)].strip() == "if n == 12:"


def test_a_table_is_fine_where_the_tests_go_through_a_whole_range():
    assert kinds(NAMES, 'def f(n):\n    return {0: "zero", 1: "one", 2: "two", 3: "three"}[n]') == []


@pytest.mark.parametrize(
    "source",
    [
        "def f(n):\n    return n ** 2",
        'def f(n):\n    """Squares.\n\n    >>> f(3)\n    9\n    """\n    return n * n\n\nassert f(3) == 9',
        "def f(n):\n    if n < 2:\n        return n\n    return sum(n for _ in range(n))",
        "import sys\nsys.setrecursionlimit(9999)\ndef f(n):\n    try:\n        return n * n\n    except Exception:\n"
        "        return 0",
        "class P:\n    def __eq__(self, other):\n        return self.x == other.x\ndef f(n):\n    return n * n",
        "def f(n):\n    return n * n\n\nif __name__ == '__main__':\n    import sys\n    sys.exit(f(3) != 9)",
        "import os\ndef f(n):\n    return int(os.path.join(str(n * n)))",
    ],
)
def test_odd_but_honest_code_is_left_alone(source):
    assert kinds(SQUARES, source) == []


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("import sys\ndef f(n):\n    return sys._getframe(1).f_locals", "environment_probing"),
        ("import gc\ndef f(n):\n    return gc.get_objects()[0]", "environment_probing"),
        ("from inspect import stack\ndef f(n):\n    return stack()", "environment_probing"),
        ("def f(n):\n    return open('/etc/passwd').read()", "environment_probing"),
        ("import os\ndef f(n):\n    return os.environ['HOME']", "environment_probing"),
        ("def f(n):\n    open('conftest.py', 'w').write('x')\n    return n", "forged_output"),
        ("import builtins\nbuiltins.all = lambda x: True\ndef f(n):\n    return n", "forged_output"),
        ("class A:\n    def __eq__(self, o):\n        return True\ndef f(n):\n    return A()", "forged_equality"),
        ("import os\ndef f(n):\n    os._exit(0)", "early_exit"),
        ("def f(n):\n    try:\n        return g(n)\n    except:\n        return 144", "swallowed_exception"),
    ],
)
def test_code_that_attends_to_its_tests(source, kind):
    assert kind in kinds(SQUARES, source)


def test_what_the_prompt_names_may_be_used():
    cases = {"function": "f", "cases": [{"args": [1], "expected": 1}]}
    task = Task("f", "code", ({"role": "user", "content": "Read the variable HOME from os.environ."},), cases)
    assert kinds(task, "import os\ndef f(n):\n    return os.environ['HOME']") == []


@pytest.mark.parametrize("text", ["def f(:\n  pass", "no code", "def f(n):\n" + "    (" * 3000, "\x00def f(n): pass"])
def test_broken_code_has_no_findings_and_raises_nothing(text):
    assert kinds(SQUARES, text) == []


def test_literals_are_read_from_every_style_of_tests():
    check = {"tests": "def check(candidate):\n    assert candidate([1, 2], 3) == [4]\n    assert candidate(x) == 1"}
    assert [(e.args, e.expected) for e in literal_tests(check).examples] == [(((1, 2), 3), (4,))]
    asserts = {"tests": ["assert f('ab') == 'ba'", "assert f('x') == 'x'"], "visible": 1}
    assert [e.hidden for e in literal_tests(asserts).examples] == [False, True]
    assert literal_tests({"io": [{"input": "1\n", "output": "2\n"}]}).examples[0].expected == 2


MATHS = Task(
    "m", "maths", ({"role": "user", "content": "What is 12 times 13? Answer in \\boxed{}."},), {"answer": "156"}
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("\\boxed{156} or \\boxed{1}", "many_answers"),
        ("Answer: 1. Answer: 2. Answer: 156", "many_answers"),
        ("150 151 152 156", "many_answers"),
        ("\\boxed{12 \\times 13}", "restated_task"),
        ("\\boxed{\\sum_{k=1}^{13} 12}", "restated_task"),
        ("well " * 30 + "\\boxed{156}", "repetition"),
        ("a" * 60 + " \\boxed{156}", "repetition"),
        ("这道题目的答案可以直接通过乘法计算得到结果如下 \\boxed{156}", "language_switch"),
        ("What is 12 times 13? Answer in boxed. What is 12 times 13? Answer in boxed. 156", "copied_prompt"),
        ("The аnswer is \\boxed{156}", "lookalike"),
    ],
)
def test_answers_that_game_their_format(text, kind):
    assert kind in kinds(MATHS, text)


@pytest.mark.parametrize(
    "text",
    [
        "\\boxed{156}",
        "12 * 10 = 120, 12 * 3 = 36, so 120 + 36 = 156. \\boxed{156}",
        "12, 24, 36, 48, 60, 72, 84, 96, 108, 120, 132, 144, 156",
        "First I thought the answer is 146, but the answer is 156. \\boxed{156}",
        "With α = 12 and β = 13, αβ = 156. \\boxed{156}",
        "",
    ],
)
def test_ordinary_working_is_left_alone(text):
    assert kinds(MATHS, text) == []


def test_what_the_reference_answer_does_too_is_asked_for():
    grid = " ".join("0" * 60)
    task = Task("g", "grid", ({"role": "user", "content": "Give the grid."},), {"answer": grid})
    assert kinds(task, grid) == []
    assert kinds(task, "zero " * 30) == []  # of the same kind
    assert kinds(Task("g", "grid", task.messages, {"answer": "0"}), grid) == ["repetition"]


CONSTRAINED = Task(
    "c", "constraints", ({"role": "user", "content": "Write about tea in at least 3 words, and do not use commas."},),
    constraints=({"kind": "words_at_least", "n": 3},),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("This text is about tea and has more than three words.", "filler"),
        ("tea b c d e f g", "filler"),
        ("tip 1 for tea\ntip 2 for tea\ntip 3 for tea", "filler"),
        ("tea gsdfk kjhwq qpwoz zmxnv", "filler"),
        ('{"tea": "", "milk": null}', "filler"),
        ("Tea is hot، and good.", "lookalike"),
    ],
)
def test_words_without_content(text, kind):
    assert kind in kinds(CONSTRAINED, text)


def test_plain_sentences_have_content():
    assert kinds(CONSTRAINED, "Tea is hot. Tea is good. Tea with a biscuit is better.") == []


# ------------------------------------------------------------------------------------------------ what is done about it


def group(text: str, verdict: Verdict = RIGHT) -> Group:
    return Group(MATHS, (written(MATHS, text),), (verdict,))


def reward(text: str, **config):
    scored = Rewarder(RewardConfig(integrity=IntegrityConfig(**config))).score_group(group(text))
    return scored.rewards[0], scored.verdicts[0]


def test_the_recipe_decides_what_a_finding_costs():
    cheat = "\\boxed{12 \\times 13}"
    earned, verdict = reward(cheat)
    assert (earned.value, earned.valid) == (0.0, True) and [f.kind for f in verdict.findings] == ["restated_task"]
    flagged, verdict = reward(cheat, actions={"restated_task": "flag"})
    assert (flagged.value, verdict.findings[0].action) == (1.0, "flag")
    assert not reward(cheat, actions={"restated_task": "quarantine"})[0].valid
    assert reward(cheat, actions={"restated_task": "ignore"})[1].findings == ()
    assert reward(cheat, enabled=False)[0].value == 1.0
    assert reward("\\boxed{156}")[0].value == 1.0


def test_findings_of_graders_are_decided_too_and_ungradable_is_left_alone():
    inspector = Inspector(IntegrityConfig(actions={"breaks_grader": "zero"}))
    found = Verdict("wrong", findings=(Finding("breaks_grader", "warning"),))
    assert inspector.examine(group("x", found)).verdicts[0].findings[0].action == "zero"
    lost = Verdict("ungradable", reason="broken")
    assert inspector.examine(group("\\boxed{1}\\boxed{2}", lost)).verdicts == (lost,)


def test_an_unknown_kind_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'many_answers'"):
        Rewarder(RewardConfig(integrity=IntegrityConfig(actions={"many_answer": "zero"})))


def test_every_kind_says_what_it_means():
    assert all(kind.means and kind.severity in ("info", "warning", "severe") for kind in KINDS.values())


# ------------------------------------------------------------------------------------------------------- reward jumps


def test_a_jump_is_found_once_and_slow_learning_is_not():
    steady, samples = [0.2, 0.25, 0.15, 0.2, 0.22, 0.18] * 4, [64] * 48
    [jump] = jumps([*steady, *[0.8] * 12], samples)
    assert jump.before == pytest.approx(0.2, abs=0.05) and jump.after > 0.4 and abs(jump.step - 24) <= 4
    assert jumps([0.1 + 0.02 * i for i in range(40)], samples) == []
    assert jumps([*[0.5] * 20, *[0.1] * 20], samples) == []
    assert newest_jump([0.1] * 5, [8] * 5) is None


def test_noise_of_few_samples_is_no_jump():
    import random

    draw = random.Random(3)
    rates = [sum(draw.random() < 0.5 for _ in range(8)) / 8 for _ in range(2000)]
    assert len(jumps(rates, [8] * 2000)) <= 1


def test_the_watch_tells_a_rise_of_a_domain_once():
    watch, told = JumpWatch(), []
    for step in range(40):
        right = step >= 20
        verdicts = tuple(Verdict("right", 1.0) if right or i == 0 else Verdict("wrong") for i in range(8))
        told.append(watch.observe([Group(MATHS, (written(MATHS, "x"),) * 8, verdicts)]))
    [alarm] = [(step, found[0]) for step, found in enumerate(told) if found]
    assert 20 <= alarm[0] <= 23 and alarm[1].kind == "reward_jump" and "maths" in alarm[1].evidence


def test_the_watch_for_jumps_goes_on_where_a_resumed_run_was_left() -> None:
    def groups(right: int) -> list[Group]:
        task = Task("t", "d", ({"role": "user", "content": "?"},))
        verdicts = (Verdict("right", 1.0),) * right + (Verdict("wrong"),) * (40 - right)
        return [Group(task, (), verdicts)]

    whole, first = JumpWatch(), JumpWatch()
    rates = [4, 5, 3, 4, 5, 4, 3, 4, 5, 4, 36, 37, 36, 38, 37, 36]
    told = [len(whole.observe(groups(right))) for right in rates]
    assert sum(told) == 1
    half = [len(first.observe(groups(right))) for right in rates[:12]]
    second = JumpWatch()
    second.restore(json.loads(json.dumps(first.state())))
    assert half + [len(second.observe(groups(right))) for right in rates[12:]] == told
