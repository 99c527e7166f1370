"""Pages that were promised by a deadline, and the bandwidth that pays for them.

They are read at once, ahead of the plan, and the plan pays: its credit (due_queue.py) goes below zero, and it waits
until it has earned that back; its multiplier spends what promises leave (bandwidth.py). So the reads of all weeks
are still
those of the bandwidth that was set. At a day's bandwidth of debt (or 16 reads) promised pages wait, too: the earliest
deadline first, so what is late is first.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

from xyro.frontier.due_queue import DEBT, LEAST_BURST, DueQueue
from xyro.frontier.schedule import Schedule


class Deadlines:
    """Of one scheduler. `of`: the deadline (seconds since 1970) by which a page was promised, 0 = it was not."""

    def __init__(self, schedule: Schedule, usual: float, refreshing: bool, deadline: Callable[[int], float]) -> None:
        """usual: seconds that what people order has, where nobody named a deadline; refreshing: there is a plan."""
        self.of = deadline
        self._schedule = schedule
        self._usual = usual
        self._refreshing = refreshing
        self._waiting: list[tuple[float, int]] = []
        """filled with what cannot be paid for, emptied as the debt is; entries that `_held` does not tell are stale"""
        self._held: dict[int, float] = {}
        """page -> its deadline in `_waiting`: a daily notice orders again and again what cannot be paid for"""

    @property
    def _due(self) -> DueQueue:
        """Whose credit pays, as of now."""
        return self._schedule.due_queue

    def __len__(self) -> int:
        return len(self._held)

    def deadline(self, page: int, now: float) -> float:
        """By which its order is sorted among those of its host."""
        return self.of(page) or now + self._usual

    def pay(self, page: int) -> bool:
        """A page that was read before is to be refreshed. False: it was promised, and waits until it can be paid."""
        deadline = self.of(page)
        if not deadline:
            return True
        if not self._solvent:
            if deadline < self._held.get(page, math.inf):
                self._held[page] = deadline
                heapq.heappush(self._waiting, (deadline, page))
            return False
        self._due.spent()
        self._due.bandwidth.paid += 1
        return True

    def pop(self) -> int | None:
        """A page that waited and can be paid for (`pay`), the one with the earliest deadline."""
        while self._waiting and self._solvent:
            deadline, page = heapq.heappop(self._waiting)
            if self._held.get(page) == deadline:
                del self._held[page]
                return page
        return None

    def next_time(self, now: float) -> float:
        """When the next one can be paid for; infinite where none waits."""
        if not self._held or self._solvent:
            return now if self._held else math.inf
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
