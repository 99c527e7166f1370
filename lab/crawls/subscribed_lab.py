"""Subscriptions over weeks, on a clock that jumps: is every notice sent when it is due, once, with the changes?

Subscribers of the computed web's pages and folders are notified at their intervals; a receiver on loopback keeps the
notices. The right content of each notice is computed from the server's side: the version of each page that the crawler
last got, and the one that it had got before the previous notice.

`enough`   bandwidth and politeness leave room for all: no deadline is missed
`scarce`   a bandwidth, or a politeness, that cannot do what was promised: each miss is counted, and the notice says so
"""

from __future__ import annotations

import asyncio
import math
import tempfile
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from aiohttp import web as http

from xyro.configs.load import load
from xyro.lab.crawls.jumping import LONGEST, Jumping
from xyro.lab.web.answers import Request
from xyro.lab.web.places import Doc, host_at
from xyro.lab.web.server import WebServer
from xyro.lab.web.shape import DAY, ORIGIN
from xyro.lab.web.web import Web
from xyro.plugins import PLUGINS
from xyro.plugins.publish.notice_pages import NoticePages
from xyro.plugins.publish.subscribed import Subscribed
from xyro.plugins.publish.subscribing import Subscribing
from xyro.plugins.view_extensions import VIEW_EXTENSIONS
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.node import Bounds, Node
from xyro.service.node.status import running
from xyro.wire.clock import ManualClock, SystemClock
from xyro.wire.urls import host_of, path_of

GRAIN = 600.0
"""seconds that a jump takes at least while nothing is promised"""
STEP = 3.0
"""and while pages are being read for a notice; no less than the subscriptions' own pulse"""
PHASES = 6
"""subscriptions are made at so many hours, one after the other"""
EVERY = (DAY, 2 * DAY, 7 * DAY)
PATTERNS = 10
"""one subscription in so many is of a folder"""


@dataclass(frozen=True, slots=True)
class SubscribedSize:
    """The size of a run. delay: seconds between two reads of a host; bandwidth: reads a day for each page; every: the
    intervals of the subscriptions, seconds.
    """

    pages: int
    hosts: int
    days: float
    subscriptions: int
    delay: float
    bandwidth: float
    every: tuple[float, ...] = EVERY


FULL = SubscribedSize(1_500, 12, 14.0, 1_000, 1.0, 1.5)
QUICK = SubscribedSize(200, 4, 2.0, 50, 1.0, 1.5, (DAY / 4, DAY / 2, DAY))
SCARCE = {
    "bandwidth": SubscribedSize(120, 4, 1.0, 40, 1.0, 0.5, (3_600.0,)),
    "politeness": SubscribedSize(120, 1, 1.0, 1, 90.0, 20.0, (3_600.0,)),
}


class Served:
    """The versions of each page that the server gave the crawler, with their times."""

    def __init__(self) -> None:
        self.web: Web
        self._times: dict[int, list[float]] = defaultdict(list)
        self._versions: dict[int, list[int]] = defaultdict(list)

    def served(self, host: int, request: Request, t: float) -> None:
        page = self.web.places.find(host, request.target)
        if page >= 0:
            self._times[page].append(t)
            self._versions[page].append(self.web.version(page, t))

    def versions(self, page: int, t: float) -> set[int | None]:
        """Return the versions of which the crawler may have had a copy at t; None stands for no copy.

        t is known to the second only: a read within a second of it may or may not count.
        """
        first, last = (bisect_right(self._times[page], t + apart) for apart in (-1.0, 1.0))
        return {self._versions[page][number - 1] if number else None for number in range(first, last + 1)}


@dataclass(slots=True)
class Receiver:
    """A receiver of notices, which collects each as it came."""

    notices: list[dict[str, Any]] = field(default_factory=list)

    async def serve(self) -> tuple[http.AppRunner, str]:
        """Listen on loopback; return the runner to clean up, and the URL to subscribe with."""
        app = http.Application(client_max_size=64 << 20)
        app.add_routes([http.post("/notice", self._take)])
        runner = http.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await http.TCPSite(runner, "127.0.0.1", 0).start()
        return runner, f"http://127.0.0.1:{runner.addresses[0][1]}/notice"

    async def _take(self, request: http.Request) -> http.Response:
        self.notices.append(await request.json())
        return http.Response()


