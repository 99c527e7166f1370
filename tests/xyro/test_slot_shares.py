"""Slots of newcomers: who waits for whom, and how long; the whole reader against servers that stay silent or drip."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from xyro.exchange import ClientLimits
from xyro.fetch_queue import BEST, DEBTOR, FAILURE, PROVEN, REMEMBERED, TRIED, UNKNOWN, WORTH, FetchQueue
from xyro.guard import Guard
from xyro.lab.hostile.loopback_server import listening
from xyro.politeness import Manners, Politeness
from xyro.reader import Reader, ReaderOptions
from xyro.slot_shares import LEAST_PATIENCE, SlotShares
from xyro.wire.clock import ManualClock, SystemClock
from xyro.wire.ids import PageId
from xyro.wire.messages import FetchOrder, PageReport, Priority


def order(number: int, url: str, priority: Priority = Priority.DISCOVER) -> FetchOrder:
    return FetchOrder(PageId(number), url, priority, epoch=1)


AT_ONCE = 0.01
"""seconds"""


class Bench:
    """The slots of a pool, on a manual clock."""

    def __init__(self, concurrency: int = 80, least: float = 1 / 8) -> None:
        self.clock, self.queue, self.politeness = ManualClock(0.0), FetchQueue(), Politeness(Manners.fixed(0))
        self.slots = SlotShares(self.queue, self.politeness, self.clock, concurrency, least)

    def prove(self, *hosts: str) -> None:
        for host in hosts:
            for _ in range(8):
                self.slots.answered(host, AT_ONCE)

    def begin(self, *hosts: str) -> None:
        for host in hosts:
            self.slots.enter(host, self.clock.monotonic())
            self.slots.in_flight += 1

    def line_up(self, *hosts: str) -> None:
        for number, host in enumerate(hosts):
            self.queue.put(order(number, f"http://{host}/"), host)


def named(kind: str, number: int) -> list[str]:
    return [f"{kind}{each}" for each in range(number)]


def test_newcomers_earn_slots_by_answering_and_lose_them_by_silence():
    slots = Bench().slots
    assert slots.places(UNKNOWN) == 40
    for host in named("mute", 500):
        slots.failed(host)
    assert slots.places(UNKNOWN) == 10
    for host in named("h", 500):
        slots.answered(host, AT_ONCE)
    assert slots.places(UNKNOWN) == pytest.approx(70, abs=1)


def test_debtors_earn_slots_by_paying_their_debts_and_lose_them_by_new_ones():
    slots = Bench().slots
    assert slots.places(DEBTOR) == 37
    for host in named("mute", 500) * 2:
        slots.failed(host)
    assert slots.places(DEBTOR) == 5
    for host in named("h", 500):
        slots.answered(host, AT_ONCE)
    assert slots.places(DEBTOR) == 5
    for host in named("outage", 200):
        for _ in range(4):
            slots.answered(host, AT_ONCE)
        slots.failed(host)
        for _ in range(int(FAILURE)):
            slots.answered(host, AT_ONCE)
    assert slots.places(DEBTOR) == pytest.approx(70, abs=1)


def test_a_proven_host_that_fails_is_in_debt_and_costs_the_others_nothing():
    bench = Bench()
    bench.prove("a")
    before = list(bench.slots.success)
    bench.slots.failed("a")
    assert bench.queue.kind("a") == DEBTOR
    assert bench.slots.success == before
    bench.slots.failed("a")
    assert bench.slots.success[DEBTOR] < before[DEBTOR]
    assert bench.slots.success[UNKNOWN] == before[UNKNOWN]


def test_a_failure_costs_more_answers_than_a_relapser_gives_between_two():
    bench = Bench()
    bench.prove("honest", "relapser")
    kinds = set()
    for _ in range(100):
        bench.slots.failed("relapser")
        for _ in range(int(FAILURE) - 1):
            bench.slots.answered("relapser", AT_ONCE)
            kinds.add(bench.queue.kind("relapser"))
    assert kinds == {DEBTOR}
    bench.slots.failed("honest")
    answers = 0
    while bench.queue.kind("honest") < PROVEN:
        bench.slots.answered("honest", AT_ONCE)
        answers += 1
    assert answers == FAILURE + 4


def test_the_worst_debt_is_paid_by_as_many_answers_as_any():
    bench = Bench()
    for _ in range(1_000):
        bench.slots.failed("a")
    for _ in range(40):
        bench.slots.answered("a", AT_ONCE)
    assert bench.queue.kind("a") == PROVEN


@pytest.mark.parametrize(("seconds", "answers"), [(0.01, 4), (0.5, 5), (0.9, 11), (2.0, None), (30.0, None)])
def test_a_host_is_proven_by_answers_for_the_seconds_that_they_took(seconds: float, answers: int | None):
    bench, took = Bench(), None
    for number in range(1, 100):
        bench.slots.answered("a", seconds)
        if bench.queue.kind("a") == PROVEN:
            took = number
            break
    assert took == answers


def test_patience_shrinks_while_others_wait_and_grows_with_each_failure():
    bench = Bench(concurrency=16)
    slots = bench.slots
    assert slots.places(UNKNOWN) == 8
    assert slots.patience("new") == 1.0
    bench.begin(*named("n", 8))
    assert slots.open == TRIED
    assert slots.patience("new") == 1.0  # nobody waits
    bench.line_up(*named("h", 8))
    assert slots.patience("new") == 0.5
    bench.line_up(*named("i", 792))
    assert slots.patience("new") == LEAST_PATIENCE
    bench.politeness.finished("new", "", 0.0, 1.0, failed=True)
    assert slots.patience("new") == 2 * LEAST_PATIENCE
    for _ in range(9):
        bench.politeness.finished("new", "", 0.0, 1.0, failed=True)
    assert slots.patience("new") == 1.0
    bench.prove("old")
    assert slots.patience("old") == 1.0  # slots are free for those who answer


def test_a_read_that_costs_more_than_its_host_gave_is_a_newcomers():
    bench = Bench(concurrency=8)
    slots, good = bench.slots, named("good", 8)
    bench.prove(*good, "other")
    bench.begin(*good)
    assert [slots.patience(host) for host in good] == [1.0] * 8
    bench.clock.advance(WORTH / 4 - 0.1)
    assert [slots.patience(host) for host in good] == [1.0] * 8  # nobody waits
    assert slots.kind_slots == [0, 0, 0, 8]
    bench.clock.advance(0.2)
    assert [slots.patience(host) for host in good] == [1.0] * 8
    assert slots.kind_slots == [0, 0, 8, 0]
    bench.clock.advance(2.5 * WORTH)
    assert [slots.patience(host) for host in good] == [1.0] * 8
    assert slots.kind_slots == [0, 8, 0, 0]
    assert slots.open == PROVEN
    bench.line_up("other")
    assert slots.patience("good0") == LEAST_PATIENCE
    for host in good:
        slots.leave(host)
    assert slots.kind_slots == [0, 0, 0, 0]
    assert slots.open == DEBTOR


def test_one_small_page_gives_nobody_the_slots_of_the_proven():
    bench = Bench()
    for host in named("turncoat", 100):
        bench.slots.answered(host, AT_ONCE)
    entered = 0
    while bench.slots.open <= TRIED:
        bench.begin(f"turncoat{entered}")
        entered += 1
    assert bench.slots.places(UNKNOWN) < entered == bench.slots.places(TRIED) < bench.slots.concurrency
    bench.begin(*named("n", 3))
    assert bench.slots.kind_slots == [0, 3, entered, 0]
    assert bench.slots.open == PROVEN


def test_hosts_with_a_standing_are_remembered_within_bounds():
    bench = Bench()
    for number in range(REMEMBERED + 10):
        bench.slots.answered(str(number), AT_ONCE)
    standing = bench.queue.standing
    assert len(standing) == REMEMBERED
    assert "0" not in standing
    assert str(REMEMBERED) in standing


def test_the_queue_passes_over_newcomers_and_keeps_the_order_otherwise():
    queue = FetchQueue()
    queue.standing["b"] = queue.standing["d"] = BEST
    for number, host in enumerate("abcd"):
        queue.put(order(number, f"http://{host}/"), host)
    assert queue.lined(UNKNOWN) == queue.lined(PROVEN) == 2
    assert queue.pop(0.0, TRIED)[0] == "b"
    assert queue.pop(0.0)[0] == "a"
    assert queue.pop(0.0, TRIED)[0] == "d"
    assert queue.pop(0.0, TRIED) is None
    assert queue.wake_at(TRIED) is None
    assert queue.wake_at() is not None
    assert queue.pop(0.0)[0] == "c"


def test_a_host_that_was_proven_meanwhile_stands_in_the_line_of_its_kind():
    queue = FetchQueue()
    queue.put(order(1, "http://a/1"), "a")
    queue.put(order(2, "http://a/2"), "a")
    assert queue.pop(0.0)[1].page == 1
    queue.standing["a"] = BEST
    queue.release("a", 0.0)
    assert queue.pop(1.0, TRIED)[1].page == 2


# Real servers


@asynccontextmanager
async def served() -> AsyncIterator[int]:
    """127.2.*: silence; 127.3.*: a body that drips; 127.4.*: robots.txt, then silence; others: a page at once."""
    tasks = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        kind = writer.get_extra_info("sockname")[0].split(".")[1]
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: "
        try:
            while request := await reader.readuntil(b"\r\n\r\n"):
                if kind == "2" or (kind == "4" and b"robots.txt" not in request):
                    await asyncio.sleep(60)
                elif kind == "3":
                    writer.write(head + b"99999\r\n\r\n")
                    while True:
                        writer.write(b"x" * 150)
                        await asyncio.sleep(0.1)
                else:
                    writer.write(head + b"5\r\n\r\n<p>ok")
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()  # the end of the test cancels it, too

    sock = listening()
    server = await asyncio.start_server(answer, sock=sock)
    try:
        yield sock.getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()


OPTIONS = ReaderOptions(
    user_agent="xyro/test",
    robots_token="xyro",
    contact="",
    limits=ClientLimits(first_byte=3.0, headers=6.0, slow_window=3.0),
    manners=Manners.fixed(0),
    concurrency=16,
)


@pytest.mark.parametrize("kind", [2, 3, 4])
async def test_silent_hosts_in_front_hold_nobody_up(kind):
    reports: list[PageReport] = []
    came = asyncio.Event()
    async with served() as port:
        guard = Guard(only_net=["127.0.0.0/8"], ports=[port])
        reader = Reader(OPTIONS, guard, SystemClock(), lambda report, _: (reports.append(report), came.set()))
        running = asyncio.create_task(reader.pool.run())
        healthy = [order(0, f"http://127.1.0.1:{port}/")]
        reader.pool.submit(healthy)
        assert await asyncio.wait_for(came.wait(), 10.0)
        hostile = [order(1_000 + number, f"http://127.{kind}.0.{number + 1}:{port}/") for number in range(100)]
        reader.pool.submit(hostile)
        await asyncio.sleep(0.2)
        reader.pool.submit(
            replace(healthy[0], page=PageId(number), url=f"{healthy[0].url}{number}") for number in range(1, 200)
        )
        while sum(report.status == 200 for report in reports) < 200:
            assert sum(report.page >= 1_000 for report in reports) < 100, "the hostile hosts were waited for"
            came.clear()
            await came.wait()
        assert reader.pool.slots.kind_slots[UNKNOWN] <= 9
        await reader.pool.close(0)
        await running
        await reader.fetcher.close()
