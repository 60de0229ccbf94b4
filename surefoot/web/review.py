"""The page of `surefoot review`: one rollout at a time, side by side with what was made of it; keys decide."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel

from surefoot.errors import SurefootError
from surefoot.store.review import Item, ReviewStore
from surefoot.web.pages import HERE, new_app

NAV = [("Review", "/"), ("What it proves", "/summary")]
SHOWN = 50_000
"""Characters of a text that a page shows."""


class Decision(BaseModel):
    """What the page sends."""

    position: int
    decision: str
    note: str = ""
    pattern: str = ""


def make_app(store: ReviewStore, reviewer: str) -> FastAPI:
    """The application in which `reviewer` judges a run. Nobody's decisions but their own are ever shown."""
    app, pages = new_app(HERE / "review_templates")
    app.mount("/review-static", StaticFiles(directory=HERE / "review_static"), name="review-static")

    @app.get("/")
    def current(request: Request, at: int | None = None) -> HTMLResponse:
        items = store.items()
        item = store.next(reviewer) if at is None else next((i for i in items if i.position == at), None)
        context: dict[str, Any] = {
            "title": "Review",
            "nav": NAV,
            "item": item,
            "reviewer": reviewer,
            "total": len(items),
        }
        if item is None:
            return pages.render(request, "done.html", **context)
        row = store.rollout(item.key)
        mine = [d for d in store.decisions() if d["reviewer"] == reviewer]
        context |= {"row": row, "pieces": pieces(row), "last": _last(mine, items), "judged": len(mine)}
        context["own"] = next((d for d in mine if (d["step"], d["task_id"], d["sample"]) == item.key), None)
        return pages.render(request, "review.html", **context)

    @app.get("/summary")
    def summary(request: Request) -> HTMLResponse:
        return pages.render(request, "summary.html", title="What it proves", nav=NAV, said=store.summary())

    @app.post("/decide")
    def decide(said: Decision) -> JSONResponse:
        try:
            store.decide(said.position, reviewer, said.decision, said.note[:5000], said.pattern[:1000])
        except SurefootError as refused:
            return JSONResponse({"error": str(refused)}, 400)
        return JSONResponse({"saved": True})

    return app


def pieces(row: dict[str, Any]) -> list[tuple[str, str]]:
    """The text cut at the spans of its findings: `(text, kind of the finding or nothing)`, in order."""
    text = row["text"][:SHOWN]
    spans = sorted((f["span"][0], f["span"][1], f["kind"]) for f in row["findings"] if f.get("span"))
    cut: list[tuple[str, str]] = []
    at = 0
    for start, end, kind in spans:
        if at <= start < end <= len(text):
            cut += [(text[at:start], ""), (text[start:end], kind)]
            at = end
    return [piece for piece in [*cut, (text[at:], "")] if piece[0]]


def _last(mine: list[dict[str, Any]], items: list[Item]) -> int | None:
    """The place that was judged last, to go back to it."""
    places = {item.key: item.position for item in items}
    keys = [(d["step"], d["task_id"], d["sample"]) for d in mine]
    return next((places[key] for key in reversed(keys) if key in places), None)
