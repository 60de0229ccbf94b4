"""The viewer's answers: what is found, followed and shown, without a browser."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'surefoot[view]'")
pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'surefoot[view]'")

from fastapi.testclient import TestClient
from hostile_run import HOSTILE, write_step

from surefoot.errors import RunError
from surefoot.store.journal import Journal
from surefoot.store.rollouts import forget_after
from surefoot.web.comparing import newcombe
from surefoot.web.following import read_from
from surefoot.web.groups import advantages_of
from surefoot.web.index import RolloutIndex
from surefoot.web.search import Wanted, search
from surefoot.web.viewer import make_app

Make = Callable[..., Path]


@pytest.fixture
def run(make_run: Make) -> Path:
    return make_run()


@pytest.fixture
def client(run: Path) -> Iterator[TestClient]:
    with TestClient(make_app([run]), base_url="http://127.0.0.1") as client:
        deadline = time.monotonic() + 10
        while "16</b> of 16" not in client.get("/run/0/rollouts").text and time.monotonic() < deadline:
            time.sleep(0.05)
        yield client


@pytest.fixture
def index(run: Path) -> Iterator[RolloutIndex]:
    index = RolloutIndex(run, None)
    index.update()
    yield index
    index.close()


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ({}, 16),
        ({"domain": "sums"}, 8),
        ({"grade": "right"}, 8),
        ({"outcome": "timeout"}, 8),
        ({"outcome": "crashed"}, 0),
        ({"finding": "any", "domain": "code"}, 4),
        ({"finding": "many_answers", "step_to": "1"}, 2),
        ({"step_from": "2", "step_to": "3"}, 8),
        ({"reward_from": "0.5"}, 8),
        ({"text": "FORTY"}, 8),
        ({"text": "what is 3?"}, 4),
        ({"text": "%"}, 0),
        ({"text": "'; DROP TABLE rollouts; --"}, 0),
        ({"domain": "' OR true --"}, 0),
        ({"task": "sums/train/2"}, 2),
        ({"step_from": "none", "page": "x", "order": "; DROP"}, 16),
    ],
)
def test_search(index: RolloutIndex, wanted: dict[str, str], count: int) -> None:
    found = search(index, Wanted.of(wanted))
    assert found.total == count == len(found.rows)


def test_order(index: RolloutIndex) -> None:
    assert [row["step"] for row in search(index, Wanted()).rows][:2] == [4, 4]
    assert search(index, Wanted(order="oldest")).rows[0]["step"] == 1
    assert search(index, Wanted(order="best")).rows[0]["reward"] == 1


def test_a_query_is_a_link_to_itself() -> None:
    wanted = Wanted(text="a&b=c'\"", domain="x", page="3")
    assert "a%26b%3Dc%27%22" in wanted.query()
    assert wanted.query(page="1") == Wanted(text=wanted.text, domain="x").query()


def test_the_index_follows_a_run_that_goes_on_and_one_that_was_resumed(run: Path, index: RolloutIndex) -> None:
    journal = Journal(run)
    write_step(run, journal, 5)
    index.update()
    assert search(index, Wanted()).total == 20
    forget_after(run / "rollouts", 2)
    write_step(run, journal, 3, ("another text",))
    index.update()
    assert search(index, Wanted()).total == 10
    assert search(index, Wanted(text="another")).total == 2
    journal.close()


def test_a_damaged_file_is_named_and_the_others_are_read(run: Path) -> None:
    (run / "rollouts" / "step-000009.parquet").write_bytes(b"torn")
    index = RolloutIndex(run, None)
    index.update()
    state = index.state()
    assert state.rollouts == 16 and len(state.damaged) == 1 and "step-000009" in state.damaged[0]
    index.close()


def test_a_kept_index_is_not_read_again_and_two_viewers_can_look(run: Path, tmp_path: Path) -> None:
    first = RolloutIndex(run, tmp_path / "cache")
    first.update()
    first.close()
    again = RolloutIndex(run, tmp_path / "cache")
    assert again.state().rollouts == 16
    again.close()


def test_metrics_are_read_a_piece_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    assert read_from(path, "").lines == []
    path.write_text('{"step": 1}\n{"step": 2}\n{"st')
    first = read_from(path, "")
    assert [line["step"] for line in first.lines] == [1, 2] and first.reset
    with path.open("a") as file:
        file.write('ep": 3}\n')
    second = read_from(path, first.cursor)
    assert [line["step"] for line in second.lines] == [3] and not second.reset
    (tmp_path / "new").write_text('{"step": 1}\n')
    (tmp_path / "new").replace(path)
    assert read_from(path, second.cursor).reset


def test_pages_escape_what_a_model_wrote(client: TestClient) -> None:
    for address in (
        "/",
        "/run/0/rollouts",
        "/run/0/group/2?task=sums/train/2",
        "/run/0/rollouts?text=%22%3E%3Cscript%3E",
    ):
        answer = client.get(address)
        assert answer.status_code == 200, answer.text
        assert "<img" not in answer.text and "<script>" not in answer.text and "<svg" not in answer.text


def test_a_group_shows_advantages_tokens_and_evidence(client: TestClient) -> None:
    page = client.get("/run/0/group/2?task=sums/train/2").text
    assert "+0.71" in page and "-0.71" in page  # (1 - 0.5) / 0.7072
    assert "log-prob -5.000, probability 0.67%" in page
    assert "timeout" in page and "many_answers" in page and "Checks: 0 of 1 passed" in page
    assert "task=code%2Ftrain%2F2" in page and "task=code%2Ftrain%2F3" in page  # neighbours


def test_advantages_are_those_of_the_learner_on_the_scale_of_the_step(make_run: Make) -> None:
    run = make_run("wide")
    config = run / "config.toml"
    assert 'advantage = "group_std"' in config.read_text()
    config.write_text(config.read_text().replace('advantage = "group_std"', 'advantage = "batch_std"'))
    # both groups have rewards 1 and 0: deviation sqrt(4 * 0.25 / 3) over the step
    assert advantages_of(run, 2, "sums/train/2") == pytest.approx([0.5 / (3**-0.5 + 1e-4), -0.5 / (3**-0.5 + 1e-4)])


def test_data_for_the_charts(client: TestClient) -> None:
    first = client.get("/run/0/data").json()
    lines = first["metrics"]["lines"]
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert lines[0]["domains"]["sums"][1] == 0.5 and lines[0]["learner"]["grad_norm"] is None
    cursors = {name: first[name]["cursor"] for name in ("metrics", "events")}
    again = client.get("/run/0/data", params=cursors).json()
    assert again["metrics"]["lines"] == [] and not again["metrics"]["reset"]
    assert first["events"]["lines"][0]["text"].endswith(HOSTILE)
    counts = client.get("/run/0/counts").json()
    assert [3, "timeout", 2] in counts["outcomes"] and [3, "many_answers", 2] in counts["findings"]


def test_what_is_not_there_is_said(client: TestClient, tmp_path: Path) -> None:
    for address in ("/run/7", "/run/0/group/99?task=x", "/run/0/group/2?task=nothing", "/nowhere"):
        answer = client.get(address)
        assert answer.status_code == 404 and "Traceback" not in answer.text, address
    with pytest.raises(RunError):
        make_app([tmp_path / "none"])


def test_two_runs_are_held_against_each_other(make_run: Make) -> None:
    app = make_app([make_run("one"), make_run("two", steps=3, lr=1e-3)])
    with TestClient(app, base_url="http://127.0.0.1") as client:
        page = client.get("/compare").text
        assert "learner.lr" in page and "0.001" in page and "no difference seen" in page
        assert len(client.get("/run/1/data").json()["metrics"]["lines"]) == 3


def test_interval_of_a_difference() -> None:
    low, high = newcombe(48 / 80, 80, 56 / 70, 70)  # Newcombe 1998, table II, example (a), with the sign turned
    assert (round(low, 4), round(high, 4)) == (0.0524, 0.3339)
