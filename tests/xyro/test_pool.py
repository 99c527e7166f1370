"""The pool with a clock that stands still and a reader that answers from a script: every moment is known exactly.

The same pool against real loopback servers is in test_pool_loopback.py.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from xyro.answer import Answer
from xyro.clock_log import ClockLog
from xyro.failures import DAY
from xyro.fetch_queue import FetchQueue
from xyro.lookups import LONGEST_LINE, Lookups
from xyro.politeness import Manners, Politeness
from xyro.pool import STARTS, Pool
from xyro.robots import LONG, Robots, RobotsTable
from xyro.slot_shares import SlotShares
from xyro.wire.clock import ManualClock
from xyro.wire.errors import TheirError
from xyro.wire.messages import FetchOrder, HostChallenged, PageReport, Priority
from xyro.wire.urls import authority, host_of

EPOCH = 1_700_000_000.0
HASTY = Manners.fixed(0)
ALONE = Manners(ip_delay=0.0)  # hosts as usual, addresses free


def order(page: int, url: str, priority: Priority = Priority.DISCOVER, **more: float) -> FetchOrder:
    return FetchOrder(page, url, priority, epoch=1, **more)  # type: ignore[arg-type]


def pages(host: str, count: int, first: int = 0) -> list[FetchOrder]:
    return [order(first + n, f"http://{host}/{first + n}") for n in range(count)]


class Script:
    """A Reader: `robots` and `answers` say what comes, `gates` hold a URL until they are set, `log` what was read."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.robots: dict[str, Callable[[], Answer]] = {}
        self.answers: dict[str, Callable[[], Answer]] = {}
        self.gates: dict[str, asyncio.Event] = {}
        self.addresses: dict[str, str] = {}
        self.log: list[tuple[float, str]] = []
        self.orders: list[FetchOrder] = []
        """those of pages, as the queue handed them over"""
        self.reading: Counter[str] = Counter()
        self.most_reading = 0
        self.silent: set[str] = set()
        """names whose servers do not answer"""
        self.looking = self.most_looking = 0
        self.signed: list[str] = []
        self.expected: dict[str, float] = {}
        """host -> when its next read is due, as was said last"""

    def good(self, status: int = 200, **more: object) -> Answer:
        return Answer(self.clock.time(), self.clock.time(), 0.0, status, **more)  # type: ignore[arg-type]

    async def fetch(self, order: FetchOrder) -> Answer:
        self.orders.append(order)
        return await self._read(order.url, self.answers.get(order.url))

    async def fetch_robots(self, url: str) -> Answer:
        return await self._read(url, self.robots.get(url.removesuffix("/robots.txt")) or (lambda: self.good(404)))

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        self.log.append((self.clock.monotonic(), f"POST {url}"))
        return await self._read(url, self.answers.get(url))

    def sign(self, host: str) -> None:
        self.signed.append(host)

    def expect(self, host: str, seconds: float) -> None:
        self.expected[host] = self.clock.monotonic() + seconds

    def knows(self, url: str) -> bool:
        return host_of(url) not in self.silent

    async def address(self, url: str) -> str:
        await asyncio.sleep(0)
        if host_of(url) in self.silent:  # as a resolver does: two tries, then the failure is believed for a while
            self.looking += 1
            self.most_looking = max(self.most_looking, self.looking)
            await self.clock.sleep(12.0)
            self.looking -= 1
            self.silent.discard(host_of(url))
            return ""
        return self.addresses.get(host_of(url), host_of(url))

    async def _read(self, url: str, answer: Callable[[], Answer] | None) -> Answer:
        host = authority(url)
        self.log.append((self.clock.monotonic(), url))
        self.reading[host] += 1
        assert self.reading[host] == 1, "two reads of a host at once"
        self.most_reading = max(self.most_reading, self.reading.total())
        try:
            await asyncio.sleep(0)
            if url in self.gates:
                await self.gates[url].wait()
        finally:
            self.reading[host] -= 1
        return answer() if answer is not None else self.good()

    @property
    def urls(self) -> list[str]:
        return [url for _, url in self.log]

    def page_times(self) -> list[float]:
        return [at for at, url in self.log if not url.endswith("/robots.txt")]


class Bench:
    """A pool on a manual clock, and what it reported."""

    def __init__(
        self,
        manners: Manners = HASTY,
        concurrency: int = 100,
        newcomers: float = 1.0,
        gamma: float = 50.0,
        may_read: Callable[[], bool] = lambda: True,
    ) -> None:
        self.clock = ManualClock(EPOCH)
        self.script = Script(self.clock)
        self.reports: list[PageReport] = []
        self.politeness = Politeness(manners)
        self.queue = FetchQueue(gamma)
        self.pool = Pool(
            self.queue,
            self.politeness,
            self.script,
            self.clock,
            robots_token="xyro",
            on_report=lambda report, _: self.reports.append(report),
            slots=SlotShares(self.queue, self.politeness, self.clock, concurrency, newcomers),
            may_read=may_read,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Bench]:
        run = asyncio.create_task(self.pool.run())
        try:
            await self.settle()
            yield self
        finally:
            await self.pool.close(0)
            with suppress(RuntimeError):
                await run
            assert asyncio.all_tasks() == {asyncio.current_task()}, "a task was left behind"

    async def settle(self) -> None:
        """Let everything happen that needs no time."""
        for _ in range(200):
            await asyncio.sleep(0)

    async def pass_time(self, seconds: float, step: float = 0.25) -> None:
        for _ in range(round(seconds / step)):
            self.clock.advance(step)
            await self.settle()

    async def read(self, *orders: FetchOrder) -> list[PageReport]:
        self.pool.submit(orders)
        await self.settle()
        return self.reports

    @property
    def told(self) -> list[int]:
        return [report.page for report in self.reports]

    @property
    def errors(self) -> list[str]:
        return [report.error for report in self.reports]


