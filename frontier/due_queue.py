"""Pages whose time has come, by folders of a time unit (P1 6.6), and pages with a deadline: all paid from one credit.

Before: revisit_dates.py files a page when it is dated; people, publishers and subscribers want one (requests.py).
After: revisits.py and scheduler.py make orders of what is due here.

A page is filed once, when it is read, under the interval of that moment. When its folder begins it is asked again: if
the multiplier has grown since, its time has not come, and it is filed anew. So dates follow the collection without ever
being gone through. Where a bandwidth is set, the governor makes the reads exactly that many: of what is due beyond it
the page of whose interval most is over comes first (OverduePages); what falls short of it (all pages were read at once,
and the first are due in days) is filled, of some pages at random, with those of whose interval most is over, so that
reads spread evenly from the beginning. By dates alone the one page that is known to change all the time, and is due
first again whenever it was read, had all that is left over for as long as a cycle of reads takes.

Pages with a deadline are read at once, ahead of the plan, and the plan pays: its credit goes below zero, and it waits
until it has earned that back; its multiplier spends what deadlines leave (bandwidth.py). So the reads of all weeks are
still those of the bandwidth that was set. At a day's bandwidth of debt (or 16 reads) these pages wait, too: the
earliest deadline first, so what is late is first.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Generator, Iterator
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from xyro.frontier.bandwidth import DAY, LATEST, LEAST_BURST, Bandwidth, Governor, second
from xyro.frontier.ledger import Ledger
from xyro.metadata.partition import Partition
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import HASTENED, LEASED, State
from xyro.refresh.due import HASTE, DueFolders, OverduePages
from xyro.wire.ids import LocalPage, local_pages

DUE_AT_ONCE = 512
"""most due pages that one turn looks at"""
EARLY_AT_ONCE = 64
"""most pages that one turn reads before their time"""
CHOICE, LEAST_DRAWN = 8, 32
"""pages that are looked at for each of these, and at least: .7 ms"""
DRAWS = 16
"""pages that are drawn for each that is looked at: most may never have been read"""
FILED_AT_ONCE = 8192
"""pages a turn that are filed anew: median 9 ms on a busy machine, where each is in a folder of its own"""
SLACK = 0.02
"""of an interval: so much later than it was filed a page is read as it was filed"""
PAUSE = 1.0
"""seconds until pages that may be read early are looked for again; twice as long each time that there are none"""
DEBT = DAY
"""seconds of bandwidth that promises may take in advance: they come in bursts, a thousand daily notices at six"""
Pages = NDArray[np.uint32]
_READ, _ERROR = int(State.READ), int(State.ERROR)
NOTHING = RefreshRow()


class DueQueue:
    """`dated` after each read, `ready` each turn. The column `due` decides; what lies in a folder is a hint."""

    def __init__(self, partition: Partition, bandwidth: Bandwidth, ledger: Ledger, unit: int) -> None:
        self.partition = partition
        self.bandwidth = bandwidth
        self.ledger = ledger
        self.folders = DueFolders(unit)
        self.overdue = OverduePages()
        """filled from folders that have begun, where a bandwidth is set; emptied as it allows"""
        self.governor = Governor()
        self.behind = False
        """more was due in the last turn than was read"""
        self._filed_to = self._to_file = 0
        """pages from the first to the second are in no folder yet"""
        self._rest = 0.0
        """nothing can be read early before"""
        self._pause = PAUSE

    def follow(self, unit: int) -> None:
        """Go on with folders of so many seconds: if they are others, empty ones, which `next_to_file` fills."""
        if unit != self.folders.unit_seconds:
            self.folders = DueFolders(unit)
            self._filed_to, self._to_file = 0, self.partition.columns.n

    @property
    def filing(self) -> bool:
        """Folders are being filled anew, and lack pages until then."""
        return self._filed_to < self._to_file

    def next_to_file(self) -> tuple[int, int]:
        """The next range of pages that the caller is to file by their column `due`; an empty one where none are left.
        What is filed meanwhile of pages behind it is left to their turn."""
        start = self._filed_to
        self._filed_to = min(start + FILED_AT_ONCE, self._to_file)
        return start, self._filed_to

    def file(self, page: LocalPage, due: int) -> None:
        """Into the folder of the first time unit that begins when the page is due: never read early, a unit late."""
        if not self._filed_to <= page < self._to_file:
            self.folders.put(page, self._filed(due))

    def recover(self, pages: Pages, due: Pages) -> None:
        """File pages after a restart: uint32 arrays of one length."""
        begins = due.astype(np.int64) + self.folders.unit_seconds - 1
        self.folders.add(pages, np.minimum(begins, LATEST).astype(np.uint32))

    def dated(self, page: LocalPage, due: int) -> None:
        """File a page that was read, or tried; `due`: its next read, 0 = none."""
        if due:
            self.file(page, due)

    def put(self, page: LocalPage, due: int) -> None:
        """Date a page anew."""
        self.partition.columns["due"][page] = due
        self.partition.columns.touch("due", page)
        self.file(page, due)

    def _filed(self, due: int) -> int:
        return min(due + self.folders.unit_seconds - 1, LATEST)

    def _below(self, page: LocalPage, now: float) -> bool:
        """Tell whether the page is still below min_importance. It is then looked at again, not read, when its ceiling
        has passed."""
        rules = self.bandwidth.rules
        if not rules.least or self.partition.states[page] != _READ:
            return False
        importance = float(self.ledger.importance(np.array([page], np.int64))[0])
        if importance * self.bandwidth.scale >= rules.least:
            return False
        self.put(page, second(now + rules.ceiling * DAY))
        return True

    # -- what is to be read --------------------------------------------------------------------------------------

    def ready(
        self, now: float, room: int, may_be_early: Callable[[LocalPage], bool] | None = None
    ) -> Iterator[tuple[LocalPage, RefreshRow]]:
        """At most `room` pages to read now and their rows, the most overdue first; each that is due is the caller's to
        file again. may_be_early: tells of a page whether it could be read at once (None: each can)."""
        room -= yield from self._begun(now, room)
        self._rest = min(self._rest, now + self.folders.unit_seconds)  # the clock may have been set back
        if self.bandwidth.fixed and not self.behind and not self.filing and now >= self._rest:
            yield from self._early(now, room, may_be_early)

    def _begun(self, now: float, room: int) -> Generator[tuple[LocalPage, RefreshRow], None, int]:
        """Pages of folders that have begun, as far as the credit goes. Returns how many there were."""
        limit, found = min(DUE_AT_ONCE, room), 0
        self.earn(now)
        if self.bandwidth.fixed:
            limit = min(limit, int(self.governor.credit))
        if limit > 0 and (self.bandwidth.fixed or self.overdue):
            self._pass_on(now)
            while found < limit and (page := self.overdue.take(now)) is not None:
                if not self._still_due(np.array([page], np.uint32), now):
                    continue
                row = self.partition.row(page) or NOTHING
                if not self._deferred(page, row, now):
                    found += 1
                    yield page, row
        elif limit > 0:
            for page in self._still_due(self.folders.pop(int(now), limit), now):
                row = self.partition.row(page) or NOTHING
                if not self._deferred(page, row, now):
                    found += 1
                    yield page, row
        begun = self.folders.next_due()
        self.behind = bool(self.overdue) or (begun is not None and begun <= now)
        return found

    def _pass_on(self, now: float) -> None:
        """Take pages of folders that have begun to those that wait for bandwidth."""
        if self.overdue.full:
            return
        for page in self._still_due(self.folders.pop(int(now), DUE_AT_ONCE), now):
            row = self.partition.row(page) or NOTHING
            if self._deferred(page, row, now):
                continue
            self.overdue.put(page, self.waits_since(page, row), self.interval(page, row))

    def waits_since(self, page: LocalPage, row: RefreshRow | None = None) -> int:
        """When a due page was read last, by which it takes its place among others (OverduePages). row: its own."""
        if self.partition.flags[page] & HASTENED:
            return HASTE  # its change is known: at once
        row = row or self.partition.row(page) or NOTHING
        # a page that failed, or is looked at again: as if it were read once a day
        return row.last_read if row.weight else max(int(self.partition.columns["due"][page]) - int(DAY), 0)

    def interval(self, page: LocalPage, row: RefreshRow) -> float:
        """The interval of a due page, seconds, by which it takes its place among others."""
        return self.bandwidth.of_row(page, row).seconds if row.weight else DAY

    def _still_due(self, pages: Pages, now: float) -> list[LocalPage]:
        """Without those that were read since, and lie in a later folder, or failed: a retry keeps its own time."""
        columns = self.partition.columns
        due = columns["due"][pages]
        return local_pages(pages[(due > 0) & (due <= now) & (columns["state"][pages] != _ERROR)])

    def _deferred(self, page: LocalPage, row: RefreshRow, now: float) -> bool:
        """Tell whether the page, by the present multiplier, is due in a later unit only; it is filed there."""
        if not row.weight:
            return self._below(page, now)
        if self.partition.flags[page] & HASTENED:
            return False
        interval = self.bandwidth.of_row(page, row)
        later = row.last_read + interval.seconds
        if later <= now + max(SLACK * interval.seconds, self.folders.unit_seconds):
            return False
        self.put(page, second(later))
        return True

    def _early(
        self, now: float, room: int, may_be_early: Callable[[LocalPage], bool] | None
    ) -> Iterator[tuple[LocalPage, RefreshRow]]:
        """Yield pages before their time, as far as the credit goes: of some at random those of whose interval most is
        over. They stay filed until they are read; a page with a time of its own keeps it."""
        limit = min(int(self.governor.credit), room, EARLY_AT_ONCE)
        if limit < 1:
            return
        early: list[tuple[float, LocalPage, RefreshRow]] = []
        for page in self._drawn(now, max(LEAST_DRAWN, CHOICE * limit)):
            if may_be_early is not None and not may_be_early(page):
                continue  # it would be the oldest of every draw
            row = self.partition.row(page) or NOTHING
            if row.weight > 0.0 and not self.bandwidth.is_early(page, row, now):
                interval = self.bandwidth.of_row(page, row)
                if interval.term == "policy":
                    early.append(((now - row.last_read) / interval.seconds, page, row))
        if not early:
            self._rest, self._pause = now + self._pause, min(2.0 * self._pause, self.folders.unit_seconds)
            return
        self._pause = PAUSE
        early.sort(key=itemgetter(0), reverse=True)
        for _, page, row in early[: min(limit, -(-len(early) // 2))]:
            if not self.affords:
                break
            yield page, row

    def _drawn(self, now: float, count: int) -> list[LocalPage]:
        """Draw so many of the pages that wait for their time, or fewer, where few do."""
        columns, draw = self.partition.columns, np.random.default_rng((self.partition.number, round(now * 1e3)))
        few = columns.n <= DRAWS * count
        pages = np.arange(columns.n) if few else np.unique(draw.integers(0, columns.n, DRAWS * count))
        waits = (columns["state"][pages] == _READ) & (columns["due"][pages] > now)
        waits &= columns["flags"][pages] & (HASTENED | LEASED) == 0
        return local_pages(draw.permutation(pages[waits])[:count])

    @property
    def affords(self) -> bool:
        """Tell whether the set bandwidth allows a read of the plan now."""
        return not self.bandwidth.fixed or self.governor.credit >= 1.0

    def next_credit(self, now: float) -> float:
        """Return when a read of the plan may be made again; infinite where one may be made now."""
        return math.inf if self.affords else self.governor.when(now, self.bandwidth.reads_per_second)

    def earn(self, now: float) -> None:
        """Earn the reads that the bandwidth allows by now: called before anything is read, or the first to ask would
        never get any."""
        fixed = self.bandwidth.fixed
        if fixed:
            self.governor.advance(now, self.bandwidth.reads_per_second)
            # a debt of the time before a lower bandwidth would take months
            self.governor.forgive(1.0 + max(LEAST_BURST, DEBT * fixed))

    def spent(self) -> None:
        """A read of the plan was ordered."""
        if self.bandwidth.fixed:
            self.governor.spend()

    def next_time(self, now: float) -> float:
        """Return when a page that is not yet out may be read (wall clock); infinite where nothing is filed."""
        head = 0 if self.overdue else self.folders.next_due()
        if head is None:
            return math.inf
        if not self.bandwidth.fixed:
            return float(head)
        credit = self.governor.when(now, self.bandwidth.reads_per_second)
        return min(max(float(head), credit), max(credit, self._rest))


class Deadlines:
    """Promised pages of one scheduler. `of`: the deadline (seconds since 1970) by which a page was promised, 0 =
    none."""

    def __init__(
        self, due_queue: DueQueue, usual: float, refreshing: bool, deadline: Callable[[LocalPage], float]
    ) -> None:
        """usual: seconds that what people order has, where nobody named a deadline; refreshing: there is a plan."""
        self.deadline_of = deadline
        self._due = due_queue
        self._usual = usual
        self._refreshing = refreshing
        self._heap: list[tuple[float, LocalPage]] = []
        """filled with what cannot be paid for, emptied as the debt is; entries that `waiting` does not tell are
        stale"""
        self.waiting: dict[LocalPage, float] = {}
        """page -> its deadline in the heap: a daily notice orders again and again what cannot be paid for"""

    def __len__(self) -> int:
        return len(self.waiting)

    def deadline(self, page: LocalPage, now: float) -> float:
        """By which its order is sorted among those of its host."""
        return self.deadline_of(page) or now + self._usual

    def pay(self, page: LocalPage) -> bool:
        """A page that was read before is to be refreshed. False: it was promised, and waits until it can be paid."""
        deadline = self.deadline_of(page)
        if not deadline:
            return True
        if not self._solvent:
            if deadline < self.waiting.get(page, math.inf):
                self.waiting[page] = deadline
                heapq.heappush(self._heap, (deadline, page))
            return False
        self._due.spent()
        self._due.bandwidth.paid += 1
        return True

    def pop(self) -> LocalPage | None:
        """A page that waited and can be paid for (`pay`), the one with the earliest deadline."""
        while self._heap and self._solvent:
            deadline, page = heapq.heappop(self._heap)
            if self.waiting.get(page) == deadline:
                del self.waiting[page]
                return page
        return None

    def next_time(self, now: float) -> float:
        """Return when the next page can be paid for; infinite where none waits."""
        if not self.waiting or self._solvent:
            return now if self.waiting else math.inf
        missing = max(-self._most_debt - self._due.governor.credit, 0.0)
        reads_per_second = self._due.bandwidth.reads_per_second
        return now + missing / reads_per_second if reads_per_second > 0.0 else math.inf

    @property
    def _most_debt(self) -> float:
        return max(LEAST_BURST, DEBT * self._due.bandwidth.reads_per_second)

    @property
    def _solvent(self) -> bool:
        charged = self._refreshing and self._due.bandwidth.fixed > 0.0
        return not charged or self._due.governor.credit >= -self._most_debt
