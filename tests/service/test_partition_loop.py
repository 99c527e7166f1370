"""The page loop: nothing leaves before its group is on disk, a failed write stops everything, and an end is an end."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from functools import partial

import pytest

from tests.frontier.rig import START, Crawl, report, url
from xyro.configs.schema import CrawlSettings as CrawlSettings
from xyro.configs.schema import Settings, StoreSettings
from xyro.frontier.batch import weight
from xyro.frontier.frontier import Frontier
from xyro.frontier.scope import Scope
from xyro.metadata import rows
from xyro.metadata.snapshot import oldest_snapshot
from xyro.plugins.publish.publish_messages import Publish
from xyro.plugins.totals.total_messages import TellSums
from xyro.refresh.other_sums import OtherSums
from xyro.service.node import partition_loop
from xyro.service.node.command_sender import SUBMIT_URLS, CommandSender, parts_of
from xyro.service.node.data_dir import DataDir
from xyro.service.node.partition_loop import PartitionLoop
from xyro.wire import topics
from xyro.wire.bus import EncodingBus, LocalBus
from xyro.wire.clock import ManualClock
from xyro.wire.commands import HoldHost
from xyro.wire.errors import MachineError
from xyro.wire.messages import Ack, CashTransfer, PageReport, Passing, Submit
from xyro.wire.questions import DescribePages, FindPages
from xyro.wire.urls import host_of, partition_of

HOSTS = ("h0.example", "h1.example")
SETTINGS = Settings(crawl=CrawlSettings(scope="any"), store=StoreSettings(commit_seconds=0.0))


class Rig:
    """One loop on a real directory. `starving`: its fetchers wait for orders."""

    def __init__(self, path, store=SETTINGS.store, bus=None, partitions=1):
        self.path = path
        data = DataDir.open(path, make=True, partitions=partitions)
        frontier = Frontier(data.partitions[0], Scope(SETTINGS.crawl), SETTINGS, False)
        frontier.recover(START)
        self.bus, self.room, self.starving, self.synced = bus or EncodingBus(), 1 << 30, True, 0
        self.loop = PartitionLoop(
            frontier, self.bus, ManualClock(START), store, lambda: self.room, lambda: self.starving, self._synced
        )
        self.sender = CommandSender(self.bus, ManualClock(START), 1, lambda partition: self.loop.hurry())
        self.frontier, self.partition, self.news = frontier, frontier.partition, asyncio.Event()

    def _synced(self, reports):
        self.synced += reports
        self.news.set()

    async def all_synced(self, reports):
        """So many reports are on disk."""
        async with asyncio.timeout(60):
            while self.synced < reports:
                self.news.clear()
                await self.news.wait()

    def post(self, message):
        """As the node does while its fetchers starve."""
        self.bus.post(topics.pages(0), message)
        if isinstance(message, PageReport):
            self.loop.expect(message)
            if self.starving and self.loop.is_complete:
                self.loop.hurry()

    async def orders(self, most=100):
        async with asyncio.timeout(60):
            return await self.bus.receive("orders", most)

    @contextlib.asynccontextmanager
    async def running(self):
        """The loop runs; at the end it is cancelled, drained and closed, as the crawl's roof does it."""
        task = asyncio.create_task(self.loop.run())
        answers = asyncio.create_task(self.sender.run())
        try:
            yield task
        finally:
            task.cancel()
            answers.cancel()
            with contextlib.suppress(asyncio.CancelledError, MachineError):
                await task
            await self.loop.drain()
            self.loop.close()


class Blocked:
    """Stands in for the disk: a write waits until it is let go, then succeeds or fails."""

    def __init__(self, rig):
        self.write = rig.partition.write
        self.numbers: list[int] = []
        self.may, self.fails = threading.Event(), False
        rig.partition.write = self

    def __call__(self, commit):
        self.numbers.append(commit.number)
        assert self.may.wait(10)
        if self.fails:
            raise MachineError("the disk is full")
        self.write(commit)


@pytest.fixture(params=[LocalBus, EncodingBus], ids=["objects", "bytes"])
def rig(request, tmp_path):
    return Rig(tmp_path / "data", bus=request.param())


