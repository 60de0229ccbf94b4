"""The review page in a real browser: keys decide, what a model wrote stays text, reviewers are blind to each other."""

from __future__ import annotations

import shutil
import socket
import threading
import time

import pytest

pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'surefoot[view]'")
pytest.importorskip("jinja2", reason="Jinja2 is not installed: pip install 'surefoot[view]'")

import uvicorn
from fastapi.testclient import TestClient

from surefoot.store.review import open_review
from surefoot.store.rollouts import write_rollouts
from surefoot.types import Check, Execution, Finding, Group, Reward, Rollout, Task, Verdict
from surefoot.web.review import make_app, pieces

HOSTILE = """</pre><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'"&"""


@pytest.fixture
def store(tmp_path):
    (tmp_path / "rollouts").mkdir()
    task = Task("m/0", "maths", ({"role": "user", "content": f"What is 2 + 2? {HOSTILE}"},))
    texts = [f"{HOSTILE} number {i}: the answer is 4" for i in range(3)]
    rollouts = tuple(Rollout(task.id, "maths", i, (0,), (True,), (0.0,), text, "stop") for i, text in enumerate(texts))
    verdict = Verdict(
        "right",
        1.0,
        checks=(Check(HOSTILE, True, HOSTILE),),
        executions=(Execution("ok", stdout=HOSTILE, stderr=HOSTILE, exit_code=0, detail=HOSTILE),),
        findings=(Finding("early_exit", "warning", HOSTILE, span=(0, 6)),),
        reason=HOSTILE,
    )
    write_rollouts(tmp_path / "rollouts", 1, [Group(task, rollouts, (verdict,) * 3, (Reward(1.0),) * 3)])
    return open_review(tmp_path, twice=0.0)


@pytest.fixture
def address(store):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(make_app(store, "ann"), port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}/"
    server.should_exit = True
    thread.join(10)


@pytest.fixture
def page():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1400, "height": 900})
        browser.close()


def test_keys_decide_and_nothing_of_the_model_runs(page, address, store, tmp_path):
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(address)
    assert "number" in page.inner_text("#output") and "<script>" in page.inner_text("#output")
    assert page.inner_text("mark") == "</pre>"
    page.keyboard.press("m")
    page.keyboard.type("a really copied r answer")
    page.keyboard.press("Escape")
    with page.expect_navigation():
        page.keyboard.press("r")
    page.wait_for_selector("#decide")
    for _ in range(2):
        with page.expect_navigation():
            page.keyboard.press("a")
    page.wait_for_selector("text=Nothing left for ann")
    assert [(d["decision"], d["note"]) for d in store.decisions()] == [
        ("reject", "a really copied r answer"),
        ("accept", ""),
        ("accept", ""),
    ]
    page.goto(f"{address}summary")
    assert "maths" in page.inner_text("table")
    assert page.evaluate("window.hacked") is None and not errors


def test_what_a_model_wrote_is_escaped_everywhere(store):
    text = TestClient(make_app(store, "ann"), base_url="http://127.0.0.1:8000").get("/").text
    assert "<script>window" not in text and "<img" not in text and text.count("&lt;script&gt;window") >= 6


def test_a_reviewer_does_not_see_what_another_said(store):
    item = store.items()[0]
    store.decide(item.position, "bob", "reject", note="bob's secret")
    client = TestClient(make_app(store, "ann"), base_url="http://127.0.0.1:8000")
    shown = client.get(f"/?at={item.position}").text
    assert "secret" not in shown and "you said" not in shown


def test_a_bad_decision_is_refused(store):
    client = TestClient(make_app(store, "ann"), base_url="http://127.0.0.1:8000")
    assert client.post("/decide", json={"position": 99, "decision": "accept"}).status_code == 400
    assert client.post("/decide", json={"position": 0, "decision": "maybe"}).status_code == 400
    foreign = {"origin": "http://evil.example"}
    assert client.post("/decide", json={"position": 0, "decision": "accept"}, headers=foreign).status_code == 403
    assert store.decisions() == []


def test_overlapping_findings_lose_no_text():
    spans = [{"span": (2, 6), "kind": "a"}, {"span": (4, 8), "kind": "b"}, {"span": None, "kind": "c"}]
    cut = pieces({"text": "0123456789", "findings": spans})
    assert "".join(text for text, _ in cut) == "0123456789" and ("2345", "a") in cut
