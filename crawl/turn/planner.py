"""What to read next, of one partition: what people and loaders order, retries, pages that are due, pages that are rich.

    wanted    filled by submits and loads, emptied by every turn; kept in LEASE rows over a restart
    retries   filled by temporary failures, emptied when their time has come
    promised  filled from `wanted` with what has a deadline and the bandwidth does not allow for (promised.py)
    due       filled by every read while refreshing, emptied when their time has come (due_pages.py)
    lines     filled from the due ones whose host has no room, emptied as its orders are answered (lines.py)
    unread    not a queue: a scan of the columns for hosts that run low on orders (unread.py)
    parked    filled from the first three with pages of hosts that a person holds, or that [[blackouts]] and [[budgets]]
              shut (budgets.py), emptied when the host opens

At most `leases_per_host` orders a host are out (BLOCKING and ORDERED ones may exceed it), and ORDERS_OUT in all: that
bounds the fetch queue. Where due and unread pages of a host both wait they take turns by gamma (refresh/split.py
Turns): neither side can hold all of a host's places for long. A lease is (page, epoch); the epoch carries the number of
the process's start, so reports of orders of an earlier run are recognised as stale. Only wanted orders are stored: all
others are found again from the columns. What a queue says is a hint: the columns decide whether the page is still
wanted, due or to be tried again.

How often a page is read is pace.py's to say; how discovery and refresh share the orders, sharing.py's.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from configs.schema import Settings
from crawl.turn.audits import Audits
from crawl.turn.budgets import Limits
from crawl.turn.due_pages import DuePages, second
from crawl.turn.lines import Lines
from crawl.turn.meter import Meter
from crawl.turn.pace import DAY, Interval, Pace
from crawl.turn.promised import Promised
from crawl.turn.purse import Purse
from crawl.turn.recount import Recount
from crawl.turn.scanned import Scanned, dropped
from crawl.turn.sharing import Sharing
from crawl.turn.unread import Unread
from metadata import keys, rows
from metadata.manager import Partition
from metadata.rows import RefreshRow
from metadata.states import HASTENED, HINTED, LEASED, WANTED, State
from metadata.visits import Visit
from opic.choose import Sweep
from refresh.ahead import MEAN, Ahead
from refresh.due import DueFolders
from refresh.interval import Spread, weight
from refresh.split import BandwidthMeter, Turns
from wire.messages import FetchOrder, PageReport, Priority

ORDERS_OUT = 50_000
"""most orders out at once, of a partition: about 30 MB"""
EARLY_PER_HOST = 4
"""orders out per host that are given ahead of their time: enough to keep it busy, few enough that the order is fresh"""
RETRIES_AT_ONCE = 512
"""most retries that one turn looks at"""
LOOK_AGAIN = 30 * DAY
"""a page that failed for good is tried once more after this long (refreshing only)"""
_NOTHING = RefreshRow()
_GOOD, _FAILED_FOR_NOW = State.READ, State.ERROR
_ERROR, _OUT, _DISALLOWED = int(State.ERROR), int(State.OUT), int(State.DISALLOWED)


class Lease(NamedTuple):
    """An order that is out. `row`: the page's Refresh-Data when it left, None where there was none."""

    epoch: int
    row: RefreshRow | None


