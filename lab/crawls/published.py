"""Publications under full load: pages of the computed web change, their sites say so at once, and when are they read?

Every host has more due pages than its politeness lets be read, and unread ones behind them; the bandwidth is used up.
Then pages change at the moments that the web computes, and each site tells in its own way: IndexNow with a key file of
its own, a token, or the owner by `xyro publish`'s interface. The time from sending the publication to the answer that
the server gave is held against what is stated:

    (1 + a) delays and reads of the host,  a: the publications of the host that were there before it;
                                           one more if a read was just under way
    + MACHINE for a turn, a commit group, and a computer that has other things to do

One site lies: it publishes pages that do not change. Its word has to become worthless, and the others must not notice.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
from aiohttp import ClientSession

from xyro.configs.load import load
from xyro.lab.web.answers import CACHE_BYTES, Answers, Request, Response
from xyro.lab.web.places import Doc, address_of
from xyro.lab.web.server import WebServer
from xyro.lab.web.web import Web
from xyro.metadata.states import State
from xyro.plugins import PLUGINS
from xyro.plugins.publish.listener import listen, listener_of
from xyro.plugins.publish.promise_report import promise_status
from xyro.service.api.endpoints import listen as listen_api
from xyro.service.api.http_api import HttpApi
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.node import Bounds, Node
from xyro.wire.clock import SystemClock
from xyro.wire.errors import MachineError

KEY, TOKEN, OWNER = "0123456789abcdef", "a-token-of-this-site", "the-owner-of-this-crawl"
BACKLOG = 5
"""due pages that each host has before anything is published"""
LOADED = 0.95
"""share of what politeness allows for that was read, from which on hosts are loaded"""
PATIENCE = 120.0
"""seconds until the crawl is loaded like that"""
DEADLINE = 10.0
"""seconds that publications ask for; the crawler itself counts those that are later"""
MACHINE = 1.0
LIAR = 0
SEEN = 1.0
"""seconds for which a liar waits whether it is found out"""
LIES = 20
"""how often it lies, each time of another page; the second half of it has to be of no use"""
OVERBOOKED = 10.0
"""bandwidth that is set, in what politeness allows for: so everything is due as soon as it was read"""


@dataclass(frozen=True, slots=True)
class PublishedSize:
    """The size of a run: seconds between two reads of a host, seconds of publishing, publications a second and host."""

    hosts: int
    pages: int
    delay: float
    seconds: float
    bandwidth: float


FULL = PublishedSize(24, 24_000, 0.25, 45.0, 0.7)
QUICK = PublishedSize(6, 3_000, 0.1, 6.0, 1.5)


class PublishedKey(Answers):
    """The web's answers, and a key file on each host."""

    def answer(self, host: int, request: Request, t: float) -> Response:
        if request.target == f"/{KEY}.txt":
            head = f"Content-Type: text/plain\r\nContent-Length: {len(KEY)}\r\n\r\n"
            return Response(200, "text/plain", head.encode(), KEY.encode())
        return super().answer(host, request, t)


@dataclass(slots=True)
class Announcement:
    """One honest publication: when it was sent, how long it took to be read, what was stated."""

    page: int
    sent: float
    stated: float
    took: float | None = None


@dataclass(slots=True)
class ServedPages:
    """The server's record of reads and of publications that wait for one, by page."""

    web: Web
    last: dict[int, float] = field(default_factory=dict)
    waiting: dict[int, Announcement] = field(default_factory=dict)
    reads: int = 0

    def served(self, host: int, request: Request, t: float) -> None:
        page = self.web.places.find(host, request.target)
        if page < 0:
            return
        self.last[page] = t
        self.reads += 1
        if (announcement := self.waiting.get(page)) is not None and t >= announcement.sent:
            announcement.took = t - announcement.sent
            del self.waiting[page]


