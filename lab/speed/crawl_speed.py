"""`xyro lab speed latency` and `pages`: whole crawls in this process, the server in another one."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import statistics
import tempfile
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Literal, TypeVar

import aiohttp
import uvloop
from yarl import URL

from xyro.configs.schema import CrawlSettings, FetchSettings, PolitenessSettings, Settings
from xyro.lab.child import running
from xyro.lab.speed.measures import (
    MIB,
    Lag,
    Part,
    Sampler,
    cpu_seconds,
    lag_meter,
    memory,
    module_of,
    say,
    shares,
    spread,
    thread_seconds,
)
from xyro.lab.web.places import address_of
from xyro.plugins import PLUGINS, extensions
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.node import Bounds, Node
from xyro.service.node.seeds import why_refused
from xyro.service.node.stopped import open_stopped
from xyro.wire.clock import SystemClock
from xyro.wire.errors import InputError
from xyro.wire.urls import authority, canonical

T = TypeVar("T")
Scope = Literal["host", "domain", "any"]
IDLE = 1.0
"""seconds that the lag of an idle loop is measured"""
LOOK = 0.05
"""seconds between two samples of the number of reads"""
REST = "event loop, the rest"
PARTS = {
    "xyro": "fetch + parse",
    "xyro.service.node.fetch_loop": "fetch + parse",
    "aiohttp": "fetch + parse",
    "xyro.loader": "loader",
    "xyro.service.node.load_loop": "loader",
    "xyro.metadata": "metadata",
    "xyro.opic": "opic",
    "xyro.frontier.ledger": "opic",
    "xyro.frontier.outbox": "opic",
    "xyro.refresh": "refresh",
    "xyro.refresh.sharing": "plan",
    "xyro.frontier.scheduler": "plan",
    "xyro.frontier.leases": "plan",
    "xyro.frontier.revisits": "plan",
    "xyro.frontier.requests": "plan",
    "xyro.frontier.revisit_dates": "plan",
    **dict.fromkeys(("xyro.service", "xyro.frontier", "xyro.plugins"), "crawl's glue"),
    **dict.fromkeys(("xyro.wire", "xyro.configs", "xyro.lab"), ""),
    **dict.fromkeys(
        ("xyro.lab.speed.crawl_speed", "xyro.lab.speed.speed_lab", "xyro.service.cli.main", "xyro.__main__"), REST
    ),
}
"""Module or folder -> part of the loop, the longest name decides; what a part calls ("", and libraries) is its own."""
THREADS = {"writer": "metadata", "loader": "loader", "": "other threads"}
STATE = ("metadata", "opic", "refresh")
GOAL = 0.25


def part_of(frame: FrameType | None) -> str:
    """The part of the innermost frame that belongs to one."""
    while frame is not None:
        name = module_of(frame)
        while name:
            if part := PARTS.get(name):
                return part
            if name in PARTS:
                break
            name = name.rpartition(".")[0]
        frame = frame.f_back
    return REST


@contextlib.asynccontextmanager
async def crawling(directory: Path, seeds: Sequence[str], settings: Settings) -> AsyncIterator[Node]:
    """A crawl of `seeds` at work in a new directory, stopped in order at the block's end. InputError: a bad seed."""
    bounds = Bounds(settings.crawl.max_pages, settings.crawl.max_seconds)
    single = Node(DataDir.open(directory, make=True), settings, guard_of(settings.fetch), bounds, plugins=PLUGINS)
    try:
        single.start()
        if refused := [f"{seed}: {why}" for seed in seeds if (why := why_refused(seed, single.scope))]:
            raise InputError(refused[0])
        await single.submit(seeds)
        yield single
    finally:
        await single.stop()


def _settings(concurrency: int, scope: Scope = "any", max_pages: int = 0) -> Settings:
    return Settings(
        crawl=CrawlSettings(scope=scope, max_pages=max_pages),
        fetch=FetchSettings(concurrency=concurrency, only_net=("127.0.0.0/8",)),
        politeness=PolitenessSettings(delay=0.0),
    )


