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
from typing import Any

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
from metadata.states import HINTED, KIND_MASK, KIND_SHIFT, NAMED, WANTED, State
from metadata.visits import Spend, Visit, http_date, judge, next_row
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
_UNFOLLOWED = frozenset(f for f in range(256) if f & (LINK_NOFOLLOW | LINK_HINT))


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


class _Spending:
    """Who spends in this turn, over which children; URLs are resolved for all pages at once."""

    def __init__(self) -> None:
        self.pages: list[int] = []
        self.children: list[NDArray[Any]] = []
        self.urls: list[str] = []
        self.open: list[tuple[int, int, int]] = []
        """(index into pages, start, stop) of URL runs that wait to be resolved"""
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
        """Status-Data: pages whose load waits -> what it needs"""
        self._touched: list[Ids] = []
        self._elsewhere: list[Submit] = []
        self._held: list[int] = []
        self._now = 0.0
        self._judged = len(scope.added)
        self._stored = 0
        """places of the scope as they are on disk"""
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
            self.scope.places.update(msgpack.unpackb(self.partition.get(_PLACES) or b"\x90"))
            self._rejudge = state["scope"] != self.scope.text
        self.planner.recover(now)
        bodies = []
        for key, value in self.partition.scan(keys.STATUS.prefix):
            wait = rows.unpack_wait(value)
            page = keys.STATUS.split(key)
            self.waits[page] = wait.needs
            body = zlib.decompress(wait.body)
            for part in wait.needs:
                if self.columns["state"][part] != State.FOREIGN:
                    self.columns["flags"][part] |= WANTED
                    self.planner.want(part, Priority.BLOCKING)
            bodies.append(
                XmlPage(
                    page + self.partition.base,
                    wait.url,
                    wait.epoch,
                    wait.read_at,
                    wait.kind,
                    wait.mime,
                    wait.charset,
                    body,
                )
            )
        return self.post.recover(), bodies

    def dump(self) -> dict[str, Any]:
        return {
            "purse": self.purse.dump(),
            "post": self.post.dump(),
            "planner": self.planner.dump(),
            "reads": self.reads,
            "read_pages": self.read_pages,
            "scope": self.scope.text,
        }

    # -- the turn ------------------------------------------------------------------------------------------------

    def turn(self, work: Work, now: float, room: int) -> Turn:
        """One commit group. `now`: wall clock; `room`: reads that may still be ordered (--max-pages), all partitions."""
        partition = self.partition
        self._now = now
        partition.begin()
        born = self.columns.n
        self._touched, self._elsewhere = [], []
        self._follow_scope()
        while self._held:
            partition.put(*partition.hosts.stored(self._held.pop()))
        for ack in work.acks:
            self.post.acknowledged(ack)
        acks = [ack for transfer in work.transfers if (ack := self.post.take(transfer, self.resolve))]
        for submit in work.submits:
            self._submit(submit)
        spending = self._free_spends(len(work.visits))
        loads = work.loads
        settled = [
            one
            for report in work.visits
            if (one := self._visit(report, loads.pop(report.page, None), work.bodies.get(report.page), spending))
        ]
        spending.loads = True
        for load in loads.values():
            self._load(load, None, spending)
        self._resolve_links(spending)
        self.purse.spend(spending.pages, spending.children, born, partition.next_number)
        self.purse.window.grew(self.purse.known + self.read_pages, self.purse.clock.ticks)
        self._date(settled, now)
        transfers = self.post.collect([*self._touched, *spending.children] if self.partitions > 1 else (), born)
        orders = self.planner.orders(now, room)
        if self._stored != len(self.scope.places):
            self._stored = len(self.scope.places)
            partition.put(_PLACES, msgpack.packb(sorted(self.scope.places)))
        commit = partition.seal({"node": self.dump()})
        return Turn(commit, orders, transfers, acks, self._elsewhere)

    # -- URLs ----------------------------------------------------------------------------------------------------

    def resolve(self, urls: list[str], depths: list[int], exempt: bool = False) -> Ids:
        """Pages of URLs; unknown ones are minted at the depth given. exempt: scope does not hold for them."""
        pages = np.array(self.partition.urls.find(urls), np.int64)
        if len(pages) and pages.min() < 0:
            new: dict[str, int] = {}
            for i in np.flatnonzero(pages < 0).tolist():
                new.setdefault(urls[i], depths[i])
            first = self._mint(list(new), list(new.values()), exempt)
            numbers = dict(zip(new, range(first, first + len(new)), strict=True))
            for i in np.flatnonzero(pages < 0).tolist():
                pages[i] = numbers[urls[i]]
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
        first = self.partition.mint(urls, hosts, states, depths)
        self.columns["seen"][first : self.columns.n] = int(self._now)
        self.purse.mint(first, np.array(states, np.uint8) == State.FOREIGN)
        return first

    def _resolve_links(self, spending: _Spending) -> None:
        """Turn the URL runs of this turn's pages into children, store them, and lower depths where a way got shorter."""
        depth = self.columns["depth"]
        depths: list[int] = []
        for index, start, stop in spending.open:
            depths.extend([int(depth[spending.pages[index]]) + 1] * (stop - start))
        found = self.resolve(spending.urls, depths)
        for index, start, stop in spending.open:
            children = found[start:stop].astype(np.uint32)
            spending.children[index] = children
            if self.settings.store.links:
                self.partition.put(keys.LINK.key(spending.pages[index]), links.pack(children, links.NO_FOREIGN))
        if self.scope.by_depth and len(found):
            self._shorten(found, np.array(depths, np.int64))

    def _shorten(self, pages: Ids, depths: Ids) -> None:
        """A shorter way to a page: its depth falls, what was too deep may come into scope, and so on down."""
        column = self.columns["depth"]
        while len(pages):
            nearer = depths < column[pages]
            pages, depths = pages[nearer], depths[nearer]
            np.minimum.at(column, pages, np.minimum(depths, 255).astype(np.uint8))
            pages = np.unique(pages)
            self.columns.touch("depth", pages)
            below: list[NDArray[Any]] = []
            after: list[int] = []
            for page in pages.tolist():
                if self.columns["state"][page] == State.OUT:
                    self.partition.set_state(page, self.scope.judge(self.partition.url(page), int(column[page])))
                children = self.partition.children(page)
                if children is not None:
                    below.append(children)
                    after.extend([int(column[page]) + 1] * len(children))
            pages = np.concatenate(below).astype(np.int64) if below else NO_PAGES
            depths = np.array(after, np.int64)

    def _follow_scope(self) -> None:
        """Judge again what a change of scope concerns: all pages after other rules, else those of the places added."""
        hosts = self.partition.hosts
        if self._rejudge:
            self._judge_again(np.ones(len(hosts), np.bool_))
        elif self._judged < len(self.scope.added):
            places = set(self.scope.added[self._judged :])
            self._judge_again(np.array([self.scope.place_of_host(name) in places for name in hosts.names], np.bool_))
        self._rejudge, self._judged = False, len(self.scope.added)

    def _judge_again(self, concerned: NDArray[np.bool_]) -> None:
        """Pages of the hosts concerned that lay outside or were never settled get their state anew."""
        n = self.columns.n
        state = self.columns["state"]
        if not n:
            return
        pages = (state[:n] == State.UNREAD) | (state[:n] == State.OUT)
        pages &= concerned[self.columns["host"][:n]]
        for page in np.flatnonzero(pages).tolist():
            judged = self.scope.judge(self.partition.url(page), int(self.columns["depth"][page]))
            if judged is State.UNREAD and state[page] == State.OUT and self.partition.row(page) is not None:
                judged = State.READ
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
            state = self.columns["state"][page]
            if state == State.BLOCKED or (state == State.OUT and priority is not Priority.BLOCKING):
                continue
            if state == State.FOREIGN:
                self._elsewhere.append(Submit((self.partition.url(page),), priority, seed=False))
                continue
            self._store_want(page, priority)
            self.planner.want(page, priority)

    def _store_want(self, page: int, priority: Priority) -> None:
        self.columns["flags"][page] |= WANTED
        self.columns.touch("flags", np.array([page]))
        self.partition.put(keys.LEASE.key(page), rows.pack(LeaseRow(epoch=0, priority=priority)))

    def hold(self, host: int, held: str) -> None:
        """A person pauses, blocks or resumes a host; stored with the next group."""
        self.partition.hosts.hold(host, held)
        self._held.append(host)

    # -- reports -------------------------------------------------------------------------------------------------

    def _free_spends(self, visits: int) -> _Spending:
        """Read pages rich in cash spend over stored links without a fetch; dangling ones pay the virtual page."""
        spending = _Spending()
        if not visits:
            return spending
        read, dangling = self.purse.rich(int(self.settings.opic.spend_ratio * visits + 0.5))
        for page in read.tolist():
            children = self.partition.children(page)
            if children is not None:
                spending.over(page, children)
        for page in dangling.tolist():
            spending.over(page, NO_CHILDREN)
        return spending

    def _visit(
        self, report: PageReport, load: LoadReport | None, body: XmlPage | None, spending: _Spending
    ) -> _Settled | None:
        """Apply one report, unless its lease is an old one."""
        page = report.page - self.partition.base
        lease = self.planner.settle(page, report.epoch)
        if lease is None:
            self.stale += 1
            return None
        row = lease.row
        visit = judge(report, row)
        self._remember_host(page, report)
        self._release_want(page)
        state = self.columns["state"]
        if state[page] != visit.state:
            self.partition.set_state(page, visit.state)
        if visit.answered:
            self.reads += 1
            self.read_pages += row is None or not row.reads
        if report.error:
            self.errors[report.error] = self.errors.get(report.error, 0) + 1
        if report.sitemaps:
            self._name_sitemaps(report.sitemaps, int(self.columns["depth"][page]) + 1)
        error = ""
        if visit.spend is Spend.LINKS:
            self._spend_report(page, report, spending)
        elif visit.spend is Spend.STORED:
            children = self.partition.children(page)
            spending.over(page, NO_CHILDREN if children is None else children)
        elif load is not None:
            error = self._load(load, body, spending)
        elif report.loading:
            self._store_want(page, Priority.ORDERED)  # a crash before its LoadReport: read it again
        return _Settled(page, report, visit, row, error)

    def _name_sitemaps(self, urls: tuple[str, ...], depth: int) -> None:
        """Sitemaps that the host's robots.txt names: read whatever the scope is, and free to list any URL."""
        pages = self.resolve(list(urls), [depth] * len(urls), exempt=True)
        pages = pages[self.columns["state"][pages] != State.FOREIGN]
        self.columns["flags"][pages] |= NAMED
        self.columns.touch("flags", pages)

    def _spend_report(self, page: int, report: PageReport, spending: _Spending) -> None:
        if report.location:
            spending.over_urls(page, (report.location,))
        elif report.nofollow:
            spending.over_urls(page, ())
        else:
            spending.over_urls(page, _followed(report.links.urls, report.links.flags))

    def _load(self, load: LoadReport, body: XmlPage | None, spending: _Spending) -> str:
        """Apply a LoadReport: a WAITING one is kept in Status-Data, a final one spends the page's cash. -> error class"""
        page = load.page - self.partition.base
        if load.state is LoadState.WAITING:
            self._wait(page, load, body)
            return ""
        if page in self.waits:
            del self.waits[page]
            self.partition.delete(keys.STATUS.key(page))
        self._release_want(page)
        spending.over_urls(page, _followed(load.links.urls, load.links.flags))
        for url, modified in load.modified:
            self._hint(url, modified)
        return load.error

    def _wait(self, page: int, load: LoadReport, body: XmlPage | None) -> None:
        """Status-Data of a load that waits: with its body when it begins, with other needs when one of them moved."""
        needs = self.resolve(list(load.needs), [int(self.columns["depth"][page]) + 1] * len(load.needs), exempt=True)
        if body is not None:
            row = WaitRow(
                epoch=load.epoch, needs=(), body=zlib.compress(body.body, 1), url=load.url, kind=body.kind,
                mime=body.mime, charset=body.charset, read_at=body.read_at, since=body.read_at,
            )  # fmt: skip
        elif stored := self.partition.get(keys.STATUS.key(page)):
            row = rows.unpack_wait(stored)
        else:
            return
        self.waits[page] = tuple(needs.tolist())
        self.partition.put(keys.STATUS.key(page), rows.pack(msgspec.structs.replace(row, needs=self.waits[page])))
        self._release_want(page)
        self.want(self.waits[page], Priority.BLOCKING)

    def _hint(self, url: str, modified: float) -> None:
        """A sitemap's or feed's date of a page that was never read: evidence for its first read, if it is plausible."""
        page = self.partition.urls.find_one(url)
        if page < 0 or self.columns["state"][page] != State.UNREAD or self.columns["flags"][page] & HINTED:
            return
        self.partition.put(keys.REFRESH.key(page), rows.pack(RefreshRow(last_change=max(0, int(modified)))))
        self.columns["flags"][page] |= HINTED
        self.columns.touch("flags", np.array([page]))

    def _remember_host(self, page: int, report: PageReport) -> None:
        """Politeness to keep over a restart: only where a host must be left alone for longer than a moment."""
        host = int(self.columns["host"][page])
        later = report.host_next if report.host_next > report.ended + 1.0 or report.host_failures else 0.0
        if (later or host in self.partition.hosts.clocks) and self.partition.hosts.remember(
            host, later, report.host_failures, report.ended
        ):
            self.partition.put(*self.partition.hosts.stored(host))

    def _release_want(self, page: int) -> None:
        if self.columns["flags"][page] & WANTED:
            self.columns["flags"][page] &= ~WANTED & 0xFFFF
            self.columns.touch("flags", np.array([page]))
            self.partition.delete(keys.LEASE.key(page))

    # -- refresh -------------------------------------------------------------------------------------------------

    def _date(self, settled: list[_Settled], now: float) -> None:
        """Change rate, weight in S, interval and next read of the pages settled in this turn; their rows."""
        if not settled:
            return
        pages = np.array([one.page for one in settled], np.int64)
        flow = np.maximum(self.columns["flow"][pages], 0.0).tolist()
        dues, rates, kinds = [], [], []
        for one, importance in zip(settled, flow, strict=True):
            belief = self._belief(one)
            due, heavy = self.planner.date(one.page, one.report, one.visit, one.row, importance, rate(*belief), now)
            row = next_row(one.report, one.visit, one.row, belief, heavy)
            if one.error:
                row = msgspec.structs.replace(row, error=one.error)
            self.partition.put(keys.REFRESH.key(one.page), rows.pack(row))
            dues.append(due)
            rates.append(rate(*belief))
            kinds.append(int(row.kind) << KIND_SHIFT)
        self.columns["due"][pages] = dues
        self.columns["rate"][pages] = rates
        self.columns["flags"][pages] = (self.columns["flags"][pages] & (~KIND_MASK & 0xFFFF)) | np.array(
            kinds, np.uint16
        )
        for name in ("due", "rate", "flags"):
            self.columns.touch(name, pages)

    def _belief(self, one: _Settled) -> tuple[float, float]:
        """Gamma(a, b) of the change rate after this report (algorithms.md E)."""
        row, report = one.row, one.report
        if one.visit.changed is None or row is None or not row.last_read:
            if row is not None and row.reads and row.rate_b:
                return row.rate_a, row.rate_b
            hinted = float(row.last_change) if row is not None else 0.0
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
