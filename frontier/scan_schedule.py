"""Pages whose time has come, by scan of all pages (P1 6.6's other execution; refresh/scan.py).

A page that its own importance and change rate date is ranked: the columns `rate` and `last_read` (8 bytes a page, there
only with `[refresh] execution = "scan"`) and OPIC's `flow` give its index at any moment. Once a time unit the pages
with the greatest index are chosen: where a bandwidth is set, as many as it allows until the next look, handed out as
the governor's credit grows; else all whose index has reached the multiplier of the bandwidth measured.

All other pages go by their date, in folders, and first: those hastened by a claim or that change by the clock, members
of clusters, hopeless ones, those below min_importance, those that failed. A page is one or the other:

    rate > 0    ranked; its date (column `due`) is an estimate
    rate = 0    its date decides, if it has one

A page that was handed out is ranked no more, and due now, until a report dates it anew: so whatever happens to its
order (its host is full, held or shut; a crash) it is found again by its date.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from xyro.frontier.bandwidth import DAY, Bandwidth
from xyro.frontier.due_queue import DUE_AT_ONCE, LATEST, NOTHING, DueQueue, Pages
from xyro.frontier.ledger import Ledger
from xyro.metadata.hot import Columns
from xyro.metadata.manager import Partition
from xyro.metadata.rows import RefreshRow
from xyro.metadata.states import LAST_READ, RATE
from xyro.refresh.scan import LATE, TINY, Scan, Shut

SPARE = 1.1
"""pages chosen for each that the bandwidth allows until the next look: some will be out, or read, by then"""
SPARE_PAGES = 16


class Standing(NamedTuple):
    """Of a ranked page: its index now, the least that is chosen, and when it gets there (seconds since 1970)."""

    worth: float
    threshold: float
    at: float


class Scanned(DueQueue):
    """`shut`: a flag for each host whose pages cannot be ordered now. ranks: do importance and rate alone date pages?

    Invariant: a page of rate > 0 was READ, at `last_read`, when it was ranked.
    """

    name = "scan"

    def __init__(
        self,
        partition: Partition,
        bandwidth: Bandwidth,
        ledger: Ledger,
        unit: int,
        shut: Callable[[], NDArray[np.bool_]],
        ranks: bool = True,
    ) -> None:
        super().__init__(partition, bandwidth, ledger, unit)
        columns = partition.columns
        columns.add(RATE, np.float32)
        columns.add(LAST_READ, np.uint32)
        self.columns = columns
        self.scan = Scan(bandwidth.rules.policy)
        self._shut = shut
        self._ranks = ranks
        self._rate = cast("memoryview[float]", columns[RATE].data)
        self._last_read: memoryview[int] = columns[LAST_READ].data
        self._chosen: deque[int] = deque()
        """filled by each look with the pages of the greatest index, emptied as they are handed out and by the next"""
        self._looked = -math.inf
        self._theta = 0.0
        """the least index that the bandwidth reached at the last look; 0 = not known"""
        self._by = bandwidth.rules, bandwidth.fixed

    # -- who is ranked -------------------------------------------------------------------------------------------

    def dated(self, page: int, due: int, rate: float, read_at: float) -> None:
        if 0.0 < rate < self.bandwidth.rules.hopeless_rate and self._ranks and self.columns["flow"][page] > 0.0:
            self._rank(page, rate, int(read_at))
            return
        self.leave(page)
        super().dated(page, due, rate, read_at)

    def redate(self, page: int, due: int) -> None:
        row = self.partition.row(page) or NOTHING
        self.columns["due"][page] = due
        self.columns.touch("due", page)
        self.dated(page, due, row.rate if row.weight else 0.0, row.last_read)

    def put(self, page: int, due: int) -> None:
        self.leave(page)
        super().put(page, due)

    def file(self, page: int, due: int) -> None:
        if not self._rate[page]:
            super().file(page, due)

    def recover(self, pages: Pages, due: Pages) -> None:
        dated = self.columns[RATE][pages] == 0.0
        super().recover(pages[dated], due[dated])

    def leave(self, page: int) -> None:
        if self._rate[page]:
            self._rate[page] = 0.0
            self.columns.touch(RATE, page)

    def learned(self, page: int, rate: float) -> None:
        if self._rate[page]:
            self._rank(page, rate, self._last_read[page])

    def _rank(self, page: int, rate: float, read_at: int) -> None:
        self._rate[page] = max(rate, TINY)
        self._last_read[page] = min(max(read_at, 0), LATEST)
        self.columns.touch(RATE, page)
        self.columns.touch(LAST_READ, page)

    # -- what is to be read --------------------------------------------------------------------------------------

    def ready(self, now: float, room: int) -> Iterator[tuple[int, RefreshRow]]:
        """At most `room` pages to read now and their rows: whose date has come, then those of the greatest index."""
        room -= yield from self._begun(now, room)
        if not self.behind:
            yield from self._best(now, min(room, DUE_AT_ONCE))
        self.behind = self.behind or (self.affords and bool(self._chosen))

    def _still_due(self, pages: Pages, now: float) -> list[int]:
        return super()._still_due(pages[self.columns[RATE][pages] == 0.0], now)

    def _deferred(self, page: int, row: RefreshRow, now: float) -> bool:
        """Only pages of no weight: the date of any other stands."""
        return not row.weight and self._below(page, now)

    def _best(self, now: float, room: int) -> Iterator[tuple[int, RefreshRow]]:
        if self.affords and self._stale(now):
            self._look(now)
        while room > 0 and self._chosen and self.affords:
            page = self._chosen.popleft()
            if not self._rate[page] or self._last_read[page] >= int(self._looked):
                continue  # it was read, or is dated otherwise, since
            room -= 1
            if not self._below(page, now):
                self._hand_out(page, int(now))
                yield page, self.partition.row(page) or NOTHING

    def _hand_out(self, page: int, now: int) -> None:
        self.columns["due"][page] = now
        self.columns.touch("due", page)
        self.leave(page)

    def _stale(self, now: float) -> bool:
        """Is it time to look again?"""
        rules, fixed = self._by
        switched = rules is not self.bandwidth.rules or fixed != self.bandwidth.fixed
        return switched or not self._looked <= now < self._looked + self.folders.unit_seconds

    def _look(self, now: float) -> None:
        """Choose the pages for the time unit that begins."""
        bandwidth, columns, n = self.bandwidth, self.columns, self.columns.n
        rules, wanted = bandwidth.rules, bandwidth.reads_per_second * self.folders.unit_seconds
        self.scan.policy, self.scan.ceiling = rules.policy, rules.ceiling
        self.scan.floor = rules.floor if rules.floor * DAY > 1.0 else 0.0  # in its own second a page has no index
        if bandwidth.fixed:
            wanted += self.governor.credit
            most, least = SPARE * wanted + SPARE_PAGES, 0.0
        else:
            most, least = max(2.0 * wanted, DUE_AT_ONCE), min(bandwidth.multiplier / self._unit, float(LATE))
        shut, held = self._shut(), (columns["flow"][:n], columns[RATE][:n], columns[LAST_READ][:n])
        passed = Shut(shut, columns["host"][:n]) if shut.any() else None
        chosen = self.scan.choose(*held, int(now), int(min(most, n)), least, passed).tolist()
        self._chosen = deque(chosen)
        self._looked, self._by = now, (rules, bandwidth.fixed)
        self._theta = self._index(chosen[int(wanted)], now) if bandwidth.fixed and wanted < len(chosen) else 0.0

    def _index(self, page: int, now: float) -> float:
        """Of a ranked page; importance relative to the mean."""
        age = max(now - self._last_read[page], 0.0) / DAY
        if age >= self.bandwidth.rules.ceiling:
            return math.inf
        held = (float(self.columns["flow"][page]) * self.bandwidth.scale, self._rate[page], age)
        return float(self.bandwidth.rules.policy.index(*(np.array([number]) for number in held))[0])

    @property
    def _unit(self) -> float:
        """What makes an index of the importance as measured one of importance with mean 1."""
        return 1.0 if self.bandwidth.rules.policy.name in ("uniform", "proportional") else self.bandwidth.scale

    def next_time(self, now: float) -> float:
        head = self.folders.next_due()
        dated = math.inf if head is None else float(head)
        credit = self.governor.when(now, self.bandwidth.reads_per_second) if self.bandwidth.fixed else now
        look = credit if self._chosen else max(credit, self._looked + self.folders.unit_seconds)
        return min(max(dated, credit), look) if self.bandwidth.fixed else min(dated, look)

    # -- looks ---------------------------------------------------------------------------------------------------

    @property
    def threshold(self) -> float:
        """The least index that is chosen, importance relative to the mean: as of the last look, or as expected."""
        return self._theta or self.bandwidth.multiplier

    def standing(self, page: int, now: float) -> Standing | None:
        """How far a page is from being read; None: its date decides."""
        if not self._rate[page]:
            return None
        importance = float(self.columns["flow"][page]) * self.bandwidth.scale
        days, _ = self.bandwidth.rules.one_interval(importance, self._rate[page], self.threshold)
        return Standing(self._index(page, now), self.threshold, self._last_read[page] + days * DAY)

    def told(self) -> dict[str, Any]:
        threshold = self.threshold
        ranked = int(np.count_nonzero(self.columns[RATE][: self.columns.n]))
        return {
            **super().told(),
            "ranked": ranked,
            "threshold": round(threshold, 6) if math.isfinite(threshold) else None,
        }


def dropped(columns: Columns) -> None:
    """Pages are read by their dates: the columns of a scan are not needed."""
    columns.drop(RATE)
    columns.drop(LAST_READ)
