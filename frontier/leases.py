"""Orders that are out, how many may be, and pages that wait until one may go out.

Before: scheduler.py has chosen a page. After: its order is in the fetch queue of service/node, and comes back as a
report.

    Leases       a lease is (page, epoch). The epoch carries the number of the process's start, so reports of orders of
                 an earlier run are recognised as stale. Nothing of a lease is stored: after a restart the queues are
                 found again from the columns (revisit_dates.py, discovery.py) and from the rows of what is wanted
                 (requests.py)
    OrderQuota   how many orders may be out: in all, of one host, and of either kind while places are scarce
    HostQueues   pages before hosts that have no room, 12 bytes a page: filled by revisits.py with due pages, of which
                 the most overdue is served first, and by scheduler.py with what people want of a host with very many
                 orders out: first come, first served
    Parking      pages of hosts that a person holds, or that [[blackouts]] and [[budgets]] shut (host_limits.py): filled
                 by the scheduler with whatever it would order there, emptied when the host opens

What lies in a host's queue or is parked is a hint and never stored: the columns decide whether the page is still to be
read, and a restart finds it where all others are found.

The fetch queue is bounded by ORDERS_OUT. Few hosts never notice. Many with long backlogs would fill it, and hosts that
come later, with pages never read among them, would wait until a backlog is gone. So, once half of the places are taken:

    a host     gets the fewer the less is free (dynamic thresholds: Choudhury, Hahne, IEEE/ACM ToN 6(2) 1998). Whoever
               holds more gets none until it has less, so something is always free for a host that has none
    refresh    gets its part by gamma of what is free, while unread pages wait: so gamma holds over all hosts, too
    wanted     of pages that people want (they may hand in a million) WANTED of one host are out, the rest waits
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from xyro.frontier.host_limits import HostLimits
from xyro.metadata.hosts import Hosts
from xyro.metadata.partition import Partition
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import HINTED
from xyro.refresh.due import OverduePages
from xyro.wire.ids import LocalPage
from xyro.wire.messages import FetchOrder, Priority

_NOTHING = RefreshRow()


class Lease(NamedTuple):
    """An order that is out. `row`: the page's Refresh-Data when it left, None where there was none."""

    epoch: int
    row: RefreshRow | None
    priority: Priority
    since: float
    """seconds since 1970: when the page was due, or its order was given this priority"""


class Leases:
    """The leases of one partition, by page. Invariant: a page has the flag LEASED exactly while it is here.

    whole: pages are always read as a whole, for nothing stored can stand for an unchanged one.
    """

    def __init__(self, partition: Partition, whole: bool) -> None:
        self.partition = partition
        self.boot = 1
        """the number of the process's start"""
        self._whole = whole
        self._count = 0
        self._out: dict[LocalPage, Lease] = {}

    def begin_epoch(self, boot: int) -> None:
        """Number the orders of this process by its start, so that no order of an earlier process has the same."""
        self.boot = boot

    def __len__(self) -> int:
        return len(self._out)

    def __contains__(self, page: LocalPage) -> bool:
        return page in self._out

    def get(self, page: LocalPage) -> Lease | None:
        return self._out.get(page)

    def is_out(self, page: LocalPage, epoch: int) -> bool:
        """Tell whether this very order is out, not an older or a later one for the page."""
        lease = self._out.get(page)
        return lease is not None and lease.epoch == epoch

    def order(
        self, page: LocalPage, priority: Priority, row: RefreshRow | None, deadline: float, since: float
    ) -> FetchOrder:
        """Give out an order. deadline: by which it is sorted among those of its host, 0 = none. since: see Lease."""
        lease = self._out[page] = Lease(self.next_epoch(), row, priority, since)
        self.partition.lease(page)
        return self._message(page, lease, deadline)

    def next_epoch(self) -> int:
        """Number an order that no other has, in this process or an earlier one."""
        self._count += 1
        return self.boot << 32 | self._count

    def raised(self, page: LocalPage, priority: Priority, deadline: float, now: float) -> FetchOrder:
        """The order that is out for the page, again, to take another level in the fetch queue."""
        lease = self._out[page]
        if priority < lease.priority:
            lease = self._out[page] = lease._replace(priority=priority, since=now)
        return replace(self._message(page, lease, deadline), raised=True)

    def settle(self, page: LocalPage) -> tuple[Lease, RefreshRow | None]:
        """The order is answered: its lease ends. The page's Refresh-Data as it is stored now, over which the report is
        laid: while the order was out it may have changed (evidence of its change rate, a switch of policy)."""
        self.partition.unlease(page)
        lease = self._out.pop(page)
        stored = lease.row is not None or self.partition.flags[page] & HINTED
        return lease, self.partition.row(page) if stored else None

    def _message(self, page: LocalPage, lease: Lease, deadline: float) -> FetchOrder:
        partition = self.partition
        host = partition.hosts.clocks.get(partition.hosts_of[page])
        row = lease.row or _NOTHING
        whole = self._whole or lease.priority is Priority.BLOCKING
        return FetchOrder(
            page=partition.id_of(page),
            url=partition.url(page),
            priority=lease.priority,
            epoch=lease.epoch,
            etag="" if whole else row.etag,
            last_modified="" if whole else row.last_modified,
            attempt=row.failures,
            not_before=host.next_at if host else 0.0,
            deadline=deadline,
        )


