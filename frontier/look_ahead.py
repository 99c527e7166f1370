"""Look-ahead: how many orders a host has out, so that it never waits for a turn; of both kinds where it has both.

Before: frontier.py has applied the reports of the turn, which say what is still out. After: revisits.py and
discovery.py fill up what their kind lacks, and the fetch queue takes orders by gamma when the host is read.

The queue can keep gamma only while both kinds are there. A fast host uses up all it has before the next turn comes, so
what it has is divided by gamma, too: then every turn's reads are, however few or many they are. Where fewer unread
pages are known than are discovery's part, these are all out, and refresh may take what its host allows.

A crawl that has read little of a host looks only a few pages ahead, for what these show may be better than all that is
known yet: a trap gains 20 to 40 of 300 reads by orders that are older. It looks twice as far where that was used up
before the turn came: a host of a hundred pages a second had four orders for fifty milliseconds, and then none. That
ends by halves where they are used up no more. A host that is alone is not held up so, for the turn comes at once where
nothing else is being read.

Of a host that is left alone between two reads, no more is out than is read within REACH, or the least of each kind:
what waits longer waits where the most overdue is chosen (HostQueues). With 64 orders out, the front page of a host of
one read in ten seconds waited for ten minutes each time. Audits, and what people want, come on top.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xyro.configs.schema import PolitenessSettings
from xyro.frontier.host_limits import HostLimits
from xyro.frontier.leases import OrderQuota
from xyro.metadata.partition import Partition

LEAST_AHEAD = 4
"""orders of a host that may always be out"""
AHEAD_PER_ORDER = 16
"""orders that a host got, for one more that may be out"""
LEAST_DUE = 2
"""orders for known pages that may always be out of a host without unread pages: one is read, the next waits"""
REACH = 10.0
"""seconds of a slow host's reads that are ordered at once"""
STRETCHED = 60.0
"""seconds after which hosts that have not used up their orders are looked half as far ahead of again: one that needs it
has it back soon, and one that waited because of a stall does not keep it"""
Places = NDArray[np.int32]
Counts = NDArray[np.uint32]


