"""`xyro lab speed ram`: what a known URL costs in RAM, and how many links a second the frontier takes in.

A partition with everything in (fingerprint table, columns, hosts, URL cache, due folders, LevelDB, the fetch queue) is
fed reports of a made-up web: the turns, batches and orders are the real ones, only the reading is left out. Links are
of three kinds, because they cost differently:

    new     never met: minted
    near    of the page's own host, the n-th page with weight 1/n: often among the URLs met lately
    far     known, anywhere: found by fingerprint and confirmed against Map-Data
"""

from __future__ import annotations

import hashlib
import random
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from xyro import process_memory
from xyro.configs.schema import CrawlSettings, Settings
from xyro.fetch_queue import FetchQueue
from xyro.frontier.batch import MessageBatch
from xyro.frontier.frontier import Frontier
from xyro.frontier.scope import Scope
from xyro.lab.speed.measures import MIB, Memory, cpu_seconds, memory, say, slope, spread, thread_cpu
from xyro.plugins import extensions
from xyro.service.node.data_dir import DataDir
from xyro.wire.clock import SystemClock
from xyro.wire.messages import FetchOrder, Kind, Links, PageReport, Submit
from xyro.wire.urls import authority, host_of, site_of

LINKS = 60
"""links a page, as on the rig's real pages (a few fewer where one is drawn twice)"""
MIX = (20, 36, 4)
"""new, near and far ones of them while the crawl grows"""
GOAL_BYTES, GOAL_LINKS = 64, 300_000
SAMPLES = 100
"""measurements of memory in the second half"""
ANY_SCOPE = Settings(crawl=CrawlSettings(scope="any"))
TURNS = 40
"""commit groups of each kind of links whose rate is measured"""


class MadeUpWeb:
    """A made-up web: URL number i lies on host i // per_host; URLs are met in order, so hosts grow with them."""

    def __init__(self, per_host: int) -> None:
        self.per_host = per_host
        self.pages_known = 1
        self._chance = random.Random(1)

    def url(self, number: int) -> str:
        return f"http://www.site-{number // self.per_host}.example/section-{number % 7}/page-{number}.html"

    def links(self, number: int, new: int, near: int, far: int) -> list[str]:
        """Distinct URLs for page `number` to show."""
        draw = self._chance.randrange
        first = number - number % self.per_host
        pages = min(self.per_host, self.pages_known - first)
        numbers = [*range(self.pages_known, self.pages_known + new)]
        numbers += [first + int((pages + 1) ** self._chance.random()) - 1 for _ in range(near)]
        numbers += [draw(self.pages_known) for _ in range(far)]
        self.pages_known += new
        return [self.url(number) for number in dict.fromkeys(numbers)]


@dataclass(slots=True)
class GroupCost:
    """The cost of some commit groups."""

    links: int
    pages: int
    seconds: float
    """wall, the synced writes included"""
    cpu: float


class GrowingFrontier:
    """One partition and its fetch queue, driven turn by turn."""

    def __init__(self, directory: Path, web: MadeUpWeb, group: int, settings: Settings = ANY_SCOPE) -> None:
        self.web = web
        self.group = group
        self.data = DataDir.open(directory, make=True)
        self.frontier = Frontier(self.data.partitions[0], Scope(settings.crawl), settings, True, extensions(settings))
        self.queue = FetchQueue(self.frontier.scheduler.gamma.percent)
        self.now = 1.7e9
        self.turn_seconds: list[float] = []
        """CPU of each turn, of the thread that takes it: so long the event loop would stand still"""
        self.commit_seconds: list[float] = []
        """wall, until each group was on disk"""
        self._clock = SystemClock()
        self._signatures = count(1)
        self.frontier.recover(self.now)
        self.turn(MessageBatch(submits=[Submit((web.url(0),))]))

    @property
    def pages_known(self) -> int:
        return self.frontier.ledger.known_pages

    def turn(self, work: MessageBatch) -> None:
        self.now += 0.05
        began = thread_cpu()
        turn = self.frontier.turn(work, self.now, 1 << 30)
        self.turn_seconds.append(thread_cpu() - began)
        committed = self._clock.monotonic()
        self.frontier.partition.write(turn.commit)
        self.frontier.partition.written(turn.commit)
        self.commit_seconds.append(self._clock.monotonic() - committed)
        for order in turn.orders:
            self.queue.put(order, authority(order.url))
        partition = self.frontier.partition
        if partition.journal_bytes >= self.frontier.settings.store.snapshot_bytes:
            for _ in partition.snapshot():
                pass

    def read(self, new: int, near: int, far: int) -> GroupCost:
        """One commit group of pages that show so many links each. Making up the pages is not counted."""
        reports = [self._report(order, new, near, far) for order in self._orders()]
        if new > LINKS:
            self._grant(reports)
        seconds, cpu = self._clock.monotonic(), cpu_seconds()
        self.turn(MessageBatch(visits=reports))
        links = sum(len(report.links.urls) for report in reports)
        return GroupCost(links, len(reports), self._clock.monotonic() - seconds, cpu_seconds() - cpu)

    def _grant(self, reports: Sequence[PageReport]) -> None:
        """Give the hosts of pages credit for all hosts that they lead to, as seeds have: else most links would wait."""
        for report in reports:
            self.frontier.partition.introductions.found(site_of(host_of(report.url)))

    def _orders(self) -> Iterator[FetchOrder]:
        for _ in range(self.group):
            job = self.queue.pop(self.now)
            if job is None:
                return
            self.queue.release(job[0], self.now)
            yield job[1]

    def _report(self, order: FetchOrder, new: int, near: int, far: int) -> PageReport:
        number = int(order.url.rpartition("-")[2].removesuffix(".html"))
        urls = self.web.links(number, new, near, far)
        return PageReport(
            order.page,
            order.url,
            order.epoch,
            started=self.now - 0.1,
            ended=self.now,
            status=200,
            kind=Kind.HTML,
            mime="text/html",
            size=28_000,
            signature=next(self._signatures).to_bytes(16, "big"),
            etag=f'"{number:x}-5f3c"',
            last_modified="Tue, 04 Nov 2025 08:00:00 GMT",
            links=Links(tuple(urls), bytes(len(urls))),
        )