ORDERS_OUT = 50_000
"""most orders out at once, of a partition: about 30 MB"""
PLENTY = 0.5
"""share of the places below which they are scarce"""
WANTED = 1024
"""most orders of a host that people want, while there are places in plenty: half an hour of a polite crawl"""


class OrderQuota:
    """The places for orders of one scheduler. Invariant: they follow from the orders that are out, and nothing else."""

    def __init__(self, leases: Leases, hosts: Hosts, places: int) -> None:
        """most: orders of a host while there are places in plenty (`leases_per_host`)."""
        self._leases = leases
        self._hosts = hosts
        self._places = places
        self._carry = 0.0
        """of a place, that rounding has kept from discovery so far"""

    @property
    def free(self) -> int:
        return ORDERS_OUT - self.leased

    @property
    def leased(self) -> int:
        return len(self._leases)

    @property
    def per_host(self) -> int:
        """Most orders of a host that each side of the plan, discovery and refresh, may have out now: 1 to `most`."""
        return self._share_of(self._places)

    @property
    def wanted_per_host(self) -> int:
        """Return the limit for orders that people want."""
        return self._share_of(max(WANTED, self._places))

    def _share_of(self, places: int) -> int:
        return max(1, min(places, int(places * self.free / (PLENTY * ORDERS_OUT))))

    @property
    def scarce(self) -> bool:
        return self.free < PLENTY * ORDERS_OUT

    def room(self, host: int) -> int:
        """Orders that refresh may still give out for a host; below 0 where it got more in better times."""
        return self.per_host - int(self._hosts.leased[host] - self._hosts.exploring[host])

    def part(self, room: int, gamma: float) -> int:
        """Return refresh's part of the free places, while unread pages wait; gamma: percent for discovery. Over many
        calls the
        parts are exact, however small the rooms are."""
        refreshed = room * gamma / 100.0 + self._carry
        self._carry = refreshed - int(refreshed)
        return room - int(refreshed)


class HostQueues:
    """By host number. Invariant: no line is empty."""

    def __init__(self) -> None:
        self._lines: dict[int, OverduePages] = {}
        self._latest = 0.0

    def __len__(self) -> int:
        """Hosts with a line."""
        return len(self._lines)

    def __iter__(self) -> Iterator[int]:
        """Hosts with a line."""
        return iter(self._lines)

    def __contains__(self, host: int) -> bool:
        return host in self._lines

    def pages(self) -> int:
        """Entries, stale ones included."""
        return sum(map(len, self._lines.values()))

    def latest(self, now: float) -> float:
        """The latest time that was ever told here: a clock that is set back does not make a page less due, which would
        leave its line for good."""
        self._latest = max(self._latest, now)
        return self._latest

    def put(self, host: int, page: LocalPage, since: int, interval: float = 1.0) -> None:
        """Let a page wait that was read then (seconds since 1970), and is to be read once in so many seconds; of those
        without an interval the first that came is served first, since then."""
        line = self._lines.get(host)
        if line is None:
            line = self._lines[host] = OverduePages()
        line.put(page, since, interval)

    def is_full(self, host: int) -> bool:
        """Tell whether so many pages wait for this host that others, which are not lost by it, are to come later."""
        return host in self._lines and self._lines[host].full

    def take(
        self,
        admitted: NDArray[np.bool_],
        now: float,
        valid: Callable[[LocalPage, int], bool],
        claim: Callable[[int], bool],
    ) -> Iterator[LocalPage]:
        """Pages whose turn it is, host by host. Hosts that were served go behind those that were not: where places or
        bandwidth are too few for all, each gets its turn.

        admitted: by host number, is there room? now: by which pages are overdue. valid: is the page, put in as read
        then, still to be read? Others leave the line. claim: may its host's place be taken now? Else the page stays.
        """
        hosts = np.fromiter(self._lines, np.int64, len(self._lines))
        for host in hosts[admitted[hosts]].tolist():
            line = self._lines[host]
            while (first := line.first(now)) is not None and (not (wanted := valid(*first)) or claim(host)):
                line.take(now)
                if wanted:
                    self._lines[host] = self._lines.pop(host)
                    yield first[0]
            if not line:
                del self._lines[host]


class Parking:
    """Pages of one partition that wait for their host to open, by host."""

    def __init__(self, partition: Partition, host_limits: HostLimits) -> None:
        self.partition = partition
        self.host_limits = host_limits
        self._pages: dict[int, list[LocalPage]] = {}

    def __len__(self) -> int:
        """Hosts with pages that were put aside."""
        return len(self._pages)

    def pages(self) -> int:
        return sum(map(len, self._pages.values()))

    def park(self, page: LocalPage) -> bool:
        """Put a page of a held or shut host aside. False: its host is open."""
        host = self.partition.hosts_of[page]
        if not self.is_shut(host):
            return False
        self._pages.setdefault(host, []).append(page)
        return True

    def is_shut(self, host: int) -> bool:
        """Tell whether a host is held or shut."""
        return not self.partition.hosts.open[host] or host in self.host_limits.until

    def leave(self, host: int) -> list[LocalPage]:
        """The host is open again: its pages, to be queued."""
        return self._pages.pop(host, [])

    @property
    def shut_out(self) -> bool:
        """Do pages wait for the end of a blackout, or for a new day's budget?"""
        return any(
            self._pages.get(host)
            for host, (_, reason) in self.host_limits.until.items()
            if reason != "challenge" and self.partition.hosts.open[host]
        )

    def has(self, host: int) -> bool:
        """Tell whether pages of a host were put aside."""
        return bool(self._pages.get(host))
