from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from made_up import NO_SANDBOX, written

pytest.importorskip("reasoning_gym", reason="reasoning-gym is not installed: pip install 'surefoot[reasoning]'")

from surefoot.config import DomainConfig
from surefoot.domains import TaskPool, available, build_domain
from surefoot.domains.reasoning_jail import plain_arithmetic
from surefoot.errors import ConfigError, GraderError
from surefoot.types import Task, dump

HASH_SENSITIVE = ("isomorphic_strings", "ransom_note", "polynomial_multiplication")


@cache
def plain_domain(name: str):
    return domain(name)


def domain(name: str, **fields):
    return build_domain(DomainConfig(name=name, source=f"reasoning_gym:{name}", **fields))


def tasks(name: str, count: int = 6, **fields) -> list[Task]:
    source = domain(name, **fields).source
    return [source.task("train", i) for i in range(count)]


def test_tasks_are_the_same_in_another_process_with_another_hash_seed():
    names = (*HASH_SENSITIVE, "pool_matrix")
    here = {name: [dump(t) for t in tasks(name)] for name in names}
    script = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); from test_reasoning import *;"
        "print(json.dumps({n: [dump(t) for t in tasks(n)] for n in sys.argv[2:]}))"
    )
    env = {**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": os.pathsep.join(sys.path)}
    folder = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", script, folder, *names], env=env, capture_output=True, text=True, check=True
    )
    there = json.loads(done.stdout)
    assert json.loads(json.dumps(here)) == there


def test_a_task_does_not_depend_on_what_was_made_before_it():
    forwards = tasks("gcd", 40)
    source = domain("gcd").source
    assert [source.task("train", i) for i in reversed(range(40))] == forwards[::-1]


def test_train_and_heldout_are_disjoint_and_not_shifted_copies_of_each_other():
    built = domain("gcd")
    pool = TaskPool(built, heldout=50)
    drawn, cursor = set(), 0
    for _ in range(300):
        task, cursor = pool.train(cursor)
        drawn.add(task.prompt_hash)
    assert len(drawn) > 290
    assert not drawn & pool.hashes
    direct = {built.source.task("train", i).prompt_hash for i in range(300)}
    assert len(direct & pool.hashes) < 5


def test_options_reach_the_generator():
    easy = tasks("gcd", options={"min_numbers": 2, "max_numbers": 2, "max_value": 9})
    assert all(int(n) <= 9 for t in easy for n in re.findall(r"\d+", t.messages[0]["content"]))


@pytest.mark.parametrize(
    ("source", "options", "says"),
    [
        ("gdc", {}, "did you mean 'gcd'"),
        ("gcd", {"max_number": 3}, "did you mean 'max_numbers'"),
        ("gcd", {"max_numbers": -3}, "max_numbers must be"),
        ("codeio", {}, "not offered"),
        ("composite", {}, "not offered"),
    ],
)
def test_a_wrong_name_or_option_is_explained(source, options, says):
    with pytest.raises(ConfigError, match=says) as raised:
        build_domain(DomainConfig(name="mine", source=f"reasoning_gym:{source}", options=options))
    assert "domains.mine" in str(raised.value)


def test_every_generator_is_listed():
    listed = [name for name, _ in available() if name.startswith("reasoning_gym:")]
    assert len(listed) == 104
    assert "reasoning_gym:codeio" not in listed


def test_the_chance_level_is_measured():
    assert domain("syllogism").chance >= 0.5
    assert domain("countdown").chance == 0.0


def test_equality_needs_no_jail():
    built = domain("countdown")
    task = built.source.task("train", 0)
    assert built.grader.grade(task, written(task, f"  {task.checks['answer']}\n"), NO_SANDBOX).grade == "right"
    with pytest.raises(AssertionError, match="needs no jail"):
        built.grader.grade(task, written(task, "1 + 1"), NO_SANDBOX)


