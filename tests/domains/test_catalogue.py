from __future__ import annotations

import re
from importlib.metadata import EntryPoint

import pytest
from made_up import EndlessSource, ListSource, ask, domain_of

from surefoot.config import DomainConfig
from surefoot.domains import available, build_domain, catalogue
from surefoot.domains import reasoning_maker as maker_module
from surefoot.domains.check import check, describe
from surefoot.domains.guessing import guess_rate
from surefoot.errors import ConfigError
from surefoot.rewards.text import ExactGrader, NumberGrader
from surefoot.types import Verdict


def an_installed_domain(config: DomainConfig):
    tasks = [ask(f"q{i}", f"{i}") for i in range(30)]
    return domain_of(ListSource(tasks, tasks[:3]), chance=0.1)


@pytest.fixture
def installed(monkeypatch):
    point = EntryPoint("shop", f"{__name__}:an_installed_domain", catalogue.GROUP)
    broken = EntryPoint("broken", "no_such_module_at_all:build", catalogue.GROUP)
    monkeypatch.setattr(catalogue, "entry_points", lambda group: [point, broken])


def test_an_installed_domain_is_found_and_gets_the_recipes_settings(installed):
    config = DomainConfig(
        name="mine",
        source="shop",
        weight=2.5,
        chance=0.3,
        max_new_tokens=9,
        shots=2,
        grader="number",
        instruction="Go.",
    )
    domain = build_domain(config)
    assert (domain.name, domain.weight, domain.chance, domain.max_new_tokens) == ("mine", 2.5, 0.3, 9)
    assert isinstance(domain.grader, NumberGrader)
    messages = domain.source.task("train", 0).messages
    assert [m["role"] for m in messages] == ["user", "assistant", "user", "assistant", "user"]
    assert all(m["content"].endswith("\nGo.") for m in messages if m["role"] == "user")


def test_what_the_recipe_does_not_say_is_the_sources_own(installed):
    domain = build_domain(DomainConfig(name="mine", source="shop"), default_max_new_tokens=17)
    assert (domain.chance, domain.max_new_tokens) == (0.1, 17)
    assert isinstance(domain.grader, ExactGrader)


def test_an_installed_domain_that_cannot_be_imported(installed):
    with pytest.raises(ConfigError, match="cannot be imported"):
        build_domain(DomainConfig(name="mine", source="broken"))


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("reasoning_gym:gdc", "reasoning_gym:gcd|'gcd'"),
        ("instruction", "'instructions'"),
        ("gcd", "'reasoning_gym:gcd'"),
        ("data/train.jsonl", "'file:data/train.jsonl'"),
        ("utter nonsense", "surefoot domains list"),
    ],
)
def test_an_unknown_source_names_the_nearest(source, says):
    with pytest.raises(ConfigError, match=says):
        build_domain(DomainConfig(name="mine", source=source))


def test_an_unknown_grader_names_the_nearest(installed):
    with pytest.raises(ConfigError, match="did you mean 'number'"):
        build_domain(DomainConfig(name="mine", source="shop", grader="numbr"))


def test_a_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr(maker_module.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr("surefoot.domains.reasoning.MAKER", maker_module.Maker())
    with pytest.raises(ConfigError, match=r"surefoot\[reasoning\]"):
        build_domain(DomainConfig(name="mine", source="reasoning_gym:gcd"))


def test_everything_available_has_a_name_of_its_own_and_a_description():
    listed = available()
    assert len(listed) > 105 and len({name for name, _ in listed}) == len(listed)
    assert all(text for _, text in listed)
    assert "instructions" in dict(listed) and "code" in dict(listed)


def test_guess_rate():
    tasks = [ask(f"q{i}", "yes" if i % 4 else "no") for i in range(40)]
    assert guess_rate(ListSource([], tasks)) == 0.75
    assert guess_rate(ListSource([], [ask(f"q{i}", str(i)) for i in range(9)])) == 0.0


# ------------------------------------------------------------------------------------------------ check a domain


def numbers(count: int, start: int = 0):
    return [ask(f"q{i}", str(i)) for i in range(start, start + count)]


def test_a_sound_domain_has_no_problems(sandbox):
    report = check(domain_of(ListSource(numbers(30, 100), numbers(9, 500))), sandbox)
    assert report.problems == ()
    assert (report.references, report.references_right, report.garbage_right) == (20, 20, 0)
    assert all(isinstance(value, str) for row in report.rows() for value in row)


class Always:
    def __init__(self, verdict):
        self.verdict = verdict

    def grade(self, task, rollout, sandbox):
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict


@pytest.mark.parametrize(
    ("domain", "says"),
    [
        (
            domain_of(ListSource(numbers(20, 100), numbers(3)), Always(Verdict("wrong"))),
            "reference answer is graded wrong",
        ),
        (domain_of(ListSource(numbers(20, 100), numbers(3)), Always(Verdict("right", 1.0))), "'xyzzy' is accepted"),
        (domain_of(ListSource(numbers(20, 100), numbers(3)), Always(OSError("disk"))), "could not be graded.*disk"),
        (domain_of(ListSource([ask(f"q{i}", "True") for i in range(20)], numbers(3, 90))), "always answering 'True'"),
        (domain_of(EndlessSource(distinct=50)), "always answering"),
    ],
)
def test_a_faulty_domain_is_told_what_is_wrong(domain, says, sandbox):
    problems = "\n".join(check(domain, sandbox).problems)
    assert re.search(says, problems), problems


def test_tasks_that_change_are_found(sandbox):
    class Moody(ListSource):
        def task(self, split, index):
            self.made.append((split, index))
            return ask(f"{split} {index} {len(self.made)}", str(len(self.made)))

    report = check(domain_of(Moody(numbers(20), numbers(3))), sandbox, tasks=5)
    assert report.unstable == 5 and any("change when they are made again" in p for p in report.problems)


def test_a_task_is_described_for_a_person():
    text = describe(ask("How many?", "7"))
    assert "[user] How many?" in text and '"answer": "7"' in text
