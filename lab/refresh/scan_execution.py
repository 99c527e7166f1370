"""Refreshing by scan (P1 6.6's other execution): the pages with the greatest index, out of the columns, at each tick.

Folders by time unit (due.py) file a page once, at the interval that follows from the multiplier of that moment. A scan
looks at every page and ranks by the index itself: it needs no multiplier, spends the bandwidth exactly, and follows
every change of importance, rate, bandwidth or policy at once, for 3 to 12 ns a page. Its columns: importance (float32,
which OPIC keeps anyway), change rate (float32) and last read (uint32): 8 bytes a page of refresh's own, beside the 4 of
`due`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.refresh.policy import Policy

CHUNK = 1 << 15
"""pages whose columns and intermediate results stay in the cache"""
SAMPLE = 1 << 14
"""pages by which the first threshold is guessed"""
TINY = float(np.finfo(np.float32).tiny)
PER_DAY = np.float32(1.0 / 86_400.0)
LATE = np.float32(np.finfo(np.float32).max)
"""index of a page that is past its ceiling"""
Column = NDArray[np.float32]
Seconds = NDArray[np.uint32]
Ids = NDArray[np.int64]


class Shut(NamedTuple):
    """Hosts whose pages are passed over: a flag for each host, and the host of each page (uint32[n])."""

    hosts: NDArray[np.bool_]
    host_of: NDArray[np.uint32]


@dataclass(slots=True)
class Scan:
    """A scan of all pages, to `choose` from at each tick.

    theta: the least index that was chosen last; 0 where all pages were. floor, ceiling (days since the last read): no
    page younger than the floor is chosen, and pages older than the ceiling come before all others.
    """

    policy: Policy
    theta: float = 0.0
    floor: float = 0.0
    ceiling: float = math.inf

    def choose(
        self,
        importance: Column,
        rate: Column,
        read_at: Seconds,
        now: int,
        limit: int,
        least: float = 0.0,
        shut: Shut | None = None,
    ) -> Ids:
        """Return the `limit` pages with the greatest index that is at least `least`, greatest first; ties in any order.

        importance, rate: float32[n], 0 or less = not refreshed; read_at: uint32[n], seconds since 1970 as `now` is.
        Exact: the threshold guessed from a sample decides how many candidates a pass collects, and one that found too
        few is made again.
        """
        columns = _Columns(importance, rate, read_at, now, shut)
        least, limit = max(least, TINY), min(limit, len(importance))
        pages, index = _NONE, _NO_INDEX
        for guess in self._guesses(columns, limit, least) if limit > 0 else ():
            pages, index = self._above(columns, guess)
            if len(pages) >= limit or guess <= least:
                break
        if len(pages) > limit:
            best = np.argpartition(index, len(index) - limit)[-limit:]
            pages, index = pages[best], index[best]
        self.theta = float(index.min()) if len(pages) and len(pages) == limit else 0.0
        order: Ids = pages[np.argsort(-index, kind="stable")]
        return order

    def _guesses(self, columns: _Columns, limit: int, least: float) -> list[float]:
        """Return thresholds to try, falling: by every k-th page, some and many more than `limit` pages reach them."""
        n = len(columns.rate)
        stride = max(1, n // SAMPLE)
        sample = slice(0, n, stride)
        index = self._index(columns, sample)
        if columns.shut is not None:
            index *= ~columns.shut.hosts[columns.shut.host_of[sample]]
        index.sort()
        found = []
        for more in (1.2, 2.0, 8.0):
            wanted = int(more * limit / stride) + 8
            if wanted < len(index):
                found.append(max(float(index[-wanted]), least))
        return [*found, least]

    def _above(self, columns: _Columns, theta: float) -> tuple[Ids, Column]:
        """Return (pages, index) of all pages whose index is at least theta."""
        pages, indices, least = [_NONE], [_NO_INDEX], np.float32(theta)
        for start in range(0, len(columns.rate), CHUNK):
            index = self._index(columns, slice(start, start + CHUNK))
            found = (index >= least).nonzero()[0]
            if columns.shut is not None:  # asked of few: the host of every page would double the time
                found = found[~columns.shut.hosts[columns.shut.host_of[start : start + CHUNK][found]]]
            if len(found):
                pages.append(found + start)
                indices.append(index[found])
        return np.concatenate(pages), np.concatenate(indices)

    def _index(self, columns: _Columns, part: slice) -> Column:
        """Return the index of pages, float32; a page read after `now` (a clock set back) counts as read now."""
        importance, rate = columns.importance[part], columns.rate[part]
        moment = np.uint32(min(columns.now, 0xFFFF_FFFF))
        age = (moment - np.minimum(columns.read_at[part], moment)).astype(np.float32)
        age *= PER_DAY
        index = self.policy.index(importance, rate, age).astype(np.float32, copy=False)
        if self.policy.name in (
            "uniform",
            "proportional",
        ):  # these two do not ask whether a page has importance, or a rate
            index *= (importance > 0.0) & (rate > 0.0)
        if self.ceiling < math.inf:
            late = age >= np.float32(self.ceiling)
            late &= rate > 0.0
            index[late] = LATE
        if self.floor > 0.0:
            index *= age >= np.float32(self.floor)
        return index


class _Columns(NamedTuple):
    importance: Column
    rate: Column
    read_at: Seconds
    now: int
    shut: Shut | None


_NONE: Ids = np.empty(0, np.int64)
_NO_INDEX: Column = np.empty(0, np.float32)