class LookAhead:
    """`renew` in each turn before orders are chosen. By host number; a host that is met later has its place then."""

    def __init__(
        self,
        partition: Partition,
        host_limits: HostLimits,
        order_quota: OrderQuota,
        refreshing: bool,
        politeness: PolitenessSettings,
    ) -> None:
        self.partition = partition
        self.host_limits = host_limits
        self.order_quota = order_quota
        self.refreshing = refreshing
        self.usual_gap = politeness.usual_gap
        """seconds between two reads of a host that has not answered yet"""
        self.stock: Places = np.zeros(0, np.int32)
        """orders for known pages that are to be out before their time: 0 where the host has no unread pages that are
        worth reads"""
        self.places: Places = np.zeros(0, np.int32)
        """orders for known pages that may be out"""
        self._ahead: Places = np.zeros(0, np.int32)
        """orders that are to be out of the kind that gets more"""
        self._unread: Places = np.zeros(0, np.int32)
        """orders for unread pages that are to be out where known pages have theirs"""
        self._revisits: Places = np.zeros(0, np.int32)
        """orders for known pages that are to be out where there are unread ones"""
        self._stretch: Places = np.zeros(0, np.int32)
        """how many times as far is looked ahead"""
        self._halved_at = 0.0
        """when these were last halved; wall clock, seconds"""
        self._had_both: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """at the turn before there were unread pages to choose from, and orders for known ones"""
        self._orders: Counts = np.zeros(0, np.uint32)
        """orders for unread pages that hosts had got at the turn before"""

    def follow(self, politeness: PolitenessSettings) -> None:
        """Take what hosts are left alone for of other settings."""
        self.usual_gap = politeness.usual_gap

    def renew(self, gamma: float, discovering: bool, others: bool, now: float) -> None:
        """Let both kinds be out in the proportion of gamma, percent for discovery, but at least one order of each.
        discovering: may unread pages be ordered at all? others: pages of other partitions are being read."""
        hosts, count, limit = self.partition.hosts, len(self.partition.hosts), self.order_quota.per_host
        orders = self.partition.standing.of_hosts(count).copy()
        ahead = np.maximum(
            LEAST_AHEAD * self._stretched(orders, limit, others or self.order_quota.leased > 0, now),
            orders // AHEAD_PER_ORDER,
        )
        reach = np.rint(REACH / np.maximum(hosts.gaps(self.usual_gap), REACH / limit))
        self._ahead = np.minimum(ahead, np.maximum(reach, min(LEAST_AHEAD, limit))).astype(np.int32)
        if not self.refreshing:
            return
        greater = max(gamma, 100.0 - gamma)
        self._unread, self._revisits = (
            np.maximum(np.rint(self._ahead * (percent / greater)), 1).astype(np.int32)
            for percent in (gamma, 100.0 - gamma)
        )
        unread = hosts.waiting[:count] + hosts.exploring[:count]
        contested = (unread > 0) & hosts.open[:count] & ~hosts.barren[:count]
        if self.host_limits.until:
            contested &= ~self.host_limits.shut[:count]
        self.stock = np.where(contested, self._revisits, 0)
        shared = contested & (unread >= self._unread) & discovering
        self.places = np.where(shared, self._revisits, np.maximum(reach, min(LEAST_DUE, limit))).astype(np.int32)

    def _stretched(self, orders: Counts, limit: int, is_reading: bool, now: float) -> Places:
        """Return how many times as far is looked ahead, twice as far where the orders (of both kinds, where known pages
        are read again) were used up since the turn before: a slow host lacks one kind at a time, and gets it at
        once."""
        hosts, count = self.partition.hosts, len(orders)
        if count > len(self._stretch):
            self._stretch = np.concatenate([self._stretch, np.ones(2 * count - len(self._stretch), np.int32)])
        if self.refreshing:
            before = len(self._had_both)
            used_up = self._had_both & (2 * hosts.revisiting[:before] <= self._revisits)
        else:
            before = len(self._orders)
            used_up = (orders[:before] > self._orders) & (hosts.waiting[:before] > 0) & is_reading
        used_up &= 4 * hosts.exploring[:before] <= self._ahead[:before]
        stretch = self._stretch[:count]
        further = np.minimum(2 * stretch[:before][used_up], limit)
        if not self._halved_at <= now < self._halved_at + STRETCHED:
            self._halved_at = now
            np.maximum(stretch // 2, 1, out=stretch)
        stretch[:before][used_up] = further
        self._orders = orders
        return stretch

    def lacking(self) -> list[tuple[int, int]]:
        """(host, orders for known pages that it lacks) of those that have used up half of their stock."""
        out, stock = self.partition.hosts.revisiting[: len(self.stock)], self.stock
        numbers = np.flatnonzero((stock > 0) & (2 * out <= stock))
        return list(zip(numbers.tolist(), (stock[numbers] - out[numbers]).tolist(), strict=True))

    def spare(self) -> Places:
        """Places for unread pages: all that are free where half of them are (a scan for every single place would be
        dear). Where known pages are too few for gamma, they bound nothing."""
        hosts, count = self.partition.hosts, len(self.partition.hosts)
        exploring, waiting, ahead = hosts.exploring[:count], hosts.waiting[:count] > 0, self._ahead
        if self.refreshing:
            revisiting = hosts.revisiting[:count]
            self._had_both = waiting & (revisiting > 0)
            ahead = np.where(2 * revisiting < self._revisits, ahead, self._unread)
        ahead = np.minimum(ahead, self.order_quota.per_host)  # what known pages took in this turn counts
        asked = hosts.open[:count] & waiting & (2 * exploring <= ahead)
        if self.host_limits.until:
            asked &= ~self.host_limits.shut[:count]
        return np.where(asked, ahead - exploring, 0).astype(np.int32)

    def admits(self, host: int) -> bool:
        """Tell whether a known page of a host may be ordered now."""
        hosts = self.partition.hosts
        out = hosts.leased[host] - hosts.exploring[host]
        return bool(out < self.places[host]) and self.order_quota.room(host) > 0
