"""The base of all local pages: an application with its guard, templates that escape, and the server on 127.0.0.1.

    app, pages = new_app(Path(__file__).parent / "my_templates")

    @app.get("/")
    def home(request: Request) -> HTMLResponse:
        return pages.render(request, "home.html", title="Home", nav=[("Home", "/")])

A template extends `base.html` and fills the blocks `title`, `main` and `scripts`. What keeps pages safe: no `|safe`; no
inline `<script>`, `style=` or `on...=`, which the content security policy forbids; in JavaScript `textContent` only.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from surefoot.errors import ResourceError, SurefootError
from surefoot.web.guard import Guard

HERE = Path(__file__).parent
Link = tuple[str, str]
"""What a link of the navigation says, and where it leads."""


class Pages:
    """Renders templates. Everything is escaped, attributes included (they must be in quotation marks)."""

    def __init__(self, *folders: Path) -> None:
        loader = FileSystemLoader([*map(str, folders), str(HERE / "templates")])
        self.environment = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )

    def render(self, request: Request, name: str, status: int = 200, **context: Any) -> HTMLResponse:
        """A page. `nav` (links) and `title` are optional in the context."""
        values = {"nav": [], "title": "Surefoot", "path": request.url.path, **context}
        return HTMLResponse(self.environment.get_template(name).render(values), status)


def new_app(*folders: Path) -> tuple[FastAPI, Pages]:
    """An application with the guard, `/static`, error pages, and templates from `folders` before those of the base."""
    app, pages = FastAPI(title="Surefoot", docs_url=None, redoc_url=None, openapi_url=None), Pages(*folders)
    app.add_middleware(Guard)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")

    @app.exception_handler(SurefootError)
    def _failed(request: Request, error: Exception) -> HTMLResponse:
        return pages.render(request, "error.html", 404, message=str(error))

    @app.exception_handler(404)
    def _nowhere(request: Request, error: Exception) -> HTMLResponse:
        return pages.render(request, "error.html", 404, message="There is no such page.")

    return app, pages


def serve(app: FastAPI, port: int, ready: Callable[[str], None]) -> None:
    """Serve on 127.0.0.1 until Ctrl-C; port 0 takes a free one. `ready` is told the address.

    Raises:
        ResourceError: The port is taken.
    """
    import uvicorn

    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
    except OSError as taken:
        listening.close()
        raise ResourceError(
            f"cannot listen on port {port}: {taken.strerror}", where="--port", fix="choose another, or 0 for a free one"
        ) from taken
    listening.listen()
    ready(f"http://127.0.0.1:{listening.getsockname()[1]}/")
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])