def ram(urls: int, group: int, per_host: int) -> None:
    """Grow to `urls` known URLs; memory from the half on, rates at the end."""
    with tempfile.TemporaryDirectory(prefix="xyro-speed-") as directory:
        frontier = GrowingFrontier(Path(directory) / "data", MadeUpWeb(per_host), group)
        process_memory.tune()
        _grow(frontier, urls // 2)
        half = memory(), frontier.pages_known
        points, cost = _grow(frontier, urls, watched=True)
        _tell_memory(half, (memory(), frontier.pages_known), points)
        _tell_rates(frontier, cost)
        frontier.data.close()
    _tell_peer(min(urls, 1_000_000), per_host)


def _grow(
    frontier: GrowingFrontier, urls: int, *, watched: bool = False
) -> tuple[list[tuple[int, Memory]], list[GroupCost]]:
    points: list[tuple[int, Memory]] = []
    costs: list[GroupCost] = []
    step = max(1, (urls - frontier.pages_known) // SAMPLES)
    while frontier.pages_known < urls:
        costs.append(frontier.read(*MIX))
        if watched and (not points or frontier.pages_known >= points[-1][0] + step):
            points.append((frontier.pages_known, memory()))
    return points, costs


def _tell_memory(half: tuple[Memory, int], end: tuple[Memory, int], points: list[tuple[int, Memory]]) -> None:
    (before, some), (after, all_) = half, end
    say(f"memory           {some:>12,} URLs {all_:>12,} URLs    bytes/URL    fitted through {len(points)} points")
    for name in Memory._fields:
        first, last = getattr(before, name), getattr(after, name)
        fitted = slope([(urls, getattr(point, name)) for urls, point in points])
        growth = (last - first) / (all_ - some)
        say(f"  {name:<14} {first / MIB:>11,.1f} MiB {last / MIB:>12,.1f} MiB {growth:>10.1f} {fitted:>12.1f}")
    say(f"  goal: at most {GOAL_BYTES} bytes/URL of rss and of peak")


def _tell_rates(frontier: GrowingFrontier, grown: list[GroupCost]) -> None:
    say(
        "into the frontier: links/s of CPU, links/s of wall time, us of CPU a page; medians of commit groups of "
        f"{frontier.group} pages"
    )
    _tell_rate(f"of {LINKS} links {MIX[0]} new, {MIX[1]} near, {MIX[2]} far", grown[-10 * TURNS :])
    for name, kinds in (
        ("all known, near", (0, LINKS, 0)),
        ("all known, far", (0, 0, LINKS)),
        ("all new", (LINKS, 0, 0)),
    ):
        _tell_rate(name, [frontier.read(*kinds) for _ in range(TURNS)])
    say(f"  goal: at least {GOAL_LINKS:,} links/s")


def _tell_rate(name: str, costs: list[GroupCost]) -> None:
    by_cpu, by_wall = [cost.links / cost.cpu for cost in costs], [cost.links / cost.seconds for cost in costs]
    page = statistics.median(cost.cpu / cost.pages for cost in costs) * 1e6
    links = sum(cost.links for cost in costs) / sum(cost.pages for cost in costs)
    say(f"  {name:<36} {spread(by_cpu):<28} {spread(by_wall):<28} {page:>6,.0f} ({links:.0f} links)")


def _tell_peer(urls: int, per_host: int) -> None:
    """Scrapy's duplicate filter: a set of SHA-1 fingerprints. It knows that a URL was met, and nothing else of it."""
    web = MadeUpWeb(per_host)
    made = [web.url(number) for number in range(urls)]
    before, used = memory().rss, cpu_seconds()
    met: set[str] = set()
    for url in made:
        fingerprint = hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
        if fingerprint not in met:
            met.add(fingerprint)
    used = cpu_seconds() - used
    grown = (memory().rss - before) / urls
    say("peer: Scrapy's filter, a set of SHA-1 fingerprints in RAM, nothing on disk, nothing known of the URLs")
    say(f"  {urls / used:,.0f} new links/s of CPU, {grown:.0f} bytes/URL (or more: freed memory may be used again)")
