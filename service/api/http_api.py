"""The HTTP interface of a running crawler, on loopback, for the `xyro` commands and for scripts.

    GET  /health                      no token: {"ok", "pid", ...}, 200 or 503 (service/api/health.py)
    GET  /metrics                     for Prometheus: service/api/metrics_listener.py
    GET  /status   /top?n=&by=   /why?url=   /audit
    GET  /export/TABLE                JSON lines, one commit boundary, streamed: pages, documents, links, hosts,
                                      histories
    GET  /plan?target=&bandwidth=&policies=   what a bandwidth gives, what a freshness takes
    GET  /errors                      failures by class, with samples
                                      In a cluster, /errors and /export/hosts take partial=1: cluster_answers.py
    GET  /rank?links=0|1              what `xyro rank` computes from: plugins/rank/routes.py
    GET  /xml/...                     the repository of documents: plugins/warehouse/routes.py
    GET  /changes?since=&where=&follow=0|1    what changed, as JSON lines: plugins/changes/routes.py
    GET  /contents/...                pages' contents that this process keeps: plugins/contents/routes.py
    ...  /bounds                      a bounded crawl of a cluster: plugins/bounded/routes.py
    ...  /publish  /subscriptions     what sites and subscribers ask: plugins/publish/routes.py
    POST /ids      {"urls": [...]} -> [id or null]
    POST /submit   {"urls": [...], "priority": "ordered"}   -> {"accepted": n, "refused": [{"url", "why"}]};
                  of a cluster `absent`, too: those whose node is away, in the form of `refused`
    ...  /dashboard                   a page for the browser, and what it asks for: plugins/dashboard/routes.py
    POST /backup   {"to": "/absolute/path"}   -> {"to", "partitions", "bytes", "seconds"}
    POST /hosts    {"host": "...", "action": "pause|resume|block"}   -> {"host", "known"}

Every request but /health and the page /dashboard carries `Authorization: Bearer TOKEN`; the token is in DIR/run,
readable by its owner only. It listens on loopback only, refuses a Host header that is not its own (DNS rebinding) and
bodies above 4 MiB, and knows no CORS and no cookies. Errors are JSON too: {"error": "..."}. Connections are bounded
(service/node/admission.py): where all places are taken, a new one gets that of the connection that has gone longest
without showing the token.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from aiohttp import web

from xyro.plugins.bounded.routes import bound_routes
from xyro.plugins.changes.change_histories import PageEvents, gather_histories, history_rows
from xyro.plugins.changes.routes import change_routes
from xyro.plugins.contents.kept_texts import kept_texts
from xyro.plugins.contents.routes import contents_routes
from xyro.plugins.dashboard.page_failures import failures
from xyro.plugins.dashboard.routes import OPEN_PATHS, DashboardRoutes
from xyro.plugins.publish.routes import promise_routes
from xyro.plugins.rank.routes import rank_routes
from xyro.plugins.view_extensions import VIEW_EXTENSIONS
from xyro.plugins.warehouse.routes import merged_documents, xml_routes
from xyro.refresh.plan_part import PlanPart
from xyro.service.api.cluster_answers import ClusterAnswers, is_part, mean_of, packed
from xyro.service.api.health import Health
from xyro.service.api.metrics_listener import metrics_of
from xyro.service.cluster.gathering import Cuts
from xyro.service.cluster.transport import ClusterBus
from xyro.service.node import backup, http_json
from xyro.service.node.admission import Admission
from xyro.service.node.coverage import begin_cover, note_cover
from xyro.service.node.long_views import LongViews, stream_parts
from xyro.service.node.seeds import sort_seeds, why_unread
from xyro.service.node.slicing import unhurried
from xyro.service.node.status import running
from xyro.service.views.audit import PartitionAudit, audit, audit_part
from xyro.service.views.cash_sources import find_parents, greatest_givers, targets_of
from xyro.service.views.export import COLUMNS
from xyro.service.views.forecast import PlanQuestion, report
from xyro.service.views.site_ranking import SiteRanking, rank_sites, ranked_sites, site_parts, top_sites
from xyro.service.views.views import Views
from xyro.service.views.why import why, with_givers
from xyro.wire.errors import InputError, MachineError, XyroError
from xyro.wire.urls import canonical, host_and_port, host_of, partition_of

if TYPE_CHECKING:
    from xyro.service.node.node import Node

BODY = 4 << 20
HOLD_SECONDS = 10.0
"""for the partition of a host to have a person's word on disk"""
MOST_URLS = 10_000
AT_ONCE = 500
"""URLs that are looked at and submitted between two turns of the event loop: 20 us each, and as much in the group"""
MOST_ROWS = 100_000
ORDERS = ("importance", "read", "cash", "stale", "rising", "site")
SHUTDOWN = 2.0
"""seconds that requests under way have to end when the process stops"""
PATIENCE = 20.0
"""seconds that a connection may wait for its next whole head"""
CONNECTIONS = 128
"""open at once"""
EXPORTED = tuple(table for table in COLUMNS if table not in ("texts", "warc"))
"""tables that a process gives out; the others are files (plugins/contents)"""
ACTIONS = {"pause": "paused", "resume": "", "block": "blocked"}
OF_OWNER = ("/xml/versions", "/xml/body")
"""paths that the node answers which has the document's host"""
MERGED: dict[str, Callable[[web.Request, list[Any]], Awaitable[web.Response]]] = dict.fromkeys(
    ("/xml/chosen", "/xml/dtds", "/xml/stats"), merged_documents
)
"""paths whose answer is merged from the parts of all nodes"""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_log = logging.getLogger("xyro")