async def test_orders_leave_when_their_group_is_on_disk(rig):
    disk = Blocked(rig)
    async with rig.running():
        rig.post(Submit((url(0),)))
        await asyncio.sleep(0.1)
        assert rig.bus.waiting("orders") == 0 and disk.numbers == [1]
        disk.may.set()
        (order,) = await rig.orders()
        assert order.url == url(0)
        assert rig.partition.store.get(rows.MAP.key(0)) is not None


async def test_a_crawl_of_many_groups_is_on_disk_when_it_ends(rig):
    links = [url(k % 7, k) for k in range(60)]
    async with rig.running():
        rig.post(Submit((url(0),)))
        done = 0
        while done < 60:
            for order in await rig.orders():
                rig.post(report(order, START, links))
                done += 1
        await rig.all_synced(60)
    again = Crawl.on_disk(rig.path, settings=SETTINGS)
    assert again.frontier.reads == 60 and again.audit()["ok"]
    again.close()


async def test_a_group_that_waits_whole_waits_for_no_window(tmp_path):
    """One report a group and a window of an hour: a line of them is written without anybody in a hurry."""
    rig = Rig(tmp_path / "data", StoreSettings(commit_seconds=3_600.0, commit_reports=1))
    async with rig.running(), asyncio.timeout(60):
        rig.post(Submit(tuple(url(host) for host in range(20))))
        orders = await rig.orders()
        rig.starving = False
        for order in orders:
            rig.post(report(order, START))
        await rig.all_synced(19)
    again = Crawl.on_disk(rig.path, settings=SETTINGS)
    assert again.frontier.reads == 20
    again.close()


async def test_a_report_waits_for_no_group_of_each_acknowledgement_before_it(tmp_path):
    """`commit_reports` counts reports: a slow disk and a group for each Ack kept a report from it for seconds."""
    rig = Rig(tmp_path / "data", StoreSettings(commit_seconds=0.0, commit_reports=1), partitions=2)
    seed = next(url(host, 1) for host in range(200) if partition_of(host_of(url(host, 1)), 2) == 0)
    async with rig.running():
        rig.post(Submit((seed,)))
        (order,) = await rig.orders()
        turns = rig.loop.turns
        for _ in range(50):
            rig.post(Ack(1, 0, 0))
        rig.post(report(order, START))
        await rig.all_synced(1)
        assert rig.loop.turns - turns < 10


async def test_a_group_has_no_more_urls_than_may_stop_the_event_loop(rig, monkeypatch):
    """Four pages of very many links, and what came after them: one group each, in order, none left out."""
    monkeypatch.setattr(partition_loop, "GROUP_URLS", 100)
    groups, turn = [], rig.frontier.turn

    def watched(work, *rest):
        groups.append((work.urls, len(work.visits)))
        return turn(work, *rest)

    rig.frontier.turn = watched
    async with rig.running():
        rig.post(Submit(tuple(url(host) for host in range(8))))
        orders = await rig.orders()
        while len(orders) < 8:
            orders += await rig.orders()
        del groups[:]
        for order in orders[:4]:
            rig.post(report(order, START, [url(50, 1000 * order.page + i) for i in range(150)]))
        for order in orders[4:]:
            rig.post(report(order, START, [url(60, order.page)]))
        assert not rig.loop.quiet
        await rig.all_synced(8)
        assert groups[:5] == [(150, 1)] * 4 + [(4, 4)]
    assert rig.frontier.reads == 8
    assert rig.frontier.columns.n == 8 + 600 + 4


async def test_what_is_left_over_is_committed_at_the_end(rig, monkeypatch):
    monkeypatch.setattr(partition_loop, "GROUP_URLS", 100)
    for k in range(5):
        rig.post(Submit(tuple(url(k, page) for page in range(80))))
    await rig.loop.drain()
    assert rig.loop.quiet
    assert rig.loop.turns == 5
    assert rig.frontier.columns.n == 400
    rig.loop.close()


