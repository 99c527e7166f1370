"""Refreshing by scan (P1 6.6's other execution): the pages with the greatest index, out of the columns, at each tick.

Folders by time unit (due.py) file a page once, at the interval that follows from the multiplier of that moment. A scan
looks at every page and ranks by the index itself: it needs no multiplier, spends the bandwidth exactly, and follows
every change of importance, rate, bandwidth or policy at once, for 1 to 10 ns a page. Its columns: importance (float32,
which OPIC keeps anyway), change rate (float32) and last read (uint32): 8 bytes a page of refresh's own, beside the 4 of
`due`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from refresh.policy import Policy

CHUNK = 1 << 15
"""pages whose columns and intermediate results stay in the cache"""
SAMPLE = 1 << 14
"""pages by which the first threshold is guessed"""
TINY = float(np.finfo(np.float32).tiny)
PER_DAY = np.float32(1.0 / 86_400.0)
Column = NDArray[np.float32]
Seconds = NDArray[np.uint32]
Ids = NDArray[np.int64]


@dataclass(slots=True)
class Scan:
    """`choose` at each tick. theta: the least index that was chosen last, where the next search begins."""

    policy: Policy
    theta: float = 0.0

    def choose(self, importance: Column, rate: Column, read_at: Seconds, now: int, most: int) -> Ids:
        """The `most` pages with the greatest index, greatest first; ties in any order.

        importance, rate: float32[n], 0 = not refreshed; read_at: uint32[n], seconds since 1970 as `now` is. Exact: the
        guessed threshold decides how many candidates a pass collects, and one that found too few is made again.
        """
        n = len(importance)
        most = min(most, n)
        if most <= 0:
            return np.empty(0, np.int64)
        guess = max(self._guess(importance, rate, read_at, now, most), TINY)
        pages, index = self._above(importance, rate, read_at, now, guess)
        while len(pages) < most and guess > TINY:
            guess = max(guess / 4.0, TINY) if len(pages) else TINY
            pages, index = self._above(importance, rate, read_at, now, guess)
        if len(pages) > most:
            best = np.argpartition(index, len(index) - most)[-most:]
            pages, index = pages[best], index[best]
        self.theta = float(index.min()) if len(index) else 0.0
        order: Ids = pages[np.argsort(-index, kind="stable")]
        return order

    def _guess(self, importance: Column, rate: Column, read_at: Seconds, now: int, most: int) -> float:
        """An index that somewhat more than `most` pages reach: by every k-th page."""
        n = len(importance)
        stride = max(1, n // SAMPLE)
        index = self._index(importance[::stride], rate[::stride], read_at[::stride], now)
        wanted = int(1.2 * most / stride) + 8
        if wanted >= len(index):
            return 0.0
        return float(np.partition(index, len(index) - wanted)[len(index) - wanted])

    def _above(self, importance: Column, rate: Column, read_at: Seconds, now: int, theta: float) -> tuple[Ids, Column]:
        """(pages, index) of all pages whose index is at least theta."""
        pages, indices = [np.empty(0, np.int64)], [np.empty(0, np.float32)]
        for start in range(0, len(importance), CHUNK):
            part = slice(start, start + CHUNK)
            index = self._index(importance[part], rate[part], read_at[part], now)
            found = np.flatnonzero(index >= np.float32(theta))
            if len(found):
                pages.append(found + start)
                indices.append(index[found])
        return np.concatenate(pages), np.concatenate(indices)

    def _index(self, importance: Column, rate: Column, read_at: Seconds, now: int) -> Column:
        """float32; a page read after `now` (a clock set back) was read now."""
        moment = np.uint32(min(now, 0xFFFF_FFFF))
        age = (moment - np.minimum(read_at, moment)).astype(np.float32)
        age *= PER_DAY
        return self.policy.index(importance, rate, age).astype(np.float32, copy=False)
