"""The code domain: its problems are sound, its splits disjoint, and its tests tell right from wrong functions."""

from __future__ import annotations

import ast
import re
from typing import Any

import pytest

from surefoot.config import DomainConfig
from surefoot.domains import code
from surefoot.domains.code_tasks.family import Problem
from surefoot.domains.code_tasks.topics import FAMILIES, problems
from surefoot.errors import ConfigError
from surefoot.protocols import TaskSource
from surefoot.rewards.extract import extract
from surefoot.sandbox import Sandbox
from surefoot.types import Rollout, Split, Task, Verdict

ALL = [problem for topic in FAMILIES for problem in problems(topic)]
GRADER = code.build(DomainConfig(name="code", source="code")).grader


def tasks(source: TaskSource, split: Split) -> list[Task]:
    return [source.task(split, index) for index in range(source.size(split) or 0)]


def answer(task: Task, text: str, sandbox: Sandbox) -> Verdict:
    rollout = Rollout(task.id, task.domain, 0, (), (), (), text, "stop")
    return GRADER.grade(task, rollout, sandbox)


def body(task: Task) -> str:
    answer: str = task.metadata["answer"]
    return answer.partition(":\n")[2]


def one_of_each_problem() -> list[Task]:
    source = code.source({})
    found = {task.metadata["problem"]: task for split in ("train", "heldout") for task in tasks(source, split)}
    assert len(found) == len(ALL)
    return list(found.values())


def test_there_are_some_hundreds_of_distinct_problems() -> None:
    assert len({problem.name for problem in ALL}) == len(ALL) > 500
    assert len({(p.says(0), p.reference) for p in ALL}) == len(ALL)


def test_prompts_are_distinct_and_short_and_the_splits_share_no_problem() -> None:
    source = code.source({})
    train, heldout = tasks(source, "train"), tasks(source, "heldout")
    hashes = [task.prompt_hash for task in [*train, *heldout]]
    assert len(set(hashes)) == len(hashes)
    assert not {t.metadata["problem"] for t in train} & {t.metadata["problem"] for t in heldout}
    assert not {body(t) for t in train} & {body(t) for t in heldout}
    assert len(heldout) > 300
    assert max(len(t.messages[0]["content"]) for t in [*train, *heldout]) < 400
    assert max(len(t.metadata["answer"]) for t in [*train, *heldout]) < 200


def test_the_first_held_out_tasks_are_of_different_problems_and_some_of_unseen_families() -> None:
    first = tasks(code.source({}), "heldout")[:100]
    assert len({task.metadata["problem"] for task in first}) == 100
    assert {task.metadata["unseen"] for task in first} == {"parameters", "function"}


def test_a_task_depends_on_split_and_index_alone() -> None:
    one, other = code.source({}), code.source({})
    assert all(one.task("train", i) == other.task("train", i) for i in (0, 7, 1000))
    with pytest.raises(IndexError):
        one.task("train", one.size("train") or 0)


@pytest.mark.parametrize("problem", ALL, ids=lambda p: p.name)
def test_cases_are_plain_and_telling(problem: Problem) -> None:
    cases = [*problem.examples, *problem.hidden, *problem.boundary]
    assert 1 <= len(problem.examples) <= 2
    assert len(problem.hidden) >= (2 if "exactly_one" in problem.name else 7)
    assert len(problem.boundary) >= 1
    shown = {repr(case.args) for case in problem.examples}
    assert not shown & {repr(case.args) for case in [*problem.hidden, *problem.boundary]}
    assert len({repr(case.expected) for case in cases}) >= 2
    for case in cases:
        assert ast.literal_eval(repr([case.args, case.expected])) == [case.args, case.expected]
    assert not re.search(r"[{}]", problem.says(0) + problem.says(1)), "a parameter was not filled in"
    assert extract(problem.reference, "code") == problem.reference


def test_prompts_do_not_show_hidden_cases() -> None:
    task = code.source({}).task("train", 3)
    prompt = task.messages[0]["content"]
    shown = [case for case in task.checks["cases"] if not case["hidden"]]
    assert all(f"{', '.join(map(repr, case['args']))}) == {case['expected']!r}" in prompt for case in shown)
    assert prompt.count(" == ") == len(shown) == 2


