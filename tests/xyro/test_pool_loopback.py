"""The pool, the real fetcher and real servers on 127.0.0.0/8; what happened is what the servers' log says."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from xyro.fast_client import FastClient
from xyro.fetch_queue import FetchQueue
from xyro.fetcher import Fetcher
from xyro.guard import Guard
from xyro.politeness import Manners, Politeness
from xyro.pool import Pool
from xyro.resolver import Resolver
from xyro.slot_shares import SlotShares
from xyro.wire.clock import SystemClock
from xyro.wire.messages import FetchOrder, PageReport, Priority

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Web:
    """A few hosts (address:port) behind one handler; `log`: (host, path, begin, end) in monotonic seconds."""

    hosts: list[str] = field(default_factory=list)
    ports: set[int] = field(default_factory=set)
    pages: dict[str, Handler] = field(default_factory=dict)
    log: list[tuple[str, str, float, float]] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        begin = time.monotonic()
        try:
            handler = self.pages.get(request.host + request.path) or self.pages.get(request.path)
            if handler is not None:
                return await handler(request)
            if request.path == "/robots.txt":
                return web.Response(status=404)
            return web.Response(text=f"<a href=/next>{request.path}</a>", content_type="text/html")
        finally:
            self.log.append((request.host, request.path, begin, time.monotonic()))

    def of(self, host: str) -> list[tuple[str, str, float, float]]:
        return sorted((entry for entry in self.log if entry[0] == host), key=lambda entry: entry[2])


@asynccontextmanager
async def serving(addresses: list[str]) -> AsyncIterator[Web]:
    served = Web()
    app = web.Application()
    app.router.add_get("/{path:.*}", served.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        for address in addresses:
            site = web.TCPSite(runner, address, 0)
            await site.start()
            port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
            served.hosts.append(f"{address}:{port}")
            served.ports.add(port)
        yield served
    finally:
        await runner.cleanup()


@asynccontextmanager
async def crawling(
    served: Web, manners: Manners, concurrency: int = 50
) -> AsyncIterator[tuple[Pool, list[PageReport]]]:
    clock = SystemClock()
    guard = Guard(only_net=["127.0.0.0/8"], ports=served.ports)
    resolver = Resolver(guard, clock)
    fetcher = Fetcher(FastClient(guard, resolver, user_agent="xyro/test"), clock)
    reports: list[PageReport] = []
    queue, politeness = FetchQueue(), Politeness(manners)
    pool = Pool(
        queue,
        politeness,
        fetcher,
        clock,
        robots_token="xyro",
        on_report=lambda report, _: reports.append(report),
        slots=SlotShares(queue, politeness, clock, concurrency),
    )
    run = asyncio.create_task(pool.run())
    try:
        yield pool, reports
    finally:
        await pool.close(1)
        await run
        await fetcher.close()
        await resolver.close()


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not done():  # noqa: ASYNC110  (what is waited for is a count in a log)
            await asyncio.sleep(0.005)


def orders(host: str, count: int, first: int = 0) -> list[FetchOrder]:
    return [FetchOrder(first + n, f"http://{host}/p{first + n}", Priority.DISCOVER, 1) for n in range(count)]


def text(body: str) -> Handler:
    async def handler(_: web.Request) -> web.StreamResponse:
        return web.Response(text=body)

    return handler


async def test_every_page_is_read_once_after_its_robots_txt_and_one_at_a_time() -> None:
    async with serving([f"127.0.0.{n}" for n in range(2, 7)]) as served:
        async with crawling(served, Manners.fixed(0)) as (pool, reports):
            pool.submit([order for n, host in enumerate(served.hosts) for order in orders(host, 20, n * 20)])
            await until(pool.quiet)
        assert sorted(report.page for report in reports) == list(range(100))
        assert {(report.status, report.error) for report in reports} == {(200, "")}
        assert all(len(report.links.urls) == 1 for report in reports)
        for host in served.hosts:
            own = served.of(host)
            assert own[0][1] == "/robots.txt"
            assert sorted(entry[1] for entry in own[1:]) == sorted({entry[1] for entry in own[1:]})
            assert len(own) == 21
            assert all(after[2] >= before[3] for before, after in itertools.pairwise(own))


async def test_no_forbidden_path_is_ever_touched() -> None:
    async with serving(["127.0.0.2", "127.0.0.3", "127.0.0.4"]) as served:
        rules, gone, broken = served.hosts
        served.pages[rules + "/robots.txt"] = text("User-agent: xyro\nDisallow: /p1\nSitemap: /map.xml\n")

        async def fail(_: web.Request) -> web.StreamResponse:
            return web.Response(status=503)

        served.pages[broken + "/robots.txt"] = fail
        async with crawling(served, Manners.fixed(0)) as (pool, reports):
            pool.submit([*orders(rules, 20), *orders(gone, 3, 100), *orders(broken, 3, 200)])
            await until(lambda: len(reports) >= 24)
            await asyncio.sleep(0.05)
        told = {report.page: report for report in reports}
        assert {page for page in range(20) if told[page].error} == {1, *range(10, 20)}
        assert {told[page].error for page in range(10, 20)} == {"robots-disallowed"}
        assert [told[page].status for page in (100, 101, 102)] == [200] * 3
        assert [path for _, path, *_ in served.of(broken)] == ["/robots.txt"]
        assert {report.error for report in reports if report.page >= 200} == {"robots-unreachable"}
        assert not any(path.startswith("/p1") for _, path, *_ in served.of(rules))
        assert [report.sitemaps for report in reports if report.sitemaps] == [(f"http://{rules}/map.xml",)]


async def test_a_host_that_never_ends_leaves_the_others_their_slots() -> None:
    async with serving(["127.0.0.2", "127.0.0.3", "127.0.0.4"]) as served:
        slow, *fast = served.hosts
        gate = asyncio.Event()

        async def wait(_: web.Request) -> web.StreamResponse:
            await gate.wait()
            return web.Response(text="at last", content_type="text/html")

        served.pages[slow + "/p0"] = wait
        async with crawling(served, Manners.fixed(0), concurrency=2) as (pool, reports):
            pool.submit([*orders(slow, 5), *orders(fast[0], 20, 100), *orders(fast[1], 20, 200)])
            await until(lambda: len(reports) == 40)
            assert pool.in_flight == 1
            gate.set()
            await until(pool.quiet)
        assert [report.page for report in reports[40:]] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("slow", [0.0, 0.06])
async def test_the_delay_begins_where_the_last_read_ended(slow: float) -> None:
    async with serving(["127.0.0.2"]) as served:

        async def wait(_: web.Request) -> web.StreamResponse:
            await asyncio.sleep(slow)
            return web.Response(text="slow", content_type="text/html")

        served.pages["/p0"] = wait
        async with crawling(served, Manners(min_delay=0.1, factor=0.0, ip_delay=0.0)) as (pool, _):
            pool.submit(orders(served.hosts[0], 4))
            await until(pool.quiet)
        own = served.of(served.hosts[0])
        assert len(own) == 5
        assert all(after[2] - before[3] >= 0.1 for before, after in itertools.pairwise(own))


async def test_hosts_of_one_address_are_never_read_at_once() -> None:
    async with serving(["127.0.0.2"] * 4) as served:
        async with crawling(served, Manners(min_delay=0.0, factor=0.0, ip_delay=0.03)) as (pool, reports):
            pool.submit([order for n, host in enumerate(served.hosts) for order in orders(host, 2, n * 2)])
            await until(pool.quiet)
        assert sorted(report.page for report in reports) == list(range(8))
        log = sorted(served.log, key=lambda entry: entry[2])
        assert all(after[2] - before[3] >= 0.03 for before, after in itertools.pairwise(log))


async def test_close_leaves_nothing_running_and_cuts_off_the_connection() -> None:
    async with serving(["127.0.0.2"]) as served:
        cut = asyncio.Event()

        async def endless(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            response.content_type = "text/html"
            await response.prepare(request)
            try:
                while True:
                    await response.write(b"<a href=x>")
                    await asyncio.sleep(0.01)
            except (ConnectionError, asyncio.CancelledError):
                cut.set()
                raise

        served.pages["/p0"] = endless
        before = asyncio.all_tasks()
        async with crawling(served, Manners.fixed(0)) as (pool, reports):
            pool.submit(orders(served.hosts[0], 2))
            await until(lambda: pool.counters.robots_reads == 1 and pool.in_flight == 1)
            await pool.close(0.05)
            assert reports == []
            own = {task for task in asyncio.all_tasks() - before if "xyro/pool" in repr(task)}
            assert all(task.done() for task in own)
        await until(cut.is_set)


async def test_a_url_outside_the_only_net_is_refused_without_any_contact() -> None:
    async with serving(["127.0.0.2"]) as served, crawling(served, Manners.fixed(0)) as (pool, reports):
        pool.submit(
            [
                FetchOrder(0, "http://192.0.2.1/", Priority.ORDERED, 1),
                FetchOrder(1, "http://a.test/", Priority.ORDERED, 1),
            ]
        )
        await until(pool.quiet)
        assert [(report.error, report.final, report.status) for report in reports] == [("only-net", True, 0)] * 2
        assert served.log == []
