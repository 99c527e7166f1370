"""Snapshots of a sample's importances: by how much they moved since shows how wrong they still are.

An estimate's error is not seen, its movement is. While a crawl settles, what an importance moved between half of the
time and now is a fixed multiple of what it still has to move: both shrink by the same law. Once it has settled, both
are the noise of a window. `half_widths` compares the sample of now with that of half of the settled time ago, class by
class of importance, and that one with a quarter: q9 = the movement that 9 of 10 pages stay below,

    half width of 95 of 100 = FACTOR (q9 now / q9 before)^AGAIN settled^LATE q9 of the class.

Three numbers, fitted to six graphs (a part of cnr-2000, the links of fourteen Debian packages of documentation, four of
lab/opic/interval_coverage.py); what differs from graph to graph, which is nearly all, the crawl measures itself. Over
these, at 2, 5 and 10 reads a page, 88 to 99 of 100 pages are covered, 96 on average; the tests' graphs were left out of
the fit.

The sample is drawn anew whenever the crawl's graph has outgrown itself (importance.py `Window`): the clock counts from
there. A snapshot is taken each time that has grown by STEP, and the last KEEP count: 90 kB.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.opic.arrays import Reals

SAMPLE = 2048
"""pages, evenly over all; fewer: those there are"""
SMALLEST = 100
"""pages of a crawl in which there is anything to compare"""
FIRST = 1.2
"""turnovers of settled flow at the first snapshot"""
STEP = 2.0**0.25
KEEP = 10
"""snapshots: they reach back to a fifth of the settled time"""
SETTLED = 7.0
"""turnovers from which movement tells of error: before, estimates have hardly begun to move"""
FACTOR, AGAIN, LATE = 0.74, 0.3, 0.1
SHRINK = 1.5
CLASSES = np.log((0.2, 0.3, 0.45, 0.7, 1.0, 2.0, 5.0))
"""ln of the importances (mean 1) between classes"""
FEW = 40
"""pages of the sample below which a class is judged as the whole"""
MOVED = 0.9
"""share of the pages whose movement is looked at"""
LEAST = 1e-9


class HalfWidths(NamedTuple):
    """Half widths of the intervals in log importance, by class of importance."""

    by_class: Reals
    """float64[classes]"""

    def look_up(self, importance: Reals) -> Reals:
        """The half widths at importances of mean 1: float64[n]."""
        found: Reals = self.by_class[class_of(importance)]
        return found


class Snapshots:
    """The snapshots of one crawl since it last outgrew itself. `settled`: turnovers since then."""

    def __init__(self) -> None:
        self.pages: NDArray[np.uint32] = np.zeros(0, np.uint32)
        self.times: list[float] = []
        """settled turnovers of each, ascending"""
        self.values: list[NDArray[np.float32]] = []
        """importances of the pages, page-units a turnover"""
        self.last, self.next = 0.0, FIRST
        """settled turnovers of the last snapshot, and of the next: while `settled` lies between, nothing is due"""

    def draw(self, pages: NDArray[np.integer]) -> None:
        """Begin anew with a sample of these pages."""
        places = np.linspace(0, max(len(pages) - 1, 0), min(SAMPLE, len(pages))).astype(np.int64)
        self.pages, self.times, self.values = pages[places].astype(np.uint32), [], []

    def take(self, settled: float, importance: Reals) -> None:
        """Take note of the importances of the sample."""
        if settled >= FIRST:
            self.times = [*self.times[1 - KEEP :], settled]
            self.values = [*self.values[1 - KEEP :], importance.astype(np.float32)]
        self.last, self.next = (settled, settled * STEP) if settled >= FIRST else (0.0, FIRST)

    def half_widths(self, settled: float, importance: Reals, mean: float) -> HalfWidths | None:
        """Half widths of now. importance: of the sample's pages, now; mean: of all pages. None: too early to tell."""
        half, quarter = self._near(settled / 2), self._near(settled / 4)
        if settled < SETTLED or half is None or quarter is None or half == quarter:
            return None
        moved = _moved(importance, self.values[half]) * _as_of_half(settled / self.times[half])
        before = _moved(self.values[half], self.values[quarter]) * _as_of_half(self.times[half] / self.times[quarter])
        whole = float(np.quantile(moved, MOVED))
        again = whole / max(float(np.quantile(before, MOVED)), LEAST)
        classes = class_of(importance / mean)
        parts = (moved[classes == number] for number in range(len(CLASSES) + 1))
        q9 = np.array([np.quantile(part, MOVED) if part.size >= FEW else whole for part in parts])
        return HalfWidths(FACTOR * min(max(again, 0.1), 3.0) ** AGAIN * settled**LATE * q9)

    def _near(self, settled: float) -> int | None:
        """The snapshot nearest to that time, if one is within a step and a half."""
        apart = [abs(math.log(time / settled)) for time in self.times]
        best = min(range(len(apart)), key=apart.__getitem__, default=None)
        return best if best is not None and apart[best] < 1.5 * math.log(STEP) else None

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> tuple[bytes, Sequence[float], bytes]:
        values = b"".join(snapshot.astype("<f4").tobytes() for snapshot in self.values)
        return self.pages.astype("<u4").tobytes(), self.times, values

    @classmethod
    def load(cls, state: tuple[bytes, Sequence[float], bytes]) -> Snapshots:
        """Take over what `dump` gave."""
        found, (pages, times, values) = cls(), state
        found.pages = np.frombuffer(pages, "<u4").astype(np.uint32)
        found.times = list(times)
        if times:
            found.values = list(np.frombuffer(values, "<f4").astype(np.float32).reshape(len(times), -1))
            found.last, found.next = times[-1], times[-1] * STEP
        return found


def class_of(importance: Reals) -> NDArray[np.int64]:
    """Class of importances of mean 1: int64[n]."""
    found: NDArray[np.int64] = np.searchsorted(CLASSES, np.log(np.maximum(importance, LEAST)), side="left")
    return found


def _as_of_half(ratio: float) -> float:
    """Movement since a time that is not quite half as long ago, as if it were: errors shrink as t^-1.5, or so."""
    return float((2.0**SHRINK - 1.0) / (ratio**SHRINK - 1.0))


def _moved(now: NDArray[np.floating], then: NDArray[np.floating]) -> Reals:
    moved: Reals = np.abs(np.log(np.maximum(now, LEAST) / np.maximum(then, LEAST)))
    return moved
