"""The node of one process, wired: partitions, bus, loader, reader, loops and plug-ins on one event loop.

`Node.__init__` is the reference wiring, in that order; wire/topics.py has the topics between the parts.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from xyro.configs.parsed_types import scope_settings
from xyro.configs.schema import Settings
from xyro.frontier.batch import weight
from xyro.frontier.frontier import Frontier
from xyro.frontier.scope import Scope
from xyro.frontier.terms import link_words
from xyro.guard import Guard
from xyro.loader.library import Resumed
from xyro.metadata.partition import Partition
from xyro.metadata.states import State
from xyro.reader import OnReport, Reader
from xyro.service.node.blackout_switch import BlackoutSwitch
from xyro.service.node.command_sender import Absent, CommandSender
from xyro.service.node.crawl_views import CrawlViews
from xyro.service.node.data_dir import DataDir
from xyro.service.node.fetch_loop import FetchLoop
from xyro.service.node.host_calendar import HostCalendar
from xyro.service.node.joint_settling import Ids, JointSettling, places
from xyro.service.node.load_loop import FULL, LoadLoop
from xyro.service.node.loader_factory import lazy_intake_of
from xyro.service.node.network import LoneNode, NodeNetwork
from xyro.service.node.page_lookup import PageLookup, PartitionParts
from xyro.service.node.page_questions import PageQuestions
from xyro.service.node.part_library import PartLibrary
from xyro.service.node.part_requests import PartRequests
from xyro.service.node.partition_loop import COMMIT_BOUNDS, PartitionLoop
from xyro.service.node.reader_factory import archive_of, manners_of, options_of
from xyro.service.node.recent_figures import RecentFigures
from xyro.service.node.resident import Resident
from xyro.service.node.services import NO_PLUGINS, PluginSet, Services
from xyro.service.views.views import Views
from xyro.wire import topics
from xyro.wire.bus import Bus, LocalBus
from xyro.wire.clock import Clock, SystemClock
from xyro.wire.commands import HoldHost, ReturnOrders
from xyro.wire.ids import LocalPage, local_page, owner_of
from xyro.wire.log_setup import log_reads
from xyro.wire.messages import FetchOrder, PageReport, Priority, Submit
from xyro.wire.questions import FindPart
from xyro.wire.urls import host_of, partition_of

P = TypeVar("P")
_log = logging.getLogger("xyro")
PATIENCE = 30.0
"""`xyro crawl` ends when no retry is due within so many seconds"""
LOW_WATER = 0
NO_BOUND = 1 << 30
"""reads that may be ordered where nothing bounds them"""
EVEN = 50.0
"""gamma of a node that has no partition yet"""
WRITERS = 16
"""most commit groups that are written at the same moment"""
HOUSEKEEPING = 5.0
AT_RISK = 256
"""reports that may wait to be parsed or to be on disk while reads go on, one of a page with very many links counted as
several; with the requests under way, a crash loses no more reads"""
LEAST_GRACE = 1.0
"""seconds for bodies that are here already, even where reads took all the time there was to stop"""
LONGEST_PAUSE = 30.0
"""seconds: after a restart no host is read before its delay has passed, up to this (its robots.txt may be just read)"""
CLOCKS = "clocks"
"""file of the data directory: hosts that want to be left alone for longer than that (xyro/clock_log.py)"""
SIGNED = "signed-hosts"
"""file of the data directory: hosts whose requests are signed (xyro/request_signing.py)"""
READ_OUT, LAST_VIEWS = 60.0, 5.0
"""seconds that a partition which is to leave waits for those who read it; for those who began since, while no others
can begin"""
SETTLED = 24.0
"""turnovers after which the importance of a graph that was just found is within a few per cent (500 pages: 28 % after
12, 2.8 % after 24)"""
SETTLING_SPENDS = 16
"""most free spends for each read of the run while importance settles: 10 us each"""
SETTLING_PARTS = 3
"""commit groups of each of several partitions in which importance settles"""
FREE_SPENDS = 1 << 14
"""most spends of several partitions at once: 40 ms"""
EXCHANGES = 8
"""most rounds of commit groups by which transfers between partitions arrive"""
IDLE_GROUPS = 10
"""groups of settling in a row in which a lone partition found nothing to spend"""


class Bounds(Struct, frozen=True):
    """The bounds of a crawl, which ends when one is reached. 0 = unbounded."""

    pages: int = 0
    seconds: float = 0.0
    refresh: bool = False
    """goes on refreshing until a bound"""
    forever: bool = False
    """a daemon: never ends by itself"""
    wanted: Callable[[], bool] = lambda: True
    """nothing more is read while it says no; wake the pool when it says yes again"""


class Node:
    """A crawl in one process: `start`, then `finished` says when nothing is left to do, `stop` at any time."""

    def __init__(
        self,
        data: DataDir,
        settings: Settings,
        guard: Guard,
        bounds: Bounds,
        clock: Clock | None = None,
        bus: Bus | None = None,
        *,
        plugins: PluginSet = NO_PLUGINS,
        network: NodeNetwork | None = None,
    ) -> None:
        self.data = data
        self.guard = guard
        self.settings = settings
        self.bounds = bounds
        self.clock = clock or SystemClock()
        self.network: NodeNetwork = network or LoneNode(bus or LocalBus())
        self.bus: Bus = self.network.bus
        self.scope = Scope(scope_settings(settings), settings.rules, guard.host_allowed)
        self._plugin_set = plugins
        self.frontiers = list(map(self._frontier_of, data.partitions))
        """of the partitions that are here; the parts that look at all of them share this list"""
        self.lookup = PageLookup((), data.count, self.scope)
        self.crawl_views = CrawlViews(self.frontiers)
        self.part_library = PartLibrary(self.lookup.part, self.lookup.body)
        self.load_loop = self._new_load_loop()
        self.fetch_loop = FetchLoop(self.bus, self.clock, self._reader_of, self.load_loop.deliver, self._first_pause())
        self.queue, self.pool = self.fetch_loop.reader.queue, self.fetch_loop.reader.pool
        self.side = self.fetch_loop.side_reads
        self.calendars: list[HostCalendar] = []
        self.blackout_switch = BlackoutSwitch(self.calendars, self.pool)
        self.partition_loops: list[PartitionLoop] = []
        self.commands = CommandSender(self.bus, self.clock, data.count, self._commanded, self.network.number)
        self.services = Services(
            lambda: self.settings,
            self.clock,
            self.scope,
            self.commands,
            PageQuestions(self.commands),
            self.fetch_loop.side_reads,
            self.pool.post,
            self._eased,
            self._give_back_of,
            self.fetch_loop.answered,
        )
        self.recent = RecentFigures(self.clock)
        self._writers = ThreadPoolExecutor(WRITERS, thread_name_prefix="writer-node")
        self._residents: dict[int, Resident] = {}
        self._standing = asyncio.Lock()  # held by a look at all partitions, and while one comes or goes
        for frontier in self.frontiers:
            self._settle_in(frontier)
        self.unsynced = 0
        """weight of the reports posted and not yet on disk"""
        self._posted_reports = 0
        self.best: list[dict[str, Any]] = []
        """the most important pages, as they were when it stopped"""
        self._reads_before, self._tasks, self._is_over, self.started = 0, list[asyncio.Task[None]](), False, 0.0

    def _new_load_loop(self) -> LoadLoop:
        loader = self.settings.loader
        return LoadLoop(
            self.bus,
            self.clock,
            lazy_intake_of(self.settings, self.part_library),
            self.lookup.signature,
            self.lookup.is_named,
            self.lookup.again if loader.revalidate else lambda report: None,
            self._eased,
            self._posted,
            self._is_reading,
        )

    def _reader_of(self, on_report: OnReport) -> Reader:
        options = options_of(self.settings, link_words(self.settings), self.gamma(), self.network.nodes)
        archive = archive_of(self.settings, self.data.path)
        if options.signing is not None:
            options = replace(options, signing=replace(options.signing, hosts=str(self.data.path / SIGNED)))
        options = replace(options, clock_log=self.data.path / CLOCKS, pause=self._pause(), archive=archive)
        return Reader(options, self.guard, self.clock, on_report, self.may_read, self.network.turns)

    def _pause(self) -> float:
        """Seconds before the first read of any crawl that is resumed."""
        polite = self.settings.politeness
        return min(polite.min_delay if polite.delay is None else polite.delay, LONGEST_PAUSE)

    def _first_pause(self) -> float:
        """Seconds before the first read of this run."""
        return 0.0 if self.data.created else self._pause()

    def plugin(self, kind: type[P]) -> P | None:
        """The plug-in of a class, None where the crawl has none."""
        found = (plugin for resident in self._residents.values() for plugin in resident.plugins)
        return next((plugin for plugin in found if isinstance(plugin, kind)), None)

    # -- life ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Recover, then set the nodes to work. Call on the running loop."""
        now = self.clock.time()
        self.started = self.clock.monotonic()
        if _log.isEnabledFor(logging.DEBUG):  # else no page is to pay for it
            self.fetch_loop.answered.append(log_reads(_log))
        self.part_library.bind()
        self.network.commanded.append(self._reached)
        self.load_loop.resume([wait for frontier in self.frontiers for wait in self._recover(frontier, now)])
        self._reads_before = self.reads_total
        for resident in self._residents.values():
            resident.start(self._task_ended)
        for work in (self.fetch_loop.run(), self._housekeeping(), self.commands.run()):
            self.watch(work)

    def watch(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this beside the loops for as long as the node runs; the node fails of what it raises."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._task_ended)
        self._tasks.append(task)

    def _recover(self, frontier: Frontier, now: float) -> list[Resumed]:
        """Bring a partition back as it was last committed; the loads that wait."""
        transfers, waiting = frontier.recover(now)
        sender = self.network.sender(frontier.partition.number)
        for transfer in transfers:
            sender.post(topics.pages(transfer.target), transfer)
        for number, row in frontier.partition.hosts.clocks.items():
            if row.next_at > now or row.failures:
                self.pool.restore(row.name, row.next_at, row.failures)
            if row.hold:
                self.pool.hold(frontier.partition.hosts.names[number])
        self.pool.take_rules(frontier.partition.directory)
        return waiting

    def _frontier_of(self, partition: Partition) -> Frontier:
        bounds, settings = self.bounds, self.settings
        ahead, refreshing = bounds.refresh and not bounds.forever, bounds.refresh or bounds.forever
        extensions = self._plugin_set.extensions(settings)
        return Frontier(partition, self.scope, settings, refreshing, extensions, ahead)

    def _settle_in(self, frontier: Frontier, opens_at: float = -math.inf) -> Resident:
        """Give a partition's frontier its parts of the node."""
        number = frontier.partition.number
        for resident in self._residents.values():
            frontier.pages.waiting_links.share(resident.frontier.pages.waiting_links)
        loop = PartitionLoop(
            frontier,
            self.network.sender(number),
            self.clock,
            self.settings.store,
            partial(self._room_of, number),
            self._starving,
            self._synced,
            self._pressing,
            self.services.barriers,
            self._idle,
            self._is_reading,
            lambda: self._posted_reports,
            self._writers,
        )
        resident = self._residents[number] = Resident(
            frontier,
            loop,
            PartitionParts(frontier, self.clock, self.settings.loader.part_age),
            HostCalendar(frontier),
            self._plugin_set.plugins(frontier, self.services),
            opens_at,
        )
        frontier.commands.handle(FindPart, resident.parts.answer)
        self.lookup.add(resident.parts)
        self.calendars.append(resident.calendar)
        self.partition_loops.append(loop)
        self.network.opened(number)
        return resident

    async def admit(self, partition: Partition, is_restored: bool = False) -> None:
        """Take in a partition that another node had. Its hosts are left alone for as long as after a restart; longer if
        it comes from a backup, which does not know the delays that hosts have asked for since."""
        pause = LONGEST_PAUSE if is_restored else self._pause()
        async with self._standing:
            frontier = self._frontier_of(partition)
            self.data.partitions.append(partition)
            self.frontiers.append(frontier)
            resident = self._settle_in(frontier, self.clock.monotonic() + pause)
            reads = self.reads_total - frontier.reads
            self.load_loop.resume(self._recover(frontier, self.clock.time()))
            self._reads_before += self.reads_total - reads
            resident.start(self._task_ended)
            self.blackout_switch.follow(self.clock.time(), anew=True)

    def retell(self, restored: Mapping[int, int]) -> None:
        """Tell partitions that were restored, each at an epoch, which of their URLs are known here (outbox.py)."""
        for frontier in self.frontiers:
            frontier.outbox.retell(restored)

    async def read_out(self, number: int, patience: float = READ_OUT) -> None:
        """Return when no export nor other long view reads a partition, or after `patience` seconds: then those that do
        break off when it is closed."""
        store, end = self._residents[number].frontier.partition.store, self.clock.monotonic() + patience
        while store.pinned and self.clock.monotonic() < end:
            await self.clock.sleep(0.05)

    async def release(self, number: int, patience: float = 10.0) -> Partition:
        """Let a partition go: reads of it that are under way end within `patience` seconds (or are made again), all
        that came in is committed, and it is closed. Call once for each. Raises what it failed of; then, too, it is
        closed, and can be opened as it was last committed."""
        resident = self._residents[number]
        resident.leaving = True
        hosts = resident.hosts()
        end = self.clock.monotonic() + patience
        while self.clock.monotonic() < end and (
            len(resident.frontier.scheduler.leases) or any(host in hosts for host in self.pool.hosts_read)
        ):
            self._give_back(resident)
            await self.clock.sleep(0.05)
        async with self._standing:
            await self.read_out(number, min(patience, LAST_VIEWS))
            await resident.stop()
            self.network.closed(number)
            self.lookup.remove(number)
            del self._residents[number]
            self.partition_loops.remove(resident.loop)
            self.calendars.remove(resident.calendar)
            self.frontiers.remove(resident.frontier)
            self.data.partitions.remove(resident.frontier.partition)
            self.load_loop.leave(number)
            self._reads_before -= resident.frontier.reads
            await asyncio.to_thread(resident.loop.close)
            if resident.loop.failed is not None:
                raise resident.loop.failed
            rules = self.pool.give_rules(resident.hosts())
            await asyncio.to_thread(rules.write, resident.frontier.partition.directory)
        return resident.frontier.partition

    async def _housekeeping(self) -> None:
        part_requests = PartRequests(self.load_loop, self.lookup, self.commands)
        self.recent.note(self.reads, lambda: self.errors)
        while True:
            now = self.clock.time()
            await self.clock.sleep(min(HOUSEKEEPING, max(self.blackout_switch.next_change() - now, 0.01)))
            self.load_loop.expire()
            if self._room() <= 0:  # others may be read while these wait
                self._take_back(self.pool.drop_failed(HOUSEKEEPING))
            self.recent.note(self.reads, lambda: self.errors)
            part_requests.look()
            self.blackout_switch.follow(self.clock.time())

    def gamma(self) -> float:
        """Return the gamma of all partitions together, each weighed by the reads that it has made."""
        if not self.frontiers:
            return EVEN
        weights = [1.0 + frontier.reads for frontier in self.frontiers]
        return sum(
            w * frontier.scheduler.gamma.agreed for w, frontier in zip(weights, self.frontiers, strict=True)
        ) / sum(weights)

    @property
    def unread(self) -> int:
        """The number of unread pages that wait."""
        return sum(frontier.scheduler.unread for frontier in self.frontiers)

    async def submit(
        self,
        urls: Iterable[str],
        priority: Priority = Priority.ORDERED,
        *,
        seed: bool = True,
        absent: Absent | None = None,
    ) -> Mapping[int, str]:
        """Hand canonical URLs over; returns when they are on disk. Raises what a partition failed of. absent, and what
        is returned: `CommandSender.submit`.

        Seeds widen the scope of this node at once, too: their own partition may be another node's.
        """
        urls = tuple(urls)
        if seed:
            for url in urls:
                self.scope.add_seed(url)
        gone = await self.commands.submit(Submit(urls, priority, seed), absent)
        if seed and self.scope.mode == "domain" and len(self._residents) < self.commands.partitions:
            places = {self.scope.place_of(url): url for url in urls}  # hosts of one domain are of many partitions
            self.commands.widen(list(places.values()))
        return gone

    async def sow(self, seeds: Iterable[str]) -> None:
        """Begin or resume: seeds widen the scope, and those not yet read are ordered."""
        fresh = []
        for url in seeds:
            self.scope.add_seed(url)
            if self.lookup.state(url) in (None, State.UNREAD, State.OUT):
                fresh.append(url)
        await self.submit(fresh)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        """A loop that failed will answer nobody."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.commands.fail(error)

    def check_writes(self) -> None:
        """Raise the error that a partition failed with (a full disk, a damaged store)."""
        for loop in self.partition_loops:
            if loop.failed is not None and not isinstance(loop.failed, asyncio.CancelledError):
                raise loop.failed

    def check(self) -> None:
        """Raise what any node failed of."""
        self.check_writes()
        if self.load_loop.failed is not None:
            raise self.load_loop.failed
        for task in (*self._tasks, *(task for resident in self._residents.values() for task in resident.tasks)):
            if task.done() and not task.cancelled() and (error := task.exception()):
                raise error

    def end_reads(self) -> None:
        """Begin no more reads; what else is sent to the web goes on."""
        self._is_over = True
        for resident in self._residents.values():
            self._give_back(resident)

    async def stop(self, grace: float = 5.0) -> None:
        """Orderly: no new reads, those under way are finished, parsed and committed (in about `grace` seconds; what is
        not is read again)."""
        end = self.clock.monotonic() + grace
        await self.pool.close(grace)
        await self.load_loop.close(max(LEAST_GRACE, end - self.clock.monotonic()))
        for resident in self._residents.values():
            if resident.frontier.room(NO_BOUND, self.clock.time()) < NO_BOUND:  # what is not read is not charged
                self._give_back(resident)
        await asyncio.gather(*(resident.stop_plugins() for resident in self._residents.values()))
        tasks = [*self._tasks, *(task for resident in self._residents.values() for task in resident.tasks)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for loop in self.partition_loops:
            await loop.drain(max(LEAST_GRACE, end - self.clock.monotonic()))
        await self.commands.finish()
        intact = all(loop.failed is None for loop in self.partition_loops)  # else rows of pages in memory are nowhere
        if self.frontiers and intact:
            with self.crawl_views.views(self.clock.time(), copied=False) as views:
                self.best = await asyncio.to_thread(views.top, 10, "read", self.clock.time())
        await self.fetch_loop.reader.close()
        for close in reversed(self.services.closers):
            close()
        await self.bus.close()
        closing = (asyncio.to_thread(loop.close) for loop in self.partition_loops)
        failures = [error for error in await asyncio.gather(*closing, return_exceptions=True) if error]
        self._writers.shutdown()
        if failures:
            raise failures[0]

    # -- end -----------------------------------------------------------------------------------------------------

    @property
    def reads_total(self) -> int:
        """Reads since the crawl began."""
        return sum(frontier.reads for frontier in self.frontiers)

    @property
    def reads(self) -> int:
        """Reads of this run."""
        return self.reads_total - self._reads_before

    @property
    def leased(self) -> int:
        return sum(len(frontier.scheduler.leases) for frontier in self.frontiers)

    def _room(self) -> int:
        """Reads that may still be ordered under the bound."""
        return self.bounds.pages - self.reads - self.leased if self.bounds.pages else NO_BOUND

    def _room_of(self, number: int) -> int:
        """Reads that a partition may still order: none before its hosts may be read here, nor while it leaves."""
        resident = self._residents.get(number)
        if self._is_over or resident is None or resident.leaving or self.clock.monotonic() < resident.opens_at:
            return 0
        return resident.frontier.room(self._room(), self.clock.time())

    def _is_reading(self) -> bool:
        return self.pool.in_flight > 0 or len(self.queue) > 0

    def _starving(self) -> bool:
        return len(self.queue) <= LOW_WATER

    def _idle(self) -> bool:
        """Tell whether nothing is being read, no order waits, and no report that may lead to one. A node of several
        cannot tell: the others may be reading."""
        if self.network.nodes > 1:
            return False
        return self._starving() and not (self.pool.in_flight or self.unsynced or self.bus.waiting(topics.ORDERS))

    def _pressing(self) -> bool:
        """A commit group is wanted now. Where there are several partitions, a group of one report is not worth its
        cost while about as many reads go on as there are partitions: what they bring makes larger groups."""
        if not self._starving():
            return False
        partitions = len(self.partition_loops)
        return partitions <= 1 or (self.pool.in_flight < partitions and not self.bus.waiting(topics.ORDERS))

    def ended(self) -> str:
        """Return the reason why the crawl is over: 'max-pages' | 'max-seconds' | 'complete' | 'challenged' (all that is
        left waits for hosts that show challenges); '' while it is not."""
        if self.bounds.seconds and self.clock.monotonic() - self.started >= self.bounds.seconds:
            return "max-seconds"
        if self.bounds.pages and self.reads >= self.bounds.pages and self._settled():
            return "max-pages"
        if self.bounds.forever or not self._settled() or not self._exhausted():
            return ""
        return "challenged" if any(frontier.scheduler.challenged for frontier in self.frontiers) else "complete"

    def _settled(self) -> bool:
        """No order out, nothing on its way to disk."""
        return self.pool.quiet() and all(loop.quiet for loop in self.partition_loops) and not self.leased

    def _exhausted(self) -> bool:
        """Nothing in scope is unread, no retry is due soon, no load waits, no transfer is on its way."""
        soon = self.clock.time() + PATIENCE
        refreshing = self.bounds.refresh
        return all(frontier.exhausted(soon, refreshing) for frontier in self.frontiers) and self.load_loop.quiet

    @property
    def all_read(self) -> bool:
        """Every known page in scope was read, or failed for good."""
        return not any(frontier.scheduler.unread_before(math.inf) for frontier in self.frontiers)

    async def settle(self) -> None:
        """Let importance settle once every page was read: a small crawl has spent its cash only a few times over."""
        spends, loops = self.reads * SETTLING_SPENDS, self.partition_loops
        if len(loops) > 1:
            await self._settle_jointly(spends)
            return
        idle, loop = 0, loops[0]
        while spends > 0 and idle < IDLE_GROUPS and loop.frontier.ledger.clock.turnovers < SETTLED:
            spent = await loop.settle(SETTLED)
            spends, idle = spends - spent, 0 if spent else idle + 1

    async def _settle_jointly(self, spends: int) -> None:
        """The same of several partitions; after every few turnovers what came out is stored."""
        placed: Sequence[Ids] = ()
        children: dict[LocalPage, Ids | None] = {}
        while spends > 0 and (now := max(frontier.ledger.clock.turnovers for frontier in self.frontiers)) < SETTLED:
            await self._exchanged()
            async with self.boundary():
                frontiers = self.frontiers
                if [len(numbers) for numbers in placed] != [frontier.columns.n for frontier in frontiers]:
                    placed, children = places(frontiers), {}
                part, enough = JointSettling(frontiers, placed, children), min(now + SETTLED / SETTLING_PARTS, SETTLED)
                spent = -1
                while spent and part.spends < spends:
                    spent = part.spend(enough, FREE_SPENDS)
                    await asyncio.sleep(0)
                stored = enumerate(self.partition_loops)
                await asyncio.gather(
                    *(loop.commit(partial(part.close, index, self.clock.time())) for index, loop in stored)
                )
            self.check_writes()
            spends -= part.spends if part.spends else spends

    async def _exchanged(self) -> None:
        """Let cash between partitions arrive: to partition 0, and from there to the others."""
        for _ in range(EXCHANGES):
            await self.catch_up()
            async with self.boundary():
                if all(loop.quiet for loop in self.partition_loops):
                    return

    async def finished(self) -> str:
        """Wait for the end; the reason. Raises what a node failed of."""
        while not (reason := self.ended()):
            await asyncio.sleep(0.05)
            self.check()
        return reason

    # -- looks ---------------------------------------------------------------------------------------------------

    def may_read(self) -> bool:
        """False while reports that wait to be parsed or written are as many as a crash may cost."""
        loads = self.load_loop
        waiting = self.pool.in_flight + loads.queued + self.unsynced
        room = waiting < AT_RISK + self.settings.fetch.concurrency and loads.bytes_waiting < FULL
        wanted = self.bounds.wanted() and all(gate() for gate in self.services.gates)
        return room and wanted and not self.network.stood_still()

    def _is_worth_a_group(self, loop: PartitionLoop) -> bool:
        """Tell whether a partition holds so much of what is not on disk that reads, which wait for that, can go on
        sooner. Groups that are being written, and those of others, make room for a few reports more."""
        holding = sum(loop.inbox.reports > 0 for loop in self.partition_loops)
        return 2 * holding * loop.inbox.weight >= self.unsynced

    def _make_room(self) -> None:
        """If reads wait for what is not on disk, commit what partitions hold much of."""
        if not self.may_read():
            for loop in self.partition_loops:
                if loop.holds_reads and self._is_worth_a_group(loop):
                    loop.hurry()

    def _eased(self) -> None:
        """The loader has less to parse, or a gate is open again."""
        self.pool.wake()

    def _synced(self, weighed: int) -> None:
        """Reports that weigh so much are on disk."""
        throttled = not self.may_read()
        self.unsynced -= weighed
        if len(self.partition_loops) > 1 and self._idle():
            for loop in self.partition_loops:
                loop.hasten()
        self.queue.share(self.gamma())
        if throttled:
            self._make_room()
            self.pool.wake()

    def _posted(self, report: PageReport) -> None:
        """Tell whether a report that waits for its partition is worth a commit group at once."""
        resident = self._residents.get(owner_of(report.page))
        if resident is None:  # it has left: the page is read by the node that has it now
            return
        self.unsynced += weight(report)
        self._posted_reports += 1
        resident.loop.expect(report)
        full = not self.may_read()
        if len(self.partition_loops) > 1 and (full or self._starving()):
            pressing = self._pressing()
            for loop in self.partition_loops:  # what the others hold leads to orders, too
                if not loop.holds_reads and loop is not resident.loop:
                    continue
                if loop.is_complete or (full and self._is_worth_a_group(loop)):
                    loop.hurry()
                elif pressing:
                    loop.hasten()
        elif (
            self._pressing()
            or (self.unsynced >= AT_RISK and self._is_worth_a_group(resident.loop))  # reads wait for this group
            or self.bus.waiting(topics.pages(resident.number)) >= self.settings.store.commit_reports
        ):
            resident.loop.hurry()

    def _commanded(self, partition: int) -> None:
        """Somebody waits for a commit group of this partition."""
        if (resident := self._residents.get(partition)) is not None:
            resident.loop.hurry()

    def _reached(self, partition: int) -> None:
        """Another node sent this partition something that is not to wait for a commit group of reports."""
        if (resident := self._residents.get(partition)) is not None:
            resident.loop.let_go()

    @contextlib.asynccontextmanager
    async def boundary(self) -> AsyncIterator[None]:
        """One commit boundary of all partitions; none comes or goes meanwhile, so a look tells each once."""
        async with self._standing, contextlib.AsyncExitStack() as stack:
            for loop in self.partition_loops:
                await stack.enter_async_context(loop.boundary())
            yield

    async def catch_up(self) -> None:
        """Apply what partitions have sent until now: a boundary after this has it."""
        for loop in list(self.partition_loops):
            await loop.catch_up()

    async def look_at(self, number: int, look: Callable[[Partition], P]) -> P:
        """Return what `look` finds in a partition that is here, at a commit boundary of it."""
        resident = self._residents[number]
        async with resident.loop.boundary():
            return look(resident.frontier.partition)

    @property
    def partitions_here(self) -> Mapping[int, object]:
        """The partitions that are here, each with a mark of this stay: one that left and came again has another."""
        return dict(self._residents)

    @property
    def has_partitions(self) -> bool:
        """False of a node of a cluster that has none yet."""
        return bool(self.frontiers)

    async def views(self, copied: bool = True, only: Collection[int] | None = None) -> Views:
        """The crawl as it is at one commit boundary; of one that is not copied only the store. Close it (`with`).

        only: the partitions to look at, None for all."""
        async with self.boundary():
            if copied:
                return await self.copied_views(only)
            return self.crawl_views.views(self.clock.time(), False, only)

    async def copied_views(self, only: Collection[int] | None = None) -> Views:
        """The crawl, which must stand still, copied in a thread. Close it (`with`)."""
        work = asyncio.create_task(asyncio.to_thread(self.crawl_views.views, self.clock.time(), True, only))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            with await work:  # the store must not be closed under the thread
                raise

    @contextlib.asynccontextmanager
    async def glance(self) -> AsyncIterator[Views]:
        """The crawl while it stands still at a commit boundary: nothing is copied."""
        async with self.boundary():
            with self.crawl_views.views(self.clock.time(), copied=False) as views:
                yield views

    def follow(self, settings: Settings) -> None:
        """Other settings, between two turns: those that a running crawl can take (reload.py)."""
        self.settings = settings
        self.follow_network()
        for frontier in self.frontiers:
            frontier.follow(settings)
        self.blackout_switch.follow(self.clock.time(), anew=True)
        for hear in self.services.followed:
            hear()

    def follow_network(self) -> None:
        """The number of nodes changed, or the settings: delays are others."""
        self.pool.follow(manners_of(self.settings, self.network.nodes))

    async def hold(self, host: str, hold: str) -> bool:
        """Pause ('paused'), block ('blocked') or resume ('') a host; False if no page of it is known."""
        if hold:
            self.pool.hold(host)
        partition = partition_of(host_of(f"http://{host}/"), self.commands.partitions)
        is_known: bool = await self.commands.send(partition, partial(HoldHost, host=host, state=hold))
        if hold == "blocked":
            dropped = self.pool.drop(host)
            self._take_back(dropped)
            for order in dropped:
                self.load_loop.missing(order.url)
        if not hold and host not in self.blackout_switch.shut_hosts:
            self.pool.resume(host)
        return is_known

    def _give_back(self, resident: Resident) -> None:
        """Return the orders of a partition whose reads have not begun."""
        for name in resident.leased_hosts():
            self._take_back(self.pool.drop(name))

    def _give_back_of(self, number: int) -> None:
        if (resident := self._residents.get(number)) is not None:
            self._give_back(resident)

    def _take_back(self, orders: Iterable[FetchOrder]) -> None:
        """Orders whose reads have not begun go back to their partitions; a document may go on waiting for them."""
        for order in orders:
            if self.side.dropped(order):
                continue
            page = local_page(order.page)
            self.commands.post(owner_of(order.page), ReturnOrders(0, (page,), (order.epoch,)))

    @property
    def committed_at(self) -> float | None:
        """When a commit group last reached the disk (monotonic); None: none did yet."""
        return max((loop.committed_at for loop in self.partition_loops if loop.committed_at is not None), default=None)

    def commit_times(self) -> tuple[Sequence[float], list[int], float]:
        """Upper ends of buckets; commit groups in each, by the time until they were on disk; the sum of these times."""
        counts = [0] * (len(COMMIT_BOUNDS) + 1)
        for loop in self.partition_loops:  # a node of a cluster may have none yet
            counts = [sum(pair) for pair in zip(counts, loop.commit_counts, strict=True)]
        return COMMIT_BOUNDS, counts, sum(loop.commit_seconds for loop in self.partition_loops)

    @property
    def waits_since(self) -> float | None:
        """Since when (monotonic) the oldest group under way waits for the disk; None where none does."""
        return min((loop.waits_since for loop in self.partition_loops if loop.waits_since is not None), default=None)

    @property
    def known_pages(self) -> int:
        return sum(frontier.ledger.known_pages for frontier in self.frontiers)

    @property
    def errors(self) -> Counter[str]:
        """Failed orders of this run, by class."""
        total: Counter[str] = Counter()
        for frontier in self.frontiers:
            total.update(frontier.errors)
        return total