class Living(Jumping):
    """A daemon on a jumping clock that stops for subscriptions, too."""

    def busy(self) -> bool:
        return super().busy() or self.subscribed.unhandled() > 0

    @property
    def subscribed(self) -> Subscribed:
        """The subscriptions."""
        found = self.single.plugin(Subscribed)
        assert found is not None, "the node was made with all plug-ins"
        return found

    def awaits(self) -> bool:
        """Tell whether pages are being read for a notice."""
        found = (frontier.hooks.extension(NoticePages) for frontier in self.single.frontiers)
        return any(pages is not None and pages.awaited.awaited for pages in found)

    async def until(self, t: float) -> None:
        while self.clock.time() < t:
            await self.settle()
            now = self.clock.time()
            grain = STEP if self.awaits() or self.subscribed.in_line else self.grain
            jump = min(max(self._next() - now, grain), LONGEST)
            notice = self.subscribed.subscriptions.next_time() - now
            self.clock.advance(max(STEP, min(jump, notice, t - now)))
            self.jumps += 1
        await self.settle()


@dataclass(frozen=True, slots=True)
class Wish:
    """A subscription as it was made."""

    target: str
    every: float
    made: float


def targets(web: Web, size: SubscribedSize) -> list[str]:
    """Pages to read, and folders, of all hosts."""
    readable = [page for page in range(web.shape.pages) if web.kind(page) is Doc.HTML]
    if size.hosts == 1:
        return [f"{web.origin_of(0)}/*"] * size.subscriptions
    step = max(1, len(readable) // size.subscriptions)
    found = []
    for number in range(size.subscriptions):
        folder = f"{web.origin_of(number % size.hosts)}/d{1 + number // size.hosts % 8}/*"
        found.append(folder if number % PATTERNS == 0 else web.url(readable[number * step % len(readable)]))
    return found


def run(size: SubscribedSize, seed: int, enough: bool = True) -> dict[str, Any]:
    """Measure one run; return its report."""
    import uvloop

    web = Web(seed=seed, pages=size.pages, hosts=size.hosts, origin=ORIGIN)
    began = SystemClock().monotonic()
    with tempfile.TemporaryDirectory(prefix="xyro-promises-") as directory:
        report = uvloop.run(_live(Path(directory) / "data", web, size, enough))
    return {**report, "seconds": round(SystemClock().monotonic() - began, 1)}


async def _live(directory: Path, web: Web, size: SubscribedSize, enough: bool) -> dict[str, Any]:
    clock, served, receiver = ManualClock(ORIGIN), Served(), Receiver()
    options = {
        "crawl.scope": "any",
        "fetch.only_net": ("127.0.0.0/8",),
        "politeness.delay": size.delay,
        "refresh.bandwidth": size.bandwidth * size.pages / DAY,
        "refresh.time_unit": int(GRAIN),
        "store.commit_seconds": 0.002,
    }
    async with WebServer(web, clock=clock, listener=served.served) as server:
        served.web = server.web
        settings = load((), {}, options)
        data = DataDir.open(directory, make=True)
        single = Node(data, settings, guard_of(settings.fetch), Bounds(forever=True), clock, plugins=PLUGINS)
        runner, url = await receiver.serve()
        try:
            single.start()
            await single.submit([server.web.url(int(page)) for page in server.web.places.starts[:-1]])
            living = Living(single, clock, GRAIN)
            await living.until(ORIGIN + DAY)  # all is found, and read once
            wishes = await _subscribe(living, targets(server.web, size), size, url)
            await living.until(ORIGIN + (1.0 + size.days) * DAY)
            end = clock.time()
            while living.subscribed.in_line:
                await living.until(clock.time() + STEP)
            subscriptions = running(single, VIEW_EXTENSIONS)["subscribed"]
            return _report(NoticeTruth(served, wishes, end), receiver.notices, subscriptions, enough, living.jumps)
        finally:
            await single.stop()
            await runner.cleanup()
            data.close()


async def _subscribe(living: Living, wanted: list[str], size: SubscribedSize, url: str) -> dict[int, Wish]:
    """Subscribe to some targets each hour; return the wish behind each subscription, by its number."""
    wishes: dict[int, Wish] = {}
    some = math.ceil(len(wanted) / PHASES)
    for first in range(0, len(wanted), some):
        now = living.clock.time()
        chosen = [
            Wish(target, size.every[i % len(size.every)], now)
            for i, target in enumerate(wanted[first : first + some], first)
        ]
        subscribing = Subscribing(living.single.services)
        made = (subscribing.subscribe(wish.target, wish.every, url) for wish in chosen)
        wishes.update(zip(await asyncio.gather(*made), chosen, strict=True))
        await living.until(now + 3_600.0)
    return wishes


class NoticeTruth:
    """The content that each notice should have, by the server's record."""

    def __init__(self, served: Served, wishes: Mapping[int, Wish], now: float) -> None:
        self.served, self.wishes, self.now = served, wishes, now

    def expected(self, number: int) -> int:
        """Return the number of notices due to a subscription by now."""
        wish = self.wishes[number]
        return math.floor((self.now - wish.made) / wish.every + 1e-6)

    def wrong(self, notice: Mapping[str, Any]) -> list[str]:
        """List the points in which a notice differs from the truth."""
        wish = self.wishes[notice["subscription"]]
        since, moment = _seconds(notice["since"]), _seconds(notice["at"])
        due = wish.made + notice["notice"] * wish.every
        wrong = [] if abs(_seconds(notice["due"]) - due) < 2.0 else ["its date"]
        fresh = all(page["refreshed"] for page in notice["pages"] if self._kind(page["url"]) is not Doc.DEAD)
        wrong += [] if notice["in_time"] is fresh else ["whether it was in time"]
        wrong += ["no pages"] if not notice["pages"] else []
        wrong += [page["url"] for page in notice["pages"] if self._is_wrong(page, since, moment)]
        return wrong

    def _page(self, url: str) -> int:
        return self.served.web.places.find(host_at(host_of(url)), path_of(url))

    def _kind(self, url: str) -> Doc:
        return self.served.web.kind(self._page(url))

    def _is_wrong(self, entry: Mapping[str, Any], since: float, moment: float) -> bool:
        if self._kind(entry["url"]) is Doc.DEAD:  # it was never there
            return bool(entry["changed"])
        page = self._page(entry["url"])
        before, now = self.served.versions(page, since), self.served.versions(page, moment)
        return not any(bool(entry["changed"]) is (old != new) for old in before for new in now)


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _report(
    truth: NoticeTruth, notices: list[dict[str, Any]], status: Mapping[str, Any], enough: bool, jumps: int
) -> dict[str, Any]:
    names = Counter((notice["subscription"], notice["notice"]) for notice in notices)
    expected = sum(truth.expected(number) for number in truth.wishes)
    wrong = [(notice, why) for notice in notices if (why := truth.wrong(notice))]
    missed = sum(not notice["in_time"] for notice in notices)
    claims = {
        "each once": len(names) == len(notices) == expected,
        "the truth": not wrong,
        "deadlines": missed == 0 if enough else missed > 0,
        "counted": missed == status["missed"]
        and (missed > 0) == (status["lateness"] > 0.0 or status["overdue_pages"] > 0),
    }
    return {
        "part": "subscriptions",
        "ok": all(claims.values()),
        "broken": [name for name, holds in claims.items() if not holds],
        "enough": enough,
        "subscriptions": len(truth.wishes),
        "notices": len(notices),
        "expected": expected,
        "pages_told": sum(len(notice["pages"]) for notice in notices),
        "changes_told": sum(notice["changed"] for notice in notices),
        "wrong": len(wrong),
        "wrong_ones": [f"{notice['target']} #{notice['notice']}: {', '.join(why)}" for notice, why in wrong[:3]],
        "missed": missed,
        "lateness_s": status["lateness"],
        "overdue_pages": status["overdue_pages"],
        "jumps": jumps,
    }
