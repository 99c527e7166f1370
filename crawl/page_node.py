"""The page node: the loop's other half (xyro reads the web; this decides what reading it means, and what to read next).

One turn, one commit group, for one partition:

    reports, loads, submits, transfers
        -> metadata: URLs become ids, rows, links                        (visit)
        -> opic:     pages spend their cash over what they showed        (purse.spend)
        -> refresh:  change rate, interval, next read                    (date)
        -> plan:     what is wanted, due, or rich, becomes orders        (planner.orders)
        -> Commit:   one write batch; orders and messages leave when it is on disk

Single-threaded and synchronous: time comes in, a Turn goes out; crawl/single.py awaits, writes and posts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from configs.schema import Settings
from crawl.publish.promises import Promises
from crawl.turn.claims import Claims
from crawl.turn.dates import Dates, Settled
from crawl.turn.focus import Classing, Focus
from crawl.turn.loads import Loads
from crawl.turn.meter import Meter
from crawl.turn.planner import Planner
from crawl.turn.post import Post
from crawl.turn.purse import NO_PAGES, Purse
from crawl.turn.scope import Scope
from crawl.turn.site_flow import SiteFlow
from crawl.turn.spending import NO_CHILDREN, Spending, followed
from loader.intake import Resumed
from metadata import keys, links, rows
from metadata.documents import Documents
from metadata.manager import Commit, Partition
from metadata.rows import LeaseRow
from metadata.states import NAMED, WANTED, State
from metadata.visits import Spend, judge
from wire.errors import MachineError
from wire.messages import (
    Ack,
    CashTransfer,
    Document,
    FetchOrder,
    LoadReport,
    Message,
    PageReport,
    Priority,
    Submit,
    XmlPage,
)
from wire.urls import authority, host_of, partition_of

Ids = NDArray[np.int64]
_PLACES = keys.META.key("places")
_UNREAD, _READ, _OUT, _BLOCKED, _FOREIGN = map(int, (State.UNREAD, State.READ, State.OUT, State.BLOCKED, State.FOREIGN))
"""plain numbers: looking a member up in an enum costs more than all else that a page needs of its state"""


@dataclass(slots=True, eq=False)
class Edit:
    """A change that somebody outside the loop wants made with a commit group: publications, subscriptions."""

    change: Callable[[], None]
    """makes its `put`s; must not raise"""
    done: asyncio.Future[None]
    """set when the group is on disk"""


@dataclass(slots=True)
class Work:
    """What came in since the last turn."""

    visits: list[PageReport] = field(default_factory=list)
    loads: dict[int, LoadReport] = field(default_factory=dict)
    """by page: what the loader said last"""
    bodies: dict[int, XmlPage] = field(default_factory=dict)
    """by page: bodies whose load waits for parts"""
    documents: dict[int, Document] = field(default_factory=dict)
    """by page: what the warehouse keeps of a body that was loaded"""
    submits: list[Submit] = field(default_factory=list)
    transfers: list[CashTransfer] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.visits or self.loads or self.submits or self.transfers or self.acks or self.edits)

    def add(self, message: Message) -> None:
        """Sort a message in. A message that is not for a page node is a bug of the sender."""
        match message:
            case PageReport():
                self.visits.append(message)
            case LoadReport():
                self.loads[message.page] = message
            case XmlPage():
                self.bodies[message.page] = message
            case Document():
                self.documents[message.page] = message
            case Submit():
                self.submits.append(message)
            case CashTransfer():
                self.transfers.append(message)
            case Ack():
                self.acks.append(message)
            case _:
                raise MachineError(f"a page node got a {type(message).__name__} (a bug)")


@dataclass(slots=True)
class Turn:
    """What may leave once `commit` is on disk."""

    commit: Commit
    orders: list[FetchOrder]
    transfers: list[CashTransfer]
    acks: list[Ack]
    submits: list[Submit]
    """parts that loads of this partition need and others must order"""


class PageNode:
    """One partition: `turn` is the loop. Counters are since the process began, `reads` since the crawl began."""

    def __init__(self, partition: Partition, scope: Scope, settings: Settings, refreshing: bool) -> None:
        self.partition = partition
        self.scope = scope
        self.settings = settings
        self.columns = partition.columns
        self.partitions: int = partition.facts["partitions"]
        opic, focus = settings.opic, Focus(settings)
        self.purse = Purse(
            self.columns,
            partition.base,
            opic.damping,
            opic.window,
            opic.sweep_target,
            terms=focus.terms,
            select=opic.select,
            history=opic.history,
            measures=opic.measures,
        )
        self.purse.sites = SiteFlow(partition, self.purse) if opic.sites or opic.site_weight else None
        documents = Documents(partition, settings.store.versions, settings.store.version_days)
        self.classes = Classing(partition, self.purse, focus, documents)
        self.post = Post(partition, self.purse, self.partitions)
        self.planner = Planner(partition, self.purse, settings, refreshing)
        self.loads = Loads(partition, self.planner.leases, self, documents)
        self.dates = Dates(partition, self.purse, self.planner, settings.refresh)
        self.meter = Meter(partition, self.purse, self.planner.pace, settings.refresh, self.dates.guide)
        self.dates.meter = self.planner.gauge = self.meter
        self.planner.sharing.measured = self.meter.fresh
        self.claims = Claims(partition, self.planner, self.dates.beliefs)
        self.promises = Promises(self)
        self.reads = 0
        self.read_pages = 0
        """pages that were read at least once"""
        self.stale = 0
        self.errors: dict[str, int] = {}
        self._touched: list[Ids] = []
        self._nearer: list[Ids] = []
        """pages of other partitions to which a shorter way was found in this turn"""
        self._elsewhere: list[Submit] = []
        self._blocking: set[int] = set()
        """pages ordered BLOCKING, until their order is settled; of other partitions, in this turn"""
        self._held: list[int] = []
        self._now = 0.0
        self._places: set[str] = set()
        """places of the scope by which the pages here were judged; stored"""
        self._rejudge = False

    # -- recovery ------------------------------------------------------------------------------------------------

    def recover(self, now: float) -> tuple[list[CashTransfer], list[Resumed]]:
        """After `Partition.open`: transfers to send again, and documents whose load waited, for the loader."""
        state = self.partition.scalars.get("node")
        if state:
            self.purse.load(state["purse"])
            self.post.load(state["post"])
            self.planner.load(state["planner"])
            self.promises.load(state.get("promises", {}))
            self.dates.beliefs.load(state.get("beliefs"))
            self.reads, self.read_pages = state["reads"], state["read_pages"]
            self._places.update(msgpack.unpackb(self.partition.get(_PLACES) or b"\x90"))
            self.scope.places.update(self._places)
            self._rejudge = state["scope"] != self._rules
            self.classes.recover(state)
            self.meter.recover(state.get("meter"), now)
        self.planner.recover(now)
        self.promises.recover()
        return self.post.recover(), self.loads.recover()

    def dump(self) -> dict[str, Any]:
        return {
            "purse": self.purse.dump(),
            "post": self.post.dump(),
            "planner": self.planner.dump(),
            "meter": self.meter.dump(),
            "promises": self.promises.dump(),
            "beliefs": self.dates.beliefs.dump(),
            "reads": self.reads,
            "read_pages": self.read_pages,
            "focus": self.classes.dump(),
            "scope": self._rules,
        }

    @property
    def now(self) -> float:
        """Wall clock of the last turn; 0 before the first one."""
        return self._now

    @property
    def _rules(self) -> str:
        """What decides, beside the places, which URLs are read: other rules on a resume apply to all known pages."""
        fetch = self.settings.fetch
        return self.scope.text + repr((fetch.only_net, fetch.allow_private, fetch.ports))

    # -- the turn ------------------------------------------------------------------------------------------------

    def turn(self, work: Work, now: float, room: int, free: int = 0) -> Turn:
        """One commit group. `now`: wall clock; `room`: reads that may still be ordered (--max-pages).

        free: spends without a fetch beyond those that the reports of this turn pay for.
        """
        partition = self.partition
        self._now = now
        partition.begin()
        born = self.columns.n
        self._touched, self._nearer, self._elsewhere = [], [], []
        if self.classes.stale:
            self.classes.renew()
        self._follow_scope()
        while self._held:
            partition.put(*partition.hosts.stored(self._held.pop()))
        acks = self._exchange(work)
        for submit in work.submits:
            self._submit(submit)
        for edit in work.edits:
            edit.change()
        reports = self._live(work.visits)
        spending = self._free_spends([report.page - partition.base for report in reports], free)
        self.loads.gather(work.loads.values(), work.bodies, work.documents)
        self.promises.meet(work.loads.values(), reports)
        settled = [self._visit(report, spending) for report in reports]
        interest = self.classes.interest
        if interest.on:
            for one in settled:
                interest.settled(one.page, one.report, one.row is None or not one.row.reads)
        self.loads.late(spending)
        self._resolve_links(spending)
        if interest.on:
            interest.loaded(self.loads.ended)
            interest.spent(spending.pages, spending.children)
        self._hint(spending, settled, now)
        self.purse.spend(spending.pages, spending.children, born, partition.next_number)
        if self.purse.sites is not None:
            self.purse.sites.keep()
        self.purse.window.grew(self.purse.known + self.read_pages, self.purse.clock.ticks)
        self.dates.date(settled, now)
        self.promises.settled(settled, now)  # before `orders`: what was published or is due together is ordered now
        if self.classes.on:
            self._classify(settled)
        touched = [*self._touched, *spending.children] if self.partitions > 1 else ()
        transfers = self.post.collect(touched, self._nearer, born)
        orders = self.planner.orders(now, room)
        self.meter.close(sum(one.visit.answered for one in settled), now)
        for submit in self._elsewhere:
            self._blocking.difference_update(self.partition.urls.find(submit.urls))
        commit = partition.seal({"node": self.dump()})
        return Turn(commit, orders, transfers, acks, self._elsewhere)

    def _classify(self, settled: Sequence[Settled]) -> None:
        """What was read, judged or found by its links' words in this turn goes to its class at the virtual page."""
        for one in settled:
            self.classes.moved(one.page, one.report.url)
        self._nearer.append(self.classes.follow(self.post.shown))
        self.post.focused, self.post.shown = self.classes.elsewhere, []

    def _exchange(self, work: Work) -> list[Ack]:
        """What other partitions sent: trim the outbox, take their cash."""
        for ack in work.acks:
            self.post.acknowledged(ack)
        taken = (self.post.take(transfer, self._receive) for transfer in work.transfers)
        return [ack for ack in taken if ack is not None]

    def _receive(self, urls: list[str], depths: list[int]) -> Ids:
        """Pages that another partition has news or cash of."""
        pages = self.resolve(urls, depths)
        if self.scope.by_depth:
            self._shorten(pages, np.array(depths, np.int64))
        return pages

    def _live(self, reports: Sequence[PageReport]) -> list[PageReport]:
        """The reports whose order is out; those of an older lease, and repeated ones, change nothing."""
        leases, base = self.planner.leases, self.partition.base
        live: dict[int, PageReport] = {}
        for report in reports:
            lease = leases.get(report.page - base)
            if lease is not None and lease.epoch == report.epoch:
                live.setdefault(report.page, report)
        self.stale += len(reports) - len(live)
        return list(live.values())

    # -- URLs ----------------------------------------------------------------------------------------------------

    def resolve(self, urls: Sequence[str], depths: Sequence[int] | Ids, exempt: bool = False) -> Ids:
        """Pages of URLs; unknown ones are minted at the least depth given. exempt: scope does not hold for them."""
        pages = np.array(self.partition.urls.find(urls), np.int64)
        unknown = np.flatnonzero(pages < 0)
        if len(unknown):
            wanted = [urls[i] for i in unknown.tolist()]
            new: dict[str, int] = {}
            for url, depth in zip(wanted, np.asarray(depths, np.int64)[unknown].tolist(), strict=True):
                new[url] = min(depth, new.get(url, depth))
            first = self._mint(list(new), list(new.values()), exempt)
            numbers = dict(zip(new, range(first, first + len(new)), strict=True))
            pages[unknown] = [numbers[url] for url in wanted]
        self._touched.append(pages)
        return pages

    def _mint(self, urls: list[str], depths: list[int], exempt: bool) -> int:
        judge_url = self.scope.judge
        own = self.partition.number
        states = []
        for url, depth in zip(urls, depths, strict=True):
            if self.partitions > 1 and partition_of(host_of(url), self.partitions) != own:
                states.append(State.FOREIGN)
            elif exempt:
                states.append(State.UNREAD if not self.scope.why_refused(url) else self.scope.refusal(url))
            else:
                states.append(judge_url(url, depth))
        hosts = [self.partition.host(authority(url)) for url in urls]
        first = self.partition.mint(urls, hosts, states, depths, int(self._now))
        if self.classes.on:
            self.classes.born(first, urls)
        if self.promises.watch.on:
            self.promises.watch.born(first + self.partition.base, urls)
        self.purse.mint(first, np.array(states, np.uint8) == State.FOREIGN)
        return first

    def _resolve_links(self, spending: Spending) -> None:
        """Turn the URL runs of this turn's pages into children, store them, lower depths where a way got shorter."""
        if not spending.open:
            return
        parents = self.columns["depth"][[spending.pages[index] for index, _, _ in spending.open]].astype(np.int64)
        counts, before = [stop - start for _, start, stop in spending.open], self.columns.n
        depths = np.repeat(parents + 1, counts)
        found = self.resolve(spending.urls, depths)
        if self.classes.interest.on:
            sources = np.array([spending.pages[index] for index, _, _ in spending.open], np.int64)
            self.classes.interest.introduced(found, np.repeat(sources, counts), before)
        numbers = found.astype(np.uint32)
        for index, start, stop in spending.open:
            children = spending.children[index] = numbers[start:stop]
            if self.settings.store.links:
                self.partition.put(keys.LINK.key(spending.pages[index]), links.pack(children, links.NO_FOREIGN))
        if self.scope.by_depth:
            self._shorten(found, depths)

    def _shorten(self, pages: Ids, depths: Ids) -> None:
        """A shorter way to a page: its depth falls, what was too deep may come into scope, and so on down."""
        column = self.columns["depth"]
        while len(pages):
            nearer = depths < column[pages]
            pages, depths = pages[nearer], depths[nearer]
            np.minimum.at(column, pages, np.minimum(depths, 255).astype(np.uint8))
            pages = np.unique(pages)
            self.columns.touch("depth", pages)
            states = self.columns["state"][pages]
            self._nearer.append(pages[states == _FOREIGN])
            for page in pages[states == _OUT].tolist():
                self._judge(page)
            pages, depths = self._below(pages) if self.scope.by_depth else (NO_PAGES, NO_PAGES)

    def _below(self, pages: Ids) -> tuple[Ids, Ids]:
        """The stored children of pages, and how deep they lie by this way."""
        found = [(page, children) for page in pages.tolist() if (children := self.partition.children(page)) is not None]
        if not found:
            return NO_PAGES, NO_PAGES
        depths = self.columns["depth"][[page for page, _ in found]].astype(np.int64) + 1
        below = np.concatenate([children for _, children in found]).astype(np.int64)
        return below, np.repeat(depths, [len(children) for _, children in found])

    def _follow_scope(self) -> None:
        """Judge again what a change of scope concerns: all pages after other rules, else those of the places added."""
        names = self.partition.hosts.names
        if len(self._places) != len(self.scope.places):
            added = self.scope.places - self._places
            self._places |= added
            self.partition.put(_PLACES, msgpack.packb(sorted(self._places)))
            if not self._rejudge:
                self._judge_again(np.array([self.scope.place_of_host(name) in added for name in names], np.bool_))
        if self._rejudge:
            self._judge_again(np.ones(len(names), np.bool_))
            self._rejudge = False

    def _judge_again(self, concerned: NDArray[np.bool_]) -> None:
        """Pages of the hosts concerned come into scope or leave it; sitemaps that robots.txt names stay exempt."""
        n = self.columns.n
        if n:
            pages = concerned[self.columns["host"][:n]] & (self.columns["state"][:n] != _FOREIGN)
            pages &= (self.columns["flags"][:n] & NAMED) == 0
            for page in np.flatnonzero(pages).tolist():
                self._judge(page)

    def _judge(self, page: int) -> None:
        """Bring one page's state in line with the scope. What was read before and is in scope again is due at once."""
        old = self.partition.states[page]
        outside = old in (_OUT, _BLOCKED)
        judged = self.scope.judge(self.partition.url(page), int(self.columns["depth"][page]))
        if judged is State.UNREAD and not outside:
            return
        if judged is State.UNREAD:
            row = self.partition.row(page)
            if row is not None and row.reads:
                judged = State.READ
                self.planner.put_due(page, int(self._now))
        elif not outside:
            self.planner.retire(page)
        self.partition.set_state(page, judged)
        if self.classes.on:
            self.classes.moved(page, self.partition.url(page))

    # -- people --------------------------------------------------------------------------------------------------

    def _submit(self, submit: Submit) -> None:
        if submit.seed:
            for url in submit.urls:
                self.scope.add_seed(url)
            self._follow_scope()
        blocking = submit.priority is Priority.BLOCKING
        pages = self.resolve(list(submit.urls), [0] * len(submit.urls), exempt=blocking)
        if not blocking:
            self._shorten(pages, np.zeros(len(pages), np.int64))
        self.want(pages.tolist(), submit.priority)

    def want(self, pages: Sequence[int], priority: Priority) -> None:
        """Order pages ahead of the plan; kept over a restart until an order for the page is settled."""
        for page in pages:
            state = self.partition.states[page]
            if state == _BLOCKED or (state == _OUT and priority is not Priority.BLOCKING):
                continue
            if priority is Priority.BLOCKING and self._is_asked(page):
                continue
            if state == _FOREIGN:
                self._elsewhere.append(Submit((self.partition.url(page),), priority, seed=False))
                continue
            self._store_want(page, priority)
            self.planner.want(page, priority)

    def order_elsewhere(self, submit: Submit) -> None:
        """Pages of other partitions that are to be ordered when this group is on disk."""
        self._elsewhere.append(submit)

    def _is_asked(self, page: int) -> bool:
        """Was it ordered BLOCKING before, and not settled since? Thousands of documents may need the same part."""
        if page in self._blocking:
            return self.partition.states[page] == _FOREIGN or bool(self.partition.flags[page] & WANTED)
        self._blocking.add(page)
        return False

    def _store_want(self, page: int, priority: Priority) -> None:
        self.partition.set_flag(page, WANTED)
        self.partition.put(keys.LEASE.key(page), rows.pack(LeaseRow(epoch=0, priority=priority)))

    def hold(self, host: int, held: str) -> None:
        """A person pauses, blocks or resumes a host; stored with the next group."""
        self.partition.hosts.hold(host, held)
        self._held.append(host)
        if not held:
            self.planner.resume(host)

    # -- reports -------------------------------------------------------------------------------------------------

    def _free_spends(self, visited: Sequence[int], more: int) -> Spending:
        """Read pages rich in cash spend over stored links without a fetch; dangling ones pay the virtual page."""
        spending = Spending()
        free = int(self.settings.opic.spend_ratio * len(visited) + 0.5) + more
        if not visited and not more:
            return spending
        read, dangling = self.purse.rich(free, np.array(visited, np.int64))
        for page in read.tolist():
            children = self.partition.children(page)
            if children is not None:
                spending.over(page, children)
        for page in dangling.tolist():
            spending.over(page, NO_CHILDREN)
        return spending

    def _visit(self, report: PageReport, spending: Spending) -> Settled:
        """Apply one report whose order is out."""
        page = report.page - self.partition.base
        row = self.planner.settle(page)
        visit = judge(report, row)
        self._remember_host(page, report)
        self.release(page)
        self.partition.set_state(page, visit.state)
        if visit.answered:
            self.reads += 1
            self.read_pages += row is None or not row.reads
        if report.error:
            self.errors[report.error] = self.errors.get(report.error, 0) + 1
        if report.sitemaps:
            self._name_sitemaps(report.sitemaps, int(self.columns["depth"][page]) + 1)
        return Settled(page, report, visit, row, self._share(page, report, visit.spend, spending))

    def _share(self, page: int, report: PageReport, spend: Spend, spending: Spending) -> str:
        """Let the page spend over what the read showed, now or when its load has ended. -> the load's error class"""
        load = self.loads.take_early(report.page, report.epoch)
        if load is not None:
            return self.loads.apply(page, load, spending)
        if spend is Spend.STORED:
            children = self.partition.children(page)
            spending.over(page, NO_CHILDREN if children is None else children)
        elif spend is Spend.LINKS or (report.loading and not report.error):
            self.loads.forget(page)
            if spend is Spend.LINKS:
                self._spend_report(page, report, spending)
            else:
                self.loads.loading[page] = report.epoch
                self._store_want(page, Priority.ORDERED)  # a crash before its LoadReport: read it again
        return ""

    def _name_sitemaps(self, urls: tuple[str, ...], depth: int) -> None:
        """Sitemaps that the host's robots.txt names: read whatever the scope is, and free to list any URL."""
        pages = self.resolve(list(urls), [depth] * len(urls), exempt=True)
        pages = pages[self.columns["state"][pages] != _FOREIGN]
        self.columns["flags"][pages] |= NAMED
        self.columns.touch("flags", pages)

    def _spend_report(self, page: int, report: PageReport, spending: Spending) -> None:
        if report.location:
            spending.over_urls(page, (report.location,))
        elif report.nofollow:
            spending.over_urls(page, ())
        else:
            self.classes.show(report.links)
            spending.over_urls(page, followed(report.links.urls, report.links.flags))

    def _hint(self, spending: Spending, settled: Sequence[Settled], now: float) -> None:
        """What sitemaps and feeds that were loaded in this turn say of other pages."""
        if spending.loaded:
            written = {one.page for one in settled}
            for page, report in spending.loaded:
                self.claims.hear(page, report, written, now)

    def _remember_host(self, page: int, report: PageReport) -> None:
        """Politeness to keep over a restart: only where a host must be left alone for longer than a moment."""
        host = self.partition.hosts_of[page]
        later = report.host_next if report.host_next > report.ended + 1.0 or report.host_failures else 0.0
        if (later or host in self.partition.hosts.clocks) and self.partition.hosts.remember(
            host, later, report.host_failures, report.ended
        ):
            self.partition.put(*self.partition.hosts.stored(host))

    def release(self, page: int) -> None:
        if self.partition.flags[page] & WANTED:
            self._blocking.discard(page)
            self.partition.clear_flag(page, WANTED)
            self.partition.delete(keys.LEASE.key(page))
