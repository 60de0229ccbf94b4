"""Public data sets in the shape in which they are published, made-up rows; the real ones where they are at hand."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from made_up import NO_SANDBOX, written

from surefoot.config import DomainConfig
from surefoot.domains import build_domain
from surefoot.errors import DataError
from surefoot.evaluate.suite import load_suite
from surefoot.protocols import Domain
from surefoot.rewards.constraints import ConstraintGrader
from surefoot.rewards.function_calls import FunctionCallGrader
from surefoot.rewards.grid import GridGrader, read_grids
from surefoot.rewards.ifeval_grader import IFEvalGrader
from surefoot.rewards.text import ChoiceGrader, ExactGrader, NumberGrader

LIGHT = {
    "id": "made_0",
    "question": [[{"role": "user", "content": "Switch the lamp on at half brightness."}]],
    "function": [
        {
            "name": "home.lamp",
            "parameters": {
                "type": "dict",
                "properties": {"on": {"type": "boolean"}, "level": {"type": "float"}, "class": {"type": "string"}},
                "required": ["on"],
            },
        }
    ],
}
CALL = {"id": "made_0", "ground_truth": [{"home.lamp": {"on": [True], "level": [0.5, ""], "class": [""]}}]}
GRIDS = {
    "id": "made",
    "train": [{"input": [[0, 1], [2, 0]], "output": [[1, 0], [0, 2]]}],
    "test": [{"input": [[3, 0]], "output": [[0, 3]]}, {"input": [[4], [5]], "output": [[4], [5]]}],
}


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def domain(path: Path, **options: Any) -> Domain:
    return build_domain(DomainConfig(name="d", source=f"file:{path}", options={"heldout": 0, **options}))


def grades(built: Domain, *answers: str) -> list[str]:
    task = built.source.task("train", 0)
    return [built.grader.grade(task, written(task, text), NO_SANDBOX).grade for text in answers]


@pytest.mark.parametrize("answers", ["made.answers.json", "possible_answer/made.json"])
def test_bfcl_with_its_answers_in_a_second_file(answers: str, tmp_path: Path) -> None:
    other = {**LIGHT, "id": "made_1"}
    path = lines(tmp_path / "made.json", LIGHT, other)
    lines(tmp_path / answers, {**CALL, "id": "made_1", "ground_truth": [{"home.lamp": {"on": [False]}}]}, CALL)
    built = domain(path)
    assert isinstance(built.grader, FunctionCallGrader) and built.source.size("train") == 2
    task = built.source.task("train", 0)
    assert "home.lamp" in task.messages[0]["content"] and task.messages[1]["content"].startswith("Switch")
    assert task.metadata == {"id": "made_0", "answer": "[home.lamp(on=True, level=0.5)]"}
    right = [task.metadata["answer"], "home.lamp(on=True)", '{"name": "home.lamp", "arguments": {"on": true}}']
    assert grades(built, *right) == ["right"] * 3
    assert grades(built, "home.lamp(on=False)", "Done.", "") == ["wrong"] * 3


def test_bfcl_without_answers_says_where_they_are_kept(tmp_path: Path) -> None:
    path = lines(tmp_path / "made.json", LIGHT, LIGHT)
    with pytest.raises(DataError, match="answers_file") as raised:
        domain(path)
    assert f"{path}:1" in str(raised.value)
    assert grades(domain(path, answers_file=str(lines(tmp_path / "x.jsonl", CALL))), "home.lamp(on=True)") == ["right"]
    twice = lines(tmp_path / "x.jsonl", CALL, CALL)
    with pytest.raises(DataError, match="two rows of answers"):
        domain(path, answers_file=str(twice))


def test_a_call_that_python_cannot_spell_is_json(tmp_path: Path) -> None:
    answer = {**CALL, "ground_truth": [{"home.lamp": {"on": [True], "class": [{"a": ["x", "y"], "b": [""]}]}}]}
    lines(tmp_path / "made.answers.json", answer, {**CALL, "id": "other"})
    built = domain(lines(tmp_path / "made.json", LIGHT, {**LIGHT, "id": "made_0"}))
    reference = built.source.task("train", 0).metadata["answer"]
    assert json.loads(reference) == [{"name": "home.lamp", "arguments": {"on": True, "class": {"a": "x"}}}]
    assert grades(built, reference) == ["right"]


def test_ifeval_takes_every_instruction(tmp_path: Path, sandbox: Any) -> None:
    row = {
        "key": 7,
        "prompt": "Write two sections, all in capitals.",
        "instruction_id_list": ["detectable_format:multiple_sections", "change_case:english_capital"],
        "kwargs": [{"section_spliter": "PART", "num_sections": 2}, {}],
    }
    built = domain(lines(tmp_path / "a.jsonl", row))
    task = built.source.task("train", 0)
    assert isinstance(built.grader, IFEvalGrader) and task.metadata == {"id": "7"}
    texts = ("PART 1\nTHE SUN IS UP\nPART 2\nTHE MOON IS DOWN", "PART 1\nTHE SUN IS UP AND THE MOON IS DOWN")
    verdicts = [built.grader.grade(task, written(task, text), sandbox) for text in texts]
    assert [(v.grade, v.score) for v in verdicts] == [("right", 1.0), ("wrong", 0.5)]
    for wrong in ({"instruction_id_list": ["no:such"], "kwargs": [{}]}, {"kwargs": [{}]}):
        with pytest.raises(DataError, match=r"no:such|one length"):
            domain(lines(tmp_path / "b.jsonl", row | wrong))


def test_a_grid_is_read_in_linear_time() -> None:
    hostile = "1" + " " * 19_000 + "x"  # took three seconds once; a regular expression holds up every thread
    began = time.process_time()
    assert read_grids(hostile) == []
    assert time.process_time() - began < 0.5
    assert read_grids("1, 2,\n[3 4],  \n,\n5") == [[[1, 2], [3, 4]], [[5]]]


def test_arc_asks_for_every_output(tmp_path: Path) -> None:
    built = domain(lines(tmp_path / "a.jsonl", GRIDS))
    task = built.source.task("train", 0)
    assert isinstance(built.grader, GridGrader) and "01\n20" in task.messages[0]["content"]
    assert "03" not in task.messages[0]["content"].splitlines()
    assert grades(built, task.metadata["answer"], "Here:\n```\n0 3\n```\nand\n[[4],\n [5]]") == ["right"] * 2
    wrong = ("03", "03\n4\n5", "30\n\n4\n5", "03\n\n4 5", "03\n\n4\n5\n\n4\n5", "")
    assert grades(built, *wrong) == ["wrong"] * len(wrong)
    short = {**GRIDS, "train": [], "test": GRIDS["test"][:1]}
    assert domain(lines(tmp_path / "b.jsonl", GRIDS, short), longest=170).source.size("train") == 1
    with pytest.raises(DataError, match="output"):
        domain(lines(tmp_path / "c.jsonl", {**GRIDS, "test": [{"input": [[1]]}]}))


@pytest.mark.parametrize(
    ("question", "target", "grader", "right", "wrong"),
    [
        ("Which?\nOptions:\n(A) ant\n(B) bee", "(B)", ChoiceGrader, "I think so.\n(B)", "(B)\n(A)"),
        ("How many?", "12", NumberGrader, "I count.\n12", "12\n13"),
        ("Is it?\nOptions:\n- Yes\n- No", "No", ExactGrader, "It is not:\nNo", "Yes"),
        ("Close: [ (", ") ]", ExactGrader, ") ]", "] )"),
    ],
)
def test_bbh_has_the_grader_of_its_answers(
    question: str, target: str, grader: type, right: str, wrong: str, tmp_path: Path
) -> None:
    path = tmp_path / "task.json"
    path.write_text(json.dumps({"canary": "made up", "examples": [{"input": question, "target": target}] * 2}))
    built = domain(path)
    assert isinstance(built.grader, grader) and not isinstance(built.grader, ConstraintGrader)
    assert grades(built, right, wrong) == ["right", "wrong"]


def test_bbh_with_the_text_of_an_option_as_its_answer(tmp_path: Path) -> None:
    rows = [{"input": "Which?\nOptions:\n(A) ant\n(B) bee", "target": target} for target in ("(A)", "bee")]
    path = tmp_path / "task.json"
    path.write_text(json.dumps({"examples": rows}))
    built = domain(path)
    task = built.source.task("train", 1)
    assert built.grader.grade(task, written(task, "(B)"), NO_SANDBOX).grade == "right"


def test_the_public_suite_takes_all_of_the_published_files(public_data: Path, sandbox: Any) -> None:
    suite = load_suite("public", "tiny", data=public_data)
    built = {config.name: build_domain(config) for config in suite.recipe.domains}
    sizes = {name: d.source.size("heldout") for name, d in built.items()}
    assert sizes["ifeval"] == 541 and sizes["bfcl-simple-python"] == 400 and sizes["bfcl-parallel"] == 200
    assert sizes["gsm8k"] == 1319 and sizes["arc"] > 50
    for name in ("bfcl-multiple", "bfcl-live-simple", "arc", "bbh-date-understanding", "bbh-navigate"):
        for i in range(sizes[name] or 0):
            task = built[name].source.task("heldout", i)
            if answer := task.metadata.get("answer"):
                assert built[name].grader.grade(task, written(task, answer), sandbox).grade == "right", (name, i)


def test_every_bbh_file_has_gradable_answers(public_data: Path, sandbox: Any) -> None:
    for path in sorted((public_data / "bbh").glob("*.json")):
        built = domain(path)
        for i in range(built.source.size("train") or 0):
            task = built.source.task("train", i)
            verdict = built.grader.grade(task, written(task, task.metadata["answer"]), sandbox)
            assert verdict.grade == "right", (path.name, i, task.checks)
