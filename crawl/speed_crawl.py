"""`xyro lab speed latency` and `pages`: whole crawls in this process, the server in another one."""

from __future__ import annotations

import asyncio
import gc
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

import aiohttp
import uvloop
from yarl import URL

from configs.schema import Crawl, Fetch, Politeness, Settings
from crawl.data_dir import DataDir
from crawl.reading import guard_of
from crawl.seeds import why_refused
from crawl.single import Bounds, Single
from crawl.stopped import nodes_of
from crawl.views import Views
from lab.child import running
from lab.places import address_of
from lab.speed import (
    MIB,
    Lag,
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
from wire.clock import SystemClock
from wire.errors import InputError
from wire.urls import canonical

LOOPBACK = ("127.0.0.0/8",)
WRITER = "writer-"
IDLE = 1.0
"""seconds that the lag of an idle loop is measured"""

PARTS = {
    "xyro": "fetch + parse",
    "crawl.fetch_node": "fetch + parse",
    "aiohttp": "fetch + parse",
    "loader": "loader",
    "crawl.load_node": "loader",
    "metadata": "metadata",
    "opic": "opic",
    "crawl.purse": "opic",
    "crawl.post": "opic",
    "refresh": "refresh",
    "refresh.plan": "plan",
    "crawl.planner": "plan",
    "crawl": "crawl's glue",
}
"""module or folder -> part of the loop; the longest prefix decides. What others call (wire, libraries) is the caller's."""
STATE = ("metadata", "opic", "refresh")
STATE_GOAL = 0.25


def part_of(frame: FrameType | None) -> str:
    """The part of the innermost frame that belongs to one."""
    while frame is not None:
        name = module_of(frame)
        while name:
            if name in PARTS:
                return PARTS[name]
            name = name.rpartition(".")[0]
        frame = frame.f_back
    return "event loop, the rest"


@dataclass(slots=True)
class Crawled:
    """What one crawl cost."""

    reads: int = 0
    bytes: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    rss: int = 0
    steady: float = 0.0
    """reads/s between the first and the last tenth of the reads"""
    errors: Counter[str] = field(default_factory=Counter)
    lag: Lag = field(default_factory=lambda: Lag([]))
    idle: Lag = field(default_factory=lambda: Lag([]))
    """of the same loop before the crawl"""
    parts: dict[str, float] = field(default_factory=dict)
    """CPU seconds by part"""


def crawl(directory: Path, seeds: Iterable[str], settings: Settings, *, sampled: bool = False) -> Crawled:
    """Crawl `seeds` to the end into a new directory. InputError: a seed that may not be read."""
    gc.collect()
    return uvloop.run(_crawl(directory, list(seeds), settings, sampled))


async def _crawl(directory: Path, seeds: Sequence[str], settings: Settings, sampled: bool) -> Crawled:
    clock, done = SystemClock(), Crawled()
    if not sampled:
        with lag_meter(clock) as done.idle:
            await clock.sleep(IDLE)
    single = Single(DataDir.open(directory, make=True), settings, guard_of(settings.fetch), Bounds(settings.crawl.max_pages))
    if refused := [f"{seed}: {why}" for seed in seeds if (why := why_refused(seed, single.scope))]:
        await single.stop()
        raise InputError(refused[0])
    began, used, threads = clock.monotonic(), cpu_seconds(), thread_seconds()
    if sampled:
        with Sampler(part_of) as sampler:
            await _work(single, seeds, settings)
            used, threads = cpu_seconds() - used, _since(threads)
        done.parts = _by_part(sampler.count, threads, used)
        done.cpu = used
    else:
        times = asyncio.create_task(_watch(single, clock))
        with lag_meter(clock) as done.lag:
            await _work(single, seeds, settings)
        done.cpu = cpu_seconds() - used
        times.cancel()
        done.steady = _steady(_seen)
    done.seconds = clock.monotonic() - began
    return done