class Planner:
    """`orders` at the end of every turn. refreshing: pages read are read again when due."""

    def __init__(self, partition: Partition, purse: Purse, settings: Settings, refreshing: bool) -> None:
        self.partition = partition
        self.purse = purse
        self.settings = settings
        self.refreshing = refreshing
        self.ahead: Ahead | None = None
        """a bounded `crawl --refresh` reads the page due next rather than nothing"""
        self.gauge: Meter | None = None
        """chooses audit reads, and hears of rows that change without a read"""
        self._weighted = 0
        """pages with a weight in S"""
        self.leases: dict[int, Lease] = {}
        self.wanted: dict[Priority, deque[int]] = {Priority.BLOCKING: deque(), Priority.ORDERED: deque()}
        self.retries: list[tuple[float, int]] = []
        self.parked: dict[int, list[int]] = {}
        self.limits = Limits(partition.hosts, settings.budgets, settings.blackouts)
        self.pace = Pace(settings.refresh, partition.facts["partitions"])
        self.sharing = Sharing(settings.refresh)
        self.due = self._execution()
        self.promised = Promised(self.due, settings.publish.deadline, refreshing)
        self.lines = Lines()
        self.turns = Turns()
        self.discovery = Unread(partition, purse, settings, self.limits, self.turns)
        self.recount: Recount | None = None
        """under way after a switch of policy or bounds"""
        self.boot = 1
        self._count = 0
        self._now = 0.0
        self._busy = False
        """at the last turn there was more to read than went out"""

    def _execution(self) -> DuePages:
        """Who finds the pages whose time has come. A bounded `crawl --refresh` reads ahead of it, by no scan."""
        refresh, bounded = self.settings.refresh, self.settings.crawl.refresh
        if self.refreshing and refresh.execution == "scan" and not bounded:
            alone = refresh.guide == "importance"
            return Scanned(self.partition, self.pace, self.purse, refresh.time_unit, self._shut_hosts, alone)
        dropped(self.partition.columns)
        return DuePages(self.partition, self.pace, self.purse, 1 if bounded else refresh.time_unit)

    def _shut_hosts(self) -> NDArray[np.bool_]:
        """Hosts whose pages could not be ordered now: held, shut, full, or with pages that wait for a place."""
        hosts, count = self.partition.hosts, len(self.partition.hosts)
        shut = ~hosts.open[:count] | (hosts.leased[:count] >= self.settings.store.leases_per_host)
        shut[[*self.limits.until, *self.lines]] = True
        return shut

    def reconfigure(self, settings: Settings) -> None:
        """Other settings (SIGHUP), between two turns: how often and what is read follows from the next turn on."""
        law = self.pace.law
        self.settings = self.discovery.settings = settings
        self.sharing.follow(settings.refresh)
        self.pace.follow(settings.refresh)
        self.limits.follow(settings.budgets, settings.blackouts)
        if self.gauge is not None:
            self.gauge.follow(settings.refresh)
        if self.pace.law != law:
            self.pace.counting = None
            self.recount = Recount(self.partition, self.pace, self.purse, self.rewrite)

    # -- looks ---------------------------------------------------------------------------------------------------

    @property
    def spread(self) -> Spread:
        """S of the pages that are refreshed."""
        return self.pace.spread

    @property
    def meter(self) -> BandwidthMeter:
        """Reads that were made."""
        return self.pace.meter

    @property
    def folders(self) -> DueFolders:
        return self.due.folders

    @property
    def finder(self) -> Sweep:
        return self.discovery.finder

    @property
    def scouting(self) -> bool:
        return self.discovery.scouting

    @property
    def unread(self) -> int:
        """Unread pages in scope that wait for an order, of hosts that nobody holds."""
        return self.discovery.waiting

    @property
    def shut_out(self) -> bool:
        """Do pages wait for the end of a blackout, or for a new day's budget?"""
        return any(self.parked.get(host) for host in self.limits.until if self.partition.hosts.open[host])

    @property
    def gamma(self) -> float:
        """Percent of the orders for discovery, as of now."""
        return self.sharing.gamma

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        return {
            **self.pace.dump(),
            "execution": self.due.name if self.recount is None else "",
            "finder": self.finder.dump(),
            "boot": self.boot,
            "reads": self.discovery.reads,
            "gamma": self.sharing.gamma,
            "limits": self.limits.dump(),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        same = self.pace.load(state, self.partition)
        if not same or (isinstance(self.due, Scanned) and state.get("execution") != self.due.name):
            self.recount = Recount(self.partition, self.pace, self.purse, self.rewrite)
        self.discovery.finder = Sweep.load(state["finder"])
        self.boot = state["boot"] + 1
        self.discovery.reads = state["reads"]
        self.sharing.resume(state.get("gamma", self.sharing.gamma))
        self.limits.load(state.get("limits", {}))

    def recover(self, now: float) -> None:
        """Rebuild the queues from columns and LEASE rows."""
        for key, value in self.partition.scan(keys.LEASE.prefix):
            priority = rows.unpack_lease(value).priority
            self.wanted[Priority(priority)].append(keys.LEASE.split(key))
        columns, n = self.partition.columns, self.partition.columns.n
        state, due = columns["state"][:n], columns["due"][:n]
        failed = np.flatnonzero(state == _ERROR)
        self.retries = list(zip(due[failed].astype(np.float64).tolist(), failed.tolist(), strict=True))
        heapq.heapify(self.retries)
        read = (due > 0) & (state == _GOOD)
        self._weighted = int(read.sum())
        if self.ahead is not None:
            for turn, page in enumerate(np.flatnonzero(read)[np.argsort(due[read], kind="stable")].tolist()):
                self.ahead.put_after(page, MEAN * turn // self._weighted)
        if self.refreshing:
            pages = np.flatnonzero((due > 0) & (state != _ERROR) & (~read | (self.ahead is None))).astype(np.uint32)
            self.due.recover(pages, due[pages])

    def want(self, page: int, priority: Priority) -> None:
        self.wanted[Priority.BLOCKING if priority is Priority.BLOCKING else Priority.ORDERED].append(page)

    # -- reports -------------------------------------------------------------------------------------------------

    def settle(self, page: int) -> RefreshRow | None:
        """The order is answered: its lease ends. The page's Refresh-Data as it is stored now, over which the report is
        laid: while the order was out it may have changed (evidence of its change rate, a switch of policy)."""
        self.partition.unlease(page)
        lease = self.leases.pop(page)
        stored = lease.row is not None or self.partition.flags[page] & HINTED
        return self.partition.row(page) if stored else None

    def drop(self, page: int, epoch: int) -> None:
        """The order was taken back unread (a person blocked its host): it is to be given out again, later."""
        lease = self.leases.get(page)
        if lease is not None and lease.epoch == epoch:
            self.settle(page)
            self._not_audited(page)
            if not self._park(page):
                self._put_back(page)

    def answered(self, reads: int, now: float) -> None:
        """So many orders of this turn were answered by the web; their pages are dated next."""
        self.pace.answered(reads, now, self._busy)
        self.discovery.reads += reads
        self._share(now)

    def _share(self, now: float) -> None:
        self.sharing.renew(now, self.discovery.reads, self.pace)
        contested = self.refreshing and self.discovery.waiting > 0
        self.pace.share = self.sharing.refresh_share(contested, self.pace.fixed > 0.0)

    def date(
        self,
        page: int,
        report: PageReport,
        visit: Visit,
        row: RefreshRow | None,
        importance: float,
        rate: float,
        now: float,
        timed: Callable[[float], float] | None = None,
        believed: float | None = None,
        alone: bool = True,
        shape: float = math.inf,
    ) -> tuple[int, float]:
        """(next read in seconds since 1970, 0 = none; weight of the page in S) after a report.

        believed: the change rate that the page's row will tell, if that is not the one by which it is dated.
        alone: the importance and the rate are the page's own, no cluster's or guide's.
        shape: of the belief whose mean the rate is, infinite = it is known.
        timed: seconds to the next read instead of the interval, where it is known when the page changes next.
        """
        state = visit.state
        if state is _FAILED_FOR_NOW:
            old = row.weight if row is not None else 0.0
            self.pace.replace(page, row, old, rate if believed is None else believed)
            heapq.heappush(self.retries, (report.retry_at, page))
            self.due.leave(page)
            return second(report.retry_at), old
        heavy = weight(importance, rate) if state is _GOOD else 0.0
        if importance * self.pace.scale < self.pace.rules.least:
            heavy = 0.0
        self.pace.replace(page, row, heavy, rate if believed is None else believed)
        self.pace.renew(now)
        self._weighted += (heavy > 0.0) - (row is not None and row.weight > 0.0)
        wait = self._wait(importance, rate, shape) if state is _GOOD else self._look_again(report, visit)
        moved = timed(wait) if timed is not None and state is _GOOD else wait
        due = second(now + moved) if moved else 0
        if self.ahead is not None and state is _GOOD:
            self.ahead.put(page, heavy, self.spread.total / max(self._weighted, 1))
        elif self.refreshing:
            self.due.dated(page, due, rate if alone and heavy and moved == wait else 0.0, report.ended)
        self._hasten(page, moved != wait)
        return due, heavy

    def _wait(self, importance: float, rate: float, shape: float) -> float:
        """Seconds to the next read of a page, or to the next look at one that the policy gives up."""
        return min(self.pace.interval(importance, rate, shape).seconds, self.pace.rules.ceiling * DAY)

    def _look_again(self, report: PageReport, visit: Visit) -> float:
        """Seconds to the next try of a page that failed for good, 0 = none is planned."""
        if visit.state is State.DEAD or visit.state is State.BLOCKED:
            return 0.0
        if report.error in ("http-404", "http-410"):
            return self.settings.crawl.confirm_dead
        return DAY if visit.state is State.DISALLOWED else LOOK_AGAIN

    def interval(self, row: RefreshRow) -> Interval:
        """How often a page is read by the policy of now, and what says so."""
        return self.pace.of_row(row)

    def put_due(self, page: int, due: int, hastened: bool = True) -> None:
        """Date a page anew. hastened: because something is known of it; else by its interval."""
        self._hasten(page, hastened)
        if self.refreshing:
            (self.due.put if hastened else self.due.redate)(page, due)
        else:
            self.partition.columns["due"][page] = due
            self.partition.columns.touch("due", page)

    def _hasten(self, page: int, hastened: bool) -> None:
        if bool(self.partition.flags[page] & HASTENED) != hastened:
            (self.partition.set_flag if hastened else self.partition.clear_flag)(page, HASTENED)

    def rewrite(self, page: int, old: RefreshRow, new: RefreshRow) -> None:
        """A page's row changes without a read of it (evidence of its change rate, another policy): everyone hears."""
        if (old.weight, old.rate) != (new.weight, new.rate):
            self.pace.replace(page, old, new.weight, new.rate)
            self._weighted += (new.weight > 0.0) - (old.weight > 0.0)
            self.due.learned(page, new.rate)
        self.partition.put(keys.REFRESH.key(page), rows.pack(new))
        if self.gauge is not None:
            self.gauge.moved(old, new if new.weight else None)

    def retire(self, page: int) -> None:
        """The page left the scope: it is read no more, and its weight leaves S. No order for it may be out."""
        self.partition.columns["due"][page] = 0
        self.partition.columns.touch("due", page)
        self.due.leave(page)
        row = self.partition.row(page)
        if row is not None and row.weight:
            self.rewrite(page, row, msgspec.structs.replace(row, weight=0.0))

    # -- hosts that a person holds, or that are shut for a while -------------------------------------------------

    def _park(self, page: int) -> bool:
        """Put a page of a held or shut host aside. False: its host is open."""
        host = self.partition.hosts_of[page]
        if self.partition.hosts.open[host] and host not in self.limits.until:
            return False
        self.parked.setdefault(host, []).append(page)
        return True

    def resume(self, host: int) -> None:
        """The host is open again."""
        for page in self.parked.pop(host, ()):
            self._put_back(page)

    def _put_back(self, page: int) -> None:
        """Queue a page where its columns say that it belongs; unread ones are found without a queue."""
        partition = self.partition
        due = int(partition.columns["due"][page])
        if partition.flags[page] & WANTED:
            stored = partition.get(keys.LEASE.key(page))
            self.want(page, rows.unpack_lease(stored).priority if stored else Priority.ORDERED)
        elif partition.states[page] == _ERROR:
            heapq.heappush(self.retries, (float(due), page))
        elif due and self.ahead is not None and partition.states[page] == _GOOD:
            self.ahead.put_after(page, 0)
        elif due and self.refreshing:
            self.due.file(page, due)

    # -- orders --------------------------------------------------------------------------------------------------

    def orders(self, now: float, room: int) -> list[FetchOrder]:
        """The orders of this turn, most urgent first; at most `room` of them. Within a commit group."""
        self._now = now
        for host in self.limits.renew(now):
            self.resume(host)
        self.pace.renew(now)
        self._go_on_counting()
        room = min(room, ORDERS_OUT - len(self.leases))
        found: list[FetchOrder] = []
        if room > 0:
            self._take_wanted(found, room)
            self._take_retries(found, room, now)
            if self.refreshing and self.gauge is not None:
                self._take_audits(self.gauge.audits, found, room)
            if self.refreshing:
                self._take_lined(found, room, now)
                self._take_due(found, room, now)
            if self.ahead is not None:
                self._take_early(self.ahead, found, room)
            self._take_unread(found, room, now)
            self._busy = len(self.lines) > 0 or self.due.behind or self.discovery.ready > 0
        self.pace.store(self.partition)
        return found

    def _go_on_counting(self) -> None:
        if self.recount is None:
            return
        for page, due in self.recount.step():
            if self.ahead is None:
                self.put_due(page, second(due), hastened=False)
        if self.recount.done:
            self.recount = None

    def _take_wanted(self, found: list[FetchOrder], room: int) -> None:
        while len(found) < room and (page := self.promised.pop()) is not None:
            self._take_one(page, Priority.ORDERED, found)
        for priority, queue in self.wanted.items():
            while queue and len(found) < room:
                self._take_one(queue.popleft(), priority, found)

    def _take_one(self, page: int, priority: Priority, found: list[FetchOrder]) -> None:
        """A page that is still wanted; where an order for it is out, that one moves up instead of waiting its turn."""
        flags = self.partition.flags[page]
        if not flags & WANTED:
            return
        if flags & LEASED:
            found.append(self._raised(page, priority))
        elif not self._park(page):
            row = self.partition.row(page)
            again = priority is Priority.ORDERED and row is not None and row.reads > 0
            if not again or self.promised.pay(page):
                found.append(self._order(page, priority, row))

    def _take_retries(self, found: list[FetchOrder], room: int, now: float) -> None:
        due, states, flags = self.partition.columns["due"], self.partition.states, self.partition.flags
        for _ in range(RETRIES_AT_ONCE):
            if not self.retries or self.retries[0][0] > now or len(found) >= room:
                return
            at, page = heapq.heappop(self.retries)
            if states[page] != _ERROR or flags[page] & LEASED or due[page] > at + 1 or self._park(page):
                continue
            if (promised := self.promised.of(page)) or self._has_room(page):
                row = self.partition.row(page)
                level = Priority.REFRESH if row is not None and row.reads > 0 else Priority.DISCOVER
                found.append(self._order(page, Priority.ORDERED if promised else level, row))
            else:
                heapq.heappush(self.retries, (now + 1.0, page))

    def _take_lined(self, found: list[FetchOrder], room: int, now: float) -> None:
        """Pages that were due before, and have waited for their host since."""
        due, now = self.partition.columns["due"], self.lines.latest(now)

        def valid(page: int) -> bool:
            return bool(0 < due[page] <= now) and self._may_refresh(page)

        def claim(host: int) -> bool:
            return len(found) < room and self.due.affords and self._claim(host)

        most = self.settings.store.leases_per_host
        for page in self.lines.take(self.partition.hosts.leased, most, valid, claim) if self.lines else ():
            self._order_due(found, page, self.partition.row(page))

    def _take_due(self, found: list[FetchOrder], room: int, now: float) -> None:
        """Pages that become due now; those whose host has no room wait for it."""
        later = second(now + self.folders.unit_seconds)
        for page, row in self.due.ready(now, room - len(found)):
            if not self._may_refresh(page):
                continue
            host = self.partition.hosts_of[page]
            if host not in self.lines and self._claim(host):
                self._order_due(found, page, row)
            elif self.partition.columns["due"][page] <= now:
                self.lines.put(host, page)
            else:  # it came before its time
                self.put_due(page, later, hastened=bool(self.partition.flags[page] & HASTENED))

    def _order_due(self, found: list[FetchOrder], page: int, row: RefreshRow | None) -> None:
        if self.partition.states[page] != _DISALLOWED:  # to ask robots.txt again is no read
            self.due.spent()
        found.append(self._order(page, Priority.REFRESH, row))

    def _claim(self, host: int) -> bool:
        """May refresh take a place of this host? Where unread pages wait for it, too, they take turns."""
        hosts = self.partition.hosts
        room = self.settings.store.leases_per_host - int(hosts.leased[host])
        if hosts.waiting[host]:
            return self.turns.refresh(host, self.sharing.gamma, room)
        self.turns.lend(host)
        return room > 0

    def _take_audits(self, audits: Audits, found: list[FetchOrder], room: int) -> None:
        """Pages at random, beside the plan: a full host takes them, too, or what it has to read would be left out."""
        for page in audits.choose(room - len(found)):
            if self._may_refresh(page):
                found.append(self._order(page, Priority.REFRESH, self.partition.row(page)))
            else:
                audits.lost(page)

    def _not_audited(self, page: int) -> None:
        if self.gauge is not None:
            self.gauge.audits.lost(page)

    def _take_early(self, ahead: Ahead, found: list[FetchOrder], room: int) -> None:
        """Keep the fetchers busy with the pages whose turn comes next."""
        lead = min(self.settings.fetch.concurrency, EARLY_PER_HOST * len(self.partition.hosts))
        most = min(lead - len(self.leases), room - len(found))
        for page in ahead.pop(most) if most > 0 else ():
            if not self._may_refresh(page):
                continue
            if self._claim(self.partition.hosts_of[page]):
                found.append(self._order(page, Priority.REFRESH, self.partition.row(page)))
            else:
                ahead.put_after(page, MEAN // 64)

    def _may_refresh(self, page: int) -> bool:
        """Not out already, not out of scope, not to be retried at its own time, and its host is not held."""
        partition = self.partition
        return not (partition.flags[page] & LEASED or partition.states[page] in (_OUT, _ERROR) or self._park(page))

    def _has_room(self, page: int) -> bool:
        host = self.partition.hosts_of[page]
        return bool(self.partition.hosts.leased[host] < self.settings.store.leases_per_host)

    def _take_unread(self, found: list[FetchOrder], room: int, now: float) -> None:
        for page, priority in self.discovery.take(room - len(found), bool(self.leases), self.sharing.gamma):
            host = self.partition.hosts_of[page]
            if host in self.limits.until:
                continue  # its host's budget ended with an order before it
            self.turns.discovery(host)
            row = self.partition.row(page) if self.partition.flags[page] & HINTED else None
            found.append(self._order(page, priority, row))
        if self.sharing.seeks(now):
            self.sharing.hear(self.discovery.margin(self.pace, now), now)

    def _order(self, page: int, priority: Priority, row: RefreshRow | None) -> FetchOrder:
        partition = self.partition
        self._count += 1
        epoch = self.boot << 32 | self._count
        partition.lease(page)
        self.leases[page] = Lease(epoch, row)
        self.limits.count(partition.hosts_of[page], self._now)
        return self._message(page, priority, self.leases[page])

    def _raised(self, page: int, priority: Priority) -> FetchOrder:
        """The order that is out for the page, again, to take another level in the fetch queue."""
        return replace(self._message(page, priority, self.leases[page]), raised=True)

    def _message(self, page: int, priority: Priority, lease: Lease) -> FetchOrder:
        partition = self.partition
        host = partition.hosts.clocks.get(partition.hosts_of[page])
        known = lease.row or _NOTHING
        whole = priority is Priority.BLOCKING or not self.settings.store.links
        return FetchOrder(
            page=page + partition.base,
            url=partition.url(page),
            priority=priority,
            epoch=lease.epoch,
            depth=int(partition.columns["depth"][page]),
            etag="" if whole else known.etag,
            last_modified="" if whole else known.last_modified,
            signature=known.signature,
            attempt=known.failures,
            not_before=host.next_at if host else 0.0,
            deadline=self.promised.deadline(page, self._now) if priority is Priority.ORDERED else 0.0,
        )

    # -- rest ----------------------------------------------------------------------------------------------------

    def next_time(self) -> float:
        """When something becomes due that is not yet out (wall clock); infinite if nothing will."""
        if self.ahead or self.recount is not None:
            return 0.0
        retry = self.retries[0][0] if self.retries else math.inf
        due = self.due.next_time(self._now) if self.refreshing else math.inf
        credit = self.due.next_credit(self._now) if self.lines else math.inf
        opens = min((until for until, _ in self.limits.until.values()), default=math.inf)
        return min(retry, due, credit, opens, self.promised.next_time(self._now))
