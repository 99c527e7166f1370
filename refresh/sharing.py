"""Sharing of the reads: gamma % to discovery, the rest to refresh; how much there is to share; who gets a host's room.

    GammaSchedule, Controller             gamma over the life of a crawl, towards a target
    BandwidthMeter, Bursts, Capacity      reads a second, as they were and as they could be
    choose, crowd                         which unread pages the next orders read

Unread pages come by score, the greatest first (frontier/discovery.py), those of one score in the order they were met.
Each host takes at most its room, so one big host cannot eat what others could use. Pure: candidates in, choice out.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BUCKET = 10.0
"""Seconds counted together: some 60 counters for ten minutes."""


class BandwidthMeter:
    """B: reads per second over the last ten minutes.

    Before ten minutes have passed: over the time since the first read, but at least one bucket's. Times are wall clock;
    while it is set back no time passes, and from there on it does.
    """

    def __init__(self, window: float = 600.0) -> None:
        self.window = window
        self._buckets: deque[tuple[float, int]] = deque()
        self._reads = 0
        self._started: float | None = None
        self._time = 0.0
        """seconds that have passed, from the first time told on"""
        self._last: float | None = None

    def count(self, now: float, reads: int = 1) -> None:
        """`reads` pages were read by now."""
        self._advance(now)
        if self._started is None:
            self._started = self._time
        bucket = self._time // BUCKET
        before = self._buckets.pop()[1] if self._buckets and self._buckets[-1][0] == bucket else 0
        self._buckets.append((bucket, before + reads))
        self._reads += reads

    def rate(self, now: float) -> float:
        """Reads per second; 0 before the first read."""
        if self._started is None:
            return 0.0
        oldest = self._advance(now)
        return self._reads / max(self._time - max(self._started, oldest * BUCKET), BUCKET)

    def _advance(self, now: float) -> float:
        """Forget the buckets that lie wholly before the window; the number of the oldest that does not."""
        self._time = now if self._last is None else self._time + max(now - self._last, 0.0)
        self._last = now
        oldest = (self._time - self.window) // BUCKET
        while self._buckets and self._buckets[0][0] < oldest:
            self._reads -= self._buckets.popleft()[1]
        return oldest


class Bursts:
    """Reads a second that come in bursts (a day's notices at six): a mean with a memory of MEMORY seconds.

    rate(t) = sum_i exp(-(t - t_i) / MEMORY) / MEMORY. Wall clock; where it is set back no time passes.
    """

    MEMORY = 3 * 86_400.0

    def __init__(self, rate: float = 0.0, time: float = 0.0) -> None:
        self._rate = rate
        self._time = time

    def count(self, now: float, reads: int) -> None:
        self._rate = self.rate(now) + reads / self.MEMORY
        self._time = now

    def rate(self, now: float) -> float:
        return self._rate * math.exp(-max(now - self._time, 0.0) / self.MEMORY) if self._rate else 0.0

    def dump(self) -> list[float]:
        """Return the arguments that make it again: `Bursts(*dumped)`."""
        return [self._rate, self._time]


class Capacity:
    """B as a capacity: reads per second over the last ten minutes in which there was more to read than was read.

    What was read while nothing waited says how much there was to read, not how much could be: where floors bind, or all
    pages are fresh, such a measure decays, and intervals with it. So time counts only while `busy`; until ten minutes
    were, the best rate seen stands in. LULL: longest time without any read that counts (a network that is down is no
    lack of capacity). Times are wall clock; where it is set back no time passes.
    """

    LULL = 300.0

    def __init__(self, window: float = 600.0) -> None:
        self.fallback = 0.0
        """what stands in while nothing was measured: of the run before, or the best of the time when nothing waited"""
        self._busy, self._idle = BandwidthMeter(window), BandwidthMeter(window)
        self._clock = 0.0
        """seconds in which there was more to read"""
        self._last: float | None = None
        self._lull = 0.0

    def resume(self, rate: float) -> None:
        """Begin with the reads per second of the run before."""
        self.fallback = rate

    def count(self, now: float, reads: int, busy: bool) -> None:
        """Count reads since the last call, in a time in which there was more to read, or not."""
        last = now if self._last is None else self._last
        self._last = now
        if not busy:
            self._idle.count(now, reads)
            self.fallback = max(self.fallback, self._idle.rate(now))
            return
        passed = min(max(now - last, 0.0), self.LULL - self._lull)
        self._lull = 0.0 if reads else self._lull + passed
        self._clock += passed
        if reads:
            self._busy.count(self._clock, reads)

    def rate(self) -> float:
        """Reads per second; 0 before the first read."""
        return self._busy.rate(self._clock) or self.fallback


class GammaSchedule:
    """gamma over the life of a crawl: more discovery at first, then maintenance.

    points: (known pages read so far, gamma) with rising pages; linear between them, level before and after.
    """

    def __init__(self, points: Sequence[tuple[float, float]]) -> None:
        pages = [page for page, _ in points]
        if not points or pages != sorted(set(pages)) or not all(0.0 <= gamma <= 100.0 for _, gamma in points):
            raise ValueError(f"GammaSchedule: pages rise, gammas are 0 to 100; got {list(points)}")
        self.points = tuple(points)

    def gamma_at(self, pages: float) -> float:
        """gamma when so many pages were read."""
        before = self.points[0]
        for after in self.points:
            if pages <= after[0]:
                width = after[0] - before[0]
                part = (pages - before[0]) / width if width > 0.0 else 1.0
                return before[1] + part * (after[1] - before[1])
            before = after
        return before[1]


class Controller:
    """Finds the gamma that reaches a target: discovery gets what refresh does not need for it.

    An integrating controller on the freshness that is measured: below the target gamma falls, above it it rises, by
    `gain` points for each point of freshness and each call. It stays within its bounds and winds nothing up there.
    """

    def __init__(self, target: float, gamma: float = 50.0, least: float = 1.0, greatest: float = 99.0) -> None:
        if not (0.0 < target < 1.0 and 0.0 <= least <= greatest <= 100.0):
            raise ValueError(f"Controller: a target between 0 and 1, 0 <= least <= greatest <= 100; got {target}")
        self.target, self.least, self.greatest = target, least, greatest
        self.gamma = min(max(gamma, least), greatest)

    def hear(self, freshness: float, gain: float = 0.5) -> float:
        """Take the present freshness and return gamma from now on."""
        moved = self.gamma + gain * 100.0 * (freshness - self.target)
        self.gamma = min(max(moved, self.least), self.greatest)
        return self.gamma


Ids = NDArray[np.int64]
CROWD = 8
"""more candidates than this many times the wanted ones are cut to the best before they are sorted"""


def choose(urgency: NDArray[np.int64], hosts: NDArray[np.uint32], room: NDArray[np.int32], limit: int) -> Ids:
    """Return indices of at most `limit` candidates, most urgent first, at most room[h] of host h.

    urgency: int64[n], greater = sooner; ties in the order given. hosts: uint32[n]. room: int32 by host number.
    """
    n = len(urgency)
    if n == 0 or limit <= 0:
        return np.empty(0, np.int64)
    if int(room[hosts].min()) >= n <= limit:
        return np.argsort(-urgency, kind="stable")
    order = np.lexsort((-urgency, hosts))
    rank = rank_in_run(hosts[order])
    order = order[rank < room[hosts[order]]]
    best = np.lexsort((order, -urgency[order]))
    chosen: Ids = order[best[:limit]]
    return chosen


def crowd(urgency: NDArray[np.int64], wanted: int) -> Ids:
    """Indices of the most urgent CROWD x wanted candidates (all, if they are fewer), in the order given.

    Of equally urgent ones the first.
    """
    limit = CROWD * max(wanted, 1)
    if len(urgency) <= limit:
        return np.arange(len(urgency))
    least = np.partition(urgency, len(urgency) - limit)[len(urgency) - limit]
    chosen = urgency > least
    chosen[np.flatnonzero(urgency == least)[: limit - int(chosen.sum())]] = True
    return np.flatnonzero(chosen)


def rank_in_run(sorted_keys: NDArray[np.uint32]) -> Ids:
    """Return 0, 1, 2 ... within each run of equal keys."""
    n = len(sorted_keys)
    starts = np.flatnonzero(np.concatenate([[True], sorted_keys[1:] != sorted_keys[:-1]]))
    lengths = np.diff(np.concatenate([starts, [n]]))
    ranks: Ids = np.arange(n) - np.repeat(starts, lengths)
    return ranks
