"""What to read next, of one partition: what people and loaders order, retries, pages that are due, pages that are rich.

    wanted    filled by submits and loads, emptied by every turn; kept in LEASE rows over a restart
    retries   filled by temporary failures, emptied when their time has come
    folders   filled by every read while refreshing (P1 6.6: a folder a time unit), emptied when the unit has begun
    unread    not a queue: a scan of the columns for hosts that run low on orders (refresh/plan.py chooses)
    parked    filled from the first three with pages of hosts that a person holds, emptied when the host is resumed

At most `leases_per_host` orders a host are out (BLOCKING and ORDERED ones may exceed it), and ORDERS_OUT in all: that
bounds the fetch queue. A lease is (page, epoch); the epoch carries the number of the process's start, so reports of
orders of an earlier run are recognised as stale. Only wanted orders are stored: all others are found again from the
columns. What a queue says is a hint: the columns decide whether the page is still wanted, due or to be tried again.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from configs.schema import Settings
from crawl.purse import NO_PAGES, Purse
from metadata import keys, rows
from metadata.manager import Partition
from metadata.rows import RefreshRow
from metadata.states import HINTED, LEASED, WANTED, State
from metadata.visits import Visit
from opic.choose import Sweep
from refresh.ahead import MEAN, Ahead
from refresh.due import DueFolders
from refresh.interval import Spread, weight
from refresh.plan import choose, crowd
from refresh.split import BandwidthMeter
from wire.messages import FetchOrder, PageReport, Priority

ORDERS_OUT = 50_000
"""most orders out at once, of a partition: about 30 MB"""
SCAN = 1 << 17
"""most pages that one turn looks at for unread ones: 0.3 ms"""
EARLY_PER_HOST = 4
"""orders out per host that are given ahead of their time: enough to keep it busy, few enough that the order is fresh"""
DUE_AT_ONCE = 512
"""most due pages, and most retries, that one turn looks at"""
DAY = 86_400.0
LATEST = 0xFFFF_FFFF
"""the last time that the column `due` can tell"""
LOOK_AGAIN = 30 * DAY
"""a page that failed for good is tried once more after this long (refreshing only)"""
_NOTHING = RefreshRow()
_GOOD, _FAILED_FOR_NOW = State.READ, State.ERROR
_UNREAD, _ERROR, _OUT = map(int, (State.UNREAD, State.ERROR, State.OUT))


class Lease(NamedTuple):
    """An order that is out. `row`: the page's Refresh-Data when it left."""

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
        self._weighted = 0
        """pages with a weight in S"""
        self.leases: dict[int, Lease] = {}
        self.wanted: dict[Priority, deque[int]] = {Priority.BLOCKING: deque(), Priority.ORDERED: deque()}
        self.retries: list[tuple[float, int]] = []
        self.parked: dict[int, list[int]] = {}
        self.folders = DueFolders(1 if settings.crawl.refresh else settings.refresh.time_unit)
        self.spread = Spread()
        self.meter = BandwidthMeter(settings.refresh.bandwidth)
        self.finder = Sweep(target=0.1)
        self.boot = 1
        self._count = 0
        self._reads = 0
        self._pace = 0.0
        """reads a second, as of this turn"""

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        return {"spread": self.spread.dump(), "finder": self.finder.dump(), "boot": self.boot, "reads": self._reads}

    def load(self, state: Mapping[str, Any]) -> None:
        self.spread = Spread.load(state["spread"])
        self.finder = Sweep.load(state["finder"])
        self.boot = state["boot"] + 1
        self._reads = state["reads"]

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
            begins = due[pages].astype(np.int64) + self.folders.unit_seconds - 1
            self.folders.add(pages, np.minimum(begins, LATEST).astype(np.uint32))

    def want(self, page: int, priority: Priority) -> None:
        self.wanted[Priority.BLOCKING if priority is Priority.BLOCKING else Priority.ORDERED].append(page)

    # -- reports -------------------------------------------------------------------------------------------------

    def settle(self, page: int) -> Lease:
        """The order is answered: its lease ends."""
        self.partition.unlease(page)
        return self.leases.pop(page)

    def drop(self, page: int, epoch: int) -> None:
        """The order was taken back unread (a person blocked its host): it is to be given out again, later."""
        lease = self.leases.get(page)
        if lease is not None and lease.epoch == epoch:
            self.settle(page)
            if not self._park(page):
                self._put_back(page)

    def answered(self, reads: int, now: float) -> None:
        """So many orders of this turn were answered by the web; their pages are dated next."""
        if reads:
            self.meter.count(now, reads)
        self._reads += reads
        self._pace = self.meter.rate(now)

    def date(
        self,
        page: int,
        report: PageReport,
        visit: Visit,
        row: RefreshRow | None,
        importance: float,
        rate: float,
        now: float,
    ) -> tuple[int, float]:
        """(next read in seconds since 1970, 0 = none; weight of the page in S) after a report."""
        old = row.weight if row is not None else 0.0
        state = visit.state
        if state is _FAILED_FOR_NOW:
            heapq.heappush(self.retries, (report.retry_at, page))
            return _second(report.retry_at), old
        heavy = weight(importance, rate) if state is _GOOD else 0.0
        self.spread.replace(old, heavy)
        self._weighted += (heavy > 0.0) - (old > 0.0)
        wait = self.interval(heavy) if state is _GOOD else self._look_again(report, visit)
        due = _second(now + wait) if wait else 0
        if self.ahead is not None and state is _GOOD:
            self.ahead.put(page, heavy, self.spread.total / max(self._weighted, 1))
        elif due:
            self._file(page, due)
        return due, heavy

    def _look_again(self, report: PageReport, visit: Visit) -> float:
        """Seconds to the next try of a page that failed for good, 0 = none is planned."""
        if visit.state is State.DEAD or visit.state is State.BLOCKED:
            return 0.0
        if report.error in ("http-404", "http-410"):
            return self.settings.crawl.confirm_dead
        return DAY if visit.state is State.DISALLOWED else LOOK_AGAIN

    def interval(self, heavy: float) -> float:
        """t = K / sqrt(r lambda) within the bounds of the settings (P1 eq. 22)."""
        bounds = self.settings.refresh
        return self.spread.interval(heavy, self._pace, max(1.0, bounds.min_interval), bounds.max_interval)

    def put_due(self, page: int, due: int) -> None:
        """Date a page anew."""
        self.partition.columns["due"][page] = due
        self.partition.columns.touch("due", page)
        self._file(page, due)

    def _file(self, page: int, due: int) -> None:
        """Into the folder of the first time unit that begins when the page is due: never read early, a unit late."""
        if self.refreshing:
            self.folders.put(page, min(due + self.folders.unit_seconds - 1, LATEST))

    def retire(self, page: int) -> None:
        """The page left the scope: it is read no more, and its weight leaves S. No order for it may be out."""
        self.partition.columns["due"][page] = 0
        self.partition.columns.touch("due", page)
        row = self.partition.row(page)
        if row is not None and row.weight:
            self.spread.replace(row.weight, 0.0)
            self._weighted -= 1
            self.partition.put(keys.REFRESH.key(page), rows.pack(msgspec.structs.replace(row, weight=0.0)))

    # -- hosts that a person holds -------------------------------------------------------------------------------

    def _park(self, page: int) -> bool:
        """Put a page of a held host aside. False: its host is not held."""
        host = self.partition.hosts_of[page]
        if self.partition.hosts.open[host]:
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
        elif due:
            self._file(page, due)

    # -- orders --------------------------------------------------------------------------------------------------

    def orders(self, now: float, room: int) -> list[FetchOrder]:
        """The orders of this turn, most urgent first; at most `room` of them."""
        room = min(room, ORDERS_OUT - len(self.leases))
        found: list[FetchOrder] = []
        self._pace = self.meter.rate(now)
        if room > 0:
            self._take_wanted(found, room)
            self._take_retries(found, room, now)
            if self.refreshing:
                self._take_due(found, room, now)
            if self.ahead is not None:
                self._take_early(self.ahead, found, room)
            self._take_unread(found, room)
        return found

    def _take_wanted(self, found: list[FetchOrder], room: int) -> None:
        flags = self.partition.flags
        for priority, queue in self.wanted.items():
            while queue and len(found) < room:
                page = queue.popleft()
                if flags[page] & WANTED and not flags[page] & LEASED and not self._park(page):
                    found.append(self._order(page, priority, self.partition.row(page)))

    def _take_retries(self, found: list[FetchOrder], room: int, now: float) -> None:
        due, states, flags = self.partition.columns["due"], self.partition.states, self.partition.flags
        for _ in range(DUE_AT_ONCE):
            if not self.retries or self.retries[0][0] > now or len(found) >= room:
                return
            at, page = heapq.heappop(self.retries)
            if states[page] != _ERROR or flags[page] & LEASED or due[page] > at + 1 or self._park(page):
                continue
            if self._has_room(page):
                row = self.partition.row(page)
                read_before = row is not None and row.reads > 0
                found.append(self._order(page, Priority.REFRESH if read_before else Priority.DISCOVER, row))
            else:
                heapq.heappush(self.retries, (now + 1.0, page))

    def _take_due(self, found: list[FetchOrder], room: int, now: float) -> None:
        partition, unit = self.partition, self.folders.unit_seconds
        most = min(DUE_AT_ONCE, room - len(found))
        # with nothing else to read an early page costs nobody; and B, which fell as nothing was read, says nothing then
        contested = self._pace > 0.0 and self.unread > 0
        for page in self.folders.pop(int(now), most).tolist() if most > 0 else ():
            if not 0 < partition.columns["due"][page] <= now:
                continue  # stale: it was read since and lies in a later folder
            if not self._may_refresh(page):
                continue
            row = partition.row(page) or _NOTHING
            later = row.last_read + self.interval(row.weight) if row.weight else now
            if contested and later >= now + unit:
                self.put_due(page, _second(later))  # K grew since it was dated
            elif not self._has_room(page):
                self.put_due(page, _second(now + unit))
            else:
                found.append(self._order(page, Priority.REFRESH, row))

    def _take_early(self, ahead: Ahead, found: list[FetchOrder], room: int) -> None:
        """Keep the fetchers busy with the pages whose turn comes next."""
        lead = min(self.settings.fetch.concurrency, EARLY_PER_HOST * len(self.partition.hosts))
        most = min(lead - len(self.leases), room - len(found))
        for page in ahead.pop(most) if most > 0 else ():
            if not self._may_refresh(page):
                continue
            if self._has_room(page):
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

    def _take_unread(self, found: list[FetchOrder], room: int) -> None:
        """Refill hosts that run low, each up to its room, in one choice over the pages scanned."""
        hosts, most = self.partition.hosts, self.settings.store.leases_per_host
        count = len(hosts)
        room -= len(found)
        hungry = hosts.open[:count] & (hosts.waiting[:count] > 0) & (hosts.leased[:count] <= most // 2)
        if room <= 0 or not hungry.any():
            return
        spare = np.where(hungry, most - hosts.leased[:count], 0).astype(np.int32)
        pages = self._unread(hungry)
        if not len(pages):
            return
        cash = self.purse.effective(pages)
        urgency = self._urgency(pages, cash)
        wanted = min(room, int(np.minimum(spare, hosts.waiting[:count]).sum()))
        if len(pages) > wanted:
            near = crowd(urgency, wanted)
            pages, cash, urgency = pages[near], cash[near], urgency[near]
        chosen = choose(urgency, self.partition.columns["host"][pages], spare, wanted)
        theta = math.inf if self.scouting else self.finder.theta
        for page, units in zip(pages[chosen].tolist(), cash[chosen].tolist(), strict=True):
            priority = Priority.DISCOVER if units >= theta else Priority.SCOUT
            row = self.partition.row(page) if self.partition.columns["flags"][page] & HINTED else None
            found.append(self._order(page, priority, row))

    def _urgency(self, pages: NDArray[np.int64], cash: NDArray[np.int64]) -> NDArray[np.int64]:
        """Breadth first while scouting, then cash, or what reaches the page's site as far as site_weight says."""
        if self.scouting:
            return -self.partition.columns["depth"][pages].astype(np.int64)
        weight, sites = self.settings.opic.site_weight, self.purse.sites
        if not weight or sites is None:
            return cash
        return sites.mixed(cash, self.partition.columns["host"][pages], weight)

    @property
    def scouting(self) -> bool:
        """Few pages were read yet: breadth first (P1 section 3)."""
        return self._reads < self.settings.refresh.scout_pages

    def _unread(self, hungry: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Unread pages of hungry hosts among the next SCAN pages; on through all pages while nothing is out at all."""
        columns, n = self.partition.columns, self.partition.columns.n
        scanned = 0
        while scanned < n:
            start, stop = self.finder.chunk(n, SCAN)
            scanned += stop - start
            unread = columns["state"][start:stop] == _UNREAD
            unread &= (columns["flags"][start:stop] & LEASED) == 0
            pages = np.flatnonzero(unread) + start
            rich = self.purse.effective(pages) >= self.finder.theta
            self.finder.adapt(len(pages), int(rich.sum()))
            pages = pages[hungry[columns["host"][pages]]]
            if len(pages) or self.leases:
                return pages
        return NO_PAGES

    def _order(self, page: int, priority: Priority, row: RefreshRow | None) -> FetchOrder:
        partition = self.partition
        self._count += 1
        epoch = self.boot << 32 | self._count
        partition.lease(page)
        self.leases[page] = Lease(epoch, row)
        host = partition.hosts.clocks.get(partition.hosts_of[page])
        known = row or _NOTHING
        whole = priority is Priority.BLOCKING or not self.settings.store.links
        return FetchOrder(
            page=page + partition.base,
            url=partition.url(page),
            priority=priority,
            epoch=epoch,
            depth=int(partition.columns["depth"][page]),
            etag="" if whole else known.etag,
            last_modified="" if whole else known.last_modified,
            signature=known.signature,
            attempt=known.failures,
            not_before=host.next_at if host else 0.0,
        )

    # -- rest ----------------------------------------------------------------------------------------------------

    def next_time(self) -> float:
        """When something becomes due that is not yet out (wall clock); infinite if nothing will."""
        if self.ahead:
            return 0.0
        retry = self.retries[0][0] if self.retries else math.inf
        due = self.folders.next_due() if self.refreshing else None
        return min(retry, math.inf if due is None else float(due))

    @property
    def unread(self) -> int:
        """Unread pages in scope that wait for an order, of hosts that nobody holds."""
        hosts = self.partition.hosts
        count = len(hosts)
        return int(hosts.waiting[:count][hosts.open[:count]].sum())


def _second(when: float) -> int:
    """The first full second from `when` on, as the column `due` holds it."""
    return min(max(math.ceil(when), 0), LATEST)
