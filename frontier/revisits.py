"""Pages to be read again, of all hosts: at random, those that waited for their host, those due now, those due next.

    audits    pages drawn at random, that measure (freshness.py)
    lines     filled from the due ones whose host has no room, emptied as its orders are answered (leases.py)
    due       filled by every read, emptied when their time has come (revisit_dates.py, due_queue.py)
    ahead     the page due next rather than nothing, in a bounded crawl that refreshes (refresh/ahead.py)
    contested hosts that have unread pages, too: there the pages due next come before their time, or gamma could not be
              kept while none is due

What is out of either kind takes no place from the other, which is discovery.py's. So a host that has both kinds has
orders of both out, few enough to be fresh, in gamma's proportion (look_ahead.py), and the fetch queue takes them by
gamma at the moment of the read.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from xyro.configs.schema import Settings
from xyro.frontier.bandwidth import second
from xyro.frontier.freshness import Audits
from xyro.frontier.leases import HostQueues, Leases, Parking
from xyro.frontier.look_ahead import LookAhead
from xyro.frontier.revisit_dates import Schedule
from xyro.metadata.partition import Partition
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import HASTENED, LEASED, State
from xyro.refresh.ahead import LONGEST, MEAN, Ahead
from xyro.refresh.sharing import choose
from xyro.wire.ids import LocalPage, local_pages

EARLY_PER_HOST = 4
"""orders out per host that are given ahead of their time: enough to keep it busy, few enough that the order is fresh"""
SCAN = 1 << 17
"""most pages that one turn looks at for those due next: 0.3 ms"""
PUT_OFF = 3_600.0
"""seconds, or its interval, for which a page of poor standing is put off"""
CANDIDATES, LOOKS = 4, 512
"""pages due next that are compared for each that is read before its time, and most in one turn"""
_READ, _ERROR, _OUT, _DISALLOWED = int(State.READ), int(State.ERROR), int(State.OUT), int(State.DISALLOWED)
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
        parking: Parking,
        audits: Audits,
        look_ahead: LookAhead,
    ) -> None:
        self.partition = partition
        self.schedule = schedule
        self.leases = leases
        self.parking = parking
        self.host_queues = HostQueues()
        self.audits = audits
        self._concurrency = settings.fetch.concurrency
        self._room = 0
        self._unearned: LocalPage | None = None
        """the page of poor standing that was let through last though it was not earned, until it is given out"""
        self.look_ahead = look_ahead
        self._next = 0
        """page at which the next look for those due next begins"""

    def dropped(self, page: LocalPage) -> None:
        """Its order was taken back unread."""
        self.audits.lost(page)

    def take(self, now: float, room: int) -> Found:
        """At most `room` pages; each is to be ordered before the next is asked for."""
        self._room = room
        yield from self._counted(self._at_random(self.audits, now), now)
        yield from self._counted(self._lined(now), now)
        yield from self._counted(self._due(now), now)
        if self.schedule.ahead is not None:
            yield from self._counted(self._early(self.schedule.ahead, now), now)
        elif not self.schedule.bandwidth.fixed:
            yield from self._counted(self._next_of_contested(now), now)

    def _counted(self, found: Found, now: float) -> Found:
        standing = self.partition.standing
        for page in found:
            self._room -= 1
            if standing.is_poor(page[0]):
                standing.pay(1)
            if page[0] == self._unearned:
                standing.take_unearned(now)
                self._unearned = None
            yield page

    def _at_random(self, audits: Audits, now: float) -> Found:
        """Pages at random, beside the plan: a full host takes them, too, or what it has to read would be left out."""
        for page in audits.choose(self._room):
            row = self.partition.row(page)
            soon = row is not None and now < row.last_read + self.schedule.bandwidth.bounds(page).floor
            if not soon and self._may_refresh(page):
                yield page, row
            else:
                audits.lost(page)

    def _lined(self, now: float) -> Found:
        """Pages that were due before, and have waited for their host since."""
        self.schedule.due_queue.earn(now)
        due, now = self.partition.columns["due"], self.host_queues.latest(now)

        def valid(page: LocalPage, since: int) -> bool:
            if not 0 < due[page] <= now or since != self.schedule.due_queue.waits_since(page):
                return False  # it was read since, or filed anew
            return self._may_refresh(page) and not self._put_off(page, now)

        def claim(host: int) -> bool:
            return self._room > 0 and self.schedule.due_queue.affords and self.look_ahead.admits(host)

        if not self.host_queues:
            return
        out, places = self.partition.hosts.revisiting, self.look_ahead.places
        for page in self.host_queues.take(out[: len(places)] < places, now, valid, claim):
            self._spend(page)
            yield page, self.partition.row(page)

    def _due(self, now: float) -> Found:
        """Pages that become due now; those whose host has no room wait for it."""
        due_at = self.partition.columns["due"]
        for page, row in self.schedule.due_queue.ready(now, self._room, self._may_be_early):
            if not self._may_refresh(page) or self._put_off(page, now):
                continue
            host = self.partition.hosts_of[page]
            if host not in self.host_queues and self.look_ahead.admits(host):
                self._spend(page)
                yield page, row
            elif due_at[page] <= now:  # one before its time stays filed
                self._line_up(host, page, row, now)

    def _line_up(self, host: int, page: LocalPage, row: RefreshRow, now: float) -> None:
        """Let a due page wait for its host; where a million do, it is due again later."""
        if self.host_queues.is_full(host):
            self.schedule.put_due(page, second(now + PUT_OFF), bool(self.partition.flags[page] & HASTENED))
            return
        due_queue = self.schedule.due_queue
        self.host_queues.put(host, page, due_queue.waits_since(page, row), due_queue.interval(page, row))

    def _may_be_early(self, page: LocalPage) -> bool:
        """Tell whether a page could be read at once: its host is open and has room, its standing is not poor."""
        host, standing = self.partition.hosts_of[page], self.partition.standing
        if self.parking.is_shut(host) or host in self.host_queues or not self.look_ahead.admits(host):
            return False
        return standing.poor_reads >= 1 or not standing.is_poor(page)

    def _early(self, ahead: Ahead, now: float) -> Found:
        """Keep contested hosts stocked, and the fetchers busy, with the pages whose turn comes next."""
        for host, places in self.look_ahead.lacking():
            for page in ahead.pop_of(host, min(places, self._room)) if host in ahead else ():
                if self._may_refresh(page) and not self._put_off(page, now):
                    yield page, self.partition.row(page)
        lead = min(self._concurrency, EARLY_PER_HOST * len(self.partition.hosts))
        limit = min(lead - len(self.leases), self._room)
        for page in ahead.pop(limit) if limit > 0 else ():
            if not self._may_refresh(page) or self._put_off(page, now):
                continue
            host = self.partition.hosts_of[page]
            if self.look_ahead.admits(host):
                yield page, self.partition.row(page)
            else:
                ahead.put_after(page, MEAN // 64, host)

    def _next_of_contested(self, now: float) -> Found:
        """Keep contested hosts stocked with the pages of which the largest part of their interval is over."""
        short = self.look_ahead.lacking()
        if not short or self._room <= 0:
            return
        places = np.zeros(len(self.partition.hosts), np.int32)
        for host, number in short:
            places[host] = number
        ranked = sorted(self._due_next(places, now), key=lambda page: page[0], reverse=True)
        for _, page, row in ranked:
            host = self.partition.hosts_of[page]
            if self._room > 0 and places[host] > 0 and self._may_refresh(page) and not self._put_off(page, now):
                places[host] -= 1
                yield page, row

    def _due_next(self, places: NDArray[np.int32], now: float) -> Iterator[tuple[float, LocalPage, RefreshRow]]:
        """(part of its interval that is over, page, row) of the pages due next at hosts with places, in a slice of all.

        By dates alone a fast page, read before its time, would at once be due before all others again.
        """
        columns, bandwidth = self.partition.columns, self.schedule.bandwidth
        start, stop = self._chunk(columns.n)
        pages = np.flatnonzero(
            (columns["state"][start:stop] == _READ)
            & (columns["flags"][start:stop] & (LEASED | HASTENED) == 0)
            & (columns["due"][start:stop] > now)
        )
        pages = pages[places[columns["host"][start:stop][pages]] > 0] + start
        due = columns["due"][pages].astype(np.int64)
        best = choose(-due, columns["host"][pages], CANDIDATES * places, LOOKS)
        for page in local_pages(pages[best]):
            row = self.partition.row(page)
            if row is None or not row.weight or bandwidth.is_early(page, row, now):
                continue
            yield (now - row.last_read) / bandwidth.of_row(page, row).seconds, page, row

    def _chunk(self, pages: int) -> tuple[int, int]:
        """The next pages to look through, a slice of all."""
        start = min(self._next, max(pages - SCAN, 0))
        stop = min(start + SCAN, pages)
        self._next = 0 if stop == pages else stop
        return start, stop

    def _spend(self, page: LocalPage) -> None:
        if self.partition.states[page] != _DISALLOWED:  # to ask robots.txt again is no read
            self.schedule.due_queue.spent()

    def _put_off(self, page: LocalPage, now: float) -> bool:
        """Date a page of poor standing anew, where such pages have had their share of the reads; but not all of them
        where nothing is out, and nothing unread: else a site of such pages alone would never be read again."""
        standing = self.partition.standing
        if standing.poor_reads >= 1 or not standing.is_poor(page):
            return False
        hosts, count = self.partition.hosts, len(self.partition.hosts)
        idle = not len(self.leases) and not (hosts.waiting[:count] * hosts.open[:count]).any()
        if idle and len(standing.unearned(np.array([page]), now, endless=self.schedule.ahead is None)):
            self._unearned = page
            return False
        if self.schedule.ahead is not None:
            self.schedule.ahead.put_after(page, LONGEST, self.partition.hosts_of[page])
            return True
        row = self.partition.row(page)
        wait = self.schedule.bandwidth.of_row(page, row).seconds if row is not None and row.weight else 0.0
        self.schedule.put_due(page, second(now + max(wait, PUT_OFF)), hastened=False)
        return True

    def _may_refresh(self, page: LocalPage) -> bool:
        """Not out already, not out of scope, not to be retried at its own time, and its host is not held."""
        flags, state = self.partition.flags[page], self.partition.states[page]
        return not (flags & LEASED or state in (_OUT, _ERROR) or self.parking.park(page))
