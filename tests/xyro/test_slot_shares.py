"""Slots of newcomers: who waits for whom, and how long; the whole reader against servers that stay silent or drip."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from xyro.exchange import ClientLimits
from xyro.fetch_queue import LEAST_PATIENCE, REMEMBERED, FetchQueue, SlotShares
from xyro.guard import Guard
from xyro.lab.hostile.loopback_server import listening
from xyro.politeness import Manners, Politeness
from xyro.reader import Reader, ReaderOptions
from xyro.wire.clock import SystemClock
from xyro.wire.ids import PageId
from xyro.wire.messages import FetchOrder, PageReport, Priority


def order(number: int, url: str, priority: Priority = Priority.DISCOVER) -> FetchOrder:
    return FetchOrder(PageId(number), url, priority, epoch=1)


def slots_of(concurrency: int = 80, least: float = 1 / 8) -> tuple[FetchQueue, Politeness, SlotShares]:
    queue, politeness = FetchQueue(), Politeness(Manners.fixed(0))
    return queue, politeness, SlotShares(queue, politeness, concurrency, least)


def test_newcomers_earn_slots_by_answering_and_lose_them_by_silence():
    _, _, slots = slots_of()
    assert slots.limit == 40
    for _ in range(500):
        slots.failed("mute")
    assert slots.limit == 10
    for number in range(500):
        slots.prove(str(number))
    assert slots.limit == pytest.approx(70, abs=1)


def test_a_proven_host_that_fails_is_a_newcomer_and_costs_the_others_nothing():
    queue, _, slots = slots_of()
    slots.prove("a")
    before = slots.success
    slots.failed("a")
    assert "a" not in queue.proven
    assert slots.success == before
    slots.failed("a")
    assert slots.success < before


def test_patience_shrinks_while_others_wait_and_grows_with_each_failure():
    queue, politeness, slots = slots_of(concurrency=8, least=1.0)
    assert slots.patience("new") == 1.0
    for _ in range(8):
        slots.enter()
    assert not slots.open
    assert slots.patience("new") == 1.0  # nobody waits
    for number in range(8):
        queue.put(order(number, f"http://h{number}/"), f"h{number}")
    assert slots.patience("new") == 0.5
    for number in range(8, 800):
        queue.put(order(number, f"http://h{number}/"), f"h{number}")
    assert slots.patience("new") == LEAST_PATIENCE
    politeness.finished("new", "", 0.0, 1.0, failed=True)
    assert slots.patience("new") == 2 * LEAST_PATIENCE
    for _ in range(9):
        politeness.finished("new", "", 0.0, 1.0, failed=True)
    assert slots.patience("new") == 1.0
    slots.prove("old")
    assert slots.patience("old") == 1.0  # slots are free for those who answer


def test_proven_hosts_are_remembered_within_bounds():
    queue, _, slots = slots_of()
    for number in range(REMEMBERED + 10):
        slots.prove(str(number))
    assert len(queue.proven) == REMEMBERED
    assert "0" not in queue.proven
    assert str(REMEMBERED) in queue.proven


def test_the_queue_passes_over_newcomers_and_keeps_the_order_otherwise():
    queue = FetchQueue()
    queue.proven["b"] = queue.proven["d"] = None
    for number, host in enumerate("abcd"):
        queue.put(order(number, f"http://{host}/"), host)
    assert queue.lined(True) == queue.lined(False) == 2
    assert queue.pop(0.0, newcomers=False)[0] == "b"
    assert queue.pop(0.0)[0] == "a"
    assert queue.pop(0.0, newcomers=False)[0] == "d"
    assert queue.pop(0.0, newcomers=False) is None
    assert queue.wake_at(newcomers=False) is None
    assert queue.wake_at() is not None
    assert queue.pop(0.0)[0] == "c"


def test_a_host_that_was_proven_meanwhile_stands_in_the_line_of_its_kind():
    queue = FetchQueue()
    queue.put(order(1, "http://a/1"), "a")
    queue.put(order(2, "http://a/2"), "a")
    assert queue.pop(0.0)[1].page == 1
    queue.proven["a"] = None
    queue.release("a", 0.0)
    assert queue.pop(1.0, newcomers=False)[1].page == 2


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
        assert reader.pool.slots.newcomers <= 9
        await reader.pool.close(0)
        await running
        await reader.fetcher.close()
