"""Orders that are out: a lease is (page, epoch).

The epoch carries the number of the process's start, so reports of orders of an earlier run are recognised as stale.
Nothing of a lease is stored: after a restart the queues are found again from the columns (schedule.py, discovery.py)
and
from the rows of what is wanted (requests.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from xyro.metadata.manager import Partition
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import HINTED
from xyro.wire.messages import FetchOrder, Priority

_NOTHING = RefreshRow()


class Lease(NamedTuple):
    """An order that is out. `row`: the page's Refresh-Data when it left, None where there was none."""

    epoch: int
    row: RefreshRow | None


class Leases:
    """Of one partition, by page. Invariant: a page has the flag LEASED exactly while it is here.

    whole: pages are always read as a whole, for nothing stored can stand for an unchanged one.
    """

    def __init__(self, partition: Partition, whole: bool) -> None:
        self.partition = partition
        self.boot = 1
        """the number of the process's start"""
        self._whole = whole
        self._count = 0
        self._out: dict[int, Lease] = {}

    def __len__(self) -> int:
        return len(self._out)

    def __contains__(self, page: int) -> bool:
        return page in self._out

    def get(self, page: int) -> Lease | None:
        return self._out.get(page)

    def is_out(self, page: int, epoch: int) -> bool:
        """Is this very order out, rather than an older or a later one for the page?"""
        lease = self._out.get(page)
        return lease is not None and lease.epoch == epoch

    def order(self, page: int, priority: Priority, row: RefreshRow | None, deadline: float) -> FetchOrder:
        """Give out an order. deadline: by which it is sorted among those of its host, 0 = none."""
        self._count += 1
        lease = self._out[page] = Lease(self.boot << 32 | self._count, row)
        self.partition.lease(page)
        return self._message(page, priority, lease, deadline)

    def raised(self, page: int, priority: Priority, deadline: float) -> FetchOrder:
        """The order that is out for the page, again, to take another level in the fetch queue."""
        return replace(self._message(page, priority, self._out[page], deadline), raised=True)

    def settle(self, page: int) -> RefreshRow | None:
        """The order is answered: its lease ends. The page's Refresh-Data as it is stored now, over which the report is
        laid: while the order was out it may have changed (evidence of its change rate, a switch of policy)."""
        self.partition.unlease(page)
        lease = self._out.pop(page)
        stored = lease.row is not None or self.partition.flags[page] & HINTED
        return self.partition.row(page) if stored else None

    def _message(self, page: int, priority: Priority, lease: Lease, deadline: float) -> FetchOrder:
        partition = self.partition
        host = partition.hosts.clocks.get(partition.hosts_of[page])
        known = lease.row or _NOTHING
        whole = self._whole or priority is Priority.BLOCKING
        return FetchOrder(
            page=partition.id_of(page),
            url=partition.url(page),
            priority=priority,
            epoch=lease.epoch,
            depth=int(partition.columns["depth"][page]),
            etag="" if whole else known.etag,
            last_modified="" if whole else known.last_modified,
            signature=known.signature,
            attempt=known.failures,
            not_before=host.next_at if host else 0.0,
            deadline=deadline,
        )
