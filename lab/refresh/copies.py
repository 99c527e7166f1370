"""The worth of a crawler's copies of a world: exact integrals of staleness between its reads.

A copy is stale from the first change after its read on, and as many changes behind as there were since. Both are
integrated over the true change times, not over samples or expectations:

    stale time of a visit    now - max(from, first change not seen)          0 where there is none
    changes missed           sum over changes not seen of now - max(from, change)

`from` is the last read, or the end of the burn-in where that is later.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from xyro.lab.refresh.world import Ids, Reals, World


class CopyVisit(NamedTuple):
    """The findings of reads of some pages, an entry a page."""

    tau: Reals
    """days since the read before"""
    changed: np.ndarray[tuple[int], np.dtype[np.bool_]]
    age: Reals
    """days since the last change: what an honest Last-Modified tells; NaN where the page did not change"""


class Copies:
    """The copies of all pages of a world, and the staleness that they gathered.

    Invariant: all changes before place `seen` are in the copy; `counted` of them lie before `since`.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.read_at = world.born.copy()
        self.stale, self.missed = np.zeros(world.n), np.zeros(world.n)
        self._since = world.born.copy()
        self._seen = world.indptr[:-1].copy()
        self._counted = self._seen.copy()
        self.fading = world.fading
        self.caught = np.zeros(world.n)
        """interest left in the changes of each page when they were read"""
        self._first = world.indptr[:-1].copy()
        """place of the first change of each page since the end of the burn-in"""

    def read(self, pages: Ids, now: float) -> CopyVisit:
        """Make the copies of these pages anew, each page once; return the findings."""
        end = self._settle(pages, now)
        changed = end > self._seen[pages]
        last = self.world.times[np.maximum(end - 1, 0)] if len(self.world.times) else np.zeros(len(pages))
        if self.fading is not None:
            self.caught[pages] += self._left(pages, end, now, self.fading)
        visit = CopyVisit(now - self.read_at[pages], changed, np.where(changed, now - last, np.nan))
        self._seen[pages] = end
        self.read_at[pages] = now
        return visit

    def begin(self, now: float) -> None:
        """End the burn-in: staleness until now does not count."""
        there = np.flatnonzero(self._since < now)
        self._settle(there, now)
        self.stale[:], self.missed[:], self.caught[:] = 0.0, 0.0, 0.0
        self._first = self.world.past(np.arange(self.world.n), now)

    def end(self, now: float) -> None:
        """Add what is stale at the end."""
        self._settle(np.arange(self.world.n), now)

    def published(self) -> Reals:
        """Return the interest in all changes of each page since the burn-in, as they came."""
        found: Reals = (self.world.indptr[1:] - self._first).astype(np.float64)
        return found

    def _left(self, pages: Ids, end: Ids, now: float, fading: float) -> Reals:
        """Interest left, now, in the changes of these pages that were not seen, up to a place behind the last."""
        world = self.world
        if not len(world.times):
            return np.zeros(len(pages))
        seen = np.maximum(self._seen[pages], self._first[pages])
        last, before = np.maximum(end - 1, 0), np.maximum(seen - 1, 0)
        older = np.where(seen > world.indptr[pages], world.lingering[before], 0.0)
        gap = np.maximum(world.times[last] - world.times[before], 0.0)
        whole = world.lingering[last] - older * np.exp(-fading * gap)
        return np.where(end > seen, np.exp(-fading * (now - world.times[last])) * whole, 0.0)

    def _settle(self, pages: Ids, now: float) -> Ids:
        """Add the time from `since` to now; returns the place behind the last change of each."""
        world, since, counted = self.world, self._since[pages], self._counted[pages]
        seen, end = self._seen[pages], world.past(pages, now)
        if len(world.times):
            first = world.times[np.minimum(seen, len(world.times) - 1)]
            self.stale[pages] += np.where(end > seen, now - np.maximum(since, first), 0.0)
        fresh = (end - counted) * now - (world.summed[end] - world.summed[counted])
        self.missed[pages] += (counted - seen) * (now - since) + fresh
        self._since[pages] = now
        self._counted[pages] = end
        return end