async def test_a_stop_does_not_wait_for_all_that_came_in(rig, monkeypatch):
    """What is left is not on disk, half of nothing is, and the directory opens as of the last group. URLs lie on the
    bus again, for the node that has the partition next."""
    monkeypatch.setattr(partition_loop, "GROUP_URLS", 100)
    for k in range(5):
        rig.post(Submit(tuple(url(k, page) for page in range(80))))
    await rig.loop.drain(0.0)
    assert rig.loop.turns == 1 and rig.bus.waiting(topics.pages(0)) == 4
    rig.loop.close()
    assert Crawl.on_disk(rig.path, settings=SETTINGS).frontier.columns.n == 80


async def test_a_stop_writes_all_reports_in_one_group_however_few_a_group_has(tmp_path):
    """A slow disk has time for a few groups only: what is not on disk is read again (lab simulate, seed 4673)."""
    rig = Rig(tmp_path / "data", StoreSettings(commit_seconds=0.0, commit_reports=1))
    rig.post(Submit(tuple(url(host) for host in range(20))))
    await rig.loop.catch_up()
    for order in await rig.orders():
        rig.post(report(order, START))
    await rig.loop.drain(0.0)
    assert rig.loop.turns == 2 and rig.frontier.reads == 20
    rig.loop.close()


async def test_what_people_hand_in_goes_in_parts(rig):
    submit = Submit(tuple(url(0, page) for page in range(2 * SUBMIT_URLS + 1)))
    asked = asyncio.create_task(rig.sender.submit(submit))
    await asyncio.sleep(0)
    assert rig.bus.waiting(topics.pages(0)) == 3
    assert [len(part.urls) for _, part in parts_of(submit, 1)] == [SUBMIT_URLS, SUBMIT_URLS, 1]
    await rig.loop.drain()
    await rig.sender.finish()
    await asked
    assert rig.frontier.columns.n == 2 * SUBMIT_URLS + 1
    rig.loop.close()


def test_a_report_weighs_more_with_very_many_links():
    crawl = Crawl.in_memory(settings=SETTINGS)
    crawl.submit(url(0))
    (order,) = crawl.turn()
    pages = [report(order, START, [url(1, i) for i in range(links)]) for links in (0, 1023, 1024, 65_534)]
    assert [weight(page) for page in pages] == [1, 1, 2, 64]


async def test_what_came_in_before_the_end_is_committed(rig):
    """Answered reads are not lost by Ctrl-C."""
    async with rig.running():
        rig.post(Submit((url(0),)))
        (order,) = await rig.orders()
        rig.starving = False
    assert rig.loop.failed is None, "to be cancelled is no failure"
    rig = Rig(rig.path)
    async with rig.running() as task:
        (order,) = await rig.orders()
        task.cancel()
        await asyncio.wait([task])
        rig.post(report(order, START, [url(0, 1)]))
    again = Crawl.on_disk(rig.path, settings=SETTINGS)
    assert again.frontier.reads == 1 and again.audit()["ok"]
    again.close()


async def test_after_a_failed_write_nothing_is_written_and_nothing_leaves(rig):
    disk = Blocked(rig)
    disk.fails = True
    async with rig.running() as task:
        rig.post(Submit((url(0),)))
        await asyncio.sleep(0.05)
        rig.post(Submit((url(1),)))  # the second group is sealed while the first is being written
        await asyncio.sleep(0.05)
        disk.may.set()
        rig.post(Submit((url(2),)))
        async with asyncio.timeout(60):
            await asyncio.wait([task])
        disk.fails = False
    assert isinstance(rig.loop.failed, MachineError) and "full" in str(rig.loop.failed)
    assert disk.numbers == [1], "a later group would leave a hole"
    assert rig.bus.waiting("orders") == 0
    again = Crawl.on_disk(rig.path, settings=SETTINGS)
    assert again.frontier.columns.n == 0 and again.audit()["ok"]
    again.close()


