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

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgpack
import msgspec
import numpy as np
from numpy.typing import NDArray

from configs.schema import Settings
from crawl.planner import Planner
from crawl.post import Post
from crawl.purse import NO_PAGES, Purse
from crawl.scope import Scope
from metadata import keys, links, rows
from metadata.manager import Commit, Partition
from metadata.rows import LeaseRow, RefreshRow, WaitRow
from metadata.states import HINTED, KIND_MASK, KIND_SHIFT, LEASED, NAMED, WANTED, State
from metadata.visits import Spend, Visit, http_date, judge, next_row
from opic.importance import never_measured
from refresh.change import DAY, DEFAULT_PRIOR, first_read, rate, update, usable_last_modified
from wire.errors import MachineError
from wire.messages import (
    LINK_HINT,
    LINK_NOFOLLOW,
    Ack,
    CashTransfer,
    FetchOrder,
    LoadReport,
    LoadState,
    Message,
    PageReport,
    Priority,
    Submit,
    XmlPage,
)
from wire.urls import authority, host_of, partition_of

Ids = NDArray[np.int64]
NO_CHILDREN: NDArray[np.uint32] = np.empty(0, np.uint32)
_PLACES = keys.META.key("places")
_STATUS = keys.STATUS.prefix
_UNFOLLOWED = frozenset(f for f in range(256) if f & (LINK_NOFOLLOW | LINK_HINT))
_UNREAD, _READ, _OUT, _BLOCKED, _FOREIGN = map(int, (State.UNREAD, State.READ, State.OUT, State.BLOCKED, State.FOREIGN))
"""plain numbers: looking a member up in an enum costs more than all else that a page needs of its state"""


@dataclass(slots=True)
class Work:
    """What came in since the last turn."""

    visits: list[PageReport] = field(default_factory=list)
    loads: dict[int, LoadReport] = field(default_factory=dict)
    """by page: what the loader said last"""
    bodies: dict[int, XmlPage] = field(default_factory=dict)
    """by page: bodies whose load waits for parts"""
    submits: list[Submit] = field(default_factory=list)
    transfers: list[CashTransfer] = field(default_factory=list)
    acks: list[Ack] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.visits or self.loads or self.submits or self.transfers or self.acks)

    def add(self, message: Message) -> None:
        """Sort a message in. A message that is not for a page node is a bug of the sender."""
        match message:
            case PageReport():
                self.visits.append(message)
            case LoadReport():
                self.loads[message.page] = message
            case XmlPage():
                self.bodies[message.page] = message
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


@dataclass(slots=True)
class _Settled:
    """An order settled in this turn, until its row is written."""

    page: int
    report: PageReport
    visit: Visit
    row: RefreshRow | None
    error: str = ""


class _Load(NamedTuple):
    """What the loader said of one body, and the body if its load has to wait."""

    report: LoadReport
    body: XmlPage | None


class _Spending:
    """Who spends in this turn, over which children; URLs are resolved for all pages at once."""

    def __init__(self) -> None:
        self.pages: list[int] = []
        self.children: list[NDArray[Any]] = []
        self.urls: list[str] = []
        self.open: list[tuple[int, int, int]] = []
        """(index into pages, start, stop) of URL runs that wait to be resolved"""
        self.modified: list[tuple[str, float]] = []
        """dates of change that sitemaps and feeds tell of URLs"""
        self.loads = False
        """from here on loads are applied: their pages may have spent already"""

    def over(self, page: int, children: NDArray[Any]) -> None:
        self.pages.append(page)
        self.children.append(children)

    def over_urls(self, page: int, urls: Sequence[str]) -> None:
        start = len(self.urls)
        self.urls.extend(urls)
        self.open.append((self._index(page), start, len(self.urls)))

    def _index(self, page: int) -> int:
        """A page spends once a turn: the links of a load that ends now replace what it would have spent over."""
        if self.loads and page in self.pages:
            return self.pages.index(page)
        self.over(page, NO_CHILDREN)
        return len(self.pages) - 1