def test_a_scorer_that_is_plain_equality_never_needs_a_jail():
    built = domain("maze")
    task = built.source.task("train", 0)
    assert task.checks["plain"]
    for text in ("0", "xyzzy", "__import__('os').abort()"):
        assert built.grader.grade(task, written(task, text), NO_SANDBOX).grade == "wrong"


def grade(name: str, text: str, sandbox, index: int = 0):
    built = plain_domain(name)
    task = built.source.task("train", index)
    return built.grader.grade(task, written(task, text.replace("REFERENCE", str(task.checks.get("answer")))), sandbox)


def test_the_scorer_accepts_what_is_right_and_written_otherwise(sandbox):
    assert grade("countdown", "(REFERENCE) + 0 * 0", sandbox).grade == "wrong"  # it uses numbers that are not given
    assert grade("countdown", "(REFERENCE)", sandbox).grade == "right"
    assert grade("knights_knaves", "well, REFERENCE", sandbox).grade in ("right", "wrong")
    assert grade("simple_integration", "REFERENCE + 0", sandbox).grade == "right"


@pytest.mark.parametrize("name", ["coin_flip", "game_of_life_halting"])
def test_scorers_that_pay_for_anything_are_not_asked(name):
    built = plain_domain(name)
    for index in range(5):
        task = built.source.task("train", index)
        assert built.grader.grade(task, written(task, task.metadata["answer"]), NO_SANDBOX).grade == "right"
        for text in ("xyzzy", "0", "I don't know."):
            assert built.grader.grade(task, written(task, text), NO_SANDBOX).grade == "wrong"


def test_partial_scores_are_wrong(sandbox):
    verdict = grade("countdown", "1", sandbox)  # the scorer pays 0.05 for trying
    assert (verdict.grade, verdict.score) == ("wrong", 0.0)


@pytest.mark.parametrize("name", ["n_queens", "string_insertion", "spiral_matrix", "countdown", "puzzle24"])
def test_text_of_the_model_is_never_executed(name, sandbox, tmp_path):
    target = tmp_path / "owned"
    for text in (
        f"open({str(target)!r}, 'w')",
        f"__import__('os').system('touch {target}')",
        "(lambda: exec('raise SystemExit(0)'))()",
        "__import__('sys').modules['surefoot.domains.reasoning_jail'].__dict__.update(x=1)",
    ):
        assert grade(name, text, sandbox).grade == "wrong"
    assert not target.exists()


def test_an_answer_that_hangs_the_scorer_is_wrong_and_noted(sandbox):
    verdict = grade("countdown", "((9**999)**999)**999", sandbox)
    assert verdict.grade == "wrong"
    assert [f.kind for f in verdict.findings] == ["breaks_grader"]


def test_an_answer_on_which_the_scorer_raises_is_wrong(sandbox):
    verdict = grade("prime_factorization", "no idea", sandbox)
    assert verdict.grade == "wrong"
    assert "ValueError" in verdict.checks[0].evidence


def test_a_scorer_that_fails_on_the_reference_too_is_at_fault(sandbox):
    built = domain("prime_factorization")
    task = built.source.task("train", 0)
    broken = Task(task.id, task.domain, task.messages, {**task.checks, "entry": None, "options": {"min_value": -1}})
    with pytest.raises(GraderError):
        built.grader.grade(broken, written(broken, "no idea"), sandbox)


def test_a_generator_without_a_reference_answer_is_scored_all_the_same(sandbox):
    built = domain("propositional_logic")
    assert "answer" not in built.source.task("train", 0).metadata
    assert grade("propositional_logic", "xyzzy", sandbox).grade == "wrong"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("(3 + 4) * 2 / 7 - 1", True),
        ("X**8/2 - 2*sin(X) + C", True),
        ("2*x^3", True),
        ("x.__class__", False),
        ("print(1)", False),
        ("[c for c in ()]", False),
        ("9**9**9", False),
        ("2**100000", False),
        ("'a' * 3", False),
        ("(" * 500, False),
        ("1 +", False),
    ],
)
def test_plain_arithmetic(text, plain):
    assert plain_arithmetic(text) is plain
