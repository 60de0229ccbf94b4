"""The base of all local pages: who may ask, what a browser may do with the answer, and that text is escaped."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="FastAPI is not installed: pip install 'surefoot[view]'")
pytest.importorskip("jinja2", reason="Jinja2 is not installed: pip install 'surefoot[view]'")

from fastapi import Request
from fastapi.responses import HTMLResponse
from fastapi.testclient import TestClient

from surefoot.web.pages import new_app

HOSTILE = """'"><script>alert(1)</script><img src=x onerror=alert(1)>"""


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    (tmp_path / "t.html").write_text(
        '{% extends "base.html" %}{% block main %}<p title="{{ text }}">{{ text }}</p>{% endblock %}'
    )
    app, pages = new_app(tmp_path)

    @app.get("/")
    def home(request: Request) -> HTMLResponse:
        return pages.render(request, "t.html", text=HOSTILE)

    @app.post("/change")
    def change() -> dict[str, bool]:
        return {"changed": True}

    return TestClient(app, base_url="http://127.0.0.1:8000")


def test_text_is_escaped(client: TestClient) -> None:
    page = client.get("/").text
    assert "<script>alert" not in page and "<img" not in page
    assert page.count("&lt;script&gt;alert(1)") == 2


def test_every_answer_has_a_strict_policy(client: TestClient) -> None:
    for path in ("/", "/static/base.css", "/nowhere"):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy, path
    assert client.get("/nowhere").status_code == 404


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "[", "", "evil.example:8000"])
def test_foreign_host_names_are_refused(client: TestClient, host: str) -> None:
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 403 and "<" not in answer.text


def test_changes_from_other_sites_are_refused(client: TestClient) -> None:
    assert client.post("/change").json() == {"changed": True}
    assert client.post("/change", headers={"origin": "http://127.0.0.1:8000"}).status_code == 200
    assert client.post("/change", headers={"origin": "http://evil.example"}).status_code == 403
    assert client.post("/change", headers={"origin": "http://127.0.0.1:9999"}).status_code == 403
    assert client.post("/change", headers={"sec-fetch-site": "cross-site"}).status_code == 403
