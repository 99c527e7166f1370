"""`xyro lab speed xml`: documents a second, beside a floor, and what a document that waits costs.

throughput   a crawl of DocBook-like documents (lab/web/docbook.py) over loopback: fetched, parsed, linked, validated
             and stored; documents per second of CPU, all threads and the validator's process. The floor in the same
             run: lxml parses the same bodies and validates them against the ready DTD, and nothing else.
waiting      documents that wait for DTDs that never come, through intake, partition and store: growth of RSS
"""

from __future__ import annotations

import resource
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import uvloop
from lxml import etree

from xyro.configs.schema import CrawlSettings, FetchSettings, PolitenessSettings, Settings
from xyro.frontier.batch import MessageBatch
from xyro.frontier.frontier import Frontier
from xyro.frontier.scope import Scope
from xyro.lab.child import running
from xyro.lab.speed.crawl_speed import crawling
from xyro.lab.speed.measures import MIB, cpu_seconds, memory, say, spread
from xyro.lab.web.docbook import document, dtd
from xyro.metadata.documents import Documents
from xyro.plugins import extensions
from xyro.service.node.data_dir import DataDir
from xyro.service.node.loader_factory import intake_of
from xyro.service.node.page_lookup import PageLookup, PartitionParts
from xyro.service.node.part_library import PartLibrary
from xyro.service.node.stopped import nodes_of
from xyro.wire.clock import SystemClock
from xyro.wire.messages import FetchOrder, Kind, LoadReport, PageReport, Submit, XmlPage
from xyro.wire.urls import canonical

GOAL, WAITING_GOAL = 300, 200
"""documents a second of one core; MiB for 100,000 documents that wait"""
GROUP = 500
DTDS = 100
"""that the waiting documents need; each needs one"""
LEAST = 5_000
"""bytes of a waiting document"""


@dataclass(frozen=True, slots=True)
class Done:
    """One crawl of documents."""

    documents: int
    valid: int
    seconds: float
    cpu: float


def xml(documents: int, size: int, runs: int, waiting: int) -> None:
    """Both parts; `waiting` = 0 leaves the second away."""
    if waiting:  # first: RSS is measured
        with tempfile.TemporaryDirectory(prefix="xyro-speed-") as directory:
            _tell_waiting(waiting, Path(directory) / "data")
    with running("xyro.lab.web.docbook", documents=documents, size=size, hosts=64) as web:
        done = [_crawl(web.entry) for _ in range(runs)]
    floor = [_floor(documents, size) for _ in range(runs)]
    say(f"{documents:,} documents of {size / 1000:.0f} kB with a DTD of {len(dtd()) / 1000:.0f} kB, {runs} runs")
    rate = spread([run.documents / run.cpu for run in done])
    say(f"  documents/s of one core  {rate}; fetched, linked, validated, stored (goal {GOAL})")
    say(f"  bare lxml, DTD ready     {spread(floor)}; the same bodies parsed and validated, nothing else")
    say(f"  CPU ms a document        {spread([1000 * run.cpu / run.documents for run in done], 3)}")
    say(f"  documents/s, wall        {spread([run.documents / run.seconds for run in done])}")
    say(f"  stored {done[-1].documents:,}, valid {done[-1].valid:,}")


def _crawl(seed: str) -> Done:
    settings = Settings(
        crawl=CrawlSettings(scope="any"),
        fetch=FetchSettings(only_net=("127.0.0.0/8",)),
        politeness=PolitenessSettings(delay=0.0),
    )
    with tempfile.TemporaryDirectory(prefix="xyro-speed-") as directory:
        return uvloop.run(_read(Path(directory) / "data", [canonical(seed)], settings))


async def _read(directory: Path, seeds: Sequence[str], settings: Settings) -> Done:
    clock = SystemClock()
    used, began = _with_children(), clock.monotonic()
    async with crawling(directory, seeds, settings) as single:
        await single.finished()
    seconds, used = clock.monotonic() - began, _with_children() - used
    counts: Counter[str] = Counter()
    with nodes_of(directory, extensions) as frontiers:
        for frontier in frontiers:
            counts.update(Documents(frontier.partition).counts().by_verdict)
    return Done(sum(counts.values()), counts["VALID"], seconds, used)


