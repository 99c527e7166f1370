"""The node of one process, wired: partitions, bus, loader, reader, loops and plug-ins on one event loop.

`Node.__init__` is the reference wiring, in that order; wire/topics.py has the topics between the parts.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from xyro.configs.schema import Settings
from xyro.frontier.batch import weight
from xyro.frontier.frontier import Frontier
from xyro.frontier.scope import Scope
from xyro.frontier.terms import link_words
from xyro.guard import Guard
from xyro.metadata.states import State
from xyro.reader import OnReport, Reader
from xyro.refresh.population import Population
from xyro.service.node.blackout_switch import BlackoutSwitch
from xyro.service.node.command_sender import CommandSender
from xyro.service.node.crawl_views import CrawlViews
from xyro.service.node.data_dir import DataDir
from xyro.service.node.fetch_loop import FetchLoop
from xyro.service.node.host_calendar import HostCalendar
from xyro.service.node.load_loop import FULL, LoadLoop
from xyro.service.node.loader_factory import intake_of
from xyro.service.node.page_lookup import PageLookup, PartitionParts
from xyro.service.node.page_questions import PageQuestions
from xyro.service.node.part_library import PartLibrary
from xyro.service.node.partition_loop import PartitionLoop
from xyro.service.node.reader_factory import manners_of, options_of
from xyro.service.node.services import NO_PLUGINS, PluginSet, Services
from xyro.service.views.views import Views
from xyro.wire import topics
from xyro.wire.bus import Bus, LocalBus
from xyro.wire.clock import Clock, SystemClock
from xyro.wire.commands import HoldHost, ReturnOrders
from xyro.wire.ids import local_page, owner_of
from xyro.wire.messages import FetchOrder, PageReport, Priority, Submit

P = TypeVar("P")
PATIENCE = 30.0
"""`xyro crawl` ends when no retry is due within so many seconds"""
LOW_WATER = 0
HOUSEKEEPING = 5.0
AT_RISK = 256
"""reports that may wait to be parsed or to be on disk while reads go on, one of a page with very many links counted as
several; with the requests under way, a crash loses no more reads"""
LEAST_GRACE = 1.0
"""seconds for bodies that are here already, even where reads took all the time there was to stop"""
LONGEST_PAUSE = 30.0
"""seconds: after a restart no host is read before its delay has passed, up to this (its robots.txt may be just read)"""
SETTLED = 24.0
"""turnovers after which the importance of a graph that was just found is within a few per cent (500 pages: 28 % after
12, 2.8 % after 24)"""
SETTLING_SPENDS = 16
"""most free spends for each read of the run while importance settles: 10 us each"""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a crawl, which ends when one is reached. 0 = unbounded."""

    pages: int = 0
    seconds: float = 0.0
    refresh: bool = False
    """goes on refreshing until a bound"""
    forever: bool = False
    """a daemon: never ends by itself"""


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
    ) -> None:
        self.data = data
        self.guard = guard
        self.settings = settings
        self.bounds = bounds
        self.clock = clock or SystemClock()
        self.bus: Bus = bus or LocalBus()
        self.scope = Scope(settings.crawl, settings.rules, guard.host_allowed)
        ahead, refreshing = bounds.refresh and not bounds.forever, bounds.refresh or bounds.forever
        self.frontiers = [
            Frontier(partition, self.scope, settings, refreshing, plugins.extensions(settings), ahead)
            for partition in data.partitions
        ]
        parts = [PartitionParts(frontier, self.clock, settings.loader.part_age) for frontier in self.frontiers]
        self.lookup = PageLookup(parts, self.frontiers[0].partitions, self.scope)
        self.crawl_views = CrawlViews(self.frontiers)
        self.part_library = PartLibrary(self.lookup.part, self.lookup.body)
        intake = intake_of(settings, self.part_library)
        again = self.lookup.again if settings.loader.revalidate else lambda report: None
        self.load_loop = LoadLoop(
            self.bus, self.clock, intake, self.lookup.signature, self.lookup.is_named, again, self._eased, self._posted
        )
        self.fetch_loop = FetchLoop(self.bus, self.clock, self._reader_of, self.load_loop.deliver, self._first_pause())
        reader = self.fetch_loop.reader
        self.queue, self.fetcher, self.pool = reader.queue, reader.fetcher, reader.pool
        self.side = self.fetch_loop.side_reads
        self.blackout_switch = BlackoutSwitch([HostCalendar(frontier) for frontier in self.frontiers], self.pool)
        self.partition_loops = [
            PartitionLoop(frontier, self.bus, self.clock, settings.store, self._room, self._starving, self._synced)
            for frontier in self.frontiers
        ]
        self.commands = CommandSender(self.bus, len(self.frontiers), self._commanded)
        self.services = Services(
            lambda: self.settings,
            self.clock,
            self.scope,
            self.commands,
            PageQuestions(self.commands),
            self.fetch_loop.side_reads,
            self.fetcher.post,
        )
        self.plugins = [each for frontier in self.frontiers for each in plugins.plugins(frontier, self.services)]
        self.unsynced = 0
        """weight of the reports posted and not yet on disk"""
        self.started = 0.0
        self.best: list[dict[str, Any]] = []
        """the most important pages, as they were when it stopped"""
        self._reads_before = 0
        self._tasks: list[asyncio.Task[None]] = []

    def _reader_of(self, on_report: OnReport) -> Reader:
        options = options_of(self.settings, link_words(self.settings), self.gamma())
        return Reader(options, self.guard, self.clock, on_report, self._may_read)

    def _first_pause(self) -> float:
        """Seconds before the first read of a crawl that is resumed."""
        polite = self.settings.politeness
        delay = polite.min_delay if polite.delay is None else polite.delay
        return 0.0 if self.data.created else min(delay, LONGEST_PAUSE)

    def plugin(self, kind: type[P]) -> P | None:
        """The plug-in of a class, None where the crawl has none."""
        return next((plugin for plugin in self.plugins if isinstance(plugin, kind)), None)

    # -- life ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Recover, then set the nodes to work. Call on the running loop."""
        now = self.clock.time()
        self.started = self.clock.monotonic()
        self.part_library.bind()
        waits = []
        for frontier in self.frontiers:
            transfers, waiting = frontier.recover(now)
            for transfer in transfers:
                self.bus.post(topics.pages(transfer.target), transfer)
            waits += waiting
            for number, row in frontier.partition.hosts.clocks.items():
                if row.next_at > now or row.failures:
                    self.pool.restore(row.name, row.next_at, row.failures)
                if row.hold:
                    self.pool.hold(frontier.partition.hosts.names[number])
        self.load_loop.resume(waits)
        self._reads_before = self.reads_total
        for work in (
            *(loop.run() for loop in self.partition_loops),
            self.fetch_loop.run(),
            self._housekeeping(),
            *(plugin.run() for plugin in self.plugins),
            self.commands.run(),
        ):
            task = asyncio.create_task(work)
            task.add_done_callback(self._task_ended)
            self._tasks.append(task)

    async def _housekeeping(self) -> None:
        while True:
            now = self.clock.time()
            await self.clock.sleep(min(HOUSEKEEPING, max(self.blackout_switch.next_change() - now, 0.01)))
            self.load_loop.expire()
            self.queue.share(self.gamma())
            self.blackout_switch.follow(self.clock.time())

    def gamma(self) -> float:
        """Return the gamma of all partitions together, each weighed by the reads that it has made."""
        weights = [1.0 + frontier.reads for frontier in self.frontiers]
        return sum(
            w * frontier.scheduler.gamma.percent for w, frontier in zip(weights, self.frontiers, strict=True)
        ) / sum(weights)

    def refreshed_and_unread(self) -> tuple[Population, int]:
        """All refreshed pages together, and the number of unread pages that wait."""
        pages, unread = Population(), 0
        for frontier in self.frontiers:
            pages.merge(frontier.scheduler.bandwidth.population)
            unread += frontier.scheduler.unread
        return pages, unread

    async def submit(self, urls: Iterable[str], priority: Priority = Priority.ORDERED, *, seed: bool = True) -> None:
        """Hand canonical URLs over; returns when they are on disk. Raises what a partition failed of."""
        await self.commands.submit(Submit(tuple(urls), priority, seed))

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
        for task in self._tasks:
            if task.done() and not task.cancelled() and (error := task.exception()):
                raise error

    async def stop(self, grace: float = 5.0) -> None:
        """Orderly: no new reads, those under way are finished, parsed and committed (in about `grace` seconds; what is
        not is read again)."""
        end = self.clock.monotonic() + grace
        await self.pool.close(grace)
        await self.load_loop.close(max(LEAST_GRACE, end - self.clock.monotonic()))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for loop in self.partition_loops:
            await loop.drain(max(LEAST_GRACE, end - self.clock.monotonic()))
        await self.commands.finish()
        with self.crawl_views.views() as views:
            self.best = views.top(10, "importance", self.clock.time())
        await self.fetcher.close()
        await self.bus.close()
        for loop in self.partition_loops:
            loop.close()

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
        return self.bounds.pages - self.reads - self.leased if self.bounds.pages else 1 << 30

    def _starving(self) -> bool:
        return len(self.queue) <= LOW_WATER

    def ended(self) -> str:
        """Return the reason why the crawl is over: 'max-pages' | 'max-seconds' | 'complete'; '' while it is not."""
        if self.bounds.seconds and self.clock.monotonic() - self.started >= self.bounds.seconds:
            return "max-seconds"
        if self.bounds.pages and self.reads >= self.bounds.pages and self._settled():
            return "max-pages"
        if self.bounds.forever or not self._settled() or not self._exhausted():
            return ""
        return "complete"

    def _settled(self) -> bool:
        """No order out, nothing on its way to disk."""
        return not self.leased and self.pool.quiet() and all(loop.quiet for loop in self.partition_loops)

    def _exhausted(self) -> bool:
        """Nothing in scope is unread, no retry is due soon, no load waits, no transfer is on its way."""
        soon = self.clock.time() + PATIENCE
        for frontier in self.frontiers:
            scheduler = frontier.scheduler
            if scheduler.unread or scheduler.shut_out or scheduler.requests or frontier.outbox.unacknowledged:
                return False
            if scheduler.schedule.next_retry <= soon:
                return False
            if self.bounds.refresh and scheduler.next_time() < math.inf:
                return False
        return self.load_loop.quiet

    async def settle(self) -> None:
        """Importance of a crawl that is complete: a small one has spent its cash only a few times over."""
        spends = SETTLING_SPENDS * self.reads
        await asyncio.gather(*(loop.settle(SETTLED, spends) for loop in self.partition_loops))

    async def finished(self) -> str:
        """Wait for the end; the reason. Raises what a node failed of."""
        while not (reason := self.ended()):
            await asyncio.sleep(0.05)
            self.check()
        return reason

    # -- looks ---------------------------------------------------------------------------------------------------

    def _may_read(self) -> bool:
        loads = self.load_loop
        waiting = self.pool.in_flight + loads.queued + self.unsynced
        return waiting < AT_RISK + self.settings.fetch.concurrency and loads.bytes_waiting < FULL

    def _eased(self) -> None:
        """The loader has less to parse."""
        self.pool.wake()

    def _synced(self, weighed: int) -> None:
        """Reports that weigh so much are on disk."""
        throttled = not self._may_read()
        self.unsynced -= weighed
        if throttled:
            self.pool.wake()

    def _posted(self, report: PageReport) -> None:
        """Tell whether a report that waits for its partition is worth a commit group at once."""
        self.unsynced += weight(report)
        if (
            self._starving()
            or self.bus.waiting(topics.pages(owner_of(report.page))) >= self.settings.store.commit_reports
        ):
            self.partition_loops[owner_of(report.page)].hurry()

    def _commanded(self, partition: int) -> None:
        """Somebody waits for a commit group of this partition."""
        self.partition_loops[partition].hurry()

    @contextlib.asynccontextmanager
    async def boundary(self) -> AsyncIterator[None]:
        """One commit boundary of all partitions."""
        async with contextlib.AsyncExitStack() as stack:
            for loop in self.partition_loops:
                await stack.enter_async_context(loop.boundary())
            yield

    async def views(self) -> Views:
        """The crawl as it is at one commit boundary. Close it (`with`)."""
        async with self.boundary():
            return self.crawl_views.views()

    def follow(self, settings: Settings) -> None:
        """Other settings, between two turns: those that a running crawl can take (reload.py)."""
        self.settings = settings
        self.pool.follow(manners_of(settings))
        for frontier in self.frontiers:
            frontier.follow(settings)
        self.blackout_switch.follow(self.clock.time(), anew=True)

    async def hold(self, host: str, hold: str) -> bool:
        """Pause ('paused'), block ('blocked') or resume ('') a host; False if no page of it is known."""
        if hold:
            self.pool.hold(host)
        holding = partial(HoldHost, host=host, state=hold)
        found = await asyncio.gather(*(self.commands.send(q, holding) for q in range(len(self.frontiers))))
        if hold == "blocked":
            self._take_back(self.pool.drop(host))
        if not hold and host not in self.blackout_switch.shut_hosts:
            self.pool.resume(host)
        return any(found)

    def _take_back(self, orders: Iterable[FetchOrder]) -> None:
        """Orders of a host that was blocked go back to their partitions, and no load waits for them."""
        for order in orders:
            if self.side.dropped(order):
                continue
            page = local_page(order.page)
            self.commands.post(owner_of(order.page), ReturnOrders(0, (page,), (order.epoch,)))
            self.load_loop.missing(order.url)

    @property
    def committed_at(self) -> float | None:
        """When a commit group last reached the disk (monotonic); None: none did yet."""
        return max((loop.committed_at for loop in self.partition_loops if loop.committed_at is not None), default=None)

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
