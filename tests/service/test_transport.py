"""The bus of a node over a real broker: what is posted to a partition that leaves is not lost with its queue."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.service.broker import running_broker
from xyro.service.cluster import transport
from xyro.service.cluster.broker_link import BrokerLink
from xyro.service.cluster.transport import ClusterBus
from xyro.wire import topics
from xyro.wire.clock import SystemClock
from xyro.wire.messages import Ack, Priority, Submit
from xyro.wire.placement import Member, Owner, Placement

PART = Submit(("http://example.org/part.dtd",), Priority.BLOCKING, seed=False)
PLACEMENT = Placement(
    "c0ffee00",
    1,
    {},
    (Owner(1, 1), Owner(1, 1), Owner(2, 1)),
    {str(number): Member(f"identity-{number}", f"instance-{number}", "here") for number in (1, 2)},
)


@contextlib.asynccontextmanager
async def two_nodes(folder):
    """The buses of nodes 1, with partitions 0 and 1 open, and 2, with partition 2."""
    with running_broker(folder / "js") as broker:
        buses, links, tasks = [], [], []
        for number in (1, 2):
            links.append(await BrokerLink.open(broker.url))
            bus = ClusterBus(links[-1], PLACEMENT, number, f"instance-{number}", SystemClock())
            for partition in PLACEMENT.owned(number):
                bus.opened(partition)
            buses.append(bus)
            tasks.append(asyncio.create_task(bus.run()))
        try:
            yield buses
        finally:
            for bus in buses:
                await bus.close()
            await asyncio.gather(*tasks)
            for link in links:
                await link.close()


async def test_urls_for_a_partition_that_leaves_reach_it_where_it_is_opened_next(tmp_path):
    """They lay in a queue that nobody emptied, until the partition came back: the document that wanted the part got
    none."""
    async with two_nodes(tmp_path) as (one, two):
        one.sender(1).post(topics.pages(0), PART)
        one.sender(1).post(topics.pages(0), Ack(source=1, target=0, seq=7))
        one.closed(0)
        assert not one.waiting(topics.pages(0))
        moved = PLACEMENT.moved(0, 2)
        for bus in (one, two):
            bus.follow(moved)
        two.opened(0)
        async with asyncio.timeout(30):
            (came,) = await two.receive(topics.pages(0), 10)
        assert isinstance(came, Submit) and came.urls == PART.urls and came.request
        assert one.counts.undecodable == two.counts.undecodable == 0


async def test_cash_and_acks_leave_seldom_and_what_somebody_waits_for_at_once_and_in_order(monkeypatch, tmp_path):
    monkeypatch.setattr(transport, "SPACING", 1.0)
    async with two_nodes(tmp_path) as (one, two):
        came: list[object] = []

        def post(seq: int) -> None:
            one.sender(1).post(topics.pages(2), Ack(source=1, target=2, seq=seq))

        async def receive(messages: int) -> float:
            while len(came) < messages:
                came.extend(await two.receive(topics.pages(2), 10))
            return asyncio.get_running_loop().time()

        async with asyncio.timeout(30):
            one.sender(1).post(topics.pages(2), PART)  # sent again until node 2 listens
            first = await receive(1)
            frames = two.counts.received
            for seq in (1, 2):
                post(seq)
                await asyncio.sleep(0.05)
            assert two.counts.received == frames
            assert await receive(3) - first >= 0.8
            assert two.counts.received == frames + 1
            post(3)
            one.sender(1).post(topics.pages(2), PART)
            soon = await receive(5) - first
        assert [getattr(message, "seq", PART.urls) for message in came[:5]] == [PART.urls, 1, 2, 3, PART.urls]
        assert soon < 1.9, "the part waited for the next frame of cash"


@pytest.mark.long
async def test_a_partition_hears_at_once_of_what_is_not_cash(tmp_path):
    """It looks for that only now and then while it keeps cash for the next commit group of reports."""
    async with two_nodes(tmp_path) as (one, two):
        heard: list[int] = []
        two.commanded.append(heard.append)
        one.sender(1).post(topics.pages(2), Ack(source=1, target=2, seq=7))
        one.sender(1).post(topics.pages(2), PART)
        came = []
        async with asyncio.timeout(30):
            while len(came) < 2:
                came += await two.receive(topics.pages(2), 10)
        assert set(heard) == {2}, "by the part, not by the acknowledgement; a message that was sent twice tells twice"
