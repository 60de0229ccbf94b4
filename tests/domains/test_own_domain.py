from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from made_up import NO_SANDBOX, written

from surefoot.config import DomainConfig
from surefoot.domains import TaskPool, build_domain
from surefoot.errors import ConfigError, DataError
from surefoot.rewards import GradingPool

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_domain.py"


@pytest.fixture
def own(tmp_path):
    def build(code: str, name: str = "mine", **fields):
        path = tmp_path / "own.py"
        path.write_text(textwrap.dedent(code))
        return build_domain(DomainConfig(name="own", source=f"{path}:{name}", **fields))

    return build


def verdict(domain, text: str, sandbox):
    task = domain.source.task("train", 0)
    with GradingPool([domain], sandbox) as graders:
        return graders.grade_all([written(task, text)], {task.id: task})[0]


def test_the_example_is_a_domain_in_at_most_20_lines(sandbox):
    assert len(EXAMPLE.read_text().splitlines()) <= 20
    domain = build_domain(DomainConfig(name="reverse", source=f"{EXAMPLE}:reverse", options={"letters": 6}))
    assert domain.max_new_tokens == 12 and domain.description == "Spell a made-up word backwards."
    task = domain.source.task("train", 5)
    assert len(task.checks["answer"]) == 6
    assert (task.id, task.domain) == ("reverse/train/5", "reverse")
    first = domain.source.task("train", 0)
    assert verdict(domain, f" {first.checks['answer'].upper()}.", sandbox).grade == "right"
    assert verdict(domain, "nope", sandbox).grade == "wrong"


def test_tasks_are_a_function_of_their_place():
    domain = build_domain(DomainConfig(name="r", source=f"{EXAMPLE}:reverse"))
    again = build_domain(DomainConfig(name="r", source=f"{EXAMPLE}:reverse"))
    forwards = [domain.source.task("train", i) for i in range(20)]
    assert [again.source.task("train", i) for i in reversed(range(20))] == forwards[::-1]
    assert not {t.prompt_hash for t in forwards} & {domain.source.task("heldout", i).prompt_hash for i in range(20)}


def test_without_a_grader_answers_are_compared_as_text(own):
    domain = own(
        """
        from surefoot import domain, task

        @domain
        def mine(rng):
            return task("Say hello.", answer="hello")
        """
    )
    task = domain.source.task("train", 0)
    assert domain.grader.grade(task, written(task, "Hello."), NO_SANDBOX).grade == "right"


LISTED = """
    from surefoot import task

    def mine(split):
        for n in range(10 if split == "train" else 3):
            yield task(f"{split} {n}", answer=n)

    def grade(task, rollout):
        return float(rollout.text) / 10
"""


def test_a_plain_pair_of_functions_is_a_finite_domain(own, sandbox):
    domain = own(LISTED)
    assert (domain.source.size("train"), domain.source.size("heldout")) == (10, 3)
    assert len(TaskPool(domain, 24).heldout) == 3
    assert verdict(domain, "10", sandbox).grade == "right"
    assert verdict(domain, "4", sandbox).score == 0.4


@pytest.mark.parametrize(
    ("text", "reason"),
    [("not a number", "ValueError"), ("nan", "[0, 1]"), ("30", "[0, 1]"), ("-1", "[0, 1]")],
)
def test_a_grader_at_fault_is_ungradable(own, sandbox, text, reason):
    found = verdict(own(LISTED), text, sandbox)
    assert found.grade == "ungradable"
    assert reason in found.reason and "own.py:grade" in found.reason


def test_a_grader_of_a_file_is_jailed_and_has_a_deadline(own, sandbox, tmp_path):
    domain = own(
        """
        from surefoot import domain, task

        @domain
        def mine(rng):
            return task("?", answer="x")

        @mine.grader
        def grade(task, rollout):
            return bool(eval(rollout.text))
        """
    )
    target = tmp_path / "owned"
    assert verdict(domain, "True", sandbox).grade == "right"
    assert verdict(domain, f"open({str(target)!r}, 'w')", sandbox).grade == "ungradable"
    assert not target.exists()
    object.__setattr__(domain.grader._jail, "seconds", 0.5)
    assert verdict(domain, "[0 for i in iter(int, 1)]", sandbox).grade == "ungradable"


def test_a_builder_or_a_domain_object_for_full_control(own):
    code = """
        from surefoot import task
        from surefoot.domains.define import MadeSource
        from surefoot.protocols import Domain
        from surefoot.rewards.text import ExactGrader

        def build(config):
            return Domain("x", MadeSource(lambda rng: task("?", answer="x"), "own", "x"), ExactGrader(), weight=2.0)

        ready = build(None)
        number = 7
    """
    for name in ("build", "ready"):
        domain = own(code, name, weight=3.0, max_new_tokens=5)
        assert (domain.name, domain.weight, domain.max_new_tokens) == ("own", 3.0, 5)
    with pytest.raises(ConfigError, match="is a int, not a domain"):
        own(code, "number")


@pytest.mark.parametrize(
    ("code", "name", "says"),
    [
        ("mine = 1", "mnie", "did you mean 'mine'"),
        ("import nowhere_to_be_found", "mine", r"own\.py:1.*cannot be loaded"),
        ("x = (", "mine", r"own\.py:1"),
        ("def mine(rng):\n    return 1", "mine", "no grader"),
        ("def mine():\n    return 1\ndef grade(task, rollout): return 1", "mine", "takes no argument"),
        ("def mine(config):\n    raise KeyError('x')", "mine", "building the domain failed: KeyError"),
    ],
)
def test_a_file_at_fault_is_explained(own, code, name, says):
    with pytest.raises(ConfigError, match=says):
        own(code, name)


def test_a_task_function_must_give_tasks(own):
    domain = own("from surefoot import domain\n@domain\ndef mine(rng):\n    return 'a question'")
    with pytest.raises(DataError, match="must give a Task, not str"):
        domain.source.task("train", 0)


def test_unknown_options_and_missing_names():
    with pytest.raises(ConfigError, match=r"lettters[\s\S]*letters"):
        build_domain(DomainConfig(name="r", source=f"{EXAMPLE}:reverse", options={"lettters": 3}))
    with pytest.raises(ConfigError, match=r"PATH\.py:NAME"):
        build_domain(DomainConfig(name="r", source=str(EXAMPLE)))
    with pytest.raises(ConfigError, match="no such Python file"):
        build_domain(DomainConfig(name="r", source="nowhere.py:x"))