def in_new_directory(
    measure: Callable[[Path, Sequence[str], Settings], Coroutine[Any, Any, T]], seeds: Sequence[str], settings: Settings
) -> T:
    """Measure a crawl in a new directory, which is deleted."""
    with tempfile.TemporaryDirectory(prefix="xyro-speed-") as directory:
        return uvloop.run(measure(Path(directory) / "data", seeds, settings))


# Many slow hosts


@dataclass(slots=True)
class Slow:
    """One crawl of slow hosts."""

    idle: Lag
    """of the same loop before the crawl"""
    lag: Lag
    reads: int = 0
    seconds: float = 0.0
    steady: float = 0.0
    """reads/s while the middle eight tenths were read"""
    cpu: float = 0.0
    errors: dict[str, int] = field(default_factory=dict)


def latency(hosts: int, latency: float, per_host: int, runs: int) -> None:
    """One connection to each of many hosts that take `latency` seconds to answer; what limits is hosts / latency."""
    settings = _settings(hosts)
    with running(pages=hosts * per_host, hosts=hosts, latency=latency, rate_median=0.0) as web:
        seeds = [f"http://{address_of(host)}:{web.port}/" for host in range(hosts)]
        done = [in_new_directory(_slow, seeds, settings) for _ in range(runs)]
    say(f"{hosts} hosts, one connection each, {latency} s before each answer, {done[0].reads:,} reads, {runs} runs")
    say(f"  pages/s, steady      {spread([run.steady for run in done])}; hosts / latency = {hosts / latency:,.0f}")
    say(f"  pages/s, whole crawl {spread([run.reads / run.seconds for run in done])}")
    say(f"  CPU ms a page        {spread([1000 * run.cpu / run.reads for run in done], 3)}")
    say(f"  RSS                  {memory().rss / MIB:.0f} MiB, peak {memory().peak / MIB:.0f} MiB")
    for number, run in enumerate(done, 1):
        say(f"  event-loop lag {number}     {run.lag.sentence()}")
    say(f"  idle loop            {done[0].idle.sentence()}")
    say(f"  errors               {done[-1].errors or 'none'}")


async def _slow(directory: Path, seeds: Sequence[str], settings: Settings) -> Slow:
    clock, curve = SystemClock(), []
    with lag_meter(clock) as idle:
        await clock.sleep(IDLE)
    used, began = cpu_seconds(), clock.monotonic()
    async with crawling(directory, seeds, settings) as single:
        with lag_meter(clock) as lag:
            while not single.ended():
                curve.append((clock.monotonic() - began, single.reads))
                await clock.sleep(LOOK)
                single.check()
            curve.append((clock.monotonic() - began, single.reads))
    seconds, used = clock.monotonic() - began, cpu_seconds() - used
    return Slow(idle, lag, single.reads, seconds, _steady(curve), used, dict(single.errors))


def _steady(curve: Sequence[tuple[float, int]]) -> float:
    """Reads/s while the middle eight tenths were read. curve: (seconds, reads), the last one at the end."""
    total = curve[-1][1]
    start, first = next(point for point in reversed(curve) if point[1] <= 0.1 * total)
    end, last = next(point for point in curve if point[1] >= 0.9 * total)
    return (last - first) / (end - start) if total else 0.0


# CPU by part


@dataclass(slots=True)
class Read:
    """One crawl. CPU in seconds."""

    reads: int
    bytes: int
    seconds: float
    cpu: float
    parts: dict[str, float]
    urls: list[str]
    """what was read"""
    links: int
    """stored, of all pages"""


