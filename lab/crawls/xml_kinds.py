"""`xyro lab xml`: does the crawl find XML sooner by a focus on it? (P1 5.2, on line.)

A computed web whose documents hang on catalogue pages (lab/web/shape.py) is crawled by the partition itself, turn by
turn on a clock of its own: the web's answers are known without a network, so a crawl of weeks takes seconds and each
run can be repeated. Three ways to choose are held against each other: breadth first; OPIC as it is by default; OPIC
with the focus of configs/xml.toml. Two questions:

With --docbook: real documents, served on loopback (xml_rig.py).

found    the share of all documents read when 20 % of the pages were
delay    how long a document that is born later waits until it is read, the crawl refreshing what it knows
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
import numpy as np

from xyro import configs
from xyro.configs.load import load
from xyro.configs.schema import CrawlSettings, PolitenessSettings, Settings, StoreSettings
from xyro.fetch_queue import FetchQueue
from xyro.frontier.batch import MessageBatch
from xyro.frontier.discovery import Discovery
from xyro.frontier.frontier import Frontier
from xyro.frontier.ledger import Ids
from xyro.frontier.scope import Scope
from xyro.lab.speed.measures import say, spread
from xyro.lab.web.places import Doc, host_at
from xyro.lab.web.shape import DAY
from xyro.lab.web.web import Web
from xyro.plugins import extensions
from xyro.service.node.data_dir import DataDir
from xyro.wire.errors import XyroError
from xyro.wire.messages import FetchOrder, Kind, LinkKind, Links, LoadReport, LoadState, Message, PageReport, Submit
from xyro.wire.urls import authority

SHARE = 0.2
"""of the pages: when the documents found are counted"""
PACE = 1.0
"""reads a page and day"""
AT_ONCE = 4
"""reads in one turn"""
AHEAD = 4
"""orders a host that are given ahead: of 100 pages a host, as 64 are of 1,600"""
SETTLING = 1.5
"""reads a page before the first document is born"""
DAYS = 3.0
"""within which documents are born; counted are those of the first three quarters"""
BIRTHS = 0.5
"""share of the documents that are born while the crawl refreshes"""
HOUR = 3_600.0
SHARED = Path("/dev/shm")  # noqa: S108  # a directory of its own is made in it
NEVER = float("inf")
PRESET = Path(configs.__file__).with_name("xml.toml")


class Strategy(NamedTuple):
    """A way to choose what is read next."""

    settings: Settings
    breadth_first: bool = False


class BreadthFirst(Discovery):
    """Discovery that reads the shallowest unread pages first."""

    def score(self, pages: Ids) -> Ids:
        return -self.partition.columns["depth"][pages].astype(np.int64)


@dataclass(slots=True)
class Run:
    """The finds of a crawl, in virtual time."""

    reads: int = 0
    found: dict[int, float] = field(default_factory=dict)
    """documents of the web -> when they were first read"""


class KindsWalk:
    """One crawl of a computed web by one partition, without a network: reads at an even pace."""

    def __init__(self, web: Web, strategy: Strategy, directory: Path, refreshing: bool, start: float) -> None:
        self.web, self.now, self.run = web, start, Run()
        settings = strategy.settings
        self._data = DataDir.open(directory, make=True)
        self._node = Frontier(
            self._data.partitions[0], Scope(settings.crawl), settings, refreshing, extensions(settings)
        )
        if strategy.breadth_first:
            scheduler = self._node.scheduler
            scheduler.discovery = BreadthFirst(
                *(self._node.partition, self._node.ledger, settings),
                *(scheduler.host_limits, scheduler.look_ahead),
            )
        self._node.recover(start)
        gamma = settings.refresh.gamma
        self._queue = FetchQueue(gamma if isinstance(gamma, float) else 50.0)
        self._announced: set[int] = set()
        """hosts whose robots.txt was read"""
        self._turn([Submit((web.entry(),))])

    def until(self, done: Callable[[Run, float], bool]) -> None:
        """Read until `done(run, now)`, or until nothing is left."""
        idle = 0
        while not done(self.run, self.now) and idle < 10_000:
            messages = self._read(AT_ONCE)
            idle = 0 if messages else idle + 1
            self.now += AT_ONCE * DAY / (PACE * self.web.shape.pages)
            self._turn(messages)

    def close(self) -> None:
        self._data.close()

    def _read(self, count: int) -> list[Message]:
        messages: list[Message] = []
        for _ in range(count):
            popped = self._queue.pop(self.now)
            if popped is None:
                break
            host, order = popped
            messages += self._answer(order)
            self._queue.release(host, self.now)
        return messages

    def _turn(self, messages: Sequence[Message]) -> None:
        work = MessageBatch()
        for message in messages:
            work.add(message)
        partition = self._node.partition
        turn = self._node.turn(work, self.now, 1 << 30)
        partition.write(turn.commit)
        partition.written(turn.commit)
        for order in turn.orders:
            self._queue.put(order, authority(order.url))

    def _answer(self, order: FetchOrder) -> list[Message]:
        """Return the report of an order, after the verdict of a loader on an XML body."""
        web, address = self.web, authority(order.url)
        page = web.places.find(host_at(address.partition(":")[0]), order.url.split(address, 1)[1])
        self.run.reads += 1
        kind = web.kind(page) if page >= 0 else Doc.DEAD
        if kind is Doc.PRIVATE:
            return [self._report(order, page, error="robots-disallowed", final=True)]
        status = web.status(page, self.now) if page >= 0 else 404
        if status in (404, 410):
            return [self._report(order, page, status=status, error=f"http-{status}", final=True)]
        if kind is Doc.REDIRECT:
            target = web.url(web.links(page, 0)[0].target)
            return [self._report(order, page, status=status, location=target)]
        if kind is Doc.HTML:
            return [self._report(order, page, status=200, kind=Kind.HTML, links=self._links(page))]
        if kind is Doc.XML:
            self.run.found.setdefault(page, self.now)
        body = Kind.DTD if kind is Doc.DTD else Kind.XML
        return [self._load(order, page, kind), self._report(order, page, status=200, kind=body, loading=True)]

    def _report(self, order: FetchOrder, page: int, **fields: object) -> PageReport:
        host = self.web.host(page) if page >= 0 else -1
        named: tuple[str, ...] = ()
        if host >= 0 and host not in self._announced:
            self._announced.add(host)
            named = tuple(map(self.web.url, self.web.robots_sitemaps(host)))
        version = self.web.version(page, self.now) if page >= 0 else 0
        signature = b"" if "error" in fields else (version << 64 | max(page, 0)).to_bytes(16, "big")
        return PageReport(
            order.page, order.url, order.epoch, self.now, self.now,
            signature=signature, sitemaps=named, **fields,  # type: ignore[arg-type]
        )  # fmt: skip

    def _load(self, order: FetchOrder, page: int, kind: Doc) -> LoadReport:
        form = {Doc.XML: "xml", Doc.DTD: "dtd", Doc.FEED: "rss", Doc.SITEMAP: "sitemap"}.get(kind, "sitemapindex")
        links = Links() if kind is Doc.DTD else self._links(page)
        return LoadReport(order.page, order.url, order.epoch, LoadState.LOADED, form, links=links)

    def _links(self, page: int) -> Links:
        shown = [link for link in self.web.shown(page, self.now) if not link.nofollow]
        urls = tuple(dict.fromkeys(self.web.url(link.target) for link in shown))
        return Links(urls, bytes([LinkKind.ANCHOR]) * len(urls))


def ways() -> dict[str, Strategy]:
    """Return the strategies by their names."""
    plain = Settings(
        crawl=CrawlSettings(scope="any"),
        politeness=PolitenessSettings(delay=0.0),
        store=StoreSettings(leases_per_host=AHEAD),
    )
    focused = load((PRESET,))

    refresh = msgspec.structs.replace(plain.refresh, gamma=focused.refresh.gamma)
    plain = msgspec.structs.replace(plain, refresh=refresh)
    return {
        "breadth-first": Strategy(plain, breadth_first=True),
        "OPIC": Strategy(plain),
        "xml.toml": Strategy(msgspec.structs.replace(plain, opic=focused.opic, focus=focused.focus)),
    }


@contextmanager
def walking(web: Web, strategy: Strategy, *, refreshing: bool = False, start: float = 0.0) -> Iterator[KindsWalk]:
    """A crawl in a directory that is deleted afterwards."""
    memory = SHARED if SHARED.is_dir() else None  # thousands of synced commits a crawl
    with tempfile.TemporaryDirectory(prefix="xyro-xml-", dir=memory) as directory:
        walk = KindsWalk(web, strategy, Path(directory) / "data", refreshing, start or web.shape.origin)
        try:
            yield walk
        finally:
            walk.close()


def found(web: Web, strategy: Strategy) -> float:
    """Share of all documents that were read when SHARE of the pages were."""
    limit = round(SHARE * web.shape.pages)
    with walking(web, strategy) as walk:
        walk.until(lambda run, now: run.reads >= limit)
        return len(walk.run.found) / len(web.places.of_kind(Doc.XML))


def delays(web: Web, strategy: Strategy) -> list[float]:
    """Seconds from birth to the first read of each document born in the first three quarters of the time."""
    shape = web.shape
    start, end = shape.origin - SETTLING * DAY / PACE, shape.origin + DAYS * DAY
    with walking(web, strategy, refreshing=True, start=start) as walk:
        walk.until(lambda run, now: now >= end)
        found = walk.run.found
    born = web.places.born
    counted = [
        page for page in web.places.of_kind(Doc.XML).tolist() if shape.origin <= born[page] < end - DAYS * DAY / 4
    ]
    return [found.get(page, NEVER) - float(born[page]) for page in counted]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="xyro lab xml", description="XML found sooner: a focus on a computed web.")
    parser.add_argument("--quick", action="store_true", help="a smaller web, one seed")
    parser.add_argument("--pages", type=int, default=0, help="of the web [6000; quick: 2000]")
    parser.add_argument("--seeds", type=int, default=0, help="webs [3; quick: 1]")
    parser.add_argument("-o", "--output", type=Path, help="also write the figures here, as JSON")
    parser.add_argument("--docbook", action="store_true", help="instead: real documents of Debian packages, validated")
    parser.add_argument("--data", type=Path, help="with --docbook: keep the crawl in this new directory")
    options = parser.parse_args(arguments)
    pages = options.pages or (2_000 if options.quick else 6_000)
    seeds = options.seeds or (1 if options.quick else 3)
    try:
        if options.docbook:
            from xyro.lab.crawls.xml_packages import docbook

            return 0 if docbook(data=options.data) else 1
        figures = compare(pages, seeds)
    except XyroError as error:
        sys.stderr.write(f"xyro lab xml: {error}\n")
        return 2
    if options.output:
        options.output.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def compare(pages: int, seeds: int) -> dict[str, dict[str, list[float]]]:
    """Answer both questions for each strategy, and print each answer: {strategy: {found, delay_hours, unseen}}."""
    say(f"{pages:,} pages, {seeds} webs: documents on catalogue pages, half of them without a suffix that tells")
    figures: dict[str, dict[str, list[float]]] = {}
    say(f"  {'':14}  {'found at 20 %':>26}  {'delay, hours':>26}  {'not read':>26}")
    for name, strategy in ways().items():
        figure = figures[name] = {"found": [], "delay_hours": [], "unseen": []}
        for seed in range(1, seeds + 1):
            figure["found"].append(found(web_of(seed, pages), strategy))
            waits = delays(web_of(seed, pages // 3, births=BIRTHS), strategy)
            figure["delay_hours"].append(median(waits) / HOUR)
            figure["unseen"].append(sum(wait == NEVER for wait in waits) / len(waits))
        say(
            f"  {name:14}  {spread(figure['found'], 3):>26}  {spread(figure['delay_hours'], 1):>26}  "
            f"{spread(figure['unseen'], 2):>26}"
        )
    say(f"Delay: median from birth to first read, on webs of {pages // 3:,} pages, {PACE:g} reads a page and day.")
    return figures


def web_of(seed: int, pages: int, births: float = 0.0) -> Web:
    """The web: a document in twenty pages, on half of the hosts, of 200 pages each."""
    return Web(
        seed=seed, pages=pages, hosts=max(2, pages // 200), xml=0.05, catalogue=15, archives=0.5, veiled=0.5,
        listed=0.1, births=births, birth_days=DAYS,
    )  # fmt: skip