class Sites:
    """The sites that publish, each host in its own way."""

    def __init__(
        self, web: Web, seen: ServedPages, http: ClientSession, listener: str, api: str, size: PublishedSize
    ) -> None:
        self.web, self.seen, self.http, self.size = web, seen, http, size
        self._listener, self._api = listener, api
        self._keys: set[int] = set()
        """hosts whose key file was read"""
        self.announcements: list[Announcement] = []
        self.ways: Counter[str] = Counter()
        self.refused = 0
        self.lies: list[int] = []
        """after each one, those that became no order"""

    async def introduce(self) -> None:
        """Let the keys of IndexNow be read, each with a page of which nothing was known: it can be no lie."""
        for host in range(3, self.size.hosts, 3):
            start, end = self.web.places.starts[host : host + 2].tolist()
            page = next(number for number in range(end - 1, start, -1) if self.web.kind(number) is Doc.HTML)
            while host not in self._keys:
                await self._indexnow(host, self.web.url(page))
                await asyncio.sleep(2.0 * self.size.delay)

    async def publish(self, page: int) -> None:
        """Publish a page that has just changed, as its site does."""
        host, now = self.web.host(page), SystemClock().time()
        ahead = sum(self.web.host(other) == host for other in self.seen.waiting)
        stated = (2 + ahead) * self.size.delay + MACHINE
        announcement = self.seen.waiting[page] = Announcement(page, now, stated)
        self.announcements.append(announcement)
        if not await self._say(host, self.web.url(page)):
            self.refused += 1
            self.seen.waiting.pop(page, None)

    async def lie(self, page: int, hastened: Callable[[], int]) -> None:
        """Publish a page that has not changed."""
        await self._token(self.web.url(page))
        self.lies.append(hastened())

    async def _say(self, host: int, url: str) -> bool:
        if host % 3 == 0:
            self.ways["indexnow"] += 1
            return await self._indexnow(host, url)
        self.ways["token" if host % 3 == 1 else "owner"] += 1
        return await (self._token(url) if host % 3 == 1 else self._owner(url))

    async def _indexnow(self, host: int, url: str) -> bool:
        body = {"host": url.split("/")[2], "key": KEY, "urlList": [url]}
        async with self.http.post(f"{self._listener}/indexnow", json=body) as answer:
            if answer.status == 200:
                self._keys.add(host)
            return answer.status in (200, 202)

    async def _token(self, url: str) -> bool:
        bearer = {"Authorization": f"Bearer {TOKEN}-{url.split('/')[2].rpartition(':')[0]}"}
        async with self.http.post(f"{self._listener}/publish", json={"urls": [url]}, headers=bearer) as answer:
            return answer.status == 200

    async def _owner(self, url: str) -> bool:
        bearer, body = {"Authorization": f"Bearer {OWNER}"}, {"urls": [url], "deadline": DEADLINE}
        async with self.http.post(f"{self._api}/publish", json=body, headers=bearer) as answer:
            return answer.status == 200


def run(size: PublishedSize, seed: int) -> dict[str, Any]:
    """Measure one run; return its report."""
    import uvloop

    began = SystemClock()
    start = began.monotonic()
    speed = 30.0 * 86_400 / (2.0 * size.seconds)  # a page changes twice as slowly as publishing takes, at the median
    web = Web(seed=seed, pages=size.pages, hosts=size.hosts, origin=began.time(), speed=speed)
    web.rates[: web.shape.pages][web.places.hosts == LIAR] = 0.0
    with tempfile.TemporaryDirectory(prefix="xyro-promises-") as directory:
        report = uvloop.run(_crawl(Path(directory) / "data", web, size, seed))
    return {**report, "seconds": round(began.monotonic() - start, 1)}


