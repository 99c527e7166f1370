"""A seeded crawl whose every byte is known beforehand: what a rebuilding of the house must not change.

A computed web of a few hundred pages (HTML, documents that wait for DTDs, a sitemap; pages that change, move, die, time
out or must not be read) is crawled turn by turn on a clock of this file, refreshed for twelve days, and restarted on
the way. `digests` tells what was ordered, in its order, and the bytes of `export pages` and `export links`.

Nothing here is random, and nothing depends on the order in which a dictionary or a set gives out its items.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from tests.frontier.rig import START, Crawl, failed, in_memory_partition, links_to, report
from xyro.configs.load import load
from xyro.service.views.export import write_rows
from xyro.wire.messages import FetchOrder, Kind, LinkKind, LoadReport, LoadState, PageReport, XmlPage

HOSTS, PAGES, SEEDED = 12, 40, 10
"""hosts, pages of each, hosts in scope"""
DAY = 86_400.0
FIRST_TURNS, FIRST_STEP, READS = 160, 30.0, 30
"""until all is read once: turns, seconds between them, reads answered in one"""
TURNS, STEP = 140, 7_200.0
OPTIONS: dict[str, Any] = {"refresh.bandwidth": 0.002}
MORE = """
[opic]
sites = true
site_weight = 0.3
internal_weight = 0.5
unread_weight = 2.0
[refresh]
policy = "mixed"
gamma = "auto"
min_interval = 7200.0
hopeless = 0.3
[[focus]]
weight = 4.0
kinds = ["XML"]
[[focus]]
weight = 2.0
patterns = ["*/3/*"]
[[budgets]]
host = "h1.example"
pages_per_day = 20
[[blackouts]]
host = "h2.example"
hours = "8-18"
"""
"""settings of features that are off by default"""
SITEMAP = "http://h0.example/sitemap.xml"


def draw(*what: object) -> int:
    """A number below 2**32 that depends on nothing but its arguments."""
    text = "\n".join(map(str, what)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=4).digest(), "big")


def a_url(number: int) -> str:
    """URL of a page of the web, by its number; some are documents."""
    host, page = number % HOSTS, number // HOSTS % PAGES
    ending = "xml" if draw("kind", host, page) % 100 < 12 else "html"
    return f"http://h{host}.example/{page % 7}/p{page}.{ending}"


class World:
    """The web, and the loader: reports of reads and of loads."""

    def __init__(self) -> None:
        self.reads: dict[str, int] = {}
        self.late: list[tuple[FetchOrder, LoadReport]] = []
        """loads that end in a later turn"""

    def version(self, url: str, now: float) -> int:
        """How often the page has changed: never, up to five times a day."""
        per_day = (0, 0, 1, 3, 10, 30, 100, 500)[draw("rate", url) % 8] / 100
        return int((now - START) / DAY * per_day + draw("phase", url) / 2**32)

    def links(self, url: str, version: int) -> list[str]:
        """Three of four stay as they are; most of them on the page's host."""
        host = int(url.split(".")[0].removeprefix("http://h"))
        found = []
        for place in range(3 + draw("degree", url) % 12):
            seed = ("link", url, place, version if place % 4 == 3 else 0)
            page = draw(*seed) % (HOSTS * PAGES)
            found.append(a_url(page if draw("far", *seed) % 5 == 0 else page // HOSTS * HOSTS + host))
        return list(dict.fromkeys(found))

    def answer(self, crawl: Crawl, order: FetchOrder) -> None:
        """Give the crawl what this read brings."""
        url, now = order.url, crawl.now
        count = self.reads[url] = self.reads.get(url, 0) + 1
        fate = draw("fate", url) % 100
        if url.endswith(".dtd"):
            crawl.give(report(order, now, kind=Kind.DTD, loading=True, signature=self.signature(url, 0)))
            crawl.load(LoadReport(order.page, url, order.epoch, LoadState.LOADED, "dtd"))
        elif url == SITEMAP or url.endswith(".xml"):
            self.document(crawl, order, count)
        elif fate < 16:
            crawl.give(self.trouble(order, now, fate, count))
        elif fate > 95 and count > 2:
            crawl.fail(order, "http-410", status=410)
        else:
            self.page(crawl, order, fate)

    def signature(self, url: str, version: int) -> bytes:
        return hashlib.blake2b(f"{url} {version}".encode(), digest_size=16).digest()

    def trouble(self, order: FetchOrder, now: float, fate: int, count: int) -> PageReport:
        """Pages that cannot be read: for good, for a while, or that lie elsewhere."""
        url = order.url
        if fate < 4:
            return failed(order, now, "http-404", status=404)
        if fate < 7 and count < 4:
            return failed(order, now, "timeout", retry_in=20.0 * count)
        if fate < 9:
            return failed(order, now, ("robots-disallowed", "not-readable")[fate % 2])
        if fate < 12:
            target = a_url(draw("moved", url) % (HOSTS * PAGES))
            return report(order, now, status=301, kind=Kind.UNKNOWN, signature=b"", location=target)
        if fate < 14 and count % 3 == 0:
            return failed(order, now, "http-503", status=503, retry_in=600.0)
        return report(order, now, self.links(url, 0), signature=self.signature(url, 0), nofollow=fate % 2 == 0)

    def page(self, crawl: Crawl, order: FetchOrder, fate: int) -> None:
        url, version = order.url, self.version(order.url, crawl.now)
        if order.etag == f'"{version}"' and fate % 2:
            crawl.answer(order, status=304, signature=b"", kind=Kind.UNKNOWN)
            return
        more: dict[str, Any] = {"sitemaps": (SITEMAP,)} if "//h0." in url and fate % 3 == 0 else {}
        if fate % 5 == 0:
            more["last_modified"] = "Tue, 14 Nov 2023 22:13:20 GMT"
        crawl.answer(
            order, self.links(url, version), signature=self.signature(url, version), etag=f'"{version}"', **more
        )

    def document(self, crawl: Crawl, order: FetchOrder, count: int) -> None:
        """The body goes to the loader; some documents wait for a DTD, one of four is not well-formed."""
        url, now = order.url, crawl.now
        version = self.version(url, now)
        crawl.give(report(order, now, kind=Kind.XML, loading=True, signature=self.signature(url, version)))
        if url == SITEMAP:
            crawl.load(self.sitemap(order, now))
            return
        done = self.loaded(order, version)
        way = draw("load", url) % 4
        if way == 0:
            crawl.load(done)
        elif way == 1:
            self.late.append((order, done))
        else:
            dtd = f"http://h{draw('dtd', url) % SEEDED}.example/dtd{way}.dtd"
            body = XmlPage(order.page, url, order.epoch, now, Kind.XML, "text/xml", "", b"<a/>" * 9)
            crawl.load(LoadReport(order.page, url, order.epoch, LoadState.WAITING, needs=(dtd,)), body)
            self.late.append((order, done))

    def loaded(self, order: FetchOrder, version: int) -> LoadReport:
        bad = draw("bad", order.url) % 4 == 0
        state, error = (LoadState.FAILED, "not-well-formed") if bad else (LoadState.LOADED, "")
        links = links_to(self.links(order.url, version), LinkKind.XLINK)
        return LoadReport(order.page, order.url, order.epoch, state, "xml", error, links)

    def sitemap(self, order: FetchOrder, now: float) -> LoadReport:
        """What changed lately, and how often some pages do."""
        urls = list(dict.fromkeys(a_url(number * HOSTS) for number in range(PAGES)))
        modified = tuple((url, START + DAY * int((now - START) / DAY)) for url in urls[::3])
        rates = tuple((url, 1.0 + number % 3) for number, url in enumerate(urls[::4]))
        links = links_to(urls, LinkKind.SITEMAP)
        return LoadReport(
            order.page, SITEMAP, order.epoch, LoadState.LOADED, "sitemap", links=links, modified=modified, rates=rates
        )

    def end_loads(self, crawl: Crawl) -> None:
        """Documents of earlier turns are loaded."""
        ended, self.late = self.late, []
        for _, said in ended:
            crawl.load(said)


def live(crawl: Crawl, world: World, turns: int, step: float, orders: list[str]) -> None:
    """So many turns; each answers the oldest orders that are out."""
    for _ in range(turns):
        world.end_loads(crawl)
        for order in list(crawl.orders.values())[:READS]:
            world.answer(crawl, order)
        crawl.deliver_all()
        orders += [f"{order.url} {int(order.priority)} {order.epoch}" for order in crawl.turn()]
        crawl.now += step


VARIANTS = {"default": "", "more": MORE}
"""name -> settings"""


def restarted(crawl: Crawl) -> Crawl:
    """Another process finds what was written: orders, messages and reports under way are lost."""
    stores = [frontier.partition.store for frontier in crawl.frontiers]
    partitions = [in_memory_partition(store, q, len(stores)) for q, store in enumerate(stores)]
    return Crawl(partitions, crawl.settings, refreshing=True, now=crawl.now)


def digests(partitions: int, directory: Path, toml: str = "") -> dict[str, str]:
    """The crawl; BLAKE2 of its orders and of both exports, and how much there was.

    directory: for the exports; toml: settings, beside OPTIONS.
    """
    (directory / "settings.toml").write_text(toml)
    settings = load((directory / "settings.toml",), {}, OPTIONS)
    crawl, world, orders = Crawl.in_memory(partitions, settings=settings, refreshing=True), World(), []
    crawl.submit(*(a_url(host) for host in range(SEEDED)))
    live(crawl, world, FIRST_TURNS, FIRST_STEP, orders)
    crawl = restarted(crawl)
    live(crawl, world, TURNS, STEP, orders)
    found = {"orders": _digest("\n".join(orders).encode())}
    with crawl.views() as views:
        for table, rows in (("pages", views.pages()), ("links", views.links())):
            path = directory / f"{table}.jsonl"
            write_rows(table, rows, "jsonl", path)
            found[table] = _digest(path.read_bytes())
        pages = list(views.pages())
    found["sums"] = f"{len(pages)} pages, {sum(page['reads'] for page in pages)} reads, {len(orders)} orders"
    assert crawl.audit()["ok"]
    return found


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
