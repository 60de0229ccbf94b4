from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest
from made_up import NO_SANDBOX, written

from surefoot.config import DomainConfig
from surefoot.domains import TaskPool, build_domain
from surefoot.errors import ConfigError, DataError
from surefoot.rewards import GradingPool

ROWS = [{"question": f"What is {i} + {i}?", "answer": f"{i} and {i} make\n#### {2 * i}"} for i in range(60)]


def save(path: Path, rows, text: str | None = None) -> Path:
    content = text if text is not None else "".join(json.dumps(row) + "\n" for row in rows)
    if ".json" in path.name and ".jsonl" not in path.name and text is None:
        content = json.dumps(rows)
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    return path


def domain(path: Path, options=None, **fields):
    return build_domain(DomainConfig(name="mine", source=f"file:{path}", options=options or {}, **fields))


def everything(source) -> list:
    return [source.task(split, i) for split in ("train", "heldout") for i in range(source.size(split))]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.json", "a.json.gz", "a.parquet"])
def test_every_kind_of_file_gives_the_same_tasks(name, tmp_path):
    path = tmp_path / name
    if name == "a.parquet":
        parquet.write_table(arrow.Table.from_pylist(ROWS), path, row_group_size=7)
    else:
        save(path, ROWS)
    source = domain(path).source
    tasks = everything(source)
    assert sorted(int(t.checks["answer"]) for t in tasks) == [2 * i for i in range(60)]
    assert 0 < source.size("heldout") < 20
    assert source.task("train", 3) == source.task("train", 3)
    with pytest.raises(IndexError):
        source.task("train", 60)


def test_the_heldout_share_goes_by_the_prompt(tmp_path):
    source = domain(save(tmp_path / "a.jsonl", ROWS * 3), {"heldout": 0.3}).source
    train, heldout = ({source.task(s, i).prompt_hash for i in range(source.size(s))} for s in ("train", "heldout"))
    assert not train & heldout and len(train | heldout) == 60


def test_a_heldout_file(tmp_path):
    other = save(tmp_path / "b.jsonl", ROWS[:5])
    source = domain(save(tmp_path / "a.jsonl", ROWS[5:]), {"heldout_file": str(other)}).source
    assert (source.size("train"), source.size("heldout")) == (55, 5)
    assert source.task("heldout", 1).messages[0]["content"] == "What is 1 + 1?"


def test_columns_are_mapped(tmp_path):
    rows = [{"id": f"r{i}", "q": f"word {i}", "extra": {"gold": f"<< {i} >>"}} for i in range(9)]
    options = {"prompt": "q", "answer": "extra.gold", "answer_regex": "<< (.+) >>", "id": "id", "heldout": 0}
    built = domain(save(tmp_path / "a.jsonl", rows), options, grader="number")
    task = built.source.task("train", 4)
    assert task.checks["answer"] == "4" and task.metadata["id"] == "r4" and task.metadata["answer"] == "4"
    assert built.grader.grade(task, written(task, "it is 4"), NO_SANDBOX).grade == "right"


def test_chat_messages_are_kept(tmp_path):
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Capital of France?"}]
    built = domain(save(tmp_path / "a.jsonl", [{"messages": chat, "answer": "Paris"}] * 2), {"heldout": 0})
    assert list(built.source.task("train", 0).messages) == chat