class PageNode:
    """One partition: `turn` is the loop. Counters are since the process began, `reads` since the crawl began."""

    def __init__(self, partition: Partition, scope: Scope, settings: Settings, refreshing: bool) -> None:
        self.partition = partition
        self.scope = scope
        self.settings = settings
        self.columns = partition.columns
        self.partitions: int = partition.facts["partitions"]
        self.purse = Purse(
            self.columns, partition.base, settings.opic.damping, settings.opic.window, settings.opic.sweep_target
        )
        self.post = Post(partition, self.purse, self.partitions)
        self.planner = Planner(partition, self.purse, settings, refreshing)
        self.reads = 0
        self.read_pages = 0
        """pages that were read at least once"""
        self.stale = 0
        self.errors: dict[str, int] = {}
        self.waits: dict[int, tuple[int, ...]] = {}
        """Status-Data: pages whose load waits -> what it needs, as far as the loader has said it to this process"""
        self.loading: dict[int, int] = {}
        """pages whose last load has not ended -> epoch of the read that brought the body"""
        self._loads: dict[int, _Load] = {}
        """by page id: loads that came before the PageReport of their read"""
        self._bodies: dict[int, XmlPage] = {}
        """by page id: bodies that came before the LoadReport that says that they have to wait"""
        self._touched: list[Ids] = []
        self._nearer: list[Ids] = []
        """pages of other partitions to which a shorter way was found in this turn"""
        self._elsewhere: list[Submit] = []
        self._held: list[int] = []
        self._now = 0.0
        self._places: set[str] = set()
        """places of the scope by which the pages here were judged; stored"""
        self._rejudge = False

    # -- recovery ------------------------------------------------------------------------------------------------

    def recover(self, now: float) -> tuple[list[CashTransfer], list[XmlPage]]:
        """After `Partition.open`: transfers to send again, and bodies whose load waited, for the loader."""
        state = self.partition.scalars.get("node")
        if state:
            self.purse.load(state["purse"])
            self.post.load(state["post"])
            self.planner.load(state["planner"])
            self.reads, self.read_pages = state["reads"], state["read_pages"]
            self._places.update(msgpack.unpackb(self.partition.get(_PLACES) or b"\x90"))
            self.scope.places.update(self._places)
            self._rejudge = state["scope"] != self._rules
        self.planner.recover(now)
        bodies = [self._recovered(keys.STATUS.split(key), value) for key, value in self.partition.scan(_STATUS)]
        return self.post.recover(), bodies

    def _recovered(self, page: int, stored: bytes) -> XmlPage:
        """A body whose load waited. The loader will say again what it needs."""
        wait = rows.unpack_wait(stored)
        self.waits[page], self.loading[page] = (), wait.epoch
        body = zlib.decompress(wait.body)
        page += self.partition.base
        return XmlPage(page, wait.url, wait.epoch, wait.read_at, wait.kind, wait.mime, wait.charset, body)

    def dump(self) -> dict[str, Any]:
        return {
            "purse": self.purse.dump(),
            "post": self.post.dump(),
            "planner": self.planner.dump(),
            "reads": self.reads,
            "read_pages": self.read_pages,
            "scope": self._rules,
        }

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
        self._follow_scope()
        while self._held:
            partition.put(*partition.hosts.stored(self._held.pop()))
        acks = self._exchange(work)
        for submit in work.submits:
            self._submit(submit)
        reports = self._live(work.visits)
        spending = self._free_spends([report.page - partition.base for report in reports], free)
        self._gather(work)
        settled = [self._visit(report, spending) for report in reports]
        self._late_loads(spending)
        self._resolve_links(spending)
        self._hint(spending.modified)
        self.purse.spend(spending.pages, spending.children, born, partition.next_number)
        self.purse.window.grew(self.purse.known + self.read_pages, self.purse.clock.ticks)
        self._date(settled, now)
        touched = [*self._touched, *spending.children] if self.partitions > 1 else ()
        transfers = self.post.collect(touched, self._nearer, born)
        orders = self.planner.orders(now, room)
        commit = partition.seal({"node": self.dump()})
        return Turn(commit, orders, transfers, acks, self._elsewhere)

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
        self.purse.mint(first, np.array(states, np.uint8) == State.FOREIGN)
        return first

    def _resolve_links(self, spending: _Spending) -> None:
        """Turn the URL runs of this turn's pages into children, store them, lower depths where a way got shorter."""
        if not spending.open:
            return
        parents = self.columns["depth"][[spending.pages[index] for index, _, _ in spending.open]].astype(np.int64)
        depths = np.repeat(parents + 1, [stop - start for _, start, stop in spending.open])
        found = self.resolve(spending.urls, depths)
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
            if state == _FOREIGN:
                self._elsewhere.append(Submit((self.partition.url(page),), priority, seed=False))
                continue
            self._store_want(page, priority)
            self.planner.want(page, priority)

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

    def _free_spends(self, visited: Sequence[int], more: int) -> _Spending:
        """Read pages rich in cash spend over stored links without a fetch; dangling ones pay the virtual page."""
        spending = _Spending()
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

    def _visit(self, report: PageReport, spending: _Spending) -> _Settled:
        """Apply one report whose order is out."""
        page = report.page - self.partition.base
        row = self.planner.settle(page).row
        visit = judge(report, row)
        self._remember_host(page, report)
        self._release_want(page)
        self.partition.set_state(page, visit.state)
        if visit.answered:
            self.reads += 1
            self.read_pages += row is None or not row.reads
        if report.error:
            self.errors[report.error] = self.errors.get(report.error, 0) + 1
        if report.sitemaps:
            self._name_sitemaps(report.sitemaps, int(self.columns["depth"][page]) + 1)
        return _Settled(page, report, visit, row, self._share(page, report, visit.spend, spending))

    def _share(self, page: int, report: PageReport, spend: Spend, spending: _Spending) -> str:
        """Let the page spend over what the read showed, now or when its load has ended. -> the load's error class"""
        load = self._loads.get(report.page)
        if load is not None and load.report.epoch == report.epoch:
            del self._loads[report.page]
            self.loading[page] = report.epoch
            return self._load(page, load, spending)
        if spend is Spend.STORED:
            children = self.partition.children(page)
            spending.over(page, NO_CHILDREN if children is None else children)
        elif spend is Spend.LINKS or (report.loading and not report.error):
            self._forget_load(page)
            if spend is Spend.LINKS:
                self._spend_report(page, report, spending)
            else:
                self.loading[page] = report.epoch
                self._store_want(page, Priority.ORDERED)  # a crash before its LoadReport: read it again
        return ""

    def _name_sitemaps(self, urls: tuple[str, ...], depth: int) -> None:
        """Sitemaps that the host's robots.txt names: read whatever the scope is, and free to list any URL."""
        pages = self.resolve(list(urls), [depth] * len(urls), exempt=True)
        pages = pages[self.columns["state"][pages] != _FOREIGN]
        self.columns["flags"][pages] |= NAMED
        self.columns.touch("flags", pages)

    def _spend_report(self, page: int, report: PageReport, spending: _Spending) -> None:
        if report.location:
            spending.over_urls(page, (report.location,))
        elif report.nofollow:
            spending.over_urls(page, ())
        else:
            spending.over_urls(page, _followed(report.links.urls, report.links.flags))

    # -- loads ---------------------------------------------------------------------------------------------------

    def _gather(self, work: Work) -> None:
        """LoadReports of this turn, beside those that still wait for the PageReport of their read."""
        self._bodies.update(work.bodies)
        for report in work.loads.values():
            before = self._loads.get(report.page)
            body = before.body if before is not None else None
            if report.page in self._bodies and self._bodies[report.page].epoch <= report.epoch:
                body = self._bodies.pop(report.page)
            self._loads[report.page] = _Load(report, body if body is not None and body.epoch == report.epoch else None)

    def _late_loads(self, spending: _Spending) -> None:
        """Loads of pages read in an earlier turn. What belongs to no read that still loads changes nothing."""
        spending.loads = True
        early: dict[int, _Load] = {}
        for number, load in self._loads.items():
            page = number - self.partition.base
            lease = self.planner.leases.get(page)
            if lease is not None and lease.epoch == load.report.epoch:
                early[number] = load
            elif self.loading.get(page) == load.report.epoch:
                error, row = self._load(page, load, spending), self.partition.row(page)
                if error and row is not None:
                    self.partition.put(keys.REFRESH.key(page), rows.pack(msgspec.structs.replace(row, error=error)))
        self._loads = early

    def _load(self, page: int, load: _Load, spending: _Spending) -> str:
        """Apply a LoadReport: a WAITING one goes to Status-Data, a final one spends the page's cash. -> error class"""
        report = load.report
        if report.state is LoadState.WAITING:
            self._wait(page, load)
            return ""
        self._release_want(page)
        self._forget_load(page)
        spending.over_urls(page, _followed(report.links.urls, report.links.flags))
        spending.modified.extend(report.modified)
        return report.error

    def _forget_load(self, page: int) -> None:
        """The page's load has ended, or another read has replaced it."""
        self.loading.pop(page, None)
        if self.waits.pop(page, None) is not None:
            self.partition.delete(keys.STATUS.key(page))

    def _wait(self, page: int, load: _Load) -> None:
        """Status-Data of a load that waits: with its body when it begins, with other needs when one of them moved."""
        wanted, body = load.report.needs, load.body
        depth = int(self.columns["depth"][page]) + 1
        needs = tuple(self.resolve(list(wanted), [depth] * len(wanted), exempt=True).tolist())
        if needs == self.waits.get(page):
            return
        if body is not None:
            row = WaitRow(
                epoch=body.epoch, needs=(), body=zlib.compress(body.body, 1), url=body.url, kind=body.kind,
                mime=body.mime, charset=body.charset, read_at=body.read_at, since=body.read_at,
            )  # fmt: skip
        elif stored := self.partition.get(keys.STATUS.key(page)):
            row = rows.unpack_wait(stored)
        else:
            return
        self._release_want(page)
        self.waits[page] = needs
        self.partition.put(keys.STATUS.key(page), rows.pack(msgspec.structs.replace(row, needs=needs)))
        self.want(needs, Priority.BLOCKING)

    def _hint(self, modified: Sequence[tuple[str, float]]) -> None:
        """Sitemaps' and feeds' dates of pages that were never read: evidence for their first read, if plausible."""
        partition = self.partition
        for (_, when), page in zip(modified, partition.urls.find([url for url, _ in modified]), strict=True):
            if page < 0 or partition.states[page] != _UNREAD or partition.flags[page] & (HINTED | LEASED):
                continue
            partition.put(keys.REFRESH.key(page), rows.pack(RefreshRow(last_change=max(0, int(when)))))
            partition.set_flag(page, HINTED)

    def _remember_host(self, page: int, report: PageReport) -> None:
        """Politeness to keep over a restart: only where a host must be left alone for longer than a moment."""
        host = self.partition.hosts_of[page]
        later = report.host_next if report.host_next > report.ended + 1.0 or report.host_failures else 0.0
        if (later or host in self.partition.hosts.clocks) and self.partition.hosts.remember(
            host, later, report.host_failures, report.ended
        ):
            self.partition.put(*self.partition.hosts.stored(host))

    def _release_want(self, page: int) -> None:
        if self.partition.flags[page] & WANTED:
            self.partition.clear_flag(page, WANTED)
            self.partition.delete(keys.LEASE.key(page))

    # -- refresh -------------------------------------------------------------------------------------------------

    def _date(self, settled: list[_Settled], now: float) -> None:
        """Change rate, weight in S, interval and next read of the pages settled in this turn; their rows."""
        if not settled:
            return
        pages = np.array([one.page for one in settled], np.int64)
        self.planner.answered(sum(one.visit.answered for one in settled), now)
        dues, kinds = [], []
        for one, importance in zip(settled, self._importance(pages), strict=True):
            belief = self._belief(one)
            changes = rate(*belief)
            due, heavy = self.planner.date(one.page, one.report, one.visit, one.row, importance, changes, now)
            row = next_row(one.report, one.visit, one.row, belief, heavy)
            if one.error:
                row = msgspec.structs.replace(row, error=one.error)
            self.partition.put(keys.REFRESH.key(one.page), rows.pack(row))
            dues.append(due)
            kinds.append(int(row.kind) << KIND_SHIFT)
        self.columns["due"][pages] = dues
        self.columns["flags"][pages] = (self.columns["flags"][pages] & (~KIND_MASK & 0xFFFF)) | np.array(
            kinds, np.uint16
        )
        for name in ("due", "flags"):
            self.columns.touch(name, pages)

    def _importance(self, pages: Ids) -> list[float]:
        """Flow of pages just read; where a page has not spent yet (its load goes on), the estimate of now."""
        flow = self.columns["flow"][pages]
        never = never_measured(flow)
        if never.any():
            flow[never] = self.purse.importance(pages[never])
        found: list[float] = flow.tolist()
        return found

    def _belief(self, one: _Settled) -> tuple[float, float]:
        """Gamma(a, b) of the change rate after this report (algorithms.md E)."""
        row, report = one.row, one.report
        if one.visit.changed is None or row is None or not row.last_read:
            if row is not None and row.reads and row.rate_b:
                return row.rate_a, row.rate_b
            hinted = float(row.last_change) if row is not None and not row.reads else 0.0
            said = http_date(report.last_modified) if report.last_modified else hinted or None
            return first_read(DEFAULT_PRIOR, usable_last_modified(said, report.ended))
        tau = (report.ended - row.last_read) / DAY
        a, b = (row.rate_a, row.rate_b) if row.rate_b else (DEFAULT_PRIOR.a, DEFAULT_PRIOR.b)
        age = None
        if one.visit.changed and report.last_modified:
            said = http_date(report.last_modified)
            age = usable_last_modified(said, report.ended, float(row.last_read))
        return update(a, b, tau, one.visit.changed, age, DEFAULT_PRIOR, self.settings.refresh.memory)


def _followed(urls: tuple[str, ...], flags: bytes) -> Sequence[str]:
    """Links that give cash and new pages."""
    if _UNFOLLOWED.isdisjoint(flags):
        return urls
    return [url for url, flag in zip(urls, flags, strict=True) if flag not in _UNFOLLOWED]