async def test_a_look_that_is_cancelled_takes_no_group_with_it(rig):
    """A look waits for the groups under way; the one that waited behind another was lost, and the next left a hole."""
    disk = Blocked(rig)
    async with rig.running():
        rig.post(Submit((url(0),)))
        await asyncio.sleep(0.05)
        rig.post(Submit((url(1),)))
        await asyncio.sleep(0.05)

        async def look():
            async with rig.loop.boundary():
                raise AssertionError("groups are under way")

        task = asyncio.create_task(look())
        await asyncio.sleep(0.05)
        assert len(rig.loop._writes) == 2 and rig.loop._gate.locked()
        task.cancel()
        await asyncio.wait([task])
        disk.may.set()
        async with asyncio.timeout(60):
            orders = [*await rig.orders()]
            while len(orders) < 2:
                orders += await rig.orders()
        rig.post(Submit((url(2),)))
        assert [order.url for order in await rig.orders()] == [url(2)]
    assert disk.numbers[:3] == [1, 2, 3] and rig.loop.failed is None
    again = Crawl.on_disk(rig.path, settings=SETTINGS)
    assert again.frontier.columns.n == 3 and again.audit()["ok"]
    again.close()


async def test_a_group_goes_on_when_who_asked_for_it_is_cancelled(rig):
    async with rig.running():
        rig.post(Submit((url(0),)))
        await rig.orders()
        disk = Blocked(rig)

        async def change():
            async with rig.loop.boundary():
                await rig.loop.commit(lambda: rig.frontier.settled_group(lambda: None, START))

        task = asyncio.create_task(change())
        await asyncio.sleep(0.05)
        (number,) = disk.numbers
        task.cancel()
        await asyncio.wait([task])
        disk.may.set()
        rig.post(Submit((url(1),)))
        assert [order.url for order in await rig.orders()] == [url(1)]
        assert disk.numbers[:2] == [number, number + 1] and rig.loop.failed is None
    again = Crawl.on_disk(rig.path, settings=SETTINGS)
    assert again.frontier.columns.n == 2 and again.audit()["ok"]
    again.close()


async def test_a_crawl_whose_disk_failed_can_be_closed(rig):
    """Also in the midst of a snapshot, which would wait for ever for the group that was lost."""
    async with rig.running() as task:
        rig.post(Submit((url(0),)))
        await rig.orders()
        disk = Blocked(rig)
        disk.fails = True
        disk.may.set()
        rig.loop._snapshot = rig.partition.snapshot()
        rig.post(Submit((url(1),)))
        async with asyncio.timeout(60):
            await asyncio.wait([task])
    Crawl.on_disk(rig.path, settings=SETTINGS).close()


async def test_a_closed_bus_ends_the_loop(rig):
    async with rig.running() as task:
        await rig.bus.close()
        async with asyncio.timeout(60):
            await task


async def test_a_submit_is_acknowledged_when_it_is_on_disk(rig):
    disk = Blocked(rig)
    async with rig.running():
        asked = asyncio.create_task(rig.sender.submit(Submit((url(0),))))
        await asyncio.sleep(0.1)
        assert not asked.done()
        disk.may.set()
        async with asyncio.timeout(60):
            await asked


async def test_a_command_is_answered_when_it_is_on_disk(rig):
    disk = Blocked(rig)
    async with rig.running():
        rig.post(Submit((url(0),)))
        asked = [asyncio.create_task(rig.sender.send(0, partial(HoldHost, host=h, state="paused"))) for h in HOSTS]
        await asyncio.sleep(0.1)
        assert not any(task.done() for task in asked)
        disk.may.set()
        async with asyncio.timeout(60):
            assert await asyncio.gather(*asked) == [True, False], "the second host is not known"
        assert rig.partition.hosts.clocks[0].hold == "paused"


async def test_a_command_that_nobody_handles_is_an_error_of_its_own(rig):
    async with rig.running():
        with pytest.raises(MachineError, match="Publish: this crawl has no handler"):
            await rig.sender.send(
                0, partial(Publish, urls=(), claim="new", made_at=0.0, deadline=0.0, rate=0.0, sure=True)
            )
        rig.post(Submit((url(0),)))
        assert await rig.orders()