class HttpApi:
    """Serves one Node."""

    def __init__(self, node: Node, token: str) -> None:
        self.node = node
        self._bearer = f"Bearer {token}".encode()
        self._names = {"127.0.0.1", "localhost", "[::1]"}
        self.health = Health(node)
        self._metrics = metrics_of(node, self.health)
        self._dashboard = DashboardRoutes(node, self._dashboard_event, kept_texts)
        self._backing_up = asyncio.Lock()
        self._long_views = LongViews(node)
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None
        self.admission: Admission | None = None
        self._cluster: ClusterAnswers | None = None

    async def start(self, listening: socket.socket) -> None:
        """Answer on a socket of loopback (endpoints.py), which is closed in the end."""
        address = listening.getsockname()[0]
        self._names.add(f"[{address}]" if ":" in address else address)
        app = web.Application(client_max_size=BODY, middlewares=[self._guarded])
        app.add_routes(
            [
                web.get("/health", self._health),
                web.get("/status", self._status),
                web.get("/metrics", self._prometheus),
                web.get("/top", self._top),
                web.get("/why", self._why),
                web.get("/audit", self._audit),
                web.get("/export/{table}", self._export),
                web.get("/plan", self._plan),
                web.get("/errors", self._errors),
                web.get("/mass", self._mass),
                web.post("/ids", self._ids),
                web.post("/submit", self._submit),
                web.post("/hosts", self._hosts),
                web.post("/backup", self._backup),
                *rank_routes(self._long_views, self._of_all_nodes, mean_of),
                *xml_routes(self.node, self._long_views),
                *promise_routes(self.node),
                *change_routes(self.node),
                *contents_routes(self.node, lambda: self._cluster),
                *bound_routes(self.node),
                *self._dashboard.routes(),
            ]
        )
        app.on_response_prepare.append(self._covered)
        self.health.start()
        if isinstance(self.node.network, ClusterBus):
            cuts = Cuts(self.node.network, self._long_views, _audit_part)
            await cuts.start()
            base = f"http://{host_and_port(*listening.getsockname()[:2])}"
            self._cluster = ClusterAnswers(self.node.network, cuts, self.node.clock, base, self._bearer.decode())
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
        await self._dashboard.close()
        if self._cluster is not None:
            await self._cluster.close()
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
            if (refusal := self._refusal(request)) is not None:
                return refusal
            if is_part(request) and not begin_cover(request, self.node.partitions_here):
                return web.Response(headers=http_json.HEADERS)
            if request.path in MERGED and (others := self._others(request)) is not None:
                return await MERGED[request.path](request, await others.parts(request))
            others = self._others(request) if request.path in OF_OWNER else None
            return (others and await others.passed_on(request)) or await handler(request)
        except web.HTTPException as error:  # aiohttp's own: no such path, no such method, too large
            return http_json.error(error.status, error.reason)
        except InputError as error:
            return http_json.error(400, str(error))
        except XyroError as error:
            return http_json.error(500, str(error))
        except ConnectionError:  # it has gone away: there is nobody to tell
            raise
        except Exception:
            _log.exception("%s %s failed (a bug)", request.method, request.path)
            return http_json.error(500, "internal error; the log has more")

    async def _covered(self, request: web.Request, response: web.StreamResponse) -> None:
        note_cover(request, response, self.node.partitions_here)

    def _refusal(self, request: web.Request) -> web.Response | None:
        name, _, port = request.host.rpartition(":")
        if (name if name and port.isdigit() else request.host) not in self._names:
            return http_json.error(403, "this interface answers to its own address only")
        bearer = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if request.path == "/health":
            return None
        if not hmac.compare_digest(bearer, self._bearer) and not self._dashboard.admits(request):
            return http_json.error(401, "the token is missing or wrong; it is in the data directory's file `run`")
        if request.path not in OPEN_PATHS and self.admission is not None:
            self.admission.trust(request.transport)
        return None

    # -- looks -----------------------------------------------------------------------------------------------------

    async def _health(self, _: web.Request) -> web.Response:
        report = self.health.look()
        return http_json.answer(report, 200 if report["ok"] else 503)

    def _others(self, request: web.Request) -> ClusterAnswers | None:
        """The whole cluster, where it is asked; None: the request is for what this process has."""
        return None if is_part(request) else self._cluster

    def _of_all_nodes(self, request: web.Request) -> AsyncIterator[bytes] | None:
        """The answers of all nodes to a request, streamed; None: it is for what this process has."""
        others = self._others(request)
        return None if others is None else others.streamed(request)

    async def _mass(self, _: web.Request) -> web.Response:
        """Known pages and importance of this process's partitions: what a mean page of all is made of."""
        if not self.node.has_partitions:
            return http_json.answer({"known": 0, "importance": 0.0})
        async with self.node.glance() as views:
            return http_json.answer({"known": views.known_pages, "importance": views.importance_total})

    async def _status(self, request: web.Request) -> web.Response:
        if (others := self._others(request)) is not None:
            return http_json.answer(await others.status())
        return http_json.answer(running(self.node, VIEW_EXTENSIONS))

    async def _dashboard_event(self) -> dict[str, Any]:
        """The fields of an event of the dashboard: of the whole crawl, and how this process does."""
        others = self._cluster
        status = running(self.node, VIEW_EXTENSIONS) if others is None else await others.status()
        return {"status": status, "health": self.health.look(), "series": self.node.recent.series()}

    async def _prometheus(self, _: web.Request) -> web.Response:
        return self._metrics()

    async def _top(self, request: web.Request) -> web.Response:
        count, by = request.query.get("n", "20"), request.query.get("by", "importance")
        if not (count.isascii() and count.isdigit() and len(count) < 10) or by not in ORDERS:
            raise InputError(f"top: n is a whole number, by is one of {', '.join(ORDERS)}")
        rows, now, level = min(int(count), MOST_ROWS), self.node.clock.time(), request.query.get("level", "host")
        if (others := self._others(request)) is not None:
            if by == "site":
                parts = [part for found in await others.parts(request) for part in found]
                return http_json.answer((await asyncio.to_thread(ranked_sites, parts)).top(rows))
            return await http_json.listing(await others.top(rows, by))
        if by == "site" and not is_part(request):
            return http_json.answer(await self._long_views.run(lambda views: top_sites(views, rows, level)))
        find = partial(_top, rows, by, level, now, partial(mean_of, request))
        return await http_json.listing(await self._long_views.part(find) or [])

    async def _why(self, request: web.Request) -> web.Response:
        url = canonical(request.query.get("url", ""), fold_slashes=self.node.scope.fold_slashes)
        if (others := self._others(request)) is not None:
            return http_json.answer(await others.why(url))
        async with self.node.glance() as views:
            views.mean = mean_of(request, views.mean)
            explanation, targets = why(views, url, self.node.clock.time()), targets_of(views, url)
        if targets:
            look = partial(find_parents, targets=targets, clock=self.node.clock)
            parents = await self._long_views.run(look, copied=False)
            async with self.node.glance() as views:
                views.mean = mean_of(request, views.mean)
                explanation = with_givers(explanation, greatest_givers(views, parents))
        return http_json.answer(explanation)

    async def _ids(self, request: web.Request) -> web.Response:
        """Ids of pages that are here, of canonical URLs; null: not known."""
        urls = (await http_json.body_of(request)).get("urls")
        if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls):
            raise InputError("ids: urls is a list of URLs")
        async with self.node.glance() as views:
            return http_json.answer([views.find(url) for url in urls[:MOST_URLS]])

    async def _plan(self, request: web.Request) -> web.Response:
        target, policies = request.query.get("target"), request.query.get("policies", "")
        try:
            wanted = None if target is None else float(target)
        except ValueError:
            raise InputError("plan: target is a number above 0 and below 1") from None
        question = PlanQuestion(wanted, request.query.get("bandwidth"), tuple(filter(None, policies.split(","))))
        part = self.node.crawl_views.plan_part(self.node.clock.time())
        if is_part(request):
            return http_json.answer(part.dump())
        if self._cluster is not None:
            part = PlanPart.merged(map(PlanPart.load, await self._cluster.parts_of("/plan?part=1")))
        return http_json.answer(
            await asyncio.to_thread(report, part, self.node.settings.refresh, question, self.node.clock.time())
        )

    async def _errors(self, request: web.Request) -> web.Response:
        if (others := self._others(request)) is not None:
            return await http_json.listing(await others.failures(request.query.get("partial") == "1"))
        return http_json.answer(await self._long_views.part(failures) or [])

    async def _audit(self, request: web.Request) -> web.Response:
        if (others := self._others(request)) is not None:
            return http_json.answer(await (others.books() if "books" in request.query else others.audit()))
        if self._cluster is not None:
            return http_json.answer(packed(await self._cluster.cuts.take(request.query.get("cut", ""))))
        return http_json.answer(await self._long_views.audit(partial(audit, extensions=VIEW_EXTENSIONS)))

    async def _export(self, request: web.Request) -> web.StreamResponse:
        table = request.match_info["table"]
        if table not in EXPORTED:
            raise InputError(
                f"export: {', '.join(EXPORTED)}; contents of pages: `xyro export texts`, `xyro export warc`"
            )
        if (others := self._others(request)) is not None:
            completed = {"hosts": others.hosts, "links": others.links}
            return await stream_parts(table, completed.get(table, others.streamed)(request), request)
        if is_part(request) and table == "hosts":
            return await self._long_views.export(table, request, partial(mean_of, request))
        if table == "hosts":
            return await self._long_views.stream(table, rank_sites, _hosts, request)
        if table == "histories":
            return await self._long_views.stream(
                table, gather_histories, partial(_histories, partial(mean_of, request)), request
            )
        return await self._long_views.export(table, request, partial(mean_of, request))

    # -- orders ----------------------------------------------------------------------------------------------------

    async def _submit(self, request: web.Request) -> web.Response:
        body = await http_json.body_of(request)
        urls = body.get("urls")
        if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls) or len(urls) > MOST_URLS:
            raise InputError(f"submit: urls is a list of at most {MOST_URLS:,} URLs")
        if body.get("priority", "ordered") != "ordered":
            raise InputError("submit: the priority is ordered")
        wanted, refused, absent = await self._hand_over(urls)
        scope = self.node.scope
        reasons = {url: reason async for url in unhurried(wanted) if (reason := why_unread(url, scope))}
        outside = [(url, f"known, but not to be read: {reason}") for url, reason in reasons.items()]
        refusals = [{"url": url, "why": reason} for url, reason in (*refused, *outside)]
        answer = {"accepted": len(wanted) - len(outside), "refused": refusals}
        return http_json.answer({**answer, "absent": absent} if absent else answer)

    async def _hand_over(self, urls: Sequence[str]) -> tuple[list[str], list[tuple[str, str]], list[dict[str, str]]]:
        """Submit those that are none to refuse, some in a commit group. -> (canonical, distinct; those refused, why;
        those that nobody has taken, as their node is away)"""
        wanted: dict[str, None] = {}
        refused: list[tuple[str, str]] = []
        gone: dict[int, str] = {}
        ask_absent = None if self._cluster is None else self._cluster.absent
        async for first in unhurried(range(0, len(urls), AT_ONCE), 1):
            some, others = sort_seeds(urls[first : first + AT_ONCE], self.node.scope)
            refused += others
            if fresh := [url for url in some if url not in wanted]:
                gone |= await self.node.submit(fresh, absent=ask_absent)
                wanted.update(dict.fromkeys(fresh))
        owners = {url: partition_of(host_of(url), self.node.commands.partitions) for url in wanted} if gone else {}
        absent = [{"url": url, "why": gone[q]} for url, q in owners.items() if q in gone]
        return [url for url in wanted if owners.get(url) not in gone], refused, absent

    async def _hosts(self, request: web.Request) -> web.Response:
        body = await http_json.body_of(request)
        host, action = body.get("host"), body.get("action")
        if not isinstance(host, str) or not host or not isinstance(action, str) or action not in ACTIONS:
            raise InputError("hosts: host is a host[:port] as URLs write it, action is pause, resume or block")
        if (others := self._others(request)) is not None:
            return http_json.answer(await others.of_owner(f"http://{host}/", "/hosts", {}, json.dumps(body).encode()))
        try:
            async with asyncio.timeout(HOLD_SECONDS):
                is_known = await self.node.hold(host, ACTIONS[action])
        except TimeoutError:
            raise MachineError(f"{host}: its partition is open nowhere, or stands still: ask again") from None
        return http_json.answer({"host": host, "known": is_known})

    async def _backup(self, request: web.Request) -> web.Response:
        """Back the data directory up as of this commit; the files are written with the rights of this process."""
        to = (await http_json.body_of(request)).get("to")
        if not isinstance(to, str) or "\0" in to or not Path(to).is_absolute():
            raise InputError("backup: to is an absolute path")
        async with self._backing_up:
            return http_json.answer(await backup.running(self.node, Path(to)))


def _audit_part(views: Views) -> PartitionAudit:
    return audit_part(views.views, VIEW_EXTENSIONS)


def _top(
    count: int, by: str, level: str, now: float, mean: Callable[[float], float], views: Views
) -> list[dict[str, Any]]:
    views.mean = mean(views.mean)
    return [part.dump() for part in site_parts(views, level)] if by == "site" else views.top(count, by, now)


def _histories(mean: Callable[[float], float], views: Views, found: list[PageEvents]) -> Iterator[dict[str, Any]]:
    views.mean = mean(views.mean)
    return history_rows(views, found)


def _hosts(views: Views, ranking: SiteRanking) -> Iterator[dict[str, Any]]:
    return views.hosts(ranking.row_by_name)
