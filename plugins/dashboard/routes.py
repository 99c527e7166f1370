"""The dashboard through the interface of a running crawler (service/api/http_api.py says who may ask).

GET  /dashboard                      the page, without any data: for everybody who can reach the interface
POST /dashboard/link                 -> {"path"}: a link that opens one session, once, within ten minutes
POST /dashboard/session  {"key"}     -> {"session"}: what the page shows as `Authorization: Session ...` from then on
GET  /dashboard/events               server-sent events: the crawl's directory and machine, at once; then
                                     status, health, speed over ten minutes, the last reads
GET  /dashboard/hosts?by=&find=      the first hosts by importance, backlog, failures, cost, or a part of their name
GET  /dashboard/texts?url=&from=&to= versions of its kept text, and what changed between two
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections import deque
from collections.abc import Awaitable, Callable
from heapq import nlargest
from importlib.resources import files
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any

from aiohttp import web

from xyro.contents_index import FOLDER
from xyro.plugins.dashboard.dashboard_feed import DashboardFeed
from xyro.plugins.dashboard.dashboard_sessions import DashboardSessions
from xyro.service.node import http_json
from xyro.service.node.slicing import unhurried
from xyro.wire.errors import InputError
from xyro.wire.text import middle_cut
from xyro.wire.urls import canonical, fits

if TYPE_CHECKING:
    from xyro.service.node.node import Node
    from xyro.wire.messages import PageReport

PAGE = "/dashboard"
OPEN_PATHS = (PAGE, f"{PAGE}/session")
"""answered without token or session: the page holds no data, and a session takes a key"""
VIEWS = ("/status", "/top", "/why", "/plan", "/hosts")
SESSION_PATHS = (*VIEWS, *(f"{PAGE}/{name}" for name in ("events", "hosts", "texts")))
"""what a session may ask for"""
MOST_HOSTS = 200
LAST_READS = 12
LONGEST_URL = 200
"""characters of the URL of a last read"""
ORDERS: dict[str, Callable[[dict[str, Any]], float]] = {
    "importance": lambda row: row["importance"],
    "backlog": lambda row: row["unread"] + row["waiting"],
    "failures": lambda row: row["failures"] + row["challenges"] + row["errors"],
    "cost": lambda row: row["bytes"],
}
Look = Callable[[], Awaitable[dict[str, Any]]]
Texts = Callable[[Path, str, int | None, int | None, float], dict[str, Any]]
"""(directory of contents, URL, versions to compare, now) -> what a page's texts are"""


class DashboardRoutes:
    """The routes of one Node. look: makes the fields of an event; texts: kept_texts.py of the contents."""

    def __init__(self, node: Node, look: Look, texts: Texts) -> None:
        self._node = node
        self._look = look
        self._texts_of = texts
        self.sessions = DashboardSessions()
        self._feed = DashboardFeed(self._event, {"data": str(node.data.path.resolve()), "machine": gethostname()})
        self._reports: deque[PageReport] = deque(maxlen=LAST_READS)
        node.fetch_loop.answered.append(lambda report, _: self._reports.append(report))
        self._page = files("xyro.plugins.dashboard").joinpath("dashboard.html").read_text(encoding="utf-8")
        self._headers = {**http_json.HEADERS, "Content-Security-Policy": policy_of(self._page), **HEADERS}

    def routes(self) -> list[web.RouteDef]:
        """Routes for an interface that checks who asks and turns errors into JSON."""
        return [
            web.get("/dashboard", self._html),
            web.post("/dashboard/link", self._link),
            web.post("/dashboard/session", self._session),
            web.get("/dashboard/events", self._events),
            web.get("/dashboard/hosts", self._hosts),
            web.get("/dashboard/texts", self._texts),
        ]

    def admits(self, request: web.Request) -> bool:
        """Tell whether a request without the token may be answered."""
        if request.path in OPEN_PATHS:
            return True
        return request.path in SESSION_PATHS and self.sessions.admits(request.headers.get("Authorization", ""))

    async def close(self) -> None:
        """End the streams of events."""
        await self._feed.close()

    async def _event(self) -> dict[str, Any]:
        return {**await self._look(), "last_reads": [_read(report) for report in reversed(self._reports)]}

    async def _html(self, _: web.Request) -> web.Response:
        return web.Response(text=self._page, content_type="text/html", headers=self._headers)

    async def _link(self, _: web.Request) -> web.Response:
        return http_json.answer({"path": f"{PAGE}#{self.sessions.key()}"})

    async def _session(self, request: web.Request) -> web.Response:
        key = (await http_json.body_of(request)).get("key")
        session = self.sessions.open(key) if isinstance(key, str) else None
        if session is None:
            return http_json.error(401, "this link was used before, or is too old: `xyro dashboard` makes another")
        return http_json.answer({"session": session})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        return await self._feed.stream(request, http_json.HEADERS)

    async def _hosts(self, request: web.Request) -> web.Response:
        by, wanted = request.query.get("by", "importance"), request.query.get("find", "").lower()
        if by not in ORDERS:
            raise InputError(f"hosts: by is one of {', '.join(ORDERS)}")
        if not self._node.has_partitions:
            return http_json.answer([])
        with await self._node.views() as views:
            rows = [row async for row in unhurried(views.hosts()) if wanted in row["host"]]
        crawled = (row for row in rows if row["in_scope"] or row["held"])
        first = nlargest(MOST_HOSTS, crawled, key=ORDERS[by])
        return http_json.answer([{**row, "delay": self._delay(row["host"])} for row in first])

    def _delay(self, host: str) -> float:
        """Least seconds between two reads of a host, as set; Crawl-delay and back-off may make it more."""
        settings, polite = self._node.settings, self._node.settings.politeness
        own = next((site.delay for site in settings.sites if fits(host, site.host)), None)
        least = polite.min_delay if polite.delay is None else polite.delay
        return least if own is None else own

    async def _texts(self, request: web.Request) -> web.Response:
        url = canonical(request.query.get("url", ""), fold_slashes=self._node.scope.fold_slashes)
        keep = self._node.settings.keep
        directory = Path(keep.directory) if keep.directory else self._node.data.path / FOLDER
        now = self._node.clock.time()
        old, new = (_number(request.query.get(name, "")) for name in ("from", "to"))
        return http_json.answer(await asyncio.to_thread(self._texts_of, directory, url, old, new, now))


def _read(report: PageReport) -> dict[str, Any]:
    """A read as the page lists it. host_waits: seconds that its host is left alone from its end on."""
    return {
        "url": middle_cut(report.url, LONGEST_URL),
        "result": report.error or str(report.status),
        "seconds": round(report.ended - report.started, 3),
        "host_waits": round(max(0.0, report.host_next - report.ended), 3),
    }


HEADERS = {
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""of the page, beside its policy"""


def policy_of(page: str) -> str:
    """The Content-Security-Policy of the page: its own script and style by their digests, and nothing else."""
    script, style = (_digest(page, tag) for tag in ("script", "style"))
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _digest(page: str, tag: str) -> str:
    """The digest of the page's only element of this name, as a policy writes it."""
    (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()}'"


def _number(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InputError("texts: from and to are numbers of versions")
    return int(text)