def pages(seed: str, scope: Scope, max_pages: int, runs: int) -> None:
    """CPU per page and its parts, beside a bare loop of aiohttp that gets the same URLs and does nothing with them."""
    with contextlib.ExitStack() as stack:
        if not seed:
            seed = stack.enter_context(running(pages=4000, hosts=8, size=28_000, rate_median=0.0)).entry
        settings = _settings(FetchSettings().concurrency, scope, max_pages)
        done = [in_new_directory(read, [canonical(seed)], settings) for _ in range(runs)]
        floor = [uvloop.run(bare(done[-1].urls)) for _ in range(runs)]
    _tell_pages(seed, done, floor)


async def read(directory: Path, seeds: Sequence[str], settings: Settings, part: Part = part_of) -> Read:
    """Crawl `seeds` in a new directory, and tell what it cost."""
    clock = SystemClock()
    used, began = cpu_seconds(), clock.monotonic()
    with Sampler(part) as sampler:
        async with crawling(directory, seeds, settings) as single:
            threads = thread_seconds()
            await single.finished()
            threads = {name: spent - threads.get(name, 0.0) for name, spent in thread_seconds().items()}
    seconds, used = clock.monotonic() - began, cpu_seconds() - used
    with open_stopped(directory, extensions) as crawl, crawl.views() as views:
        rows = [row for row in views.pages() if row["reads"]]
    parts = _parts(sampler.count, threads, used)
    urls, links = [row["url"] for row in rows], sum(row["out_links"] or 0 for row in rows)
    return Read(single.reads, single.pool.counters.bytes, seconds, used, parts, urls, links)


def _parts(samples: Counter[str], threads: dict[str, float], used: float) -> dict[str, float]:
    """Threads have what they used; the main thread's is shared out by its samples."""
    parts: dict[str, float] = defaultdict(float)
    for name, spent in threads.items():
        if name != "MainThread":
            parts[THREADS.get(name.partition("-")[0], THREADS[""])] += spent
    own = used - sum(parts.values())
    for part, share in shares(samples):
        parts[part] += share * own
    return dict(parts)


async def bare(urls: Sequence[str], tls: ssl.SSLContext | None = None) -> float:
    """CPU seconds of reading `urls` with aiohttp: a connection a host, bodies read, nothing else."""
    hosts: dict[str, list[str]] = defaultdict(list)
    for url in urls:
        hosts[authority(url)].append(url)
    used = cpu_seconds()
    connector = aiohttp.TCPConnector(ssl=tls or True, limit=0)
    async with (
        aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session,
        asyncio.TaskGroup() as group,
    ):
        for own in hosts.values():
            group.create_task(_get_all(session, own))
    return cpu_seconds() - used


async def _get_all(session: aiohttp.ClientSession, urls: Sequence[str]) -> None:
    for url in urls:
        async with session.get(URL(url, encoded=True), allow_redirects=False) as response:
            await response.read()


def _tell_pages(seed: str, done: Sequence[Read], floor: Sequence[float]) -> None:
    last = done[-1]
    size, links = last.bytes / last.reads / 1000, last.links / last.reads
    say(f"{seed}: {last.reads:,} reads, {size:.1f} kB and {links:.0f} distinct links a page, {len(done)} runs")
    whole = statistics.median(run.cpu / run.reads for run in done) * 1000
    say(f"  CPU ms a page   {spread([1000 * run.cpu / run.reads for run in done], 3)}, all threads, start to stop")
    say(f"  bare aiohttp    {spread([1000 * used / last.reads for used in floor], 3)}, the same URLs, nothing parsed")
    say(f"  pages/s         {spread([run.reads / run.seconds for run in done])}")
    names = {name for run in done for name in run.parts}
    middle = {name: statistics.median(run.parts.get(name, 0.0) / run.reads for run in done) for name in names}
    for name, share in shares(middle):
        say(f"    {name:<22}{share * whole:>8.3f} ms {share:>7.1%}")
    state = sum(share for name, share in shares(middle) if name in STATE)
    more = state + sum(share for name, share in shares(middle) if name in ("plan", "crawl's glue"))
    say(f"  {' + '.join(STATE)}: {state:.1%} of CPU (goal: at most {GOAL:.0%}); with plan and glue {more:.1%}")