def _with_children() -> float:
    """CPU seconds of this process and of those that it has ended: the validator's is one."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return cpu_seconds() + used.ru_utime + used.ru_stime


def _floor(documents: int, size: int) -> float:
    """Documents/s of one core that lxml alone parses and validates against a DTD that is ready."""
    grammar = etree.DTD(StringIO(dtd()))
    bodies = [document(number, size, "docbook.dtd") for number in range(documents)]
    used = cpu_seconds()
    for body in bodies:
        parser = etree.XMLParser(load_dtd=False, resolve_entities=False, no_network=True)
        grammar.validate(etree.fromstring(body, parser))
    return documents / (cpu_seconds() - used)


def _tell_waiting(count: int, directory: Path) -> None:
    before = memory()
    crowd = Crowd(directory)
    for first in range(0, count, GROUP):
        crowd.join(first, min(GROUP, count - first))
    after = memory()
    grown, anon = (after.rss - before.rss) / MIB, (after.anon - before.anon) / MIB
    say(f"{crowd.waiting:,} documents wait for {DTDS} DTDs")
    say(f"  RSS grew by {grown:,.0f} MiB, {anon:,.0f} MiB of it anonymous (goal {WAITING_GOAL}), known URLs included")
    clock = SystemClock()
    used, began = cpu_seconds(), clock.monotonic()
    crowd.reopen(directory)
    say(
        f"  after a restart {crowd.waiting:,} wait: {clock.monotonic() - began:.1f} s, CPU {cpu_seconds() - used:.1f} s"
    )
    crowd.close()


class Crowd:
    """Documents that wait, driven turn by turn without a network."""

    def __init__(self, directory: Path) -> None:
        self._settings = Settings(crawl=CrawlSettings(scope="any"))
        self._now = SystemClock().time()
        self._open(directory)

    def _open(self, directory: Path) -> None:
        self._data = DataDir.open(directory, make=True)
        scope = Scope(self._settings.crawl)
        self._node = Frontier(self._data.partitions[0], scope, self._settings, False, extensions(self._settings))
        parts = PartitionParts(self._node, SystemClock(), self._settings.loader.part_age)
        lookup = PageLookup([parts], 1, scope)
        library = PartLibrary(lookup.part, lookup.body)
        self._intake = intake_of(self._settings, library)
        _, waits = self._node.recover(self._now)
        self._intake.resume(waits, self._now)

    @property
    def waiting(self) -> int:
        return self._intake.waiting

    def join(self, first: int, count: int) -> None:
        """Add `count` documents: each is ordered, read, and found to need a DTD."""
        urls = tuple(f"http://h{number % 997}.example/doc/{number}.xml" for number in range(first, first + count))
        orders = [order for order in self._turn(MessageBatch(submits=[Submit(urls)])) if order.url.endswith(".xml")]
        work = MessageBatch()
        for number, order in enumerate(orders, first):
            body = document(number, LEAST, f"http://dtd.example/{number % DTDS}.dtd")
            page = XmlPage(order.page, order.url, order.epoch, self._now, Kind.XML, "application/xml", "", body)
            work.add(page)
            for message in self._intake.take(page, self._now):
                if isinstance(message, LoadReport):
                    work.add(message)
            work.add(_report(order, self._now))
        self._turn(work)

    def _turn(self, work: MessageBatch) -> list[FetchOrder]:
        self._now += 0.05
        partition = self._node.partition
        turn = self._node.turn(work, self._now, 1 << 30)
        partition.write(turn.commit)
        partition.written(turn.commit)
        if partition.journal_bytes >= self._settings.store.snapshot_bytes:
            for _ in partition.snapshot():
                pass
        return turn.orders

    def reopen(self, directory: Path) -> None:
        """Restart: close the data directory and open it anew."""
        self.close()
        self._open(directory)

    def close(self) -> None:
        self._data.close()


def _report(order: FetchOrder, now: float) -> PageReport:
    return PageReport(
        order.page, order.url, order.epoch, now, now, status=200, kind=Kind.XML,
        mime="application/xml", size=LEAST, signature=order.page.to_bytes(16, "big"), loading=True,
    )  # fmt: skip
