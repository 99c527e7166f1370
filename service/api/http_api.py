"""The HTTP interface of a running crawler, on loopback, for the `xyro` commands and for scripts.

    GET  /health                      no token: {"ok", "pid", ...}, 200 or 503 (service/api/health.py)
    GET  /status   /top?n=&by=   /why?url=   /audit
    GET  /export/TABLE                JSON lines, one commit boundary, streamed: pages, documents, links, hosts
    GET  /plan?target=&bandwidth=&policies=   what a bandwidth gives, what a freshness takes
    GET  /rank?links=0|1              what `xyro rank` computes from: plugins/rank/routes.py
    GET  /xml/...                     the repository of documents: plugins/warehouse/routes.py
    ...  /publish  /subscriptions     what sites and subscribers ask: plugins/publish/routes.py
    POST /submit   {"urls": [...], "priority": "ordered"}   -> {"accepted": n, "refused": [{"url", "why"}]}
    POST /backup   {"to": "/absolute/path"}   -> {"to", "partitions", "bytes", "seconds"}
    POST /hosts    {"host": "...", "action": "pause|resume|block"}   -> {"host", "known"}

Every request but /health carries `Authorization: Bearer TOKEN`; the token is in DIR/run, readable by its owner only. It
listens on loopback only, refuses a Host header that is not its own (DNS rebinding) and bodies above 4 MiB, and knows no
CORS and no cookies. Errors are JSON too: {"error": "..."}. Connections are bounded (service/node/admission.py): where
all places are taken, a new one gets that of the connection that has gone longest without showing the token.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from aiohttp import web

from xyro.plugins.publish.routes import promise_routes
from xyro.plugins.rank.routes import rank_routes
from xyro.plugins.view_extensions import VIEW_EXTENSIONS
from xyro.plugins.warehouse.routes import xml_routes
from xyro.service.api.health import Health
from xyro.service.node import backup, http_json
from xyro.service.node.admission import Admission
from xyro.service.node.long_views import LongViews
from xyro.service.node.seeds import sort_seeds
from xyro.service.node.slicing import unhurried
from xyro.service.node.status import running
from xyro.service.views.audit import audit
from xyro.service.views.cash_sources import find_givers, targets_of
from xyro.service.views.export import COLUMNS
from xyro.service.views.forecast import PlanQuestion, report
from xyro.service.views.site_ranking import SiteRanking, top_sites
from xyro.service.views.views import Views
from xyro.service.views.why import why, with_givers
from xyro.wire.errors import InputError, XyroError
from xyro.wire.urls import canonical

if TYPE_CHECKING:
    from xyro.service.node.node import Node

BODY = 4 << 20
MOST_URLS = 10_000
AT_ONCE = 500
"""URLs that are looked at and submitted between two turns of the event loop: 20 us each, and as much in the group"""
MOST_ROWS = 100_000
ORDERS = ("importance", "cash", "stale", "rising", "site")
SHUTDOWN = 2.0
"""seconds that requests under way have to end when the process stops"""
PATIENCE = 20.0
"""seconds that a connection may wait for its next whole head"""
CONNECTIONS = 128
"""open at once"""
ACTIONS = {"pause": "paused", "resume": "", "block": "blocked"}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_log = logging.getLogger("xyro")


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on this machine alone. InputError: another address, or one that is taken."""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise InputError(f"[api] host: {host} is not an address; write 127.0.0.1") from None
    if not address.is_loopback:
        raise InputError(
            f"[api] host: {host} can be reached from other machines, and this interface has no TLS: "
            "write 127.0.0.1, and come from elsewhere through ssh"
        )
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        return socket.create_server((str(address), port), family=family)
    except OSError as error:
        raise InputError(
            f"[api] {host}:{port}: {error.strerror}; choose another port, or 0 for any that is free"
        ) from error


