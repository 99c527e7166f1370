"""Adaptive intervals, as Nutch and StormCrawler keep them: shorter after a change, longer without."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xyro.lab.refresh.page_arrays import DAY, TICK, Bools, PageArrays
from xyro.lab.refresh.selection import due, least
from xyro.lab.refresh.world import Ids, Reals

Adapt = Callable[[Reals, Reals, Bools], tuple[Reals, Reals]]
"""(interval, days since the last change found, changed) -> (interval, days by which the next fetch comes earlier)"""


class Scheduled:
    """A rule of adaptive intervals.

    relative: the latest relative to its interval comes first, due or not; else only due pages are read, the most
    overdue first. first: the interval of a new page (days).
    """

    def __init__(self, born: Reals, first: float, adapt: Adapt, relative: bool = False) -> None:
        self._interval = np.full(len(born), first)
        self._due = born + first
        self._changed_at = born.copy()
        self._adapt, self._relative = adapt, relative

    def choose(self, view: PageArrays, limit: int) -> Ids:
        n = len(view.rate)
        wait = self._due[:n] - view.now / DAY
        if self._relative:
            return least(wait / self._interval[:n], limit, view.hosts)
        return due(wait, 0.0, limit, view.hosts)

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        self._changed_at[pages[changed]] = now
        interval, early = self._adapt(self._interval[pages], now - self._changed_at[pages], changed)
        self._interval[pages] = interval
        self._due[pages] = now + interval - early


def nutch(interval: Reals, since: Reals, changed: Bools, shortest: float = TICK / DAY) -> tuple[Reals, Reals]:
    """Nutch without sync_delta, `shortest` days (a tick) at least."""
    return np.clip(interval * np.where(changed, 0.8, 1.4), shortest, 365.0), np.zeros(len(interval))


def nutch_shipped(interval: Reals, since: Reals, changed: Bools) -> tuple[Reals, Reals]:
    """Nutch with sync_delta, a minute at least."""
    longer = np.maximum(interval * np.where(changed, 0.8, 1.4), since)
    return np.clip(longer, 60.0 / DAY, 365.0), 0.3 * since


def stormcrawler(interval: Reals, since: Reals, changed: Bools) -> tuple[Reals, Reals]:
    """StormCrawler's AdaptiveScheduler with its defaults."""
    shorter = 0.5 * interval + 0.5 * (60.0 / 1440.0)
    return np.where(changed, shorter, np.minimum(1.5 * interval, 14.0)), np.zeros(len(interval))