async def test_every_order_is_reported_once_and_robots_is_read_first() -> None:
    async with Bench().running() as bench:
        await bench.read(*[o for host in range(20) for o in pages(f"h{host}", 10, host * 10)])
        assert sorted(bench.told) == list(range(200))
        assert bench.script.most_reading == 20
        for host in range(20):
            own = [url for url in bench.script.urls if authority(url) == f"h{host}"]
            assert own == [f"http://h{host}/robots.txt"] + [f"http://h{host}/{host * 10 + n}" for n in range(10)]
        assert bench.pool.quiet()
        assert (bench.pool.counters.reads, bench.pool.counters.robots_reads) == (200, 20)
        assert bench.pool.in_flight == 0


async def test_few_reads_begin_in_one_turn_of_the_event_loop() -> None:
    """256 connections begun at once held the event loop for .2 s."""
    async with Bench(concurrency=3 * STARTS).running() as bench:
        orders = [o for host in range(4 * STARTS) for o in pages(f"h{host}", 1, host)]
        bench.pool.submit(orders)
        begun = [bench.pool.in_flight]
        while begun[-1] < 3 * STARTS:
            await asyncio.sleep(0)
            begun.append(bench.pool.in_flight)
        assert max(later - before for before, later in itertools.pairwise([0, *begun])) == STARTS
        await bench.settle()
        assert sorted(bench.told) == list(range(4 * STARTS))


