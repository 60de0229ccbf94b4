"""`surefoot view`: the pages of one run, or of two to hold against each other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse

from surefoot.errors import RunError
from surefoot.store.overview import is_held, overview
from surefoot.web.comparing import domain_rows, recipe_differences
from surefoot.web.following import Piece, read_from
from surefoot.web.groups import read_group
from surefoot.web.index import RolloutIndex
from surefoot.web.lines import compact
from surefoot.web.pages import Link, Pages, new_app
from surefoot.web.search import PAGE, Wanted, choices, counts_by_step, search


@dataclass(frozen=True)
class Watched:
    """A run that is being looked at."""

    number: int
    path: Path
    index: RolloutIndex

    @property
    def base(self) -> str:
        """Beginning of the addresses of its pages."""
        return f"/run/{self.number}"


class Viewer:
    """The pages and what they ask for."""

    def __init__(self, runs: Sequence[Path], cache: Path | None) -> None:
        self.runs = [Watched(i, path, RolloutIndex(path, cache)) for i, path in enumerate(runs)]
        self.pages: Pages

    def nav(self) -> list[Link]:
        """Links above every page."""
        several = len(self.runs) > 1
        links = []
        for run in self.runs:
            mark = f" {run.path.name}" if several else ""
            links += [(f"Overview{mark}", run.base), (f"Rollouts{mark}", f"{run.base}/rollouts")]
        return [*links, ("Compare", "/compare")] if several else links

    def run(self, number: int) -> Watched:
        """Raises RunError if there is none of this number."""
        if not 0 <= number < len(self.runs):
            raise RunError(f"there is no run {number} on this page")
        return self.runs[number]

    def overview(self, request: Request, number: int) -> HTMLResponse:
        run = self.run(number)
        about = overview(run.path)
        title = f"{run.path.name}: overview"
        return self.pages.render(request, "overview.html", title=title, nav=self.nav(), run=run, about=about)

    def compare(self, request: Request, last: int) -> HTMLResponse:
        if len(self.runs) < 2:
            raise RunError("there is one run here", fix="surefoot view RUN OTHER shows two")
        paths = [run.path for run in self.runs]
        return self.pages.render(
            request, "compare.html", title="Compare", nav=self.nav(), last=last,
            names=[path.name for path in paths], bases=[run.base for run in self.runs],
            rows=domain_rows(paths, last), differences=recipe_differences(paths),
        )  # fmt: skip

    def rollouts(self, request: Request, number: int) -> HTMLResponse:
        run, wanted = self.run(number), Wanted.of(request.query_params)
        found = search(run.index, wanted)
        return self.pages.render(
            request,
            "rollouts.html",
            title=f"{run.path.name}: rollouts",
            nav=self.nav(),
            run=run,
            wanted=wanted,
            found=found,
            first=(wanted.number - 1) * PAGE + 1,
            choices=choices(run.index),
            state=run.index.state(),
            group_link=lambda row: f"{run.base}/group/{row['step']}?{urlencode({'task': row['task_id']})}",
        )

    def group(self, request: Request, number: int, step: int, task: str, everything: bool) -> HTMLResponse:
        run = self.run(number)
        group = read_group(run.path, step, task, everything)
        before, after = _neighbours(run, step, group.domain, task)
        return self.pages.render(
            request, "group.html", title=f"{task} at step {step}", nav=self.nav(), run=run, group=group,
            before=before, after=after, everything=everything,
            all_link=f"{run.base}/group/{step}?{urlencode({'task': task, 'all': 1})}",
            history=f"{run.base}/rollouts?{urlencode({'task': task})}",
        )  # fmt: skip


def _neighbours(run: Watched, step: int, domain: str, task: str) -> tuple[str, str]:
    """Addresses of the groups before and after this one; empty at the ends."""
    query = (
        "SELECT DISTINCT step, domain, task_id FROM rollouts WHERE {} ORDER BY step {}, domain {}, task_id {} LIMIT 1"
    )
    place = "(step, domain, task_id)"
    links = []
    for sign, way in (("<", "DESC"), (">", "ASC")):
        rows = run.index.rows(query.format(f"{place} {sign} (?, ?, ?)", way, way, way), [step, domain, task])
        links += [f"{run.base}/group/{r['step']}?{urlencode({'task': r['task_id']})}" for r in rows] or [""]
    return links[0], links[1]


def make_app(runs: Sequence[Path], cache: Path | None = None) -> FastAPI:
    """The application that shows these run directories.

    Args:
        cache: Folder where the index of rollouts is kept between visits; None keeps it in memory.

    Raises:
        RunError: One of them is no run.
    """
    for path in runs:
        overview(path)
    viewer = Viewer(runs, cache)
    app, viewer.pages = new_app()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        for run in viewer.runs:
            run.index.start()
        yield
        for run in viewer.runs:
            run.index.close()

    app.router.lifespan_context = lifespan

    @app.get("/")
    def _home(request: Request) -> HTMLResponse:
        return viewer.overview(request, 0)

    @app.get("/run/{number}")
    def _overview(request: Request, number: int) -> HTMLResponse:
        return viewer.overview(request, number)

    @app.get("/compare")
    def _compare(request: Request, last: int = 20) -> HTMLResponse:
        return viewer.compare(request, max(1, last))

    @app.get("/run/{number}/rollouts")
    def _rollouts(request: Request, number: int) -> HTMLResponse:
        return viewer.rollouts(request, number)

    @app.get("/run/{number}/group/{step}")
    def _group(request: Request, number: int, step: int, task: str) -> HTMLResponse:
        return viewer.group(request, number, step, task, "all" in request.query_params)

    @app.get("/run/{number}/data")
    def _data(number: int, metrics: str = "", events: str = "") -> JSONResponse:
        return JSONResponse(_news(viewer.run(number), metrics, events))

    @app.get("/run/{number}/counts")
    def _counts(number: int) -> JSONResponse:
        index = viewer.run(number).index
        return JSONResponse({name: counts_by_step(index, name) for name in ("outcomes", "findings")})

    return app


def _news(run: Watched, metrics: str, events: str) -> dict[str, Any]:
    """What was written since the two cursors."""
    lines, happened = read_from(run.path / "metrics.jsonl", metrics), read_from(run.path / "events.jsonl", events)
    return {
        "running": is_held(run.path),
        "metrics": {**_place(lines), "lines": [compact(line) for line in lines.lines]},
        "events": {**_place(happened), "lines": happened.lines[-500:]},
    }


def _place(piece: Piece) -> dict[str, Any]:
    return {"cursor": piece.cursor, "reset": piece.reset, "more": piece.more}