async def test_a_boundary_waits_for_the_disk_and_holds_the_next_group(rig):
    async with rig.running():
        rig.post(Submit((url(0),)))
        await rig.orders()
        async with rig.loop.boundary():
            before = rig.loop.turns
            rig.post(Submit((url(1),)))
            await asyncio.sleep(0.1)
            assert rig.loop.turns == before and not rig.loop._writes
        (order,) = await rig.orders()
        assert order.url == url(1)


async def test_without_room_nothing_due_makes_empty_groups(rig):
    """--max-pages is reached while a retry is due: the loop waits for messages."""
    async with rig.running():
        rig.post(Submit((url(0),)))
        (order,) = await rig.orders()
        rig.room = 0
        rig.post(report(order, START, signature=b"", error="timeout", status=0, retry_at=START))
        await rig.all_synced(1)
        await asyncio.sleep(0.05)
        before = rig.loop.turns
        await asyncio.sleep(0.8)
        assert rig.loop.turns == before


async def test_snapshots_are_taken_while_groups_go_on(tmp_path):
    rig = Rig(tmp_path / "data", StoreSettings(commit_seconds=0.0, snapshot_bytes=2**16))
    async with rig.running():
        rig.post(Submit((url(0),)))
        for step in range(40):
            for order in await rig.orders(3):
                rig.post(report(order, START, [url(k % 7, step * 40 + k) for k in range(40)]))
    assert oldest_snapshot(rig.partition.directory), "two at least: one under way, one at the end"
    again = Crawl.on_disk(rig.path, settings=SETTINGS)
    assert again.audit()["ok"] and again.frontier.partition.recovered_records == 0
    again.close()


@pytest.mark.parametrize("back", [0.0, 86_400.0])
async def test_a_clock_that_was_set_back_is_followed_at_once(tmp_path, back):
    """All that is to be done next was reckoned from the time before."""
    rig = Rig(tmp_path / "data")
    rig.starving = False
    await rig.loop.turn()
    assert rig.frontier.now == START and not rig.loop._due()
    rig.loop.clock = ManualClock(START - back)
    assert rig.loop._due() == bool(back)
    await rig.loop.turn()
    assert not rig.loop._due() and rig.frontier.now == START - back
    await rig.loop.drain()
    rig.loop.close()


async def test_a_command_that_fails_ends_the_crawl_with_what_is_on_disk(rig):
    """The group is half applied in memory: nothing may be built on it."""

    def change(_):
        rig.frontier.columns["depth"][0] = 7
        raise ValueError("a slip of ours")

    rig.frontier.commands.handle(HoldHost, change)
    with pytest.raises(ValueError, match="a slip of ours"):  # what the loop ends with
        async with rig.running() as task:
            rig.post(Submit((url(0),)))
            assert await rig.orders()
            hold = partial(HoldHost, host="h0.example", state="paused")
            asked = [asyncio.create_task(rig.sender.send(0, hold)) for _ in range(5)]
            for told in await asyncio.gather(*asked, return_exceptions=True):
                assert isinstance(told, MachineError) and "a slip of ours" in str(told)
            await asyncio.wait([task], timeout=60)
            rig.sender.fail(task.exception())  # as the node does it
            with pytest.raises(ValueError, match="a slip of ours"):
                await rig.sender.send(0, hold)
    rig.partition.close()
    again = Rig(rig.path)
    assert (again.frontier.columns.n, again.frontier.columns["depth"][0]) == (1, 0)
    again.loop.close()
    again.partition.close()


async def test_a_question_is_answered_at_once_and_makes_no_commit_group(rig):
    async with rig.running():
        await rig.sender.submit(Submit((url(0),)))
        groups = rig.loop.turns
        disk = Blocked(rig)  # nothing can be written from here on
        page = rig.partition.url_index.find_one(url(0))
        found = await rig.sender.send(0, lambda request: FindPages(request, (url(0), url(7))))
        assert found == [[page, rig.partition.hosts_of[page]], [-1, 0]] and rig.loop.turns == groups
        with pytest.raises(MachineError, match="Map-Data has no page 99"):
            await rig.sender.send(0, lambda request: DescribePages(request, (99,)))
        assert not rig.loop.failed and not disk.numbers
        disk.may.set()