async def test_a_long_robots_txt_is_parsed_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    parsing, parse = list[str](), Robots.parse

    def noted(body: bytes, token: str, **more: bool | int) -> Robots:
        parsing.append(threading.current_thread().name)
        return parse(body, token, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Robots, "parse", noted)
    rules = b"User-agent: *\nDisallow: /1\n"
    async with Bench().running() as bench:
        for host, body in (("a", rules), ("b", rules + b"Disallow: /x\n" * (LONG // 12))):
            bench.script.robots[f"http://{host}"] = lambda body=body: bench.script.good(body=body)
        await bench.read(*pages("a", 2), *pages("b", 2, 2))
        bench.pool.submit([order(5, "http://b/10")])
        for _ in range(500):
            if len(bench.reports) < 5:
                await asyncio.sleep(0.01)
    assert parsing[0] == threading.main_thread().name != parsing[1] and len(parsing) == 2
    assert {report.page: report.error for report in bench.reports if report.error} == {
        1: "robots-disallowed",
        5: "robots-disallowed",
    }


async def test_nothing_is_read_before_run_and_everything_after_it() -> None:
    bench = Bench()
    bench.pool.submit(pages("h", 2))
    await bench.settle()
    assert bench.script.log == []
    assert not bench.pool.quiet()
    async with bench.running():
        assert bench.told == [0, 1]


async def test_at_most_concurrency_reads_go_on() -> None:
    async with Bench(concurrency=7).running() as bench:
        await bench.read(*[o for host in range(50) for o in pages(f"h{host}", 3, host * 3)])
        assert bench.script.most_reading == 7
        assert sorted(bench.told) == list(range(150))


async def test_nothing_is_read_while_it_may_not_be_whatever_frees_a_slot() -> None:
    """An order, a read that ended, a host that is due again, a resumed host: none of them begins a read."""
    saved = 0

    def may_read() -> bool:
        return bench.pool.in_flight + len(bench.reports) - saved < 6

    bench = Bench(Manners.fixed(1), concurrency=4, may_read=may_read)
    async with bench.running():
        bench.pool.hold("held")
        await bench.read(*[o for host in range(20) for o in pages(f"h{host}", 3, host * 3)], *pages("held", 1, 100))
        await bench.pass_time(10.0)
        await bench.read(*pages("late", 1, 101))
        bench.pool.resume("held")
        await bench.pass_time(10.0)
        assert len(bench.reports) == 6
        for saved in range(6, 72, 6):
            bench.pool.wake()
            await bench.pass_time(2.0)
            assert len(bench.reports) == min(saved + 6, 62)
        assert bench.pool.quiet()


async def test_a_slow_host_holds_one_slot_and_no_more() -> None:
    async with Bench(concurrency=2).running() as bench:
        bench.script.gates["http://slow/0"] = asyncio.Event()
        await bench.read(*pages("slow", 10), *[o for host in range(5) for o in pages(f"h{host}", 10, 100 + host * 10)])
        assert sorted(bench.told) == list(range(100, 150))
        assert bench.pool.in_flight == 1
        bench.script.gates["http://slow/0"].set()
        await bench.settle()
        assert sorted(bench.told) == [*range(10), *range(100, 150)]


async def test_a_slow_robots_txt_holds_one_slot_while_all_orders_of_its_host_wait() -> None:
    async with Bench(concurrency=2).running() as bench:
        bench.script.gates["http://slow/robots.txt"] = asyncio.Event()
        await bench.read(*pages("slow", 10), *pages("h", 10, 100))
        assert bench.told == list(range(100, 110))
        assert bench.pool.in_flight == 1
        bench.script.gates["http://slow/robots.txt"].set()
        await bench.settle()
        assert bench.told[10:] == list(range(10))


async def test_delays_are_counted_from_the_end_of_the_last_read() -> None:
    async with Bench(Manners(min_delay=2.0, factor=0.0, ip_delay=0.0)).running() as bench:
        bench.script.gates["http://h/0"] = asyncio.Event()
        await bench.read(*pages("h", 3))
        assert bench.pool.next_ready_in() == 2.0  # after robots.txt
        await bench.pass_time(5)
        bench.script.gates["http://h/0"].set()  # a read of 3 seconds
        await bench.settle()
        await bench.pass_time(10)
        assert bench.script.log == [
            (0.0, "http://h/robots.txt"),
            (2.0, "http://h/0"),
            (7.0, "http://h/1"),
            (9.0, "http://h/2"),
        ]


async def test_the_fetcher_hears_when_a_host_is_read_next() -> None:
    async with Bench(Manners.fixed(4.0)).running() as bench:
        began, expected = bench.clock.monotonic(), bench.script.expected
        await bench.read(*pages("h", 2))
        assert expected == {"h": began + 4.0}  # robots.txt is read, the first page comes next
        await bench.pass_time(4.0)
        assert bench.told == [0] and expected == {"h": began + 8.0}
        await bench.pass_time(4.0)
        assert bench.told == [0, 1] and expected == {"h": math.inf}
        await bench.read(*pages("h", 1, 2))
        assert expected == {"h": began + 12.0}
        bench.pool.hold("h")
        bench.pool.submit(pages("i", 1, 3))
        assert "i" not in expected  # it has no connection yet


async def test_the_longer_the_read_the_longer_the_rest() -> None:
    async with Bench(Manners(min_delay=0.0, factor=5.0, ip_delay=0.0)).running() as bench:
        bench.script.answers["http://h/0"] = lambda: Answer(EPOCH, EPOCH + 2, 2.0, 200)
        await bench.read(*pages("h", 2))
        await bench.pass_time(20)
        assert bench.script.page_times() == [0.0, 10.0]


async def test_crawl_delay_holds_even_with_delay_zero() -> None:
    async with Bench(HASTY).running() as bench:
        bench.script.robots["http://h"] = lambda: bench.script.good(body=b"User-agent: *\nCrawl-delay: 3\n")
        await bench.read(*pages("h", 3))
        await bench.pass_time(20)
        assert bench.script.page_times() == [3.0, 6.0, 9.0]


async def test_the_schemes_of_a_host_share_its_politeness_and_not_its_robots_txt() -> None:
    async with Bench(ALONE).running() as bench:
        await bench.read(order(0, "http://h/0"), order(1, "https://h/1"))
        await bench.pass_time(10)
        times = [at for at, _ in bench.script.log]
        assert times == [0.0, 2.0, 4.0, 6.0]
        assert sorted(bench.script.urls) == [
            "http://h/0",
            "http://h/robots.txt",
            "https://h/1",
            "https://h/robots.txt",
        ]


async def test_hosts_of_one_address_take_turns_with_a_rest_between_them() -> None:
    async with Bench(Manners(min_delay=0.0, factor=0.0, ip_delay=0.5)).running() as bench:
        bench.script.addresses = {f"h{host}": "192.0.2.1" for host in range(10)}
        await bench.read(*[o for host in range(10) for o in pages(f"h{host}", 2, host * 2)])
        assert bench.pool.in_flight == 0
        await bench.pass_time(40)
        assert sorted(bench.told) == list(range(20))
        times = [at for at, _ in bench.script.log]
        assert len(times) == 30
        assert all(later - earlier >= 0.5 for earlier, later in itertools.pairwise(times))
        assert times[-1] <= 20.0  # few turns are wasted


async def test_waiting_for_an_address_holds_no_slot() -> None:
    async with Bench(Manners(min_delay=0.0, factor=0.0, ip_delay=0.5), concurrency=2).running() as bench:
        bench.script.addresses = {"a": "192.0.2.1", "b": "192.0.2.1"}
        bench.script.gates["http://a/robots.txt"] = asyncio.Event()
        await bench.read(*pages("a", 1), *pages("b", 1, 10), *pages("c", 3, 20))
        await bench.pass_time(5)
        assert bench.told == [20, 21, 22]


async def test_what_robots_txt_forbids_is_refused_without_a_request() -> None:
    async with Bench(ALONE).running() as bench:
        bench.script.robots["http://h"] = lambda: bench.script.good(body=b"User-agent: xyro\nDisallow: /no\n")
        await bench.read(order(0, "http://h/no/0"), order(1, "http://h/yes"), order(2, "http://h/no/2"))
        await bench.pass_time(10)
        assert bench.script.urls == ["http://h/robots.txt", "http://h/yes"]
        refused = [report for report in bench.reports if report.page != 1]
        assert [(r.error, r.final, r.status, r.started - r.ended) for r in refused] == [
            ("robots-disallowed", True, 0, 0.0)
        ] * 2
        assert refused[0].host_next == EPOCH + 2.0  # the read of robots.txt counts
        assert bench.pool.counters.refused == 2


async def test_thousands_of_refused_orders_do_not_stop_the_loop() -> None:
    async with Bench().running() as bench:
        bench.script.robots["http://h"] = lambda: bench.script.good(body=b"User-agent: *\nDisallow: /\n")
        turns = 0
        bench.pool.submit(pages("h", 2_000))
        while not bench.pool.quiet():
            await asyncio.sleep(0)
            turns += 1
        assert turns >= 2_000
        assert set(bench.errors) == {"robots-disallowed"}


async def test_while_robots_txt_cannot_be_had_nothing_is_read() -> None:
    async with Bench(ALONE).running() as bench:
        bench.script.robots["http://h"] = lambda: bench.script.good(503)
        await bench.read(*pages("h", 3))
        await bench.pass_time(10)
        assert bench.script.urls == ["http://h/robots.txt"]
        assert bench.errors == ["robots-unreachable"] * 3
        assert not any(report.final for report in bench.reports)
        assert all(report.retry_at >= EPOCH + 20.0 for report in bench.reports)
        assert bench.reports[0].host_failures == 1
        bench.script.robots["http://h"] = lambda: bench.script.good(200)
        await bench.pass_time(15)
        await bench.read(order(9, "http://h/9"))
        await bench.pass_time(3)
        assert bench.script.urls[1:] == ["http://h/robots.txt", "http://h/9"]


@pytest.mark.parametrize(
    ("kind", "final"),
    [("dns-nxdomain", False), ("connect-refused", False), ("proxy-failed", False), ("blocked-address", True)],
)
async def test_a_host_that_cannot_be_reached_at_all_says_why(kind: str, final: bool) -> None:
    async with Bench().running() as bench:
        bench.script.robots["http://h"] = lambda: bench.script.good(0, error=kind)
        await bench.read(*pages("h", 1))
        assert [(report.error, report.final) for report in bench.reports] == [(kind, final)]


async def test_robots_txt_is_read_again_after_a_day_and_binds_what_is_queued() -> None:
    async with Bench().running() as bench:
        body = b""
        bench.script.robots["http://h"] = lambda: bench.script.good(body=body)
        await bench.read(order(0, "http://h/x"))
        bench.pool.hold("h")
        await bench.read(order(1, "http://h/x"), order(2, "http://h/y"))
        body = b"User-agent: *\nDisallow: /x\n"
        bench.clock.advance(DAY)
        bench.pool.resume("h")
        await bench.settle()
        assert bench.script.urls == ["http://h/robots.txt", "http://h/x", "http://h/robots.txt", "http://h/y"]
        assert bench.errors == ["", "robots-disallowed", ""]


async def test_sitemaps_of_robots_txt_are_told_once() -> None:
    async with Bench().running() as bench:
        bench.script.robots["http://h"] = lambda: bench.script.good(body=b"Sitemap: /s.xml\nSitemap: http://h/t.xml\n")
        await bench.read(*pages("h", 3))
        assert [report.sitemaps for report in bench.reports] == [("http://h/s.xml", "http://h/t.xml"), (), ()]


async def test_a_blocking_order_is_next_however_many_wait() -> None:
    async with Bench(ALONE).running() as bench:
        await bench.read(*pages("h", 500))
        await bench.pass_time(3)
        await bench.read(order(1_000, "http://h/part.dtd", Priority.BLOCKING))
        await bench.pass_time(2)
        assert bench.told == [0, 1_000]


async def test_not_before_is_wall_clock_and_holds_for_the_host() -> None:
    async with Bench().running() as bench:
        await bench.read(
            order(0, "http://h/0", not_before=EPOCH + 30.0), order(1, "http://h/1"), order(2, "http://i/2")
        )
        assert bench.told == [2]
        assert bench.pool.next_ready_in() == 30.0
        await bench.pass_time(29.5)
        assert bench.told == [2]
        await bench.pass_time(0.5)
        assert bench.told == [2, 0, 1]


@pytest.mark.parametrize("way", ["pool", "politeness"])
async def test_politeness_survives_a_restart(way: str) -> None:
    async with Bench(Manners(backoff_base=4.0, ip_delay=0.0)).running() as bench:
        if way == "pool":
            bench.pool.restore("h", EPOCH + 10.0, failures=2)
        else:
            bench.politeness.restore("h", 10.0, failures=2)
        bench.script.robots["http://h"] = lambda: bench.script.good(500)
        await bench.read(*pages("h", 1))
        await bench.pass_time(10)
        assert bench.script.log == [(10.0, "http://h/robots.txt")]
        assert bench.reports[0].host_failures == 3
        assert bench.reports[0].host_next == EPOCH + 10.0 + 16.0


async def test_hosts_whose_floor_has_passed_cost_nothing_after_a_restart() -> None:
    async with Bench().running() as bench:
        for host in range(100):
            bench.pool.restore(f"h{host}", EPOCH - 10.0, failures=0)
        bench.pool.restore("failing", EPOCH - 10.0, failures=5)
        assert len(bench.politeness) == 1
        assert bench.politeness.failures("failing") == 5
        assert bench.pool.quiet()
        await bench.read(*pages("h7", 1))
        assert bench.told == [0]


async def test_failures_in_a_row_back_the_host_off_and_carry_their_retry() -> None:
    async with Bench(Manners(min_delay=1.0, ip_delay=0.0, backoff_base=4.0)).running() as bench:
        for page in range(3):
            bench.script.answers[f"http://h/{page}"] = lambda: bench.script.good(0, error="disconnect")
        await bench.read(*pages("h", 4))
        await bench.pass_time(40)
        assert bench.script.page_times() == [1.0, 5.0, 13.0, 29.0]
        assert [report.host_failures for report in bench.reports] == [1, 2, 3, 0]
        first = bench.reports[0]
        assert (first.error, first.final, first.retry_at) == ("disconnect", False, EPOCH + 1.0 + 5.0)
        assert (bench.reports[2].retry_at, bench.reports[2].host_next) == (EPOCH + 29.0, EPOCH + 29.0)
        assert bench.pool.counters.errors == {"disconnect": 3}


async def test_retry_after_spares_the_whole_host() -> None:
    async with Bench().running() as bench:
        bench.script.answers["http://h/0"] = lambda: bench.script.good(429, error="http-429", retry_after=50.0)
        await bench.read(*pages("h", 2))
        assert bench.reports[0].retry_at == EPOCH + 50.0
        await bench.pass_time(49.75)
        assert bench.told == [0]
        await bench.pass_time(0.25)
        assert bench.told == [0, 1]


async def test_a_delay_counts_from_the_last_byte_not_from_the_end_of_our_work_on_it() -> None:
    async with Bench(Manners(min_delay=10.0, factor=0.0, ip_delay=0.0)).running() as bench:
        first, second = "http://h/0", "http://h/1"
        bench.script.gates[first] = asyncio.Event()
        bench.script.answers[first] = lambda: bench.script.good(received_at=bench.clock.monotonic() - 3.0)
        bench.script.answers[second] = lambda: bench.script.good(received_at=bench.clock.monotonic() + 3.0)  # none can
        await bench.read(*pages("h", 3))
        await bench.pass_time(15.0)  # robots.txt and its delay, then a read of 5 s, the last 3 of which are our work
        bench.script.gates[first].set()
        await bench.settle()
        await bench.pass_time(20.0)
        begun = bench.script.page_times()
        assert [later - begun[0] for later in begun] == [0.0, 5.0 - 3.0 + 10.0, 5.0 - 3.0 + 20.0]


async def test_a_page_that_is_gone_does_not_slow_its_host() -> None:
    async with Bench().running() as bench:
        bench.script.answers["http://h/0"] = lambda: bench.script.good(404, error="http-404")
        await bench.read(*pages("h", 2))
        assert [(report.error, report.final) for report in bench.reports] == [("http-404", True), ("", False)]
        assert bench.reports[0].host_failures == 0


async def test_where_nobody_was_contacted_nobody_is_spared() -> None:
    async with Bench(Manners(min_delay=2.0)).running() as bench:
        bench.script.answers["http://h/0"] = lambda: bench.script.good(0, error="blocked-address")
        await bench.read(*pages("h", 2))
        await bench.pass_time(2)
        assert bench.told == [0, 1]
        assert bench.script.page_times() == [2.0, 2.0]


async def test_what_the_fetcher_raises_is_internal_and_loses_nothing() -> None:
    def fail() -> Answer:
        raise RuntimeError("a mistake of ours")

    async with Bench().running() as bench:
        bench.script.answers["http://h/0"] = fail
        bench.script.answers["http://h/1"] = lambda: bench.script.good(0, error="no such class")
        bench.script.robots["http://i"] = fail
        await bench.read(*pages("h", 3), *pages("i", 1, 10))
        assert dict(zip(bench.told, bench.errors, strict=True)) == {
            0: "internal",
            1: "internal",
            2: "",
            10: "robots-unreachable",
        }
        assert not any(report.final for report in bench.reports)


async def test_a_report_that_cannot_be_taken_ends_the_run() -> None:
    bench = Bench()

    def refuse(report: PageReport, answer: Answer) -> None:
        raise RuntimeError("the disk is full")

    bench.pool._on_report = refuse
    bench.pool.submit(pages("h", 5))
    with pytest.raises(RuntimeError, match="the disk is full"):
        await bench.pool.run()
    await bench.pool.close(1)
    assert len(bench.script.page_times()) == 1


async def test_pause_and_resume() -> None:
    async with Bench(ALONE).running() as bench:
        await bench.read(*pages("h", 3))
        await bench.pass_time(2)
        bench.pool.hold("h")
        await bench.pass_time(20)
        assert bench.told == [0]
        assert bench.pool.next_ready_in() is None
        assert not bench.pool.quiet()
        bench.pool.resume("h")
        await bench.settle()
        await bench.pass_time(2)
        assert bench.told == [0, 1, 2]


async def test_block_takes_back_everything_not_yet_read() -> None:
    async with Bench().running() as bench:
        bench.script.gates["http://h/0"] = asyncio.Event()
        await bench.read(*pages("h", 4))
        assert [dropped.page for dropped in bench.pool.drop("h")] == [1, 2, 3]
        bench.script.gates["http://h/0"].set()
        await bench.settle()
        assert bench.told == [0]
        assert bench.pool.quiet()


@pytest.mark.parametrize("allowed", [True, False])
async def test_block_while_robots_txt_is_read_takes_back_the_order_that_waits_for_it(allowed: bool) -> None:
    async with Bench().running() as bench:
        bench.script.gates["http://h/robots.txt"] = asyncio.Event()
        bench.script.robots["http://h"] = lambda: bench.script.good(200 if allowed else 503)
        await bench.read(*pages("h", 3))
        assert [dropped.page for dropped in bench.pool.drop("h")] == [0, 1, 2]
        bench.script.gates["http://h/robots.txt"].set()
        await bench.settle()
        assert bench.told == []
        assert bench.script.page_times() == []
        assert bench.pool.quiet()


async def test_block_while_an_address_is_looked_up_and_the_host_goes_on_with_new_orders() -> None:
    async with Bench(Manners(min_delay=0.0, factor=0.0, ip_delay=0.5)).running() as bench:
        bench.pool.submit(pages("h", 1))
        await asyncio.sleep(0)
        assert bench.script.log == []
        assert [dropped.page for dropped in bench.pool.drop("h")] == [0]
        await bench.read(order(7, "http://h/7"))
        await bench.pass_time(3)
        assert bench.told == [7]


async def test_stop_starts_nothing_more_and_close_waits_for_what_goes_on() -> None:
    bench = Bench()
    run = asyncio.create_task(bench.pool.run())
    bench.script.gates["http://h/0"] = asyncio.Event()
    bench.pool.submit(pages("h", 3))
    await bench.settle()
    bench.pool.stop()
    await run
    closing = asyncio.create_task(bench.pool.close(grace=60))
    await bench.settle()
    assert not closing.done()
    bench.script.gates["http://h/0"].set()
    await closing
    assert bench.told == [0]
    assert len(bench.script.page_times()) == 1
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_pool_that_is_stopped_before_it_runs_reads_nothing() -> None:
    bench = Bench()
    bench.pool.submit(pages("h", 2))
    await bench.pool.close(0.0)
    await bench.pool.run()
    await bench.pass_time(2)
    assert bench.script.log == []


async def test_close_cuts_off_what_outlasts_its_grace() -> None:
    async with Bench(ALONE).running() as bench:
        bench.script.gates["http://h/0"] = asyncio.Event()
        await bench.read(*pages("h", 2), *pages("i", 2, 10))
        await bench.pass_time(2)
        assert bench.pool.in_flight == 1
        await bench.pool.close(0.01)
        assert bench.told == [10]
        assert bench.pool.in_flight == 0
        bench.pool.submit(pages("j", 1, 20))
        await bench.settle()
        assert bench.told == [10]


async def test_reports_may_submit_further_orders() -> None:
    bench = Bench()

    def follow(report: PageReport, answer: Answer) -> None:
        bench.reports.append(report)
        if report.page < 50:
            bench.pool.submit([order(report.page + 1, f"http://h{report.page % 3}/{report.page + 1}")])

    bench.pool._on_report = follow
    async with bench.running():
        await bench.read(order(0, "http://h/0"))
        await bench.settle()
        assert bench.told == list(range(51))


async def test_a_host_freed_early_is_not_kept_waiting_by_a_later_alarm() -> None:
    async with Bench(ALONE, concurrency=3).running() as bench:
        bench.pool.restore("late", EPOCH + 100.0, failures=0)
        await bench.read(*pages("late", 1), *pages("h", 3, 10))
        assert bench.pool.next_ready_in() == 2.0
        await bench.pass_time(6)
        assert bench.told == [10, 11, 12]


def test_concurrency_is_at_least_one() -> None:
    with pytest.raises(ValueError, match="concurrency"):
        Bench(concurrency=0)


async def test_an_order_that_waits_for_robots_txt_is_raised_ahead_of_those_of_its_host() -> None:
    """Its host's first read: the order is out of the queue while robots.txt is being read."""
    async with Bench().running() as bench:
        gate = bench.script.gates["http://a/robots.txt"] = asyncio.Event()
        due = order(1, "http://a/1", Priority.REFRESH)
        bench.pool.submit([due])
        await bench.settle()
        raised = replace(due, priority=Priority.ORDERED, deadline=5.0, raised=True)
        bench.pool.submit([raised, order(2, "http://a/2", Priority.ORDERED, deadline=9.0)])
        gate.set()
        await bench.settle()
        assert bench.told == [1, 2], "by their deadlines; it would have been last, as it was due"
        assert bench.script.urls == ["http://a/robots.txt", "http://a/1", "http://a/2"]


async def test_a_raised_order_that_waits_for_robots_txt_can_still_be_dropped() -> None:
    async with Bench().running() as bench:
        gate = bench.script.gates["http://a/robots.txt"] = asyncio.Event()
        due = order(1, "http://a/1", Priority.REFRESH)
        bench.pool.submit([due])
        await bench.settle()
        bench.pool.submit([replace(due, priority=Priority.ORDERED, deadline=5.0, raised=True)])
        bench.pool.submit([replace(due, epoch=9, priority=Priority.BLOCKING, raised=True)])  # of another lease: nothing
        (dropped,) = bench.pool.drop("a")
        assert (dropped.page, dropped.epoch, dropped.priority, dropped.raised) == (1, 1, Priority.ORDERED, False)
        gate.set()
        await bench.settle()
        assert bench.told == [] and bench.script.urls == ["http://a/robots.txt"]


@pytest.mark.parametrize("blocked", [False, True])
async def test_an_order_whose_address_is_looked_up_is_raised_or_taken_back(blocked: bool) -> None:
    async with Bench(Manners()).running() as bench:
        await bench.read(order(0, "http://a/0"))  # robots.txt is known from here on
        await bench.pass_time(40.0)
        assert [report.page for report in bench.reports] == [0]
        known = asyncio.Event()

        async def address(url: str) -> str:
            await known.wait()
            return "a"

        bench.script.address = address  # type: ignore[method-assign]
        due = order(1, "http://a/1", Priority.REFRESH)
        await bench.read(due)
        bench.pool.submit([replace(due, priority=Priority.ORDERED, deadline=5.0, raised=True)])
        bench.pool.submit([replace(due, priority=Priority.SCOUT, raised=True)])  # less urgent: nothing
        dropped = bench.pool.drop("a") if blocked else []
        assert [(one.page, one.priority) for one in dropped] == [(1, Priority.ORDERED)] * blocked
        known.set()
        await bench.read(order(2, "http://a/2", Priority.REFRESH))
        await bench.pass_time(40.0)
        read = [(one.page, one.priority, one.deadline) for one in bench.script.orders[1:]]
        assert read == [*[(1, Priority.ORDERED, 5.0)] * (not blocked), (2, Priority.REFRESH, 0.0)]
        assert [report.page for report in bench.reports] == [0, *[1] * (not blocked), 2]


@pytest.mark.parametrize("manners", [HASTY, Manners()], ids=["no delays", "delays"])
async def test_names_whose_servers_are_silent_leave_half_of_the_slots(manners: Manners) -> None:
    silent = [f"s{n}" for n in range(40)]
    bench = Bench(manners, concurrency=10)
    bench.script.silent.update(silent)
    async with bench.running():
        await bench.read(*[order(n, f"http://{host}/{n}") for n, host in enumerate(silent)])
        await bench.read(*[order(100 + n, f"http://h{n}/") for n in range(5)])
        await bench.pass_time(11.0)
        assert sorted(bench.told) == list(range(100, 105))  # all of the others, and no lookup is over yet
        assert bench.script.most_looking == bench.script.looking == 5
        await bench.pass_time(500.0, step=1.0)
        assert bench.script.most_looking == 5 and bench.pool.quiet()
        assert sorted(bench.told) == [*range(40), *range(100, 105)]


def test_who_waits_for_a_lookup_asks_about_when_one_ends() -> None:
    lookups = Lookups(4)
    assert [lookups.claim(0.0) for _ in range(4)] == [0.0] * 4
    for _ in range(500):
        lookups.ended(2.0, 0.0)
        assert lookups.claim(0.0) == 0.0
    turns = [lookups.claim(0.0) for _ in range(20)]
    assert turns == pytest.approx([n * 2.0 / 4 for n in range(1, 21)], rel=1e-3)
    far = [lookups.claim(0.0) for _ in range(10_000)][-1]
    assert far <= LONGEST_LINE + 2.0  # nobody waits for longer: name servers recover


def test_lookups_that_take_long_are_counted_for_a_while() -> None:
    lookups = Lookups(4)
    for seconds, now in ((0.1, 1.0), (5.0, 6.0), (1.9, 8.0), (2.0, 10.0)):
        lookups.claim(now)
        lookups.ended(seconds, now)
    assert [lookups.slow(since) for since in (0.0, 6.0, 7.0, 11.0)] == [2, 2, 1, 0]


async def test_huge_robots_txts_do_not_keep_others_from_being_read() -> None:
    """A table of robots.txt is bounded; 30 huge files are more than it holds, and each of them is asked for again."""
    bench = Bench(Manners.fixed(1.0))
    bench.pool._robots = RobotsTable("xyro", max_weight=100_000)
    huge = b"User-agent: *\n" + b"".join(b"Disallow: /%d\n" % n for n in range(200))
    for n in range(30):
        bench.script.robots[f"http://big{n}"] = lambda: bench.script.good(200, body=huge)
    async with bench.running():
        await bench.read(*[one for n in range(30) for one in pages(f"big{n}", 20, 1_000 + 20 * n)])
        await bench.read(*[one for n in range(30) for one in pages(f"h{n}", 10, 10 * n)])
        await bench.pass_time(11.0, step=0.5)
        assert sorted(page for page in bench.told if page < 1_000) == list(range(300))


def moved(bench: Bench, to: str) -> Callable[[], Answer]:
    return lambda: bench.script.good(302, location=to)


async def test_robots_txts_that_redirect_to_one_host_read_it_in_its_turn() -> None:
    """A hundred hosts, one victim: it is read as politely as if they were pages of its own."""
    bench = Bench(Manners(min_delay=2.0, ip_delay=0.0))
    for n in range(100):
        bench.script.robots[f"http://h{n}"] = moved(bench, f"http://victim/{n}")
    bench.script.robots["http://victim/3"] = lambda: bench.script.good(200, body=b"User-agent: *\nDisallow: /")
    async with bench.running():
        await bench.read(*[order(n, f"http://h{n}/") for n in range(100)])
        await bench.read(*pages("victim", 10, 1_000))
        await bench.pass_time(300.0, step=0.5)
        at_victim = [at for at, url in bench.script.log if authority(url) == "victim"]
        assert len(at_victim) == 1 + 10 + 100
        assert all(after - before >= 2.0 for before, after in itertools.pairwise(at_victim))
        assert sorted(bench.told) == [*range(100), *range(1_000, 1_010)] and bench.pool.quiet()
        assert {report.page for report in bench.reports if report.error == "robots-disallowed"} == {3}
        own = [at for at, url in bench.script.log if url == "http://victim/1009"]
        assert own[0] < 60.0  # those of the others do not keep its own pages from being read


async def test_a_robots_txt_that_redirects_within_its_host_waits_like_any_read() -> None:
    """And comes before all else of the host, which waits for it."""
    bench = Bench(Manners(min_delay=2.0, ip_delay=0.0))
    for n in range(5):
        bench.script.robots[f"http://h/{n}" if n else "http://h"] = moved(bench, f"http://h/{n + 1}/robots.txt")
    bench.script.robots["http://h/5"] = lambda: bench.script.good(
        200, body=b"User-agent: *\nCrawl-delay: 7\nDisallow: /0"
    )
    async with bench.running():
        await bench.read(*pages("h", 4), *[order(9, "http://h/9", Priority.BLOCKING)])
        await bench.pass_time(60.0, step=0.5)
    times = [at for at, _ in bench.script.log]
    hops = ["http://h/robots.txt", *(f"http://h/{n}/robots.txt" for n in range(1, 6))]
    assert bench.script.urls == [*hops, "http://h/9", *(f"http://h/{n}" for n in range(1, 4))]
    assert times == [0, 2, 4, 6, 8, 10, 17, 24, 31, 38]
    assert dict(zip(bench.told, bench.errors, strict=True))[0] == "robots-disallowed"


async def test_the_crawl_delay_of_before_a_restart_holds_until_robots_txt_has_been_read_again(tmp_path: Path) -> None:
    """It is two redirects away: nobody knows it again before the third request."""
    bench = Bench(Manners(min_delay=2.0, ip_delay=0.0))
    log = bench.politeness._log = ClockLog(tmp_path / "clocks", bench.clock, pause=1.0)
    log.end("host", "h", 0.0, 7.0)
    bench.script.robots["http://h"] = moved(bench, "http://h/1/robots.txt")
    bench.script.robots["http://h/1"] = moved(bench, "http://h/2/robots.txt")
    bench.script.robots["http://h/2"] = lambda: bench.script.good(200, body=b"User-agent: *\nCrawl-delay: 5")
    async with bench.running():
        await bench.read(*pages("h", 2))
        await bench.pass_time(60.0, step=0.5)
    log.close()
    assert [at for at, _ in bench.script.log] == [0, 7, 14, 19, 24]


async def test_a_crawl_delay_found_elsewhere_holds_from_then_on() -> None:
    bench = Bench(Manners(min_delay=2.0, ip_delay=0.0))
    bench.script.robots["http://a"] = moved(bench, "http://b/robots.txt")
    bench.script.robots["http://b"] = lambda: bench.script.good(200, body=b"User-agent: *\nCrawl-delay: 20")
    async with bench.running():
        await bench.read(*pages("a", 2))
        await bench.pass_time(60.0, step=0.5)
    at_a = [at for at, url in bench.script.log if authority(url) == "a"]
    assert len(at_a) == 3 and all(after - before >= 20.0 for before, after in itertools.pairwise(at_a))


async def test_a_host_that_reads_the_robots_txt_of_another_one_keeps_its_own_crawl_delay() -> None:
    bench = Bench(Manners(min_delay=2.0, ip_delay=0.0))
    bench.script.robots["http://a"] = moved(bench, "http://b/of-a")
    bench.script.robots["http://b"] = lambda: bench.script.good(200, body=b"User-agent: *\nCrawl-delay: 20")
    async with bench.running():
        await bench.read(*pages("b", 2))
        await bench.pass_time(1.0)
        await bench.read(*pages("a", 1, 10))
        await bench.pass_time(100.0, step=0.5)
    at_b = [(url, at) for at, url in bench.script.log if authority(url) == "b"]
    assert sorted(url for url, _ in at_b) == ["http://b/0", "http://b/1", "http://b/of-a", "http://b/robots.txt"]
    assert all(after - before >= 20.0 for (_, before), (_, after) in itertools.pairwise(at_b))


async def test_what_is_sent_has_the_clock_of_its_host() -> None:
    """Requests to hubs and subscribers, among pages of the same host."""
    bench = Bench(Manners(min_delay=2.0, ip_delay=0.0))
    bench.script.answers["http://h/busy"] = lambda: bench.script.good(503, retry_after=30.0)
    async with bench.running():
        await bench.read(*pages("h", 3))
        sent = [asyncio.create_task(bench.pool.post(f"http://h/{to}", b"x", {})) for to in ("hub", "busy", "late")]
        await bench.pass_time(80.0, step=0.5)
        assert [task.result().status for task in sent] == [200, 503, 200]
        assert sent[1].result().again == 30.0
        times = [at for at, url in bench.script.log if not url.startswith("POST ")]
        assert len(times) == 1 + 3 + 3 and bench.told == [0, 1, 2]
        gaps = [after - before for before, after in itertools.pairwise(times)]
        assert min(gaps) == 2.0 and gaps.count(30.0) == 1


async def test_what_nobody_waits_for_any_more_is_not_sent() -> None:
    bench = Bench(Manners(min_delay=2.0, ip_delay=0.0))
    async with bench.running():
        await bench.read(order(1, "http://h/"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await bench.pool.post("http://h/hub", b"x", {})
        late = asyncio.create_task(bench.pool.post("http://h/hub", b"x", {}))
        await asyncio.sleep(0)
        bench.pool.hold("h")
        assert [one.page for one in bench.pool.drop("h")] == [1]
        with pytest.raises(TheirError, match="blocked"):
            await late
        with pytest.raises(TheirError, match="paused"):
            await bench.pool.post("http://h/hub", b"x", {})
        bench.pool.resume("h")
        await bench.read(order(1, "http://h/"))
        await bench.pass_time(20.0, step=0.5)
        assert bench.told == [1] and bench.pool.quiet()
        assert not [url for url in bench.script.urls if "hub" in url]


async def test_robots_that_goes_from_host_to_host_ends() -> None:
    bench = Bench()
    for n in range(20):
        bench.script.robots[f"http://h{n}"] = moved(bench, f"http://h{n + 1}/robots.txt")
    async with bench.running():
        await bench.read(order(1, "http://h0/x"))
        await bench.pass_time(30.0)
        hops = [url for url in bench.script.urls if url.endswith("/robots.txt")]
        assert hops == [f"http://h{n}/robots.txt" for n in range(6)]
        assert bench.told == [1] and bench.errors == [""]  # no end of redirects: everything is allowed (2.3.1.2)
        assert not bench.pool._hops._chains and not bench.pool._hops._out


async def test_a_hop_whose_host_is_blocked_is_given_up_and_taken_back_by_nobody() -> None:
    bench = Bench()
    bench.script.robots["http://a"] = moved(bench, "http://b/robots.txt")
    bench.pool.hold("b")
    async with bench.running():
        await bench.read(order(1, "http://a/x"), order(2, "http://b/y"))
        assert [one.page for one in bench.pool.drop("b")] == [2]
        bench.script.robots.pop("http://a")
        bench.pool.resume("b")
        await bench.pass_time(10.0)
        assert bench.told == [1] and bench.pool.quiet()


async def test_a_challenge_by_evidence_gets_signatures() -> None:
    async with Bench(ALONE).running() as bench:
        bench.pool.submit(pages("h", 2))
        bench.pool.challenged(HostChallenged("h", EPOCH + 3600.0, 1, "evidence"))
        await bench.pass_time(1)
        assert bench.script.signed == ["h"]
        assert bench.errors[-1] == "challenge"
        assert bench.pool.counters.challenges == {("spared", "evidence"): len(bench.errors)}


async def test_challenges_are_counted_by_vendor_with_what_they_spare() -> None:
    async with Bench(ALONE).running() as bench:
        bench.script.answers["http://h/0"] = lambda: bench.script.good(403, error="challenge", vendor="akamai")
        bench.pool.submit(pages("h", 3))
        await bench.pass_time(5)
        assert bench.pool.counters.challenges == {("answered", "akamai"): 1, ("spared", "akamai"): 2}
