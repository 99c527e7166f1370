"""The partition loop gathers messages, lets its partition take a turn, writes it, and then lets the effects leave.

Two commit groups may be under way at once, one that waits while the other is written; what comes in meanwhile waits on
the bus. What a crash may cost is for node.py to bound (AT_RISK); those pages are read again.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import logging
import math
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from xyro.configs.schema import StoreSettings
from xyro.frontier.batch import Effects, MessageBatch, urls_of, weight
from xyro.metadata.partition import Commit, Partition
from xyro.metadata.snapshot import SnapshotStep
from xyro.service.node.command_sender import parts_of
from xyro.wire import topics
from xyro.wire.bus import Bus
from xyro.wire.clock import Clock
from xyro.wire.commands import Command, CommandAnswer
from xyro.wire.errors import MachineError, XyroError
from xyro.wire.messages import CashTransfer, Message, PageReport, Submit
from xyro.wire.questions import Question

if TYPE_CHECKING:
    from xyro.frontier.frontier import Frontier

GROUPS = 2
GROUP_URLS = 1 << 13
"""URLs in one group, or those of one message: up to 10 us each where all are new, so 80 ms on the event loop"""
SETTLING_GROUP = 32
"""least free spends at once while importance settles"""
SETTLING_SPENDS = 1 << 14
"""most free spends of a commit group while importance settles: 40 ms"""
IDLE_SWEEPS = 10
"""sweeps in a row that found nothing rich enough to spend: the threshold halves with each"""
COMMIT_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""seconds: upper ends of the buckets of commit times; one more has no end"""
TICK = 0.25
"""seconds between two looks at what has become due"""
LONGEST_REST = 5.0
"""seconds between two looks at a partition of several that has nothing to read before that"""
LONGEST_WINDOW = 0.5
"""seconds that a group of one partition of several is kept open"""
LEAST_HOLD = 0.001
"""seconds: a rest that a clock of floats cannot tell from none would be waited for again and again"""
LONGEST_HOLD = 1.0
"""seconds that cash of other partitions waits for a report to share its group with, while the node has something to
read or is one of several; a transfer and its Ack, both held, have to be back before it is sent again
(outbox.SOONEST)"""
SNAPSHOT_SHARE = 4
"""of the bytes of all columns so many are journal before a snapshot: one of 10 M pages rewrites half a gigabyte"""
CHUNKS_A_TURN = 4
"""snapshot chunks (2 MB each) copied between two turns"""
_log = logging.getLogger(__name__)


class Inbox:
    """Counts the reports that were posted to a partition, and are in no commit group yet. Filled by the node, emptied
    by each turn."""

    def __init__(self) -> None:
        self.reports = self.weight = 0
        self.total = 0
        """all that were ever posted"""

    def add(self, report: PageReport) -> None:
        """A report was posted."""
        self.total += 1
        self.reports += 1
        self.weight += weight(report)

    def take(self, reports: Sequence[PageReport]) -> None:
        """These are in a commit group now."""
        self.reports = max(self.reports - len(reports), 0)
        self.weight = max(self.weight - sum(map(weight, reports)), 0)


