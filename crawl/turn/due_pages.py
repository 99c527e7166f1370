"""Pages whose time has come, by folders of a time unit (P1 6.6), spent at the very bandwidth that was set.

A page is filed once, when it is read, under the interval of that moment. When its folder begins it is asked again: if
the multiplier has grown since, its time has not come, and it is filed anew. So dates follow the collection without ever
being gone through. Where a bandwidth is set, the governor makes the reads exactly that many: what is due beyond it
waits, in its order; what falls short of it (all pages were read at once, and the first are due in days) is filled with
the pages that would be next, so that reads spread evenly from the beginning.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from crawl.turn.pace import DAY, Interval, Pace
from crawl.turn.purse import Purse
from metadata.manager import Partition
from metadata.rows import RefreshRow
from metadata.states import HASTENED, State
from refresh.due import DueFolders

DUE_AT_ONCE = 512
"""most due pages that one turn looks at"""
EARLY_AT_ONCE = 128
"""most pages that one turn looks at before their time"""
SLACK = 0.02
"""of an interval: so much later than it was filed a page is read as it was filed"""
BURST = 3_600.0
LEAST_BURST = 16.0
"""seconds of bandwidth, or reads, that may be made up for at most"""
LATEST = 0xFFFF_FFFF
"""the last time that the column `due` can tell"""
Pages = NDArray[np.uint32]
_READ = int(State.READ)
_NOTHING = RefreshRow()


class Governor:
    """Reads that may be made by now: a credit that grows with the bandwidth."""

    def __init__(self) -> None:
        self.credit = 0.0
        self._at: float | None = None

    def advance(self, now: float, reads_per_second: float) -> None:
        passed = 0.0 if self._at is None else max(now - self._at, 0.0)
        self._at = now
        self.credit = min(self.credit + passed * reads_per_second, max(LEAST_BURST, BURST * reads_per_second))

    def when(self, now: float, reads_per_second: float) -> float:
        """When the next read may be made."""
        if self.credit >= 1.0:
            return now
        return now + (1.0 - self.credit) / reads_per_second if reads_per_second > 0.0 else math.inf


class DuePages:
    """`file` after each read, `ready` each turn. The column `due` decides; what lies in a folder is a hint."""

    def __init__(self, partition: Partition, pace: Pace, purse: Purse, unit: int) -> None:
        self.partition = partition
        self.pace = pace
        self.purse = purse
        self.folders = DueFolders(unit)
        self.governor = Governor()
        self.behind = False
        """more was due in the last turn than was read"""
        self._rest = 0.0
        """nothing can be read early before"""

    def file(self, page: int, due: int) -> None:
        """Into the folder of the first time unit that begins when the page is due: never read early, a unit late."""
        self.folders.put(page, self._filed(due))

    def recover(self, pages: Pages, due: Pages) -> None:
        """File pages after a restart: uint32 arrays of one length."""
        begins = due.astype(np.int64) + self.folders.unit_seconds - 1
        self.folders.add(pages, np.minimum(begins, LATEST).astype(np.uint32))

    def put(self, page: int, due: int) -> None:
        """Date a page anew."""
        self.partition.columns["due"][page] = due
        self.partition.columns.touch("due", page)
        self.file(page, due)

    def _filed(self, due: int) -> int:
        return min(due + self.folders.unit_seconds - 1, LATEST)

    def _below(self, page: int, now: float) -> bool:
        """Is the page still below min_importance? Then it is looked at again, not read, when its ceiling has passed."""
        rules = self.pace.rules
        if not rules.least or self.partition.states[page] != _READ:
            return False
        importance = float(self.purse.importance(np.array([page], np.int64))[0])
        if importance * self.pace.scale >= rules.least:
            return False
        self.put(page, second(now + rules.ceiling * DAY))
        return True

    # -- what is to be read --------------------------------------------------------------------------------------

    def ready(self, now: float, room: int) -> Iterator[tuple[int, RefreshRow]]:
        """Pages to read now and their rows, the longest due first; each yielded page is the caller's to file again."""
        most = min(DUE_AT_ONCE, room)
        if self.pace.fixed:
            self.governor.advance(now, self.pace.bandwidth)
            most = min(most, int(self.governor.credit))
        for page in self.folders.pop(int(now), most).tolist() if most > 0 else ():
            if not 0 < self.partition.columns["due"][page] <= now:
                continue  # stale: it was read since and lies in a later folder
            row = self.partition.row(page) or _NOTHING
            if not self._deferred(page, row, now):
                yield page, row
        begun = self.folders.next_due()
        self.behind = begun is not None and begun <= now
        if self.pace.fixed and not self.behind and now >= self._rest:
            yield from self._early(now, min(room, EARLY_AT_ONCE))

    def _deferred(self, page: int, row: RefreshRow, now: float) -> bool:
        """Is the page, by the multiplier of now, not due before a later unit? It is filed there."""
        if not row.weight:
            return self._below(page, now)
        if self.partition.flags[page] & HASTENED:
            return False
        interval = self.pace.of_row(row)
        later = row.last_read + interval.seconds
        if later <= now + max(SLACK * interval.seconds, self.folders.unit_seconds):
            return False
        self.put(page, second(later))
        return True

    def _early(self, now: float, room: int) -> Iterator[tuple[int, RefreshRow]]:
        """What would be next, as far as the credit goes; pages at a bound of their interval keep their time."""
        kept: list[tuple[int, int]] = []
        found = 0
        for _ in range(EARLY_AT_ONCE):
            if found >= room or self.governor.credit < 1.0:
                break
            head = self.folders.next_due()
            if head is None:
                break
            page = int(self.folders.pop(head, 1)[0])
            due = int(self.partition.columns["due"][page])
            if not due or self._filed(due) // self.folders.unit_seconds != head // self.folders.unit_seconds:
                continue  # stale
            row = self.partition.row(page) or _NOTHING
            interval = self.pace.of_row(row)
            if not self._may_come_early(page, row, interval):
                kept.append((page, due))
            elif row.last_read + interval.seconds > due + max(SLACK * interval.seconds, self.folders.unit_seconds):
                self.put(page, second(row.last_read + interval.seconds))
            else:
                found += 1
                yield page, row
        for page, due in kept:
            self.file(page, due)
        if not found:
            self._rest = now + self.folders.unit_seconds

    def _may_come_early(self, page: int, row: RefreshRow, interval: Interval) -> bool:
        dated = row.weight > 0.0 and not self.partition.flags[page] & HASTENED
        return dated and interval.term == "policy"

    def spent(self) -> None:
        """A read of the plan was ordered."""
        if self.pace.fixed:
            self.governor.credit -= 1.0

    def next_time(self, now: float) -> float:
        """When something may be read that is not yet out (wall clock); infinite where nothing is filed."""
        head = self.folders.next_due()
        if head is None:
            return math.inf
        if not self.pace.fixed:
            return float(head)
        credit = self.governor.when(now, self.pace.bandwidth)
        unit = self.folders.unit_seconds
        early = max(credit, self._rest, (now // unit + 1) * unit)
        return min(max(float(head), credit), early)


def second(when: float) -> int:
    """The first full second from `when` on, as the column `due` holds it."""
    return min(max(math.ceil(min(when, LATEST)), 0), LATEST)
