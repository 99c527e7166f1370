"""AsyncMirrorSync: rates of reads learned by mirror descent from the costs that reads show; no model of changes.

Kolobov, Bubeck, Zimmert: "Online Learning for Active Cache Synchronization", ICML 2020, the variant for practice.
Written down from the algorithm in the authors' experiments (microsoft/Optimal-Freshness-Crawl-Scheduling,
sync_bandits.py, async_mirror_sync); parameters are those of exp1a, on Poisson changes, in units of the mean interval.

Page k is read ("synced") every 1 / r_k days. Its cost c_k(t) is, here, importance x [the copy is stale]; J_k(r) =
r integral_0^(1/r) E c has the derivative (E c(U) - E c(1/r)) / r, U uniform in (0, 1/r). So with probability EPSILON a
page is read once more between two syncs, at such a U ("probed"), and

    g_k = (c(probe) - c(sync)) / (EPSILON r_k), 0 where there was no probe, in the mean over the syncs of a cycle

estimates it without bias; c(sync) counts a change before the probe, too. After each cycle the pages that were synced in
it share out anew what they have: min ETA g.r + sum(r/r' - ln r/r'), least <= r <= greatest, sum r as it was: with the
log barrier 1/r = 1/r' + ETA g + nu, one number nu for all. A page whose interval became shorter is dated anew, as
there. Reads of a tick that has more due than it may read go to the most overdue.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from xyro.lab.refresh.page_arrays import DAY, Bools, PageArrays
from xyro.lab.refresh.selection import due
from xyro.lab.refresh.world import Ids, Reals

EPSILON: Final = 0.05
ETA: Final = 1.3 / 100
"""their learning rate 1.3 for 100 pages, whose gradients they divide by 100"""
CYCLE: Final = 8.0 * 0.4
"""mean intervals"""
LEAST, GREATEST = 0.025 / 0.4, 6.0 / 0.4
"""of the mean rate"""
_HALVINGS = 60


class MirrorSync:
    """A rule that reads each page at its own rate, and learns the rates."""

    def __init__(self, born: Reals, rng: np.random.Generator) -> None:
        n = len(born)
        self._rng, self._born = rng, born
        self._rates: Reals = np.zeros(n)
        """syncs a day; 0: not begun"""
        self._sync, self._probe = np.full(n, np.inf), np.full(n, np.inf)
        """days: when each page is synced and probed next"""
        self._probed, self._stale, self._stale_at_probe = (np.zeros(n, np.bool_) for _ in range(3))
        """since the last sync: whether it was probed, had changed by now, had changed by the probe"""
        self._gradient, self._syncs = np.zeros(n), np.zeros(n)
        """of this cycle"""
        self._importance: Reals = np.ones(n)
        self._cycle_ends = 0.0
        self._mean = 0.0
        """of all syncs a day and page"""

    def choose(self, view: PageArrays, limit: int) -> Ids:
        now, n = view.now / DAY, len(view.rate)
        self._importance[:n] = view.importance
        mean = limit * DAY / view.tick / n / (1.0 + EPSILON)
        self._mean = mean if self._mean == 0.0 else 0.99 * self._mean + 0.01 * mean
        new = np.flatnonzero(self._rates[:n] == 0.0)
        if len(new):
            self._rates[new] = self._mean
            self._schedule(new, self._born[new] - self._rng.random(len(new)) / self._mean)
        if now >= self._cycle_ends:
            self._update(now)
            self._cycle_ends = now + CYCLE / self._mean
        return due(np.minimum(self._sync[:n], self._probe[:n]), now, limit, view.hosts)

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        self._stale[pages] |= changed
        synced = self._sync[pages] <= now
        probed = pages[~synced]
        self._probed[probed], self._stale_at_probe[probed], self._probe[probed] = True, self._stale[probed], np.inf
        self._settle(pages[synced], now)

    def _settle(self, pages: Ids, now: float) -> None:
        """These pages were synced: their costs make a gradient."""
        difference = self._stale_at_probe[pages].astype(np.float64) - self._stale[pages]
        gradient = self._importance[pages] * difference / (EPSILON * self._rates[pages])
        self._gradient[pages] += np.where(self._probed[pages], gradient, 0.0)
        self._syncs[pages] += 1.0
        self._probed[pages] = self._stale[pages] = self._stale_at_probe[pages] = False
        late = 1.0 / self._rates[pages]
        self._schedule(pages, np.maximum(self._sync[pages], now - late))

    def _schedule(self, pages: Ids, after: Reals) -> None:
        """Date the next sync of pages, and of some a probe before it."""
        interval = 1.0 / self._rates[pages]
        self._sync[pages] = after + interval
        drawn, moment = self._rng.random(len(pages)) < EPSILON, self._rng.random(len(pages))
        self._probe[pages] = np.where(drawn, after + moment * interval, np.inf)

    def _update(self, now: float) -> None:
        """The cycle ends: share out anew what the pages that were synced have."""
        pages = np.flatnonzero(self._syncs)
        if len(pages):
            gradient = self._gradient[pages] / self._syncs[pages]
            bounds = LEAST * self._mean, GREATEST * self._mean
            before = self._sync[pages] - 1.0 / self._rates[pages]
            self._rates[pages] = descend(self._rates[pages], ETA * gradient, *bounds)
            sooner = np.maximum(before + 1.0 / self._rates[pages], now)
            self._sync[pages] = np.minimum(self._sync[pages], sooner)
        self._gradient[:], self._syncs[:] = 0.0, 0.0


def descend(rates: Reals, step: Reals, least: float, greatest: float) -> Reals:
    """Return the rates r of the same sum, within bounds, with 1/r = 1/rates + step + nu."""
    intervals = 1.0 / rates + step
    low, high = -float(intervals.max()), 2.0 / least - float(intervals.min())
    for _ in range(_HALVINGS):
        nu = 0.5 * (low + high)
        found = _within(intervals + nu, least, greatest)
        low, high = (nu, high) if found.sum() > rates.sum() else (low, nu)
    return _within(intervals + high, least, greatest)


def _within(intervals: Reals, least: float, greatest: float) -> Reals:
    found: Reals = 1.0 / np.clip(intervals, 1.0 / greatest, 1.0 / least)
    return found
