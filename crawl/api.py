"""The HTTP interface of a running crawler, on loopback, for the `xyro` commands and for scripts.

    GET  /health                      no token: is it alive
    GET  /status   /top?n=&by=   /why?url=   /audit
    GET  /export/pages|links|hosts    JSON lines, one commit boundary, streamed
    POST /submit   {"urls": [...], "priority": "ordered"}   -> {"accepted": n, "refused": [{"url", "why"}]}
    POST /hosts    {"host": "...", "action": "pause|resume|block"}

Every request but /health carries `Authorization: Bearer TOKEN`; the token is in DIR/run, readable by its owner only. A Host
header that is not ours is refused (DNS rebinding), bodies are at most 4 MiB, and there is no CORS.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from aiohttp import web

from crawl.audit import audit
from crawl.seeds import sort_seeds
from crawl.single import Single
from crawl.status import running
from crawl.views import Views
from crawl.why import why
from wire.errors import InputError, XyroError
from wire.urls import canonical

BODY = 4 << 20
MOST_URLS = 50_000
ACTIONS = {"pause": "paused", "resume": "", "block": "blocked"}
ROWS_A_WRITE = 500
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Api:
    """Serves one Single. `port` is known once it is started."""

    def __init__(self, single: Single, token: str, stop: Callable[[], None]) -> None:
        self.single = single
        self.token = token
        self.port = 0
        self._stop = stop
        self._runner: web.AppRunner | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen. InputError: the address is taken or not ours."""
        app = web.Application(client_max_size=BODY, middlewares=[self._guarded])
        app.add_routes(
            [
                web.get("/health", self._health),
                web.get("/status", self._status),
                web.get("/top", self._top),
                web.get("/why", self._why),
                web.get("/audit", self._audit),
                web.get("/export/{table}", self._export),
                web.post("/submit", self._submit),
                web.post("/hosts", self._hosts),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=2.0)
        await self._runner.setup()
        try:
            site = web.TCPSite(self._runner, host, port)
            await site.start()
        except OSError as error:
            raise InputError(f"[api] {host}:{port}: {error.strerror}; choose another port, or 0 for any") from error
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    # -- every request ---------------------------------------------------------------------------------------------

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        name = request.host.rpartition(":")[0] if request.host.rpartition(":")[2].isdigit() else request.host
        if name not in ("127.0.0.1", "localhost", "[::1]"):
            return _error(403, "this interface answers to 127.0.0.1 only")
        given = request.headers.get("Authorization", "")
        if request.path != "/health" and not hmac.compare_digest(given.encode(), f"Bearer {self.token}".encode()):
            return _error(401, "the token is missing or wrong; it is in the data directory's file `run`")
        try:
            return await handler(request)
        except InputError as error:
            return _error(400, str(error))
        except XyroError as error:
            return _error(500, str(error))

    # -- looks -----------------------------------------------------------------------------------------------------

    async def _health(self, _: web.Request) -> web.Response:
        self.single.check()
        return web.json_response({"ok": True})

    async def _status(self, _: web.Request) -> web.Response:
        return web.json_response(running(self.single))

    async def _top(self, request: web.Request) -> web.Response:
        count, by = request.query.get("n", "20"), request.query.get("by", "importance")
        if not count.isdigit() or by not in ("importance", "cash", "stale"):
            raise InputError("top: n is a whole number, by is importance, cash or stale")
        with await self.single.views() as views:
            return web.json_response(views.top(min(int(count), 100_000), by, self.single.clock.time()))

    async def _why(self, request: web.Request) -> web.Response:
        url = canonical(request.query.get("url", ""))
        with await self.single.views() as views:
            return web.json_response(why(views, url, self.single.clock.time()))

    async def _audit(self, _: web.Request) -> web.Response:
        async with self.single.boundary():
            with Views(self.single.nodes) as views:
                return web.json_response(audit(views))

    async def _export(self, request: web.Request) -> web.StreamResponse:
        table = request.match_info["table"]
        if table not in ("pages", "links", "hosts"):
            raise InputError("export: pages, links or hosts")
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await response.prepare(request)
        with await self.single.views() as views:
            rows: Iterator[dict[str, Any]] = getattr(views, table)()
            for part in _parts(rows):
                await response.write(part)
                await asyncio.sleep(0)
        await response.write_eof()
        return response

    # -- orders ----------------------------------------------------------------------------------------------------

    async def _submit(self, request: web.Request) -> web.Response:
        given = await _body(request)
        urls = given.get("urls")
        if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls) or len(urls) > MOST_URLS:
            raise InputError(f"submit: urls is a list of at most {MOST_URLS:,} URLs")
        if given.get("priority", "ordered") != "ordered":
            raise InputError("submit: the priority is ordered")
        accepted, refused = sort_seeds(urls, self.single.scope)
        if accepted:
            await self.single.submit(accepted)
        return web.json_response(
            {"accepted": len(accepted), "refused": [{"url": url, "why": reason} for url, reason in refused]}
        )

    async def _hosts(self, request: web.Request) -> web.Response:
        given = await _body(request)
        host, action = given.get("host"), given.get("action")
        if not isinstance(host, str) or action not in ACTIONS:
            raise InputError("hosts: host is a host[:port] as URLs write it, action is pause, resume or block")
        return web.json_response({"host": host, "known": await self.single.hold(host, ACTIONS[action])})


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        given = await request.json()
    except (ValueError, UnicodeDecodeError):
        raise InputError("the body is not JSON") from None
    if not isinstance(given, dict):
        raise InputError("the body is not a JSON object")
    return given


def _parts(rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    lines: list[str] = []
    for row in rows:
        lines.append(json.dumps(row))
        if len(lines) == ROWS_A_WRITE:
            yield ("\n".join(lines) + "\n").encode()
            lines = []
    if lines:
        yield ("\n".join(lines) + "\n").encode()


def _error(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status)
