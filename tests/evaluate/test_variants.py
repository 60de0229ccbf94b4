"""Changed copies of tasks: what changes, what must not, and what they say of a model."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from evaluation_stand_ins import evaluation

from surefoot.config import DomainConfig
from surefoot.domains import TaskPool, build_domain
from surefoot.errors import ConfigError
from surefoot.evaluate.html import to_html
from surefoot.evaluate.records import Evaluation
from surefoot.evaluate.report import report_findings, summary
from surefoot.evaluate.sensitivity import sensitivities
from surefoot.evaluate.variants import (
    HARMLESS,
    MARK,
    OF,
    check_variants,
    derive,
    options,
    paraphrase,
    renamed,
    spacing,
    unicode,
)
from surefoot.types import Task

CHOICE = "Which is a fruit?\nOptions:\n(A) stone\n(B) apple\n(C) cloud"


def task(text: str, answer: str = "", **checks: object) -> Task:
    return Task(
        "d/0", "d", ({"role": "user", "content": text},), {"answer": answer, **checks}, metadata={"answer": answer}
    )


def asked(changed: Task | None) -> str:
    assert changed is not None
    return changed.messages[-1]["content"]


def test_the_right_option_keeps_its_text_and_gets_its_new_letter() -> None:
    for seed in range(20):
        changed = options(task(CHOICE, "(B)"), Random(seed))
        assert changed is not None and asked(changed) != CHOICE
        letter = changed.checks["answer"]
        assert f"{letter} apple" in asked(changed) and changed.metadata["answer"] == letter
        assert sorted(asked(changed).replace("(", "").split()) == sorted(asked(changed).replace("(", "").split())
        assert all(word in asked(changed) for word in ("stone", "cloud"))
    assert options(task("Which is a fruit?", "(B)"), Random(0)) is None
    assert options(task(CHOICE, "apple"), Random(0)) is None
    listed = options(task("A) one\nB) two", "B", choices=["one", "two"]), Random(1))
    assert listed is not None and listed.checks["choices"][ord(listed.checks["answer"]) - 65] == "two"


def test_names_change_together_and_in_the_answer() -> None:
    changed = renamed(task("Mary gives Tom 3 pears. Mary has 2 left. Who has 3?", "Tom"), Random(0))
    text, answer = asked(changed), changed.checks["answer"] if changed else ""
    assert "Mary" not in text and "Tom" not in text and "3 pears" in text
    assert answer in text and answer == changed.metadata["answer"]  # type: ignore[union-attr]
    girl = text.split()[0]
    assert text.count(girl) == 2
    assert renamed(task("Tomorrow it rains."), Random(0)) is None


def test_code_in_a_prompt_is_left_alone() -> None:
    text = "Write a Python function `f(a)` that doesn't stop. For example:\nf(\"it's\") == 'a b c'\nReply with code."
    assert "f(\"it's\") == 'a b c'" in asked(unicode(task(text), Random(0)))
    assert "doesn’t" in asked(unicode(task(text), Random(0))) and "`f(a)`" in asked(unicode(task(text), Random(0)))
    for seed in range(10):
        assert "f(\"it's\") == 'a b c'" in asked(paraphrase(task(text), Random(seed)))
    assert asked(paraphrase(task(text), Random(0))) != text
    assert asked(spacing(task("a\nb"), Random(0))).split() == ["a", "b"]


@pytest.fixture(scope="module")
def pool() -> TaskPool:
    return TaskPool(build_domain(DomainConfig(name="sums", source="reasoning_gym:chain_sum", shots=2)), 4)


@pytest.mark.parametrize("name", ["paraphrase", "distractor", "spacing", "numbers"])
def test_a_derived_domain_pairs_with_its_originals(pool: TaskPool, name: str) -> None:
    made = derive(pool.domain, pool.heldout, name)
    assert made is not None and made.name == f"sums{MARK}{name}" and made.source.size("heldout") == 4
    again = derive(pool.domain, pool.heldout, name)
    for index, original in enumerate(pool.heldout):
        changed = made.source.task("heldout", index)
        assert changed == again.source.task("heldout", index)  # type: ignore[union-attr]
        assert changed.metadata[OF] == original.id and changed.domain == made.name and changed.id != original.id
        assert changed.messages[-1] != original.messages[-1]
        if name in HARMLESS:
            assert changed.checks == original.checks and changed.messages[:-1] == original.messages[:-1]
        else:
            assert changed.checks["seed"] != original.checks["seed"]
    with pytest.raises(IndexError):
        made.source.task("train", 0)


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'paraphrase'"):
        check_variants(["paraphrases"], "suite")


def with_copies(originals: list[int], copies: list[int]) -> Evaluation:
    got = evaluation({"sums": originals, f"sums{MARK}distractor": copies})
    original, changed = got.domains
    pairs = zip(original.tasks, changed.tasks, strict=True)
    marked = replace(changed, tasks=tuple(replace(t, variant_of=o.id) for o, t in pairs))
    return replace(got, domains=(original, marked))


def test_flips_by_hand() -> None:
    (found,) = sensitivities(with_copies([8, 0, 4], [4, 0, 4]))
    assert found.flip.value == pytest.approx((0.5 + 0 + 0.5) / 3)
    assert found.seeds.value == pytest.approx((0 + 0 + 2 * 4 * 4 / (8 * 7)) / 3)
    assert found.difference.value == pytest.approx(-0.5 / 3)
    assert found.failures[0][:2] == ("wrong", 4 + 8 + 4)


def test_a_variant_that_breaks_the_model_is_reported_and_is_in_no_headline_figure() -> None:
    broken = with_copies([7] * 16, [1] * 16)
    assert sensitivities(broken)[0].matters and not sensitivities(with_copies([7] * 16, [7] * 16))[0].matters
    told = report_findings([broken])
    assert any(line.startswith("sums, distractor: pass@1 falls from 87.5% to 12.5%") for line in told)
    assert any("all 128 samples could be graded" in line for line in told)
    assert summary(broken)["mean"]["pass@1"]["value"] == pytest.approx(7 / 8)
    assert summary(broken)["variants"][0]["difference"]["value"] == pytest.approx(-0.75)
    assert "Boundary conditions" in to_html([broken])