def _check_references(sample: list[Task], sandbox: Sandbox) -> None:
    for task in sample:
        verdict = answer(task, f"Here you are:\n```python\n{task.metadata['answer']}\n```\nDone.", sandbox)
        assert verdict.grade == "right", (task.metadata["problem"], verdict.reason)
        signature = task.metadata["answer"].splitlines()[0]
        assert answer(task, f"{signature}\n    return None", sandbox).grade == "wrong"


def _fitted(task: Task) -> str:
    """A function that knows the shown examples and nothing else."""
    shown = [case for case in task.checks["cases"] if not case["hidden"]]
    table = [(case["args"], case["expected"]) for case in shown]
    name = task.checks["function"]
    return f"def {name}(*args):\n    return next((v for a, v in {table!r} if a == list(args)), None)"


def test_references_pass_in_the_sandbox_and_empty_functions_fail(sandbox: Sandbox) -> None:
    _check_references(one_of_each_problem()[::12], sandbox)


def test_a_function_fitted_to_the_examples_is_wrong_and_found(sandbox: Sandbox) -> None:
    for task in one_of_each_problem()[::25]:
        verdict = answer(task, _fitted(task), sandbox)
        assert verdict.grade == "wrong" and verdict.score < 0.5
        assert [finding.kind for finding in verdict.findings] == ["visible_hidden_gap"]


@pytest.mark.slow
def test_every_reference_passes_and_every_empty_function_fails(sandbox: Sandbox) -> None:
    _check_references(one_of_each_problem(), sandbox)


@pytest.mark.slow
def test_nearly_all_small_slips_are_caught(sandbox: Sandbox) -> None:
    caught = total = 0
    for task in one_of_each_problem():
        for mutant in mutants(task.metadata["answer"]):
            total += 1
            caught += answer(task, mutant, sandbox).grade == "wrong"
    assert total > 500
    assert caught / total > 0.97, f"{total - caught} of {total} slips pass"


SWAPS: dict[type, type] = {
    ast.Gt: ast.GtE, ast.Lt: ast.LtE, ast.GtE: ast.Gt, ast.LtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.And: ast.Or, ast.Or: ast.And, ast.In: ast.NotIn,
}  # fmt: skip


class _Slip(ast.NodeTransformer):
    """Makes the `wanted`-th possible slip: another comparison, operator or constant."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.seen = wanted, -1

    def generic_visit(self, node: ast.AST) -> Any:
        super().generic_visit(node)
        replacement: ast.AST | None = None
        if type(node) in SWAPS:
            replacement = SWAPS[type(node)]()
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            replacement = ast.Constant(node.value + 1)
        if replacement is None:
            return node
        self.seen += 1
        return replacement if self.seen == self.wanted else node


def mutants(source: str) -> list[str]:
    """The source with each of its possible slips."""
    found: list[str] = []
    while True:
        slip = _Slip(len(found))
        changed = ast.unparse(ast.fix_missing_locations(slip.visit(ast.parse(source))))
        if slip.seen < len(found):
            return found
        found.append(changed)


def test_topics_levels_and_settings() -> None:
    domain = code.build(
        DomainConfig(name="py", source="code:lists", options={"level": 0}, max_new_tokens=50, instruction="Code only.")
    )
    sample = tasks(domain.source, "train")
    assert {task.metadata["topic"] for task in sample} == {"lists"}
    assert {task.metadata["level"] for task in sample} == {0}
    assert domain.max_new_tokens == 50
    assert all(task.id.startswith("py/train/") for task in sample)
    assert "Reply" not in sample[0].messages[0]["content"]
    assert dict(code.described()).keys() == {f"code:{topic}" for topic in FAMILIES}


@pytest.mark.parametrize(
    ("source", "options", "says"),
    [
        ("code:list", {}, "did you mean 'lists'"),
        ("code", {"topics": ["string"]}, "did you mean 'strings'"),
        ("code", {"levels": 1}, "did you mean 'level'"),
        ("code", {"level": 3}, "no level 3"),
        ("code", {"level": []}, "no train problem"),
    ],
)
def test_what_there_is_not_is_refused(source: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        code.build(DomainConfig(name="mine", source=source, options=options))
    assert "domains.mine" in str(caught.value)
