"""What every answer of a local page goes through: who may ask, and what a browser may do with the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HOSTS = frozenset({"127.0.0.1", "localhost"})
SAFE_METHODS = frozenset({"GET", "HEAD"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""No inline script or style, nothing from elsewhere: text that slipped through the escaping could still do nothing."""
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Guard:
    """ASGI middleware. Refuses foreign host names (a page elsewhere can point its own name at 127.0.0.1: DNS
    rebinding) and changes asked for by another site's page; adds the security headers to every answer."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = {name: value.decode("latin-1") for name, value in scope.get("headers", ())}
        if scope["type"] != "http" or not _host_is_ours(headers.get(b"host", "")):
            await _refuse(send, "this page answers to 127.0.0.1 and localhost only")
        elif scope["method"] not in SAFE_METHODS and not _same_origin(headers):
            await _refuse(send, "a page of another site asked for a change here")
        else:
            await self.app(scope, receive, _with_headers(send))


def _host_is_ours(host: str) -> bool:
    try:
        return urlsplit(f"//{host}").hostname in HOSTS
    except ValueError:
        return False


def _same_origin(headers: dict[bytes, str]) -> bool:
    """Programs send no Origin; browsers send one with every POST, and it must be this very page's."""
    origin = headers.get(b"origin")
    site = headers.get(b"sec-fetch-site", "same-origin")
    return (origin is None or origin == f"http://{headers.get(b'host', '')}") and site in ("same-origin", "none")


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *HEADERS]
        await send(message)

    return sending


async def _refuse(send: Send, why: str) -> None:
    start = {"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain"), *HEADERS]}
    await send(start)
    await send({"type": "http.response.body", "body": why.encode()})