class HttpApi:
    """Serves one Node."""

    def __init__(self, node: Node, token: str) -> None:
        self.node = node
        self._bearer = f"Bearer {token}".encode()
        self._names = {"127.0.0.1", "localhost", "[::1]"}
        self.health = Health(node)
        self._backing_up = asyncio.Lock()
        self._long_views = LongViews(node)
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None
        self.admission: Admission | None = None

    async def start(self, listening: socket.socket) -> None:
        """Answer on a socket of `listen`, which is closed in the end."""
        address = listening.getsockname()[0]
        self._names.add(f"[{address}]" if ":" in address else address)
        app = web.Application(client_max_size=BODY, middlewares=[self._guarded])
        app.add_routes(
            [
                web.get("/health", self._health),
                web.get("/status", self._status),
                web.get("/top", self._top),
                web.get("/why", self._why),
                web.get("/audit", self._audit),
                web.get("/export/{table}", self._export),
                web.get("/plan", self._plan),
                web.post("/submit", self._submit),
                web.post("/hosts", self._hosts),
                web.post("/backup", self._backup),
                *rank_routes(self._long_views),
                *xml_routes(self.node, self._long_views),
                *promise_routes(self.node),
            ]
        )
        self.health.start()
        self._runner = web.AppRunner(
            app, access_log=None, logger=http_json.LOG, shutdown_timeout=SHUTDOWN, keepalive_timeout=PATIENCE
        )
        await self._runner.setup()
        inside = cast(Callable[[], asyncio.Protocol], self._runner.server)
        self.admission = Admission(inside, of_sender=CONNECTIONS, replacing=True)
        self._server = await asyncio.get_running_loop().create_server(self.admission.enter, sock=listening)

    async def close(self) -> None:
        """Requests under way are ended; nothing of the crawl is pinned any more."""
        await self.health.close()
        await self._long_views.close()
        if self._server is not None:
            self._server.close()
        if self._runner is not None:
            await self._runner.cleanup()

    # -- every request ---------------------------------------------------------------------------------------------

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse strangers, call the handler, and turn every failure into JSON."""
        try:
            return self._refusal(request) or await handler(request)
        except web.HTTPException as error:  # aiohttp's own: no such path, no such method, too large
            return http_json.error(error.status, error.reason)
        except InputError as error:
            return http_json.error(400, str(error))
        except XyroError as error:
            return http_json.error(500, str(error))
        except Exception:
            _log.exception("%s %s failed (a bug)", request.method, request.path)
            return http_json.error(500, "internal error; the log has more")

    def _refusal(self, request: web.Request) -> web.Response | None:
        name, _, port = request.host.rpartition(":")
        if (name if name and port.isdigit() else request.host) not in self._names:
            return http_json.error(403, "this interface answers to its own address only")
        bearer = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if request.path != "/health" and not hmac.compare_digest(bearer, self._bearer):
            return http_json.error(401, "the token is missing or wrong; it is in the data directory's file `run`")
        if request.path != "/health" and self.admission is not None:
            self.admission.trust(request.transport)
        return None

    # -- looks -----------------------------------------------------------------------------------------------------

    async def _health(self, _: web.Request) -> web.Response:
        report = self.health.look()
        return http_json.answer(report, 200 if report["ok"] else 503)

    async def _status(self, _: web.Request) -> web.Response:
        return http_json.answer(running(self.node, VIEW_EXTENSIONS))

    async def _top(self, request: web.Request) -> web.Response:
        count, by = request.query.get("n", "20"), request.query.get("by", "importance")
        if not (count.isascii() and count.isdigit() and len(count) < 10) or by not in ORDERS:
            raise InputError(f"top: n is a whole number, by is one of {', '.join(ORDERS)}")
        rows, now, level = min(int(count), MOST_ROWS), self.node.clock.time(), request.query.get("level", "host")
        if by == "site":
            return http_json.answer(await self._long_views.run(lambda views: top_sites(views, rows, level)))
        return await http_json.listing(await self._long_views.run(lambda views: views.top(rows, by, now)))

    async def _why(self, request: web.Request) -> web.Response:
        url = canonical(request.query.get("url", ""), fold_slashes=self.node.scope.fold_slashes)
        with await self.node.views() as views:
            explanation, targets = why(views, url, self.node.clock.time()), targets_of(views, url)
        if targets:
            explanation = with_givers(
                explanation, await self._long_views.run(lambda views: find_givers(views, targets, self.node.clock))
            )
        return http_json.answer(explanation)

    async def _plan(self, request: web.Request) -> web.Response:
        target, policies = request.query.get("target"), request.query.get("policies", "")
        try:
            wanted = None if target is None else float(target)
        except ValueError:
            raise InputError("plan: target is a number above 0 and below 1") from None
        question = PlanQuestion(wanted, request.query.get("bandwidth"), tuple(filter(None, policies.split(","))))
        crawl = self.node.crawl_views
        pages, settings, kappa = crawl.refreshed_pages(), crawl.refresh, crawl.kappa
        return http_json.answer(await asyncio.to_thread(report, pages, settings, question, kappa))

    async def _audit(self, _: web.Request) -> web.Response:
        return http_json.answer(await self._long_views.audit(partial(audit, extensions=VIEW_EXTENSIONS)))

    async def _export(self, request: web.Request) -> web.StreamResponse:
        table = request.match_info["table"]
        if table not in COLUMNS:
            raise InputError(f"export: {', '.join(COLUMNS)}")
        if table == "hosts":
            return await self._long_views.stream(table, SiteRanking, _hosts, request)
        return await self._long_views.export(table, request)

    # -- orders ----------------------------------------------------------------------------------------------------

    async def _submit(self, request: web.Request) -> web.Response:
        body = await http_json.body_of(request)
        urls = body.get("urls")
        if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls) or len(urls) > MOST_URLS:
            raise InputError(f"submit: urls is a list of at most {MOST_URLS:,} URLs")
        if body.get("priority", "ordered") != "ordered":
            raise InputError("submit: the priority is ordered")
        wanted, refused = await self._hand_over(urls)
        why_out = self.node.scope.why_out
        reasons = {url: reason async for url in unhurried(wanted) if (reason := why_out(url, 0))}
        outside = [(url, f"{reason}: known, but not to be read") for url, reason in reasons.items()]
        refusals = [{"url": url, "why": reason} for url, reason in (*refused, *outside)]
        return http_json.answer({"accepted": len(wanted) - len(outside), "refused": refusals})

    async def _hand_over(self, urls: Sequence[str]) -> tuple[list[str], list[tuple[str, str]]]:
        """Submit those that are none to refuse, some in a commit group. -> (canonical, distinct; those refused, why)"""
        wanted: dict[str, None] = {}
        refused: list[tuple[str, str]] = []
        async for first in unhurried(range(0, len(urls), AT_ONCE), 1):
            some, others = sort_seeds(urls[first : first + AT_ONCE], self.node.scope)
            refused += others
            if fresh := [url for url in some if url not in wanted]:
                await self.node.submit(fresh)
                wanted.update(dict.fromkeys(fresh))
        return list(wanted), refused

    async def _hosts(self, request: web.Request) -> web.Response:
        body = await http_json.body_of(request)
        host, action = body.get("host"), body.get("action")
        if not isinstance(host, str) or not isinstance(action, str) or action not in ACTIONS:
            raise InputError("hosts: host is a host[:port] as URLs write it, action is pause, resume or block")
        return http_json.answer({"host": host, "known": await self.node.hold(host, ACTIONS[action])})

    async def _backup(self, request: web.Request) -> web.Response:
        """Back the data directory up as of this commit; the files are written with the rights of this process."""
        to = (await http_json.body_of(request)).get("to")
        if not isinstance(to, str) or "\0" in to or not Path(to).is_absolute():
            raise InputError("backup: to is an absolute path")
        async with self._backing_up:
            return http_json.answer(await backup.running(self.node, Path(to)))


def _hosts(views: Views, ranking: SiteRanking) -> Iterator[dict[str, Any]]:
    return views.hosts(ranking.row_by_name)
