"""Ingesting files of every form: what is written is what a domain reads, and every bad row is accounted for."""

from __future__ import annotations

import base64
import gzip
import json
import pickle
import zlib
from pathlib import Path

import pytest

from surefoot.config import DomainConfig
from surefoot.data import Mapping, ingest, read_mapping
from surefoot.data.card import checked
from surefoot.domains import build_domain
from surefoot.errors import ConfigError, DataError
from surefoot.types import Task


def first_task(path: Path) -> Task:
    return build_domain(DomainConfig(name="d", source=f"file:{path}", options={"heldout": 0.0})).source.task("train", 0)


def lines(path: Path, rows: list[object]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


GSM = {"question": "How much is 1+1?", "answer": "It is 2.\n#### 2"}


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.parquet"])
def test_written_tasks_are_those_that_the_file_itself_gives(tmp_path: Path, name: str) -> None:
    source = lines(tmp_path / "in.jsonl", [GSM, {"question": "2+2?", "answer": "#### 4"}])
    summary = ingest([source], tmp_path / name)
    assert (summary.rows, summary.written, summary.rejected) == (2, 2, 0)
    here, there = first_task(tmp_path / name), first_task(Path(source))
    assert (here.messages, here.checks) == (there.messages, there.checks)
    assert here.metadata["answer"] == there.metadata["answer"] == "2"


def test_every_bad_row_is_listed_with_line_and_reason(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    good = json.dumps(GSM).encode()
    path.write_bytes(b"\n".join([good, b"{oops", b'{"question": "q"}', b'{"question": "\xff"}', b"[1]", good]) + b"\n")
    summary = ingest([str(path)], tmp_path / "out.jsonl")
    assert (summary.rows, summary.written, summary.rejected) == (6, 2, 4)
    listed = [json.loads(line) for line in summary.rejects.read_text().splitlines()]
    assert [entry["line"] for entry in listed] == [2, 3, 4, 5]
    assert all(entry["reason"] for entry in listed)


def test_csv_in_gzip_by_a_mapping(tmp_path: Path) -> None:
    path = tmp_path / "in.csv.gz"
    path.write_bytes(gzip.compress(b'q,a\n"1+1, or\nmore?",2\n3+3?\n4+4?,8\n'))
    mapping = Mapping(prompt="q", answer="a", grader="number", license="MIT")
    summary = ingest([str(path)], tmp_path / "out.jsonl", mapping)
    assert (summary.written, summary.rejected) == (2, 1)
    assert checked(tmp_path / "out.jsonl").sources[0].license == "MIT"


def test_zstandard_and_a_url(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    pytest.importorskip("fsspec")
    path = tmp_path / "in.jsonl.zst"
    path.write_bytes(zstandard.compress(json.dumps(GSM).encode() + b"\n"))
    assert ingest([f"file://{path}"], tmp_path / "out.jsonl").written == 1


def test_answers_of_a_second_file_are_joined(tmp_path: Path) -> None:
    functions = [{"name": "play", "parameters": {"type": "dict", "properties": {"who": {"type": "string"}}}}]
    row = {"id": "a", "question": [[{"role": "user", "content": "Play Bach"}]], "function": functions}
    lines(tmp_path / "answers.jsonl", [{"id": "a", "ground_truth": [{"play": {"who": ["Bach"]}}]}])
    (tmp_path / "m.toml").write_text('[join]\nfile = "answers.jsonl"\non = "id"\n')
    source = lines(tmp_path / "in.jsonl", [row, {**row, "id": "b"}])
    summary = ingest([source], tmp_path / "out.jsonl", read_mapping(tmp_path / "m.toml"))
    assert (summary.written, summary.rejected) == (1, 1)
    assert first_task(summary.out).metadata["answer"] == "[play(who='Bach')]"


def test_bfcl_answers_beside_the_file_are_found(tmp_path: Path) -> None:
    functions = [{"name": "play", "parameters": {"type": "dict", "properties": {"who": {"type": "string"}}}}]
    row = {"id": "a", "question": [[{"role": "user", "content": "Play Bach"}]], "function": functions}
    lines(tmp_path / "in.answers.json", [{"id": "a", "ground_truth": [{"play": {"who": ["Bach"]}}]}] * 2)
    source = lines(tmp_path / "in.json", [row, {**row, "id": "a"}])
    summary = ingest([source], tmp_path / "out.jsonl")
    assert (summary.written, summary.rejected) == (2, 0)
    assert [s.file for s in checked(summary.out).sources] == ["in.json", "in.answers.json"]


def test_a_row_with_two_grids_is_one_task(tmp_path: Path) -> None:
    pair = {"input": [[1, 0]], "output": [[0, 1]]}
    source = lines(tmp_path / "in.jsonl", [{"id": "x", "train": [pair], "test": [pair, pair]}])
    summary = ingest([source], tmp_path / "out.jsonl")
    assert summary.written == 1
    assert first_task(summary.out).checks["grids"] == [[[0, 1]], [[0, 1]]]


APPS = {
    "problem_id": 7,
    "question": "Print twice the number.",
    "input_output": json.dumps({"inputs": ["2\n"], "outputs": ["4\n"]}),
    "solutions": json.dumps(["print(2 * int(input()))"]),
}
HIDDEN = [{"input": "2\n", "output": "4", "testtype": "stdin"}]
LIVE = {
    "question_id": "q1",
    "question_content": "Print twice the number.",
    "public_test_cases": json.dumps([{"input": "1\n", "output": "2", "testtype": "stdin"}]),
    "private_test_cases": base64.b64encode(zlib.compress(pickle.dumps(json.dumps(HIDDEN)))).decode(),
}
CHAT = {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]}
VERIFIERS = {"prompt": [{"role": "user", "content": "1+1?"}], "answer": "2", "info": {"a": 1}, "task": "sums"}


@pytest.mark.parametrize(
    ("row", "name", "checks"),
    [
        (APPS, "APPS", {"io": [{"input": "2\n", "output": "4\n", "hidden": True}]}),
        (
            LIVE,
            "LiveCodeBench",
            {
                "io": [
                    {"input": "1\n", "output": "2", "hidden": False},
                    {"input": "2\n", "output": "4", "hidden": True},
                ]
            },
        ),
        (CHAT, "chat", {"answer": "Hello"}),
        (VERIFIERS, "verifiers", {"answer": "2"}),
    ],
)
def test_further_formats_are_recognised(
    tmp_path: Path, row: dict[str, object], name: str, checks: dict[str, object]
) -> None:
    summary = ingest([lines(tmp_path / "in.jsonl", [row])], tmp_path / "out.parquet")
    assert list(summary.formats.values()) == [name]
    assert first_task(summary.out).checks == checks


def test_a_pickle_that_is_no_plain_string_is_rejected_and_not_run(tmp_path: Path) -> None:
    evil = base64.b64encode(zlib.compress(pickle.dumps(Path(str(tmp_path / "x")).touch.__func__))).decode()
    summary = ingest([lines(tmp_path / "in.jsonl", [LIVE, {**LIVE, "private_test_cases": evil}])], tmp_path / "o.jsonl")
    assert (summary.written, summary.rejected) == (1, 1)


def test_files_of_different_graders_do_not_mix(tmp_path: Path) -> None:
    chat = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}
    inputs = [lines(tmp_path / "a.jsonl", [GSM]), lines(tmp_path / "b.jsonl", [chat])]
    with pytest.raises(DataError, match="different files"):
        ingest(inputs, tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_an_unknown_key_of_a_mapping_is_named(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text('promt = "q"\n')
    with pytest.raises(ConfigError, match="promt"):
        read_mapping(tmp_path / "m.toml")


def test_a_file_changed_after_its_card_is_refused(tmp_path: Path) -> None:
    summary = ingest([lines(tmp_path / "in.jsonl", [GSM])], tmp_path / "out.jsonl")
    summary.out.write_text(summary.out.read_text() + "\n")
    with pytest.raises(DataError, match="card"):
        checked(summary.out)
