"""P1 6.6's two executions of a policy, for the simulator: a scan of all pages by index, or folders by date.

By scan, the pages with the greatest index are read: scan_execution.py. By folders, as frontier/due_queue.py does
it: a page is dated once, when it is read, by the multiplier of that moment; when its time comes it is asked again, and
where the multiplier has grown since it is dated anew. What is due first is read first, before its time where the
bandwidth allows for more. Where all pages are read at once and then few a day, the two differ for as long as the mean
interval: the dates of the beginning stand, and they rest on what importance was known then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from xyro.lab.refresh.page_arrays import DAY, Bools, PageArrays
from xyro.lab.refresh.scan_execution import Scan
from xyro.lab.refresh.world import Ids, Reals
from xyro.refresh.policy import Policy, spent, water_level

LONGEST = 365.0
"""days: max_interval"""
SLACK = 0.02
"""of an interval: so much later than it was dated a page is read as it was dated"""
AGAIN = 3600
"""seconds after which the multiplier is found anew"""


class RecountMoment(NamedTuple):
    """A moment at which all pages were dated anew, read or not."""

    day: float
    importance: Reals
    """of each page, by which it was dated"""


class Execution(Protocol):
    """A way to find the pages that are due by a policy.

    `choose` is that of xyro.lab.refresh.rules.Rule; reserved: pages that are read at a time of their own, never chosen.
    """

    multiplier: float
    """index at which a page is read"""

    def choose(self, view: PageArrays, limit: int, reserved: Bools) -> Ids: ...

    def planned(self, page: int) -> float:
        """Day on which the page would be read, as things stood at the last choice."""
        ...


class Scanning:
    """An execution that reads the page with the greatest index first."""

    def __init__(self, policy: Policy) -> None:
        self._policy, self._scan = policy, Scan(policy)
        self.multiplier = 0.0
        self._view: PageArrays | None = None

    def choose(self, view: PageArrays, limit: int, reserved: Bools) -> Ids:
        self._view = view
        if limit <= 0:
            return np.empty(0, np.int64)
        rate = np.where(reserved, np.float32(0.0), view.rate)  # of rate 0: not refreshed
        chosen = self._scan.choose(view.importance, rate, view.read_at, view.now, limit)
        self.multiplier = self._scan.theta or self.multiplier
        return chosen

    def planned(self, page: int) -> float:
        assert self._view is not None, "asked after a choice"
        importance, rate = float(self._view.importance[page]), float(self._view.rate[page])
        wait = self._policy.one_interval(importance, rate, self.multiplier)
        return float(self._view.read_at[page]) / DAY + min(wait, LONGEST)


class Filing:
    """An execution that reads the page with the earliest date first."""

    def __init__(
        self, policy: Policy, bandwidth: float, unit: int, start: Reals, recounts: Sequence[RecountMoment] = ()
    ) -> None:
        """bandwidth: reads a day for each page; unit: seconds of a folder; start: importance known at the first read,
        which counts until the next one, or a recount."""
        self._policy, self._bandwidth, self._unit = policy, bandwidth, unit / DAY
        self._importance, self._recounts = start.copy(), [*recounts]
        self._known_at = 0
        """seconds: when that was the importance of all pages"""
        self.multiplier = 1.0
        self._solved = -AGAIN
        self._dates: Reals = np.zeros(0)
        self._read_at: Reals = np.zeros(0)
        """days; when each page is read next, and was read when it was dated"""

    def choose(self, view: PageArrays, limit: int, reserved: Bools) -> Ids:
        while self._recounts and self._recounts[0].day <= view.now / DAY:
            self._recount(self._recounts.pop(0).importance, view)
        again = view.read_at > self._known_at
        self._importance[again] = view.importance[again]
        if view.now - self._solved >= AGAIN:
            self._solve(view)
        self._date(view)
        days = self._read_days(view)
        chosen = _earliest(np.where(reserved, np.inf, days), limit)
        if len(chosen):  # pages passed over on the way to the last of them were asked, and dated anew
            passed = self._dates <= days[chosen].max()
            self._dates[passed] = days[passed]
        return chosen

    def planned(self, page: int) -> float:
        return float(self._dates[page])

    def _recount(self, importance: Reals, view: PageArrays) -> None:
        self._importance, self._known_at = importance.copy(), view.now
        self._read_at = np.full(len(self._read_at), np.nan)  # none is dated
        self._solved = view.now - AGAIN

    def _solve(self, view: PageArrays) -> None:
        """Find the multiplier at which all pages together take the bandwidth."""
        importance, rate = self._importance, view.rate.astype(np.float64)

        def spends(multiplier: float) -> float:
            return spent(np.minimum(self._policy.interval(importance, rate, multiplier), LONGEST))

        self.multiplier = water_level(self._bandwidth * len(rate), spends, self.multiplier, 1e-4)
        self._solved = view.now

    def _date(self, view: PageArrays) -> None:
        """Date the pages that were read since the last choice, by the multiplier of now."""
        read_at = view.read_at / DAY
        if len(self._dates) != len(read_at):
            self._dates, self._read_at = np.full(len(read_at), np.nan), np.full(len(read_at), np.nan)
        self._dates = np.where(read_at != self._read_at, read_at + self._intervals(view), self._dates)
        self._read_at = read_at

    def _read_days(self, view: PageArrays) -> Reals:
        """Return the day on which each page is read if it is asked now: its date, or later where its interval grew."""
        intervals = self._intervals(view)
        later = self._read_at + intervals
        dated = np.maximum(self._dates, view.now / DAY)
        return np.where(later > dated + np.maximum(SLACK * intervals, self._unit), later, self._dates)

    def _intervals(self, view: PageArrays) -> Reals:
        """Return the interval of each page, days."""
        return np.minimum(self._policy.interval(self._importance, view.rate, self.multiplier), LONGEST)


def _earliest(dates: Reals, limit: int) -> Ids:
    """Return the places of the `limit` least dates that are finite, in any order."""
    limit = min(limit, int(np.isfinite(dates).sum()))
    if limit <= 0:
        return np.empty(0, np.int64)
    found: Ids = np.argpartition(dates, limit - 1)[:limit]
    return found


def execution_of(
    name: str, policy: Policy, bandwidth: float, unit: int, start: Reals, recounts: Sequence[RecountMoment] = ()
) -> Execution:
    """Make the execution of this name, folders | scan. ValueError: no such execution."""
    if name == "folders":
        return Filing(policy, bandwidth, unit, start, recounts)
    if name == "scan":
        return Scanning(policy)
    raise ValueError(f"execution {name!r}: folders or scan")