def test_code_with_listed_asserts_is_run(tmp_path, sandbox):
    row = {
        "text": "Write a function double.",
        "code": "def double(n):\n    return 2 * n",
        "test_list": ["assert double(2) == 4", "assert double(-1) == -2"],
    }
    built = domain(save(tmp_path / "a.jsonl", [row]), {"heldout": 0})
    task = built.source.task("train", 0)
    assert "assert double(2) == 4" in task.messages[0]["content"]
    assert "double(-1)" not in task.messages[0]["content"]
    for text, grade in ((task.metadata["answer"], "right"), ("def double(n):\n    return 4", "wrong")):
        assert built.grader.grade(task, written(task, text), sandbox).grade == grade


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ('{"question": "a", "answer": "b"}\n\n{"question": "a"\n', ":3", "malformed"),
        ('{"question": "a", "answer": "b"}\n[1]\n', ":2", "one JSON object"),
        ('{"question": "a", "answer": "b"}\n{"question": "a"}\n', ":2", "no answer"),
        ('{"question": "a", "answer": "b"}\n{"question": "a", "answer": " "}\n', ":2", "no answer"),
        ('{"question": "a", "answer": "b"}\n{"question": null, "answer": "c"}\n', ":2", "no prompt"),
        ('{"question": "a", "answer": "b #### 1"}\n{"question": "a", "answer": "none"}\n', ":2", "does not match"),
        ("", "", "no rows"),
        ("\n \n", "", "no rows"),
        ('{"left": "a", "right": "b"}\n', ":1", "meaning of its columns"),
        (b"\xff\xfe{".decode("latin-1"), ":1", "malformed"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(text, place, says, tmp_path):
    path = save(tmp_path / "a.jsonl", None, text)
    with pytest.raises(DataError, match=says) as raised:
        domain(path)
    assert f"{path}{place}" in str(raised.value)


def test_bad_rows_are_left_out_only_on_request(tmp_path):
    path = save(tmp_path / "a.jsonl", [*ROWS, {"question": "What?", "answer": None}])
    assert len(everything(domain(path, {"missing": "skip"}).source)) == 60


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("missing.jsonl", None, "no such file"),
        ("a.csv", b"a,b", "are not known"),
        ("a.jsonl.gz", b"not gzip", "cannot be unzipped"),
        ("a.parquet", b"not parquet", "not a Parquet file"),
        ("a.json", b"[1, 2", "not valid JSON"),
        ("a.json", b'{"a": [], "b": []}', "rows are not found"),
        ("a.json", b"[1]", "must be an object"),
    ],
)
def test_a_file_that_cannot_be_read(name, content, says, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=says):
        domain(tmp_path / name)


@pytest.mark.parametrize(
    ("options", "says"),
    [({"promt": "q"}, "promt"), ({"heldout": 1.5}, "heldout"), ({"answer_regex": "("}, "regular expression")],
)
def test_a_bad_option(options, says, tmp_path):
    with pytest.raises(ConfigError, match=says):
        domain(save(tmp_path / "a.jsonl", ROWS), options)


@pytest.mark.parametrize(
    ("file", "rows", "rejected"),
    [
        ("gsm8k/train.jsonl", 7473, 0),
        ("math/math500_test.json", 500, 0),
        ("humaneval/HumanEval.jsonl.gz", 164, 0),
        # One reference is a function called `check`, as is the test's own; another one takes more than the CPU limit.
        ("mbpp/mbpp_sanitized_for_code_generation.jsonl", 427, 2),
        ("mbpp/mbpp-py.jsonl", 397, 0),
    ],
)
def test_public_data_as_it_is_published(file, rows, rejected, public_data, sandbox):
    built = domain(public_data / file, {"heldout": 0})
    assert built.source.size("train") == rows
    tasks = [t for t in everything(built.source) if "answer" in t.metadata][:170]
    with GradingPool([built], sandbox, workers=2) as graders:
        known = {t.id: t for t in tasks}
        verdicts = graders.grade_all([written(t, t.metadata["answer"]) for t in tasks], known)
        garbage = graders.grade_all([written(t, "def f():\n    return 0.123") for t in tasks[:40]], known)
    assert sum(v.grade != "right" for v in verdicts) <= rejected
    assert {v.grade for v in garbage} <= {"wrong"}


def test_a_row_without_an_answer_in_the_published_maths_data_is_found(public_data):
    with pytest.raises(DataError, match="row 887"):
        domain(public_data / "math/math_train.json")
    built = domain(public_data / "math/math_train.json", {"missing": "skip"})
    assert sum(built.source.size(s) for s in ("train", "heldout")) == 7474 - 4
    assert len(TaskPool(built, 24).heldout) == 24
