"""The refreshed pages as their rows tell: exact totals, and a sample from which any other sum over them is estimated.

Kept up as pages are dated; a page is taken out with the very numbers that it was put in with: weight w = sqrt(r
lambda), lambda of its row, r = w^2 / lambda.

    totals      of r and, for obsolescence, which is linear in the time, of r lambda and r lambda x the time of the last
                read: integers, and exact
    sample      pages in proportion to importance. Each page has a number u of its own, evenly between 0 and 1 and for
                ever the same, and is in the sample where u < r / T, T the threshold: pages of more importance than T
                always, others by chance r / T (Poisson sampling with permanent random numbers: Ohlsson 1995). A sum
                over all pages is that over the sample, in which each stands for max(r, T)

T is 0, and the sample is all there is, until twice SIZE pages are in it; then it rises until SIZE are left. Where most
importance has left the crawl, all pages are looked at once more. Else a page enters or leaves by a look at itself
alone, and 2,000 pages tell the share of importance that is stale within .01, of however many.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.refresh.rate_belief import PageBelief
from xyro.refresh.rate_sums import DAY
from xyro.wire.ids import LocalPage

SCALE = 2.0**32
"""importance and squared weights are summed in integer steps of 2^-32"""
HEAVIEST = 2.0**60
SIZE = 2048
"""pages that are left where there are too many"""
LEAST_SIZE = 128
"""the same of each of many partitions"""
_MASK = (1 << 64) - 1


class DatedPage(NamedTuple):
    """A refreshed page, as its row tells."""

    weight: float
    """sqrt(r lambda)"""
    pace: float
    """lambda, changes a day"""
    belief: PageBelief
    """by which it fades"""
    read: float
    """seconds"""

    @property
    def counts(self) -> bool:
        """Tell whether it is among the refreshed pages."""
        return self.weight > 0.0 and self.pace > 0.0

    @property
    def importance(self) -> float:
        """r, as it was when the page was dated."""
        return min(self.weight * self.weight / self.pace, HEAVIEST)


class PageTotals:
    """`replace` as pages are read: 1 us each. Invariant: the sums are those over the refreshed pages as they are."""

    def __init__(self) -> None:
        self._importance = self._weights = self._read = self._latest = 0
        """sums of r, of w^2 = r lambda, of r lambda x the second of the last read; the second of the latest read"""

    def replace(self, old: Iterable[DatedPage], new: Iterable[DatedPage]) -> None:
        """Pages were read, dated anew, or left: what they were, and what they are."""
        for sign, pages in ((-1, old), (1, new)):
            for page in pages:
                if page.counts:
                    steps = sign * _steps(page.weight * page.weight)
                    self._importance += sign * _steps(page.importance)
                    self._weights += steps
                    self._read += steps * int(page.read)
                    self._latest = max(self._latest, int(page.read))

    def merge(self, other: PageTotals) -> None:
        """Take the pages of another partition in."""
        self._importance += other._importance
        self._weights += other._weights
        self._read += other._read
        self._latest = max(self._latest, other._latest)

    @property
    def importance(self) -> float:
        """Sum of r over the refreshed pages."""
        return self._importance / SCALE

    def obsolescence(self, now: float) -> float | None:
        """Changes expected to be missed per page, weighted by importance: sum r lambda age / sum r; None without pages.
        A clock that was set back waits for the latest read."""
        if not self._importance:
            return None
        missed = self._weights * max(math.floor(now), self._latest) - self._read
        return max(missed / DAY / self._importance, 0.0)

    def dump(self) -> list[str]:
        """Return it as text: sums may not fit in 64 bits."""
        return [str(self._importance), str(self._weights), str(self._read), str(self._latest)]

    @classmethod
    def load(cls, state: Sequence[str]) -> PageTotals:
        """Take over what `dump` gave."""
        found = cls()
        found._importance, found._weights, found._read, found._latest = map(int, state)
        return found


def _steps(value: float) -> int:
    return int(min(value, HEAVIEST) * SCALE)


class SampledPage(NamedTuple):
    """A page of the sample."""

    page: DatedPage
    folder: int
    """its slot"""


class PageSample:
    """`put` each page of a partition that was dated."""

    def __init__(self, seed: int, partitions: int = 1) -> None:
        self.seed = seed
        self.size = max(SIZE // partitions, LEAST_SIZE)
        self.threshold = 0.0
        self.pages: dict[LocalPage, SampledPage] = {}
        self.unread: list[LocalPage] = []
        """pages that a restart knows to be in it, whose rows nobody has `put` yet"""
        self.moved: set[LocalPage] = set()
        """pages that came or left since somebody last emptied this"""

    def put(self, number: LocalPage, page: DatedPage | None, folder: int) -> None:
        """A page was dated; None: it is not refreshed any more."""
        if page is None or not page.counts or not self._holds(number, page.importance):
            if self.pages.pop(number, None) is not None:
                self.moved.add(number)
            return
        if number not in self.pages:
            self.moved.add(number)
        self.pages[number] = SampledPage(page, folder)
        if len(self.pages) > 2 * self.size:
            self._thin()

    def resume(self, threshold: float, pages: list[LocalPage]) -> None:
        """Go on after a restart from this threshold, with these pages in it."""
        self.threshold, self.unread = threshold, pages

    def take_unread(self) -> list[LocalPage]:
        """Return the pages that a restart left to be `put`, once."""
        pages, self.unread = self.unread, []
        return pages

    @property
    def is_starved(self) -> bool:
        """Tell whether so much importance has left since the threshold rose that it is far too high."""
        return self.threshold > 0.0 and 4 * (len(self.pages) + len(self.unread)) < self.size

    def restart(self) -> None:
        """Let all pages in again, which are for the caller to `put`."""
        self.threshold = 0.0

    def _holds(self, number: LocalPage, importance: float) -> bool:
        return importance >= self.threshold or draw(number, self.seed) * self.threshold < importance

    def _thin(self) -> None:
        """Let the threshold rise until SIZE are left: it is the greatest r / u of those that leave."""
        keys = [each.page.importance / max(draw(n, self.seed), 1e-12) for n, each in self.pages.items()]
        self.threshold = sorted(keys)[-self.size - 1]
        left = [number for key, number in zip(keys, self.pages, strict=True) if key <= self.threshold]
        for number in left:
            del self.pages[number]
        self.moved.update(left)

    def stands_for(self, pages: Iterable[SampledPage]) -> NDArray[np.float64]:
        """Importance that each of these pages of the sample stands for."""
        return np.maximum(np.array([each.page.importance for each in pages], np.float64), self.threshold)


def draw(number: LocalPage, seed: int) -> float:
    """The number u of a page (SplitMix64: Steele, Lea, Flood 2014)."""
    mixed = (seed + (number + 1) * 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & _MASK
    return ((mixed ^ mixed >> 31) >> 11) * 2.0**-53