def _options(web: Web, size: PublishedSize) -> dict[str, Any]:
    capacity = size.hosts / size.delay
    return {
        "crawl.scope": "any",
        "fetch.only_net": ("127.0.0.0/8",),
        "politeness.delay": size.delay,
        "refresh.bandwidth": OVERBOOKED * capacity,
        "refresh.time_unit": 1,
        "publish.deadline": DEADLINE,
        "publish.tokens": {address_of(host): f"{TOKEN}-{address_of(host)}" for host in range(web.shape.hosts)},
    }


async def _crawl(directory: Path, web: Web, size: PublishedSize, seed: int) -> dict[str, Any]:
    seen = ServedPages(web)
    async with WebServer(web, listener=seen.served) as server, ClientSession() as http:
        web = seen.web = server.web
        server.answers = PublishedKey(web, CACHE_BYTES)
        settings = load((), {}, _options(web, size))
        guard, public, private = guard_of(settings.fetch), listen("127.0.0.1:0"), listen_api("127.0.0.1", 0)
        assert public is not None
        data = DataDir.open(directory, make=True)
        single = Node(data, settings, guard, Bounds(forever=True), plugins=PLUGINS)
        listener, api = listener_of(single), HttpApi(single, OWNER)
        bases = [f"http://127.0.0.1:{sock.getsockname()[1]}" for sock in (public, private)]
        try:
            single.start()
            await listener.start(public)
            await api.start(private)
            await single.submit([web.url(int(page)) for page in web.places.starts[:-1]])
            return await _measured(single, Sites(web, seen, http, bases[0], bases[1], size), seed)
        finally:
            await api.close()
            await listener.close()
            await single.stop()
            data.close()


def backlog(single: Node) -> list[int]:
    """Due pages by host, of hosts with pages to read."""
    frontier, now = single.frontiers[0], single.clock.time()
    columns, n = frontier.columns, frontier.columns.n
    due = (columns["state"][:n] == State.READ) & (columns["due"][:n] > 0) & (columns["due"][:n] <= now)
    found: list[int] = np.bincount(columns["host"][:n][due], minlength=len(frontier.partition.hosts)).tolist()
    return found


async def _loaded(single: Node, web: Web, seen: ServedPages) -> None:
    """Wait until every host has a backlog, and the liar pages to lie about. MachineError: it never comes to that."""
    end, hosts = single.clock.monotonic() + PATIENCE, web.shape.hosts
    while sum(count >= BACKLOG for count in backlog(single)) < hosts or len(of_the_liar(web, seen)) < LIES:
        single.check()
        if single.clock.monotonic() > end:
            raise MachineError(
                "promises: the crawl does not get behind its plan: a bug, or a machine that stands still"
            )
        await asyncio.sleep(0.1)


def changes(
    web: Web, seen: ServedPages, now: float, size: PublishedSize, rng: random.Random
) -> list[tuple[float, int]]:
    """(when, page) of changes of pages that were read, in the seconds of publishing, so many of each honest host."""
    found: dict[int, list[tuple[float, int]]] = {}
    for page in sorted(seen.last):
        if web.kind(page) is Doc.HTML and web.host(page) != LIAR and web.status(page) == 200:
            until = web.state(page, now).until
            if until < now + size.seconds:
                found.setdefault(web.host(page), []).append((until, page))
    limit = max(1, round(size.bandwidth * size.seconds))
    return sorted(change for moments in found.values() for change in rng.sample(moments, min(limit, len(moments))))


def of_the_liar(web: Web, seen: ServedPages) -> list[int]:
    """Pages of the liar that were read; none of them ever changes."""
    return [page for page in sorted(seen.last) if web.host(page) == LIAR and web.kind(page) is Doc.HTML]


