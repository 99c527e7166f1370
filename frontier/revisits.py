"""Pages to be read again, of all hosts: at random, those that waited for their host, those due now, those due next.

    audits    pages drawn at random, that measure (freshness.py)
    lines     filled from the due ones whose host has no room, emptied as its orders are answered (leases.py)
    due       filled by every read, emptied when their time has come (schedule.py, due_queue.py)
    ahead     the page due next rather than nothing, in a bounded crawl that refreshes (refresh/ahead.py)

Where due and unread pages of a host both wait they take turns by gamma (refresh/sharing.py Turns): neither side can
hold all of a host's places for long. The other side is discovery.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from xyro.configs.schema import Settings
from xyro.frontier.bandwidth import Gamma, second
from xyro.frontier.freshness import Audits
from xyro.frontier.leases import HostQueues, Leases, OrderQuota, Parking
from xyro.frontier.schedule import Schedule
from xyro.metadata.partition import Partition
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import HASTENED, LEASED, State
from xyro.refresh.ahead import MEAN, Ahead
from xyro.refresh.sharing import Turns
from xyro.wire.ids import LocalPage

EARLY_PER_HOST = 4
"""orders out per host that are given ahead of their time: enough to keep it busy, few enough that the order is fresh"""
_ERROR, _OUT, _DISALLOWED = int(State.ERROR), int(State.OUT), int(State.DISALLOWED)
Found = Iterator[tuple[LocalPage, RefreshRow | None]]
"""pages and their Refresh-Data"""


class Revisits:
    """`take` in each turn of a crawl that refreshes."""

    def __init__(
        self,
        partition: Partition,
        settings: Settings,
        schedule: Schedule,
        leases: Leases,
        order_quota: OrderQuota,
        parking: Parking,
        gamma: Gamma,
        turns: Turns,
        audits: Audits,
    ) -> None:
        self.partition = partition
        self.schedule = schedule
        self.leases = leases
        self.order_quota = order_quota
        self.parking = parking
        self.gamma = gamma
        self.turns = turns
        self.host_queues = HostQueues()
        self.audits = audits
        self._concurrency = settings.fetch.concurrency
        self._room = 0

    def dropped(self, page: LocalPage) -> None:
        """Its order was taken back unread."""
        self.audits.lost(page)

    def take(self, now: float, room: int) -> Found:
        """At most `room` pages; each is to be ordered before the next is asked for."""
        self._room = room
        yield from self._counted(self._at_random(self.audits))
        yield from self._counted(self._lined(now))
        yield from self._counted(self._due(now))
        if self.schedule.ahead is not None:
            yield from self._counted(self._early(self.schedule.ahead))

    def _counted(self, found: Found) -> Found:
        for page in found:
            self._room -= 1
            yield page

    def _at_random(self, audits: Audits) -> Found:
        """Pages at random, beside the plan: a full host takes them, too, or what it has to read would be left out."""
        for page in audits.choose(self._room):
            if self._may_refresh(page):
                yield page, self.partition.row(page)
            else:
                audits.lost(page)

    def _lined(self, now: float) -> Found:
        """Pages that were due before, and have waited for their host since."""
        self.schedule.due_queue.earn(now)
        due, now = self.partition.columns["due"], self.host_queues.latest(now)

        def valid(page: LocalPage) -> bool:
            return bool(0 < due[page] <= now) and self._may_refresh(page)

        def claim(host: int) -> bool:
            return self._room > 0 and self.schedule.due_queue.affords and self._claim(host)

        leased = self.partition.hosts.leased
        for page in self.host_queues.take(leased, self.order_quota.per_host, valid, claim) if self.host_queues else ():
            self._spend(page)
            yield page, self.partition.row(page)

    def _due(self, now: float) -> Found:
        """Pages that become due now; those whose host has no room wait for it."""
        columns, due = self.partition.columns, self.schedule.due_queue
        later = second(now + due.folders.unit_seconds)
        for page, row in due.ready(now, self._room):
            if not self._may_refresh(page):
                continue
            host = self.partition.hosts_of[page]
            if host not in self.host_queues and self._claim(host):
                self._spend(page)
                yield page, row
            elif columns["due"][page] <= now:
                self.host_queues.put(host, page)
            else:  # it came before its time
                self.schedule.put_due(page, later, hastened=bool(self.partition.flags[page] & HASTENED))

    def _early(self, ahead: Ahead) -> Found:
        """Keep the fetchers busy with the pages whose turn comes next."""
        lead = min(self._concurrency, EARLY_PER_HOST * len(self.partition.hosts))
        limit = min(lead - len(self.leases), self._room)
        for page in ahead.pop(limit) if limit > 0 else ():
            if not self._may_refresh(page):
                continue
            if self._claim(self.partition.hosts_of[page]):
                yield page, self.partition.row(page)
            else:
                ahead.put_after(page, MEAN // 64)

    def _spend(self, page: LocalPage) -> None:
        if self.partition.states[page] != _DISALLOWED:  # to ask robots.txt again is no read
            self.schedule.due_queue.spent()

    def _claim(self, host: int) -> bool:
        """Tell whether refresh may take a place of this host. Where unread pages wait for it, too, they take turns."""
        room = self.order_quota.room(host)
        if self.partition.hosts.waiting[host]:
            return self.turns.refresh(host, self.gamma.percent, room)
        self.turns.lend(host)
        return room > 0

    def _may_refresh(self, page: LocalPage) -> bool:
        """Not out already, not out of scope, not to be retried at its own time, and its host is not held."""
        flags, state = self.partition.flags[page], self.partition.states[page]
        return not (flags & LEASED or state in (_OUT, _ERROR) or self.parking.park(page))