async def test_cash_of_another_partition_waits_for_a_window_and_then_makes_one_group(tmp_path):
    rig = Rig(tmp_path / "data", StoreSettings(commit_seconds=0.1), partitions=4)
    page = next(url(host, 1) for host in range(200) if partition_of(host_of(url(host, 1)), 4) == 0)
    async with rig.running():
        await asyncio.sleep(0.05)  # its first turn
        turns, loop = rig.loop.turns, asyncio.get_running_loop()
        began = loop.time()
        for number in (1, 2, 3):
            rig.post(CashTransfer(1, 0, number, (Passing(page, 5),)))
            await asyncio.sleep(0.01)
        async with asyncio.timeout(60):
            (ack,) = await rig.bus.receive(topics.pages(1), 10)
        assert loop.time() - began >= 0.09, "although the fetchers starve; a lone partition takes its turn at once"
        assert ack == Ack(0, 1, 3)
        assert rig.loop.turns - turns == 1


async def test_cash_of_another_partition_waits_while_the_node_reads(tmp_path):
    """But for what brings the first pages to read: a crawl of 16 partitions would be read without them for a second."""
    rig = Rig(tmp_path / "data", StoreSettings(commit_seconds=0.01), partitions=4)
    page = next(url(host, 1) for host in range(200) if partition_of(host_of(url(host, 1)), 4) == 0)
    rig.starving = False
    async with rig.running():
        await asyncio.sleep(0.05)  # its first turn
        rig.post(CashTransfer(1, 0, 1, (Passing(page, 5),)))
        async with asyncio.timeout(0.7):
            assert [order.url for order in await rig.orders()] == [page]
            assert await rig.bus.receive(topics.pages(1), 10) == [Ack(0, 1, 1)]
        turns = rig.loop.turns
        for number in (2, 3, 4):
            rig.post(CashTransfer(1, 0, number, (Passing(page, 5),)))
            await asyncio.sleep(0.2)
        assert rig.loop.turns == turns, "a window of 0.04 s has passed long since"
        rig.starving = True
        async with asyncio.timeout(60):
            assert await rig.bus.receive(topics.pages(1), 10) == [Ack(0, 1, 4)]
        assert rig.loop.turns == turns + 1


async def test_pages_that_may_not_be_read_wait_as_cash_does(tmp_path):
    """A partition of hosts out of scope has nothing to read for ever: news of each page of theirs would be a group."""
    rig = Rig(tmp_path / "data", StoreSettings(commit_seconds=0.01), partitions=4)
    page = next(url(host, 1) for host in range(200) if partition_of(host_of(url(host, 1)), 4) == 0)
    archive = page + ".zip"
    assert not rig.frontier.pages.may_be_read(archive, 1)
    rig.starving = False
    async with rig.running():
        await asyncio.sleep(0.05)  # its first turn
        turns = rig.loop.turns
        rig.post(CashTransfer(1, 0, 1, (Passing(archive, 5, 1),)))
        await asyncio.sleep(0.5)
        assert rig.loop.turns == turns, "a window of 0.04 s has passed long since"
        rig.post(CashTransfer(1, 0, 2, (Passing(page, 5, 1),)))
        async with asyncio.timeout(0.4):
            assert [order.url for order in await rig.orders()] == [page]


async def test_a_group_waits_for_the_reports_of_its_own_that_are_being_read(tmp_path):
    rig = Rig(tmp_path / "data", StoreSettings(commit_seconds=20.0), partitions=2)
    host = next(host for host in range(200) if partition_of(host_of(url(host, 1)), 2) == 0)
    async with rig.running():
        await rig.sender.submit(Submit((url(host, 1), url(host, 2))))
        first, second = await rig.orders()
        turns = rig.loop.turns
        rig.post(report(first, START))
        await asyncio.sleep(0.1)
        assert rig.loop.turns == turns
        rig.post(report(second, START))
        await rig.all_synced(2)
        assert rig.loop.turns == turns + 1