async def _measured(single: Node, sites: Sites, seed: int) -> dict[str, Any]:
    size, web, seen, clock = sites.size, sites.web, sites.seen, single.clock
    await _loaded(single, web, seen)
    try:
        async with asyncio.timeout(PATIENCE):
            await sites.introduce()
    except TimeoutError:
        raise MachineError("promises: key files are not read: a bug, or a machine that stands still") from None
    start, before, rng = clock.time(), seen.reads, random.Random(seed)
    load: dict[str, Any] = {"least_backlog": min(backlog(single)), "unread": single.frontiers[0].scheduler.unread}
    async with asyncio.TaskGroup() as group:
        for when, page in changes(web, seen, start, size, rng):
            group.create_task(_publish_at(clock.time, when, sites, page))
        lies = of_the_liar(web, seen)
        group.create_task(_lie(single, sites, rng.sample(lies, min(LIES, len(lies)))))
        await asyncio.sleep(size.seconds)
    passed = clock.time() - start
    load["least_backlog_after"] = min(backlog(single))
    load["reads_per_second"] = round((seen.reads - before) / passed, 1)
    load["share_of_politeness"] = round((seen.reads - before) / passed * size.delay / size.hosts, 3)
    await _arrived(seen, clock.monotonic() + DEADLINE)
    return _report(single, sites, load)


async def _publish_at(clock: Any, when: float, sites: Sites, page: int) -> None:
    await asyncio.sleep(max(0.0, when - clock()))
    await sites.publish(page)


async def _lie(single: Node, sites: Sites, pages: list[int]) -> None:
    """Send the lies, each when those before it were found out, as far as they were believed; SEEN seconds at most."""
    clock = SystemClock()
    for page in pages:
        await sites.lie(page, lambda: int(counters(single)["hastened"]))
        await asyncio.sleep(sites.size.seconds / LIES)
        end = clock.monotonic() + SEEN
        while _believed(counters(single), len(sites.lies)) and clock.monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def counters(single: Node) -> dict[str, Any]:
    """Count what became of all publications so far."""
    now = single.clock.time()
    found: dict[str, Any] = promise_status(single.crawl_views.statuses(now), now)["published"]
    return found


def _believed(counts: Mapping[str, Any], lies: int) -> bool:
    """Tell whether one of `lies` lies was believed, and not yet found out."""
    return bool(counts["false"] + counts["hastened"] < lies)


async def _arrived(seen: ServedPages, end: float) -> None:
    while seen.waiting and SystemClock().monotonic() < end:  # noqa: ASYNC110 - the server tells, from its own side
        await asyncio.sleep(0.05)


def _report(single: Node, sites: Sites, load: dict[str, Any]) -> dict[str, Any]:
    took = [announcement.took for announcement in sites.announcements if announcement.took is not None]
    stated = [notice.stated for notice in sites.announcements]
    late = sum(notice.took is None or notice.took > notice.stated for notice in sites.announcements)
    counts = counters(single)
    half = len(sites.lies) // 2
    lies = {"told": len(sites.lies), "ordered": len(sites.lies) - counts["hastened"], "false": counts["false"]}
    claims = {
        "all read": bool(took) and len(took) == len(sites.announcements) and not sites.refused,
        "in the stated time": not late,
        "deadlines": not counts["late"] and not counts["overdue"],
        # a host without due pages at the end had unread ones: what counts is that politeness left no read over
        "full load": (load["least_backlog_after"] > 0 or load["share_of_politeness"] >= LOADED) and load["unread"] > 0,
        "the liar's word": half > 0 and sites.lies[-1] - sites.lies[half - 1] == len(sites.lies) - half,
    }
    return {
        "part": "publications",
        "ok": all(claims.values()),
        "broken": [name for name, holds in claims.items() if not holds],
        "publications": len(sites.announcements),
        "ways": dict(sites.ways),
        "median_s": round(median(took), 3) if took else None,
        "p90_s": round(quantiles(took, n=10)[-1], 3) if len(took) > 1 else None,
        "longest_s": round(max(took, default=0.0), 3),
        "stated_s": [round(f(stated), 2) for f in (min, max)] if stated else None,
        "late": late,
        "deadline_s": DEADLINE,
        "deadlines_missed": counts["late"],
        "liar": lies,
        "load": load,
    }
