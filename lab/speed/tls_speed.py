"""`xyro lab speed tls`: the web as it is. Pages as large as real ones, over TLS, coded, from servers that close idle
connections; the crawl on the first core, the server on the last.

Pages and handshakes are counted in the server's log, CPU by the kernel.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, median
from types import FrameType
from typing import Literal

import uvloop

from xyro.configs.schema import CrawlSettings, FetchSettings, PolitenessSettings, Settings
from xyro.lab.child import running
from xyro.lab.speed.crawl_speed import Read, bare, in_new_directory, part_of, read
from xyro.lab.speed.measures import module_of, say, shares, spread
from xyro.lab.web.access_log import FLUSH_SECONDS
from xyro.lab.web.padding import MEDIAN, size_of
from xyro.proxy import context_with
from xyro.wire.clock import SystemClock

SEED = 1
_NUMBER = re.compile(r"\d+(?=\.html$)")
PARTS = {
    "xyro.decode": "decode",
    "xyro.coded_streams": "decode",
    "xyro.links": "links",
    "xyro.scan": "links",
    "xyro.hrefs": "links",
    "xyro.fast_client": "connections, TLS",
    "xyro.client": "connections, TLS",
    "xyro.connector": "connections, TLS",
    "xyro.tls_transport": "connections, TLS",
    "xyro.exchange": "connections, TLS",
    "aiohttp.connector": "connections, TLS",
}
"""Module -> part of what crawl_speed calls `fetch + parse`."""


@dataclass(frozen=True, slots=True)
class LogSummary:
    """Pages and handshakes of one client, by the log of a server."""

    pages: int
    """HTML pages sent whole"""
    answers: int
    handshakes: int
    resumed: int
    """of the handshakes"""
    sent: int
    """bytes of bodies, as coded"""
    size: float
    """bytes of an HTML page, decoded: the mean of those drawn for them"""

    def sentence(self) -> str:
        """Return the handshakes in words."""
        each = self.answers / self.handshakes if self.handshakes else 0.0
        return f"{self.handshakes:,} for {self.answers:,} answers, one per {each:.1f}; {self.resumed:,} resumed"


class ServerLog:
    """The access log of a running server, read client by client."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def served(self) -> LogSummary:
        """Tell what was logged since the last call, once the server has flushed it."""
        asyncio.run(SystemClock().sleep(2 * FLUSH_SECONDS))
        with self._path.open(encoding="utf-8") as file:
            file.seek(self._read)
            rows = [line.split("\t") for line in file.readlines()]
            self._read = file.tell()
        shakes = Counter(row[4] for row in rows if row[2] == "TLS")
        answers = [row for row in rows if row[2] == "GET"]
        pages = [row for row in answers if row[3] == "200" and row[4].startswith("text/html")]
        numbers = [int(number[0]) for row in pages if (number := _NUMBER.search(row[9]))]
        size = fmean(size_of(SEED, number, MEDIAN) for number in numbers) if numbers else 0.0
        return LogSummary(
            len(pages), len(answers), shakes.total(), shakes["resumed"], sum(int(row[5]) for row in pages), size
        )


def tls(
    pages: int, hosts: int, delay: float, latency: float, client: Literal["fast", "aiohttp"], seconds: float, runs: int
) -> None:
    """Crawl a computed web over TLS, then get the same URLs by a bare loop of aiohttp."""
    with tempfile.TemporaryDirectory(prefix="xyro-speed-tls-") as folder:
        log, ca = Path(folder) / "access.log", Path(folder) / "ca.pem"
        settings = Settings(
            crawl=CrawlSettings(scope="any", max_seconds=seconds),
            fetch=FetchSettings(only_net=("127.0.0.0/8",), client=client, ca_file=str(ca)),
            politeness=PolitenessSettings(delay=delay),
        )
        with running(
            tls=True, prepare=True, seed=SEED, log=log, ca=ca, pages=pages, hosts=hosts, latency=latency,
            rate_median=0.0, xml=0.0,
        ) as server, _apart(server.pid):  # fmt: skip
            logged, cost = ServerLog(log), list[float]()
            say(f"{pages:,} URLs on {hosts} hosts over TLS, {1000 * latency:g} ms, {delay:g} s between reads of a host")
            for run in range(runs):
                done = in_new_directory(partial(read, part=_part), [server.entry], settings)
                served = logged.served()
                cost.append(1000 * done.cpu / served.pages)
                _tell(run + 1, done, served)
            floor = uvloop.run(bare(done.urls, context_with(str(ca))))
            plain = logged.served()
        say(f"  CPU ms a page   {spread(cost, 3)}: {1000 / median(cost):,.0f} pages a second of one core")
        say(f"  bare aiohttp    {1000 * floor / plain.pages:.3f}: the same URLs, decoded, no links")
        say(f"    handshakes    {plain.sentence()}")


def _tell(run: int, done: Read, served: LogSummary) -> None:
    size, sent = served.size / 1000, served.sent / served.pages / 1000
    say(f"  run {run}: {done.reads:,} reads, {served.pages:,} HTML pages, {done.seconds:.1f} s")
    say(f"    a page        {size:.0f} kB decoded, {sent:.0f} sent, {done.links / served.pages:.0f} distinct links")
    say(f"    handshakes    {served.sentence()}")
    for name, share in shares(done.parts):
        say(f"    {name:<22}{1000 * share * done.cpu / served.pages:>8.3f} ms {share:>7.1%}")


@contextmanager
def _apart(server: int) -> Iterator[None]:
    """Give the server the last core and this process the first, where there are two."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        yield
        return
    os.sched_setaffinity(server, cores[-1:])
    os.sched_setaffinity(0, cores[:1])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _part(frame: FrameType | None) -> str:
    """The part of the innermost frame that belongs to one, finer than `part_of` where pages are read."""
    inner = frame
    while inner is not None:
        name = module_of(inner)
        if name in PARTS:
            return PARTS[name]
        if name.startswith("xyro."):
            break
        inner = inner.f_back
    return part_of(frame)