async def test_a_patient_command_makes_no_group_of_its_own_while_the_node_reads(tmp_path):
    rig = Rig(tmp_path / "data", StoreSettings(commit_seconds=0.01), partitions=4)
    heard = asyncio.Event()
    rig.frontier.commands.handle(TellSums, lambda command: heard.set())
    rig.starving = False
    async with rig.running():
        await asyncio.sleep(0.05)  # its first turn
        turns = rig.loop.turns
        rig.post(TellSums.pack(1, OtherSums()))
        await asyncio.sleep(0.3)
        assert rig.loop.turns == turns and not heard.is_set()
        rig.starving = True
        rig.loop.let_go()
        async with asyncio.timeout(60):
            await heard.wait()


async def test_cash_that_came_in_at_the_end_stays_with_its_sender(tmp_path):
    rig = Rig(tmp_path / "data", StoreSettings(commit_seconds=20.0), partitions=2)
    page = next(url(host, 1) for host in range(200) if partition_of(host_of(url(host, 1)), 2) == 0)
    async with rig.running():
        await asyncio.sleep(0.05)  # its first turn
        turns = rig.loop.turns
        rig.post(CashTransfer(1, 0, 1, (Passing(page, 5),)))
    assert rig.loop.turns == turns and not rig.bus.waiting(topics.pages(1)), "no Ack: it is sent again"


async def test_a_partition_that_catches_up_has_applied_all_that_came_in(monkeypatch, tmp_path):
    """What the last owner of a restored partition has sent is applied before the books are (cluster/restore.py)."""
    monkeypatch.setattr(partition_loop, "GROUP_URLS", 100)
    rig = Rig(tmp_path / "data", StoreSettings(commit_seconds=20.0), partitions=2)
    ours = [name for name in (url(host, 1) for host in range(400)) if partition_of(host_of(name), 2) == 0]
    async with rig.running():
        await rig.sender.submit(Submit((ours[0],)))
        for number in range(1, 6):
            items = tuple(Passing(name, 1) for name in ours[number * 30 : number * 30 + 30])
            rig.post(CashTransfer(1, 0, number, items))
        await rig.loop.catch_up()
        async with rig.loop.boundary():
            assert rig.partition.store.get(rows.INBOX.key(1)) == (5).to_bytes(8, "big")


async def test_a_report_does_not_wait_for_the_longer_window_while_fetchers_starve(tmp_path):
    rig = Rig(tmp_path / "data", StoreSettings(commit_seconds=20.0), partitions=2)
    seed = next(url(host, 1) for host in range(200) if partition_of(host_of(url(host, 1)), 2) == 0)
    async with rig.running():
        async with asyncio.timeout(10):
            await rig.sender.submit(Submit((seed,)))
            (order,) = await rig.bus.receive("orders", 10)
            rig.post(report(order, START, (seed + "2",)))
            assert await rig.bus.receive("orders", 10)


async def test_an_idle_partition_of_many_looks_seldom_and_a_due_page_is_not_missed(tmp_path):
    rig = Rig(tmp_path / "data", partitions=16)
    rig.frontier.scheduler.orders = lambda *_: []
    looks = []
    due = rig.loop._due
    rig.loop._due = lambda: looks.append(1) or due()
    async with rig.running():
        await asyncio.sleep(1.2)
        assert len(looks) <= 1  # a lone partition looks four times a second
        assert rig.loop._rest() == 16 * partition_loop.TICK
        rig.frontier.scheduler.schedule.retry(0, START + 1.0)
        assert rig.loop._rest() == pytest.approx(1.0)


async def test_a_store_is_closed_whatever_the_last_snapshot_fails_of(rig):
    """It stayed open: this process could not open the partition again, once there was room."""

    def fail():
        raise MachineError("the disk is full")

    with pytest.raises(MachineError, match="the disk is full"):
        async with rig.running():
            rig.post(Submit((url(0),)))
            await rig.orders()
            rig.partition.snapshot = fail
    DataDir.open(rig.path).close()
