"""Bodies that arrive faster than they are parsed: no more is read while too much waits, and a stop is soon over."""

import asyncio
import time

import aiohttp.web
import pytest

from tests.service.face import said
from xyro.configs.load import load
from xyro.loader.intake import Intake
from xyro.loader.parse import PIECE
from xyro.plugins import PLUGINS
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.load_loop import BIG, MUCH, LoadLoop
from xyro.service.node.node import Bounds, Node
from xyro.wire import topics
from xyro.wire.bus import LocalBus
from xyro.wire.clock import SystemClock
from xyro.wire.errors import MachineError
from xyro.wire.messages import Kind, LoadReport, XmlPage


def document(size):
    return b"<r>" + b"<a b='c'>text</a>" * (size // 17) + b"</r>"


def pages(count, size):
    return [
        XmlPage(page, f"http://h{page}.example/x.xml", 1, 0.0, Kind.XML, "text/xml", "", document(size))
        for page in range(count)
    ]


class Loads:
    """A load node, and the reports that left it, in their order."""

    def __init__(self):
        self.bus, self.eased, self.settled = LocalBus(), 0, []
        self.load_loop = LoadLoop(
            self.bus, SystemClock(), Intake, lambda page: b"", lambda page: False, eased=self.count
        )

    def count(self):
        self.eased += 1

    def take(self, page):
        self.load_loop.take(page, lambda: self.settled.append(page.page))

    async def loaded(self):
        told = await self.bus.receive(topics.pages(0), 1_000) if self.bus.waiting(topics.pages(0)) else []
        return [message.page for message in told if isinstance(message, LoadReport)]


async def test_what_waits_is_counted_in_jobs_and_bytes_and_keeps_its_order():
    loads = Loads()
    large, small = pages(3, 2 * BIG), pages(5, 100)[3:]
    for page in [*large, *small]:
        loads.take(page)
    assert (loads.load_loop.queued, loads.load_loop.bytes_waiting) == (
        5,
        sum(len(page.body) for page in [*large, *small]),
    )
    await loads.load_loop.close(60.0)
    assert await loads.loaded() == loads.settled == [0, 1, 2, 3, 4]
    assert (loads.load_loop.queued, loads.load_loop.bytes_waiting, loads.eased) == (0, 0, 5)


async def test_what_parsing_fails_of_is_kept():
    loads = Loads()
    loads.load_loop.intake.take = lambda *_, **__: 1 / 0
    loads.take(pages(1, 2 * BIG)[0])
    async with asyncio.timeout(10):
        while not loads.load_loop.failed:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert isinstance(loads.load_loop.failed, ZeroDivisionError) and not loads.settled
    await loads.load_loop.close(1.0)


async def test_a_stop_does_not_wait_for_all_that_is_to_be_parsed():
    loads = Loads()
    for page in pages(60, 4_000_000):
        loads.take(page)
    await loads.load_loop.close(0.3)
    loaded = await loads.loaded()
    assert loaded == loads.settled == list(range(len(loaded)))
    assert 0 < len(loaded) < 60


@pytest.mark.parametrize(("reading", "waiting", "rests"), [(True, 0, True), (False, 0, False), (True, 2 * MUCH, False)])
async def test_the_thread_rests_between_pieces_while_pages_are_read_and_little_waits(
    monkeypatch, reading, waiting, rests
):
    loads, rested = Loads(), []
    loads.load_loop._is_reading = lambda: reading
    loads.load_loop.bytes_waiting = waiting
    monkeypatch.setattr(loads.load_loop._closes, "wait", rested.append)
    loads.take(pages(1, 8 * PIECE - 100)[0])
    loads.take(pages(1, 100)[0])
    async with asyncio.timeout(20):
        while loads.load_loop.queued:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert len(rested) == (7 if rests else 0) and all(seconds > 0.0 for seconds in rested)
    rested.clear()
    loads.take(pages(1, 2 * PIECE)[0])  # parsed where it arrives
    assert rested == [] and not loads.load_loop.queued
    await loads.load_loop.close(1.0)


@pytest.fixture
async def flood():
    """A site of 60 hosts, each with XML of half a MB: it comes far faster than it can be parsed."""
    body, hosts = document(500_000), [f"127.0.3.{n}" for n in range(1, 61)]

    async def answer(request):
        if request.path == "/robots.txt":
            return aiohttp.web.Response(status=404)
        if request.path.endswith(".xml"):
            return aiohttp.web.Response(body=body, content_type="application/xml")
        links = "".join(f'<a href="http://{host}:{port}/{page}.xml">' for host in hosts for page in range(20))
        return aiohttp.web.Response(text=f"<html>{links}</html>", content_type="text/html")

    app = aiohttp.web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = aiohttp.web.AppRunner(app)
    await runner.setup()
    site = aiohttp.web.TCPSite(runner, "0.0.0.0", 0)
    await site.start()
    port = runner.addresses[0][1]
    yield f"http://127.0.3.1:{port}/"
    await runner.cleanup()


@pytest.mark.long
async def test_a_crawl_reads_no_more_than_it_can_parse(tmp_path, flood, monkeypatch):
    concurrency, full = 16, 6 << 20
    monkeypatch.setattr("xyro.service.node.node.FULL", full)
    fixed = {"crawl.scope": "any", "politeness.delay": 0.0, "fetch.concurrency": concurrency}
    settings = load(overrides=fixed | {"fetch.only_net": ("127.0.0.0/8",)})
    single = Node(
        DataDir.open(tmp_path / "data", make=True), settings, guard_of(settings.fetch), Bounds(), plugins=PLUGINS
    )
    single.start()
    most = 0
    try:
        await single.sow([flood])
        end = time.monotonic() + 60.0
        while single.reads < 60 and time.monotonic() < end:
            most = max(most, single.load_loop.bytes_waiting)
            await asyncio.sleep(0.01)
        assert single.reads >= 60
    finally:
        await single.stop(0.5)
    assert full <= most < full + (concurrency + 1) * 600_000
    found = said("audit", "--data", tmp_path / "data")
    assert (found["violations"], found["pages"]) == ([], 1 + 60 * 20)


@pytest.mark.parametrize("big", [BIG, 1 << 40], ids=["in the thread", "on the loop"])
async def test_a_crawl_whose_loader_fails_ends_with_that_and_does_not_wait_for_ever(tmp_path, flood, monkeypatch, big):
    monkeypatch.setattr("xyro.service.node.load_loop.BIG", big)
    fixed = {"crawl.scope": "any", "politeness.delay": 0.0, "fetch.only_net": ("127.0.0.0/8",)}
    settings = load(overrides=fixed)
    single = Node(
        DataDir.open(tmp_path / "data", make=True), settings, guard_of(settings.fetch), Bounds(), plugins=PLUGINS
    )

    def take(*_, **__):
        raise MachineError("no room")

    monkeypatch.setattr(single.load_loop.intake, "take", take)
    single.start()
    try:
        await single.sow([flood])
        async with asyncio.timeout(20):
            with pytest.raises(MachineError, match="no room"):
                await single.finished()
    finally:
        await single.stop(0.5)
    found = said("audit", "--data", tmp_path / "data")
    assert found["violations"] == []
