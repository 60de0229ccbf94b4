"""IFEval's kinds: an answer that keeps each and one that does not, and its data where it is at hand (SUREFOOT_DATA)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import GraderError
from surefoot.rewards.ifeval import KINDS, handle
from surefoot.rewards.ifeval_grader import IFEvalGrader
from surefoot.sandbox import Sandbox
from surefoot.types import Rollout, Task, Verdict

DATA = Path(os.environ.get("SUREFOOT_DATA", "data")) / "ifeval" / "input_data.jsonl"
CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("keywords:existence", {"keywords": ["mom", "war"]}, "My Mom saw the war.", "My mom."),
    ("keywords:frequency", {"keyword": "war", "frequency": 2, "relation": "at least"}, "war, War", "war"),
    ("keywords:frequency", {"keyword": "war", "frequency": 2, "relation": "less than"}, "war", "war war"),
    ("keywords:forbidden_words", {"forbidden_words": ["rock"]}, "rocket", "a Rock."),
    ("keywords:letter_frequency", {"letter": "t", "let_frequency": 2, "let_relation": "less than"}, "Tea", "tT"),
    ("language:response_language", {"language": "de"}, "Das ist ein guter Tag für uns.", "This is a good day for us."),
    ("length_constraints:number_sentences", {"num_sentences": 3, "relation": "at least"}, "One. Two! Three?",
     "One. 2.5"),
    ("length_constraints:number_sentences", {"num_sentences": 2, "relation": "less than"}, "Dr. Who is 2.5",
     "A b. C d."),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a\n***\nb", "a\n***\n\n***\nb"),
    ("length_constraints:number_words", {"num_words": 3, "relation": "at least"}, "one two three", "one two"),
    ("length_constraints:nth_paragraph_first_word", {"first_word": "sun", "num_paragraphs": 2, "nth_paragraph": 2},
     "A.\n\n\"Sun, rise.", "A.\n\nSuns rise."),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[a] [b]", "[a]"),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "a\nP.S. b", "a PS b"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n- b", "* a\n** b"),
    ("detectable_format:constrained_response", {}, "My answer is no.", "No."),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*a* *b*", "*a* ** b"),
    ("detectable_format:multiple_sections", {"section_spliter": "Section", "num_sections": 2},
     "Section 1 a Section 2 b", "Section 1 a"),
    ("detectable_format:json_format", {}, '```json\n{"a": 1}\n```', "{a: 1}"),
    ("detectable_format:title", {}, "<<sun>>", "<< >>"),
    ("combination:two_responses", {}, "a\n******\nb", "a\n******\na"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say hi."}, "say HI. Hello", "Hello. Say hi."),
    ("startend:end_checker", {"end_phrase": "Bye."}, 'So, "bye."', "Bye. So"),
    ("change_case:capital_word_frequency", {"capital_frequency": 2, "capital_relation": "at least"}, "A BIG b",
     "A big b"),
    ("change_case:english_capital", {}, "THIS IS A GOOD DAY FOR US", "This is a good day"),
    ("change_case:english_lowercase", {}, "this is a good day for us", "dies ist ein guter tag für uns"),
    ("punctuation:no_comma", {}, "a b", "a, b"),
    ("startend:quotation", {}, '"a"', '"a'),
]  # fmt: skip


def grade(text: str, names: list[str], kwargs: list[dict[str, Any]], sandbox: Sandbox) -> Verdict:
    task = Task("t", "d", (), {"instruction_id_list": names, "kwargs": kwargs})
    return IFEvalGrader().grade(task, Rollout("t", "d", 0, (), (), (), text, "stop"), sandbox)


@pytest.mark.parametrize(("name", "arguments", "kept", "broken"), CASES)
def test_each_kind(name: str, arguments: dict[str, Any], kept: str, broken: str) -> None:
    for text, expected in ((kept, True), (broken, False), ("", False), ("  \n", False)):
        assert handle({"text": text, "instructions": [[name, arguments]]}) == {"kept": [expected]}


def test_every_kind_has_a_case() -> None:
    assert {name for name, *_ in CASES} == set(KINDS) and len(KINDS) == 25


def test_all_instructions_must_be_kept(sandbox: Sandbox) -> None:
    names, kwargs = ["punctuation:no_comma", "startend:quotation"], [{}, {"num_words": None}]
    assert grade('"a"', names, kwargs, sandbox).grade == "right"
    half = grade("a", names, kwargs, sandbox)
    assert (half.grade, half.score, half.reason) == ("wrong", 0.5, "startend:quotation")
    assert grade("", names, kwargs, sandbox).grade == "wrong"
    assert grade("a" * 60_000, names, kwargs, sandbox).grade == "wrong"
    with pytest.raises(GraderError, match="no_such"):
        grade("a", ["no_such:kind"], [{}], sandbox)


def test_every_instruction_of_the_data_is_known_and_its_arguments_fit(sandbox: Sandbox) -> None:
    if not DATA.is_file():
        pytest.skip("IFEval's data is not at hand: set SUREFOOT_DATA to the folder that holds ifeval/")
    rows = [json.loads(line) for line in DATA.open()]
    assert {name for row in rows for name in row["instruction_id_list"]} == set(KINDS)
    for row in rows[::10]:
        verdict = grade("A short text.", row["instruction_id_list"], row["kwargs"], sandbox)
        assert verdict.grade in ("right", "wrong") and len(verdict.checks) == len(row["instruction_id_list"])
