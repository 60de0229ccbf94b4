"""Near-duplicates and contamination, with planted overlap: what is found, and what is left alone."""

from __future__ import annotations

import json
import random
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from datasketch import MinHash, MinHashLSH

from surefoot.data.clusters import Settings, find_clusters, jaccard
from surefoot.data.decontaminate import Limits, decontaminate
from surefoot.data.dedup import dedup
from surefoot.data.shingles import shingles, words_of
from surefoot.data.tasks import lines
from surefoot.errors import DataError

WORDS = [
    f"{a}{b}{c}" for a in ("ba", "ko", "mi", "tu", "re") for b in ("la", "no", "ri", "su") for c in ("x", "nd", "")
]


def sentence(rng: random.Random, length: int = 40) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(length))


def edited(rng: random.Random, text: str, share: float) -> str:
    return " ".join(rng.choice(WORDS) if rng.random() < share else word for word in text.split())


def write(path: Path, texts: list[str], answers: list[str] | None = None) -> Path:
    rows = [
        {
            "id": f"r{n}",
            "messages": [{"role": "user", "content": text}],
            "grader": "exact",
            "checks": {"answer": answers[n] if answers else "yes"},
        }
        for n, text in enumerate(texts)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def kept(path: Path) -> list[str]:
    return [line.row["id"] for line in lines(path)]


def test_equal_and_nearly_equal_rows_go_and_others_stay(tmp_path: Path) -> None:
    rng = random.Random(1)
    texts = [sentence(rng) for _ in range(300)]
    near = [edited(rng, text, 0.02).capitalize() + "!" for text in texts[:100]]
    equal = [text.replace(" ", "  ") for text in texts[100:150]]
    out = tmp_path / "out.jsonl"
    result = dedup([write(tmp_path / "in.jsonl", texts + near + equal)], [out])
    left = set(kept(out))
    assert {f"r{n}" for n in range(300)} <= left  # precision 1
    assert result.equal == 50
    truth = sum(similarity(a, b) >= 0.8 for a, b in zip(near, texts[:100], strict=True))
    assert truth > 60
    assert result.near >= 0.98 * truth  # recall, of pairs at or above the threshold
    gone = [json.loads(line) for line in (tmp_path / "out.jsonl.removed.jsonl").read_text().splitlines()]
    assert len(gone) == result.equal + result.near
    assert all(int(row["stays"].split(":")[1]) <= 300 for row in gone)


def similarity(a: str, b: str) -> float:
    return jaccard(shingles([a]).hashes, shingles([b]).hashes)


def test_pairs_are_those_that_datasketch_finds(tmp_path: Path) -> None:
    rng = random.Random(2)
    texts = [sentence(rng) for _ in range(60)]
    texts += [edited(rng, text, rng.choice([0.01, 0.03, 0.1])) for text in texts]
    sets = [{" ".join(words_of(t)[i : i + 3]) for i in range(len(words_of(t)) - 2)} for t in texts]
    lsh = MinHashLSH(threshold=0.7, num_perm=128)
    hashed = []
    for n, grams in enumerate(sets):
        sketch = MinHash(num_perm=128)
        sketch.update_batch([gram.encode() for gram in grams])
        lsh.insert(str(n), sketch)
        hashed.append(sketch)
    theirs = {
        (i, j)
        for i, j in combinations(range(len(texts)), 2)
        if str(j) in lsh.query(hashed[i]) and len(sets[i] & sets[j]) / len(sets[i] | sets[j]) >= 0.8
    }
    found = find_clusters([write(tmp_path / "in.jsonl", texts)])
    ours = {(int(head), row) for row, head in enumerate(found.heads) if head != row}
    assert theirs <= ours
    assert all(len(sets[i] & sets[j]) / len(sets[i] | sets[j]) >= 0.75 for i, j in ours)


def test_other_numbers_and_other_answers_make_other_tasks(tmp_path: Path) -> None:
    text = sentence(random.Random(3))
    path = write(tmp_path / "in.jsonl", [f"{text} 17", f"{text} 18", text, text], ["a", "a", "a", "b"])
    found = find_clusters([path])
    assert found.heads.tolist() == [0, 1, 2, 3]
    assert found.contradictions == [(2, 3)]
    loose = find_clusters([path], Settings(numerals=False, answers=False))
    assert loose.heads.tolist() == [0, 0, 0, 0]


def test_a_shared_template_does_not_make_rows_alike(tmp_path: Path) -> None:
    rng = random.Random(4)
    template = sentence(rng, 60)
    texts = [f"{template} {sentence(rng, 8)}" for _ in range(200)]
    found = find_clusters([write(tmp_path / "in.jsonl", [*texts, texts[0] + " ."])])
    assert found.heads.tolist() == [*range(200), 0]


def test_duplicates_between_files_stay_in_the_first(tmp_path: Path) -> None:
    rng = random.Random(5)
    texts = [sentence(rng) for _ in range(20)]
    one, two = write(tmp_path / "a.jsonl", texts[:12]), write(tmp_path / "b.jsonl", texts[8:])
    result = dedup([one, two], [tmp_path / "o" / "a.jsonl", tmp_path / "o" / "b.jsonl"])
    assert result.between == {("b.jsonl", "a.jsonl"): 4}
    assert len(kept(tmp_path / "o" / "a.jsonl")) == 12
    with pytest.raises(DataError, match="every row"):
        dedup([one, one], [tmp_path / "x.jsonl", tmp_path / "y.jsonl"])


@pytest.mark.parametrize("kind", ["verbatim", "embedded", "respelled", "edited"])
def test_planted_evaluation_tasks_are_found(tmp_path: Path, kind: str) -> None:
    rng = random.Random(6)
    asked = [sentence(rng, rng.randint(15, 60)) for _ in range(100)]
    clean = [sentence(rng, 50) for _ in range(900)]
    plant = {
        "verbatim": lambda t: t,
        "embedded": lambda t: f"{sentence(rng, 80)} {t} {sentence(rng, 80)}",
        "respelled": lambda t: t.upper().replace(" ", ", "),
        "edited": lambda t: edited(rng, t, 0.05),
    }[kind]
    rows = [plant(text) for text in asked] + clean
    train, tests = write(tmp_path / "train.jsonl", rows), write(tmp_path / "tests.jsonl", asked)
    result = decontaminate(train, tmp_path / "out.jsonl", [tests])
    left = set(kept(tmp_path / "out.jsonl"))
    found = sum(f"r{n}" not in left for n in range(100))
    false = sum(f"r{n}" not in left for n in range(100, 1000))
    assert found >= (90 if kind == "edited" else 100)  # recall
    assert false == 0  # precision 1
    assert result.tasks_found >= found - 2


def test_what_all_evaluation_tasks_share_is_no_contamination(tmp_path: Path) -> None:
    rng = random.Random(7)
    template = sentence(rng, 30)
    tests = write(tmp_path / "tests.jsonl", [f"{template} {sentence(rng, 20)}" for _ in range(100)])
    train = write(tmp_path / "train.jsonl", [f"{template} {sentence(rng, 20)}" for _ in range(50)])
    assert decontaminate(train, tmp_path / "out.jsonl", [tests], Limits()).removed == 0


def test_raw_files_are_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "raw.jsonl").write_text('{"question": "q", "answer": "a"}\n')
    with pytest.raises(DataError, match="ingest"):
        find_clusters([tmp_path / "raw.jsonl"])


def test_shingles_do_not_depend_on_the_batch_and_handle_odd_texts() -> None:
    texts = [
        "",
        "one",
        "1 2 3 4 5 6 7 8 9 0 1 2 3 4",
        "日本語の文章です。これは試験です",
        sentence(random.Random(8)),
        "\ud800 x",
    ]
    together = shingles(texts)
    for n, text in enumerate(texts):
        alone = shingles([text])
        assert np.array_equal(alone.hashes, together.hashes[together.starts[n] : together.starts[n + 1]])
        assert alone.numbers[0] == together.numbers[n]
    assert len(shingles([""]).hashes) == 0
    assert len(shingles(["one"]).hashes) == 1