class PartitionLoop:
    """Drives the frontier of one partition.

    `room()`: reads that may still be ordered; `starving()`: the fetchers are out of orders; `pressing()`: a group is
    wanted at once, however little is in it; `idle()`: nothing is being read, nor waits to be; `is_reading()`: pages of
    any partition are; `posted()`: reports of all partitions so far; `synced(n)`: told that reports that weigh n are on
    disk; `barriers`: called in the thread that writes a group, before it does; `writers`: such threads, of all
    partitions.

    A group costs 1 ms and more, whatever is in it. Where a node has several partitions, little comes in for each of
    them, so their windows are longer: together they begin about as many groups a second as one partition alone would,
    and they look about as often at what has become due. Cash of others never makes a group in a hurry while anything is
    read, and waits for one of reports unless it brings pages to a partition that has nothing to read; where fetchers
    starve a group waits for those of its own reports that are just being read (`is_complete`), but no longer than that
    of a lone partition.
    """

    def __init__(
        self,
        frontier: Frontier,
        bus: Bus,
        clock: Clock,
        store: StoreSettings,
        room: Callable[[], int],
        starving: Callable[[], bool],
        synced: Callable[[int], None],
        pressing: Callable[[], bool] | None = None,
        barriers: Sequence[Callable[[], None]] = (),
        idle: Callable[[], bool] | None = None,
        is_reading: Callable[[], bool] = lambda: False,
        posted: Callable[[], int] = lambda: 0,
        writers: Executor | None = None,
    ) -> None:
        self.frontier = frontier
        self.bus = bus
        self.clock = clock
        self.store = store
        self.failed: BaseException | None = None
        self.turns = 0
        self._room = room
        self._starving = starving
        self._synced = synced
        self._pressing = starving if pressing is None else pressing
        self._idle = starving if idle is None else idle
        self._is_reading = is_reading
        self._posted = posted
        self._of_others = 0
        """reports posted to other partitions, as of the last turn"""
        self._partitions = frontier.partitions
        self._barriers = barriers
        self._topic = topics.pages(frontier.partition.number)
        self._writers, self._writing = writers, asyncio.Lock()
        self._disk = threading.Lock()  # held by the thread that writes, or closes
        self._slots = asyncio.Semaphore(GROUPS)
        self._writes: set[asyncio.Task[None]] = set()
        self._closes_at = -math.inf
        """monotonic: when the group that is open is closed; in the past: none is open"""
        self._closes_sooner = asyncio.Event()
        self._news = asyncio.Event()
        """something came that does not wait as cash of others does"""
        self.inbox = Inbox()
        self._gate = asyncio.Lock()
        self._snapshot: Iterator[SnapshotStep] | None = None
        self._work = MessageBatch()
        self._later: deque[Message] = deque()
        """came in with more than one group may hold, in order"""
        self._group_reports: float = store.commit_reports
        """most reports of a group; all that are there at the end, when a slow disk may have time for few groups"""
        self._broken = False
        """set by the writer thread"""
        self.commit_counts = [0] * (len(COMMIT_BOUNDS) + 1)
        """commit groups by the time until they were on disk, a number for each bucket"""
        self.commit_seconds = 0.0
        self.committed_at: float | None = None
        """when the last commit group reached the disk (monotonic); None: none did yet"""
        self._since: dict[int, float] = {}
        """number of a group that waits for the disk -> since when, the oldest first"""

    # -- the loop ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Until cancelled, or the bus is closed. A failure (a full disk, a damaged store) is kept in `failed`."""
        try:
            await self.turn()
            while await self._gather():
                if self.failed is not None:
                    raise self.failed
                if self._work or self._due():
                    await self.turn()
                elif self._snapshot is not None:
                    self._copy()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._fail(error)
            raise

    def _fail(self, error: BaseException) -> None:
        """Keep the first failure: what follows it is its consequence."""
        self.failed = self.failed or error

    def _lost(self, work: MessageBatch, error: BaseException) -> None:
        """This group will never be on disk: the crawl ends, and whoever waits for an answer gets that one."""
        self._fail(error)
        self._reply(work.refused(f"it could not be written: {error}"))

    def _reply(self, answers: Iterable[CommandAnswer]) -> None:
        for answer in answers:
            self.bus.post(topics.answers(answer.node), answer)

    async def _gather(self) -> bool:
        """Wait for something to do; then for a group's worth of it, the commit window, or a hungry fetcher.

        False: the bus is closed.
        """
        if self._later:
            self._fill()
            await asyncio.sleep(0)  # nothing to wait for: others have their turn
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._rest()):
                if not await self._receive():
                    return False
        if self._partitions > 1 and not self._later and await self._hold():
            return True
        if self._work and not self._later and not self._work.urgent and (patience := self._patience()):
            await self._window(patience)
        return True

    def _patience(self) -> float:
        """Seconds that the group is kept open for more."""
        least = self.store.commit_seconds
        if self._partitions == 1:
            return 0.0 if self._pressing() else least
        cash_alone = self._work.may_wait
        if not cash_alone and self._starving() and self.is_complete:
            return 0.0
        if self._idle() or (not cash_alone and self._pressing()):  # all wait for this cash
            return least
        return max(least, min(least * self._partitions, LONGEST_WINDOW))

    async def _hold(self) -> bool:
        """Keep cash of others for the next group of reports, which is cheaper than one of its own. True: none came for
        as long as that may take."""
        end, looked_at = self.clock.monotonic() + LONGEST_HOLD, 0
        while self._work and self._work.may_wait and not self._later and not self._idle() and not self._due():
            if not self.frontier.scheduler.leases:
                if self._awakes(self._work.transfers[looked_at:]):
                    return False
                looked_at = len(self._work.transfers)
            if (left := end - self.clock.monotonic()) < LEAST_HOLD:
                return True
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, TICK)):
                    await self._news.wait()
            if self.bus.waiting(self._topic) and not await self._receive():
                return False
        return False

    def _awakes(self, transfers: Sequence[CashTransfer]) -> bool:
        """Tell whether these bring pages that may be read to this partition, which has nothing to read: they may
        matter more than all that is read meanwhile."""
        if not (items := [item for transfer in transfers for item in transfer.items]):
            return False
        found = self.frontier.partition.url_index.find([item.url for item in items])
        may_be_read = self.frontier.pages.may_be_read
        return any(page < 0 and may_be_read(item.url, item.depth) for item, page in zip(items, found, strict=True))

    def _rest(self) -> float:
        """Seconds until this partition looks what has become due, if no message comes in."""
        if self._partitions == 1:
            return TICK
        frontier, now = self.frontier, self.clock.time()
        if frontier.scheduler.discovery.waiting or frontier.pages.waiting_links or frontier.now > now:
            return TICK
        due = min(frontier.scheduler.next_time(), frontier.next_time())
        return min(max(due - now, TICK), TICK * self._partitions, LONGEST_REST)

    async def _window(self, seconds: float) -> None:
        """Let more come in for the same group, unless the rest of it waits already."""
        self._closes_at = self.clock.monotonic() + seconds
        room = self.store.commit_reports - len(self._work.visits)
        if self.bus.waiting(self._topic) < room:
            with contextlib.suppress(TimeoutError):
                while (left := self._closes_at - self.clock.monotonic()) > 0.0:
                    self._closes_sooner.clear()
                    async with asyncio.timeout(left):
                        await self._closes_sooner.wait()
        if self.bus.waiting(self._topic):
            await self._receive()

    @property
    def holds_reads(self) -> bool:
        """Reports are here that wait for their group."""
        return bool(self._work.visits)

    def hurry(self) -> None:
        """Commit what is there: the fetchers have nothing left to read, or a whole group waits."""
        self._close_at(-math.inf)
        self._news.set()

    def hasten(self) -> None:
        """Keep the group open for no longer than that of a lone partition: the fetchers have nothing left to read."""
        self._close_at(self.clock.monotonic() + self.store.commit_seconds)
        self._news.set()

    def _close_at(self, moment: float) -> None:
        """Close the group that is open, if one is, at this moment if not sooner."""
        if moment < self._closes_at:
            self._closes_at = moment
            self._closes_sooner.set()

    def expect(self, report: PageReport) -> None:
        """A report was posted here."""
        self.inbox.add(report)
        self._news.set()

    @property
    def is_complete(self) -> bool:
        """Tell whether all orders of this partition are answered: no more reports come before its next group."""
        return len(self.frontier.scheduler.leases) <= self.inbox.reports

    def let_go(self) -> None:
        """Nothing is being read any more, or something came that does not wait: look again whether what is held is to
        wait for the next group of reports."""
        self._news.set()

    async def _receive(self) -> bool:
        """Take all that waits, at least one message: a group has `commit_reports` reports, and how many transfers and
        acknowledgements lie between them must not make another of each. False: the bus is closed."""
        messages = await self.bus.receive(self._topic, max(self.bus.waiting(self._topic), self.store.commit_reports))
        self._take(messages)
        return bool(messages)

    def _take(self, messages: list[Message]) -> None:
        for message in messages:
            if isinstance(message, Question):
                self._answer(message)
            else:
                self._later.append(message)
        self._fill()

    def _answer(self, question: Question) -> None:
        """Answer at once, from what the partition knows now."""
        try:
            self._reply(self.frontier.commands.apply([question]))
        except XyroError as error:
            self._reply([CommandAnswer(question.request, str(error))])

    def _fill(self) -> None:
        """Work for one group: the rest waits, for a turn stops the event loop."""
        work, later = self._work, self._later
        while later and (not work or work.urls + urls_of(later[0]) <= GROUP_URLS):
            if len(work.visits) >= self._group_reports and isinstance(later[0], PageReport):
                return
            work.add(later.popleft())

    def _due(self) -> bool:
        scheduler, now = self.frontier.scheduler, self.clock.time()
        if self.frontier.next_time() <= now:
            return True
        if self._room() <= 0:
            return False
        if (
            scheduler.next_time() <= now or now < self.frontier.now or scheduler.requests
        ):  # a clock set back: all times moved
            return True
        if self._starving() and self.frontier.relieve(now):
            return True
        return scheduler.may_discover and self._starving()

    async def turn(self) -> None:
        """One commit group: through the node, onto its way to disk."""
        async with self._gate:
            await self._turn()

    async def catch_up(self) -> None:
        """Apply what has come in until now; what comes in meanwhile may be applied, too."""
        if self.bus.waiting(self._topic):
            await self._receive()
        for _ in range(1 + len(self._later)):
            if not self._work:
                return
            await self.turn()
            self._fill()

    @contextlib.asynccontextmanager
    async def boundary(self) -> AsyncIterator[None]:
        """Nothing is under way: what is in memory is what is on disk, for as long as this is held."""
        async with self._gate:
            await self._written()
            yield

    async def _written(self) -> None:
        """Wait for the groups under way. Who waits may be cancelled; they are not, or the next would follow a hole."""
        if self._writes:
            await asyncio.wait(self._writes)

    async def settle(self, turnovers: float) -> int:
        """Let importance of a crawl of one partition settle without a fetch, by one commit group: free spends that
        build on each other until the OPIC clock shows so many turnovers, nothing is left that is worth a spend, or the
        group is full. Returns the spends.
        """
        frontier, ledger = self.frontier, self.frontier.ledger
        first = before = ledger.spends
        idle = 0

        def more() -> bool:
            nonlocal idle, before
            idle, before = idle + 1 if ledger.spends == before else 0, ledger.spends
            return ledger.clock.turnovers < turnovers and ledger.spends - first < SETTLING_SPENDS and idle < IDLE_SWEEPS

        async with self._gate:
            await self._turn(max(SETTLING_GROUP, frontier.read_pages // 16), more)
        await self._written()
        return ledger.spends - first

    async def commit(self, change: Callable[[], Effects]) -> None:
        """One commit group that `change` makes, until it is on disk. At a boundary."""
        await self._slots.acquire()
        try:
            turn = change()
        except BaseException as error:
            self._slots.release()
            self._fail(error)
            raise
        await asyncio.shield(self._begin_write(turn, MessageBatch()))

    async def _turn(self, free: int = 0, more: Callable[[], bool] | None = None) -> None:
        await self._slots.acquire()
        work, self._work = self._work, MessageBatch()
        try:
            if self.failed is not None:
                raise self.failed
            turn = self.frontier.turn(work, self.clock.time(), self._room(), free, more, self._are_others_read())
            self.inbox.take(work.visits)
        except BaseException as error:  # half of the group is in memory: only what is on disk can go on from here
            self._slots.release()
            self._lost(work, error)
            raise
        self._begin_write(turn, work)
        self._copy()

    def _are_others_read(self) -> bool:
        """Tell whether pages are being read, or were of other partitions since the last turn."""
        before, self._of_others = self._of_others, self._posted() - self.inbox.total
        return self._is_reading() or self._of_others > before

    def _begin_write(self, turn: Effects, work: MessageBatch) -> asyncio.Task[None]:
        """In a task of its own: it goes on whatever becomes of those that wait for it."""
        self.turns += 1
        task = asyncio.create_task(self._write(turn, work))
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        return task

    async def _write(self, turn: Effects, work: MessageBatch) -> None:
        self._since[turn.commit.number] = self.clock.monotonic()
        try:
            async with self._writing:  # whoever waits is served in its order: groups are written as they were made
                await asyncio.get_running_loop().run_in_executor(self._writers, self._put, turn.commit)
            self.frontier.partition.written(turn.commit)
            self.committed_at = self.clock.monotonic()
            spent = self.committed_at - self._since[turn.commit.number]
            self.commit_counts[bisect.bisect_left(COMMIT_BOUNDS, spent)] += 1
            self.commit_seconds += spent
            self._leave(turn)
            self._synced(sum(map(weight, work.visits)))
        except Exception as error:  # `failed` tells: the loop ends, and whoever runs it asks
            self._lost(work, error)
            return
        except asyncio.CancelledError:  # perhaps before it was written: no later group may be, and no snapshot
            self._broken = True
            self._fail(MachineError(f"{self.frontier.partition.directory}: stopped while a commit group was written"))
            raise
        finally:
            self._since.pop(turn.commit.number, None)
            self._slots.release()

    def _put(self, commit: Commit) -> None:
        """In a writer's thread. After a group that could not be written no later one is: that would be a hole."""
        with self._disk:
            if self._broken:
                raise MachineError(f"{self.frontier.partition.directory}: an earlier commit group could not be written")
            try:
                for barrier in self._barriers:
                    barrier()
                self.frontier.partition.write(commit)
            except BaseException:
                self._broken = True
                raise

    def _leave(self, turn: Effects) -> None:
        """The group is on disk: its effects may leave the process."""
        for order in turn.orders:
            self.bus.post(topics.ORDERS, order)
        for challenged in turn.challenged:
            self.bus.post(topics.ORDERS, challenged)
        for transfer in turn.transfers:
            self.bus.post(topics.pages(transfer.target), transfer)
        for ack in turn.acks:
            self.bus.post(topics.pages(ack.target), ack)
        for target, command in turn.posts:
            self.bus.post(topics.pages(target), command)
        for submit in turn.submits:
            for partition, part in parts_of(submit, self.frontier.partitions):
                self.bus.post(topics.pages(partition), part)
        self._reply(turn.answers)

    # -- snapshots, end ------------------------------------------------------------------------------------------

    def _copy(self) -> None:
        """Some chunks of a snapshot, if one is under way or due."""
        if self._snapshot is None:
            partition = self.frontier.partition
            if partition.journal_bytes < max(self.store.snapshot_bytes, partition.columns.nbytes // SNAPSHOT_SHARE):
                return
            self._snapshot = self.frontier.partition.snapshot()
        for _ in range(CHUNKS_A_TURN):
            step = next(self._snapshot, None)
            if step is None:
                self._snapshot = None
                return
            if step is SnapshotStep.COPIED:
                return

    @property
    def waits_since(self) -> float | None:
        """Since when (monotonic) the oldest group under way waits for the disk; None where none does."""
        return next(iter(self._since.values()), None)

    @property
    def quiet(self) -> bool:
        """Nothing gathered, nothing being written, nothing posted here."""
        return not self._work and not self._later and not self._writes and not self.bus.waiting(self._topic)

    async def drain(self, grace: float = math.inf) -> None:
        """After `run` was cancelled: commit what has come in, so that no answered read is lost; begin no group after
        `grace` seconds, the pages of what is left are read again. Cash of others alone is left in their outboxes."""
        deadline, self._group_reports = self.clock.monotonic() + grace, math.inf
        while self.bus.waiting(self._topic) and await self._receive():
            pass
        self._fill()
        while self._work and not (self._work.may_wait and not self._later) and self.failed is None:
            await self.turn()
            if self.clock.monotonic() >= deadline:
                for message in self._later:  # a partition that moves takes them where it is opened next
                    if isinstance(message, Command | Submit):
                        self.bus.post(self._topic, message)
                break
            self._fill()
        await self._written()

    def close(self) -> None:
        """Snapshot (so that the next start is quick) and close the store, which is closed whatever fails."""
        with self._disk:
            self._broken = True  # what a cancelled task has still to write comes too late
            self._close(self.frontier.partition)

    def _close(self, partition: Partition) -> None:
        try:
            if self.failed is None:
                for _ in self._snapshot or ():
                    pass
                if partition.journal_bytes:
                    for _ in partition.snapshot():
                        pass
        finally:
            partition.close()
