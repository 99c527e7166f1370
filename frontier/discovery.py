"""Unread pages: not a queue, a scan of the columns for hosts that run low on orders (refresh/sharing.py chooses).

While few pages are read, breadth first; then the richest first (P1 s.3). With gamma = "auto" the index of the
poorest that are chosen says how much an unread page is worth beside one that is due (bandwidth.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from xyro.configs.schema import Settings
from xyro.frontier.bandwidth import DAY, Bandwidth
from xyro.frontier.host_inflow import mixed
from xyro.frontier.host_limits import HostLimits
from xyro.frontier.leases import OrderQuota
from xyro.frontier.ledger import NO_PAGES, Ledger
from xyro.metadata import rows
from xyro.metadata.partition import Partition
from xyro.metadata.states import LEASED, State
from xyro.opic.sweep import Sweep
from xyro.refresh.rate_belief import START, PageBelief
from xyro.refresh.rate_sums import RateSums
from xyro.refresh.sharing import choose, crowd
from xyro.wire.ids import LocalPage, local_pages
from xyro.wire.messages import Priority

SCAN = 1 << 17
"""most pages that one turn looks at for unread ones: 0.3 ms"""
SAMPLE = 16
"""pages by which the margin is told"""
_UNREAD = int(State.UNREAD)
_UNREAD_RATE = PageBelief(RateSums(), START).rate()
"""changes a day of a page that was never read"""
Ids = NDArray[np.int64]


class Discovery:
    """`take` fills hosts that run low; `reads`: of the crawl so far."""

    def __init__(
        self,
        partition: Partition,
        ledger: Ledger,
        settings: Settings,
        host_limits: HostLimits,
        order_quota: OrderQuota,
    ) -> None:
        self.partition = partition
        self.ledger = ledger
        self.settings = settings
        self.host_limits = host_limits
        self.order_quota = order_quota
        self.finder = Sweep(target=0.1)
        self.reads = 0
        self.chosen: Ids = NO_PAGES
        """unread pages of the last choice, richest first"""

    def follow(self, settings: Settings) -> None:
        """Go on with other settings."""
        self.settings = settings

    def load(self, finder: Sweep, reads: int) -> None:
        """Go on from a sweep, and from so many reads since the crawl began."""
        self.finder, self.reads = finder, reads

    def count(self, reads: int) -> None:
        """Count so many more reads."""
        self.reads += reads

    @property
    def scouting(self) -> bool:
        """Few pages were read yet: breadth first (P1 section 3)."""
        return self.reads < self.settings.refresh.scout_pages

    def take(self, room: int, busy: bool) -> Iterator[tuple[LocalPage, Priority]]:
        """Pages for hosts that run low, each up to its room, in one choice over the pages scanned.

        busy: some order is out; else the scan goes on through all pages.
        """
        hosts, count = self.partition.hosts, len(self.partition.hosts)
        spare = self._spare()
        hungry = spare > 0
        if room <= 0 or not hungry.any():
            return
        pages = self._scan(hungry, busy)
        if not len(pages):
            return
        cash = self.ledger.effective(pages)
        urgency = self._urgency(pages, cash)
        wanted = min(room, int(np.minimum(spare, hosts.waiting[:count]).sum()))
        if len(pages) > wanted:
            near = crowd(urgency, wanted)
            pages, cash, urgency = pages[near], cash[near], urgency[near]
        best = choose(urgency, self.partition.columns["host"][pages], spare, wanted)
        theta = math.inf if self.scouting else self.finder.theta
        self.chosen = pages[best]
        for page, units in zip(local_pages(self.chosen), cash[best].tolist(), strict=True):
            yield page, Priority.DISCOVER if units >= theta else Priority.SCOUT

    def _spare(self) -> NDArray[np.int32]:
        """Places for unread pages, by host: all that are free where half of them are (a scan for every single place
        would be dear). What is out for pages read before takes none of them."""
        hosts, limit = self.partition.hosts, self.order_quota.per_host
        count = len(hosts)
        free = limit - hosts.exploring[:count]
        spare = np.where(2 * free >= limit, free, 0)
        asked = hosts.open[:count] & (hosts.waiting[:count] > 0)
        if self.host_limits.until:
            asked &= ~self.host_limits.shut[:count]
        return np.where(asked, spare, 0).astype(np.int32)

    def _urgency(self, pages: Ids, cash: Ids) -> Ids:
        """Breadth first while scouting, then cash, or what reaches the page's site as far as site_weight says."""
        if self.scouting:
            return -self.partition.columns["depth"][pages].astype(np.int64)
        weight = self.settings.opic.site_weight
        inflow = self.ledger.inflow_of_hosts() if weight else None
        return cash if inflow is None else mixed(cash, inflow[self.partition.columns["host"][pages]], weight)

    def _scan(self, hungry: NDArray[np.bool_], busy: bool) -> Ids:
        """Unread pages of hungry hosts among the next SCAN pages; on through all pages while nothing is out at all."""
        columns, n = self.partition.columns, self.partition.columns.n
        scanned = 0
        while scanned < n:
            start, stop = self.finder.chunk(n, SCAN)
            scanned += stop - start
            unread = columns["state"][start:stop] == _UNREAD
            unread &= (columns["flags"][start:stop] & LEASED) == 0
            pages = np.flatnonzero(unread) + start
            rich = self.ledger.effective(pages) >= self.finder.theta
            self.finder.adapt(len(pages), int(rich.sum()))
            pages = pages[hungry[columns["host"][pages]]]
            if len(pages) or busy:
                return pages
        return NO_PAGES

    def margin(self, bandwidth: Bandwidth, now: float) -> float:
        """Index of the poorest pages of the last choice: as pages of the prior's mean rate, as old as their URL."""
        pages = self.chosen[-SAMPLE:]
        if not len(pages) or not self.ready:
            return 0.0
        met = [rows.first_seen(self.partition.get(rows.MAP.key(page)) or b"") for page in local_pages(pages)]
        age = np.maximum(now - np.array(met, np.float64), 0.0) / DAY
        rate = np.full(len(pages), _UNREAD_RATE)
        index = bandwidth.rules.policy.index(self.ledger.importance(pages) * bandwidth.scale, rate, age)
        return float(np.median(index))

    @property
    def waiting(self) -> int:
        """Unread pages in scope that wait for an order, of hosts that no person holds (shut ones are read later)."""
        hosts = self.partition.hosts
        count = len(hosts)
        return int(hosts.waiting[:count][hosts.open[:count]].sum())

    @property
    def ready(self) -> int:
        """Count the waiting pages, without those of hosts that a blackout or a spent budget shuts."""
        if not self.host_limits.until:
            return self.waiting
        hosts = self.partition.hosts
        count = len(hosts)
        return int(hosts.waiting[:count][hosts.open[:count] & ~self.host_limits.shut[:count]].sum())
