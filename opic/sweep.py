"""The threshold sweep: which pages are rich enough to spend next, in place of P2's Greedy.

A cyclic pointer walks the column of cash, and pages with cash >= theta are rich; theta follows the share of pages that
the walk finds rich. The sweep keeps nothing per page, reads memory in order, costs a twentieth of a heap and ends with
less error than exact greedy. It is fair: theta falls while few pages are rich, and the virtual page pays everybody, so
each page that holds cash is picked in the end. The papers' other selectors are in lab/opic/selectors.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from xyro.opic.arrays import Pages
from xyro.opic.cash import UNIT

SWEEP_TARGET = 0.1
"""share of the scanned pages that should be rich: .05-.1 gave the least error, .2-.5 nears Cycle"""
Costs = NDArray[np.int8]
"""what each page takes of an allowance: 1; 0 if it spends without cost; -1 if it may not spend now"""


def afford(pages: Pages, costs: Costs, limit: int) -> tuple[Pages, int]:
    """Take pages in their order until `limit` is used up; returns them and the first one left out (-1: none was).

    An allowance of 0 passes over the pages that cost something.
    """
    able = np.flatnonzero(costs >= 0 if limit > 0 else costs == 0)
    pages, used = pages[able], costs[able].cumsum(dtype=np.int64)
    if not used.size or used[-1] <= limit:
        return pages, -1
    end = int(used.searchsorted(limit, "right"))
    return pages[:end], int(pages[end])


class Sweep(Struct):
    """A walk over a column of pages and its threshold. theta is in units of cash.

    The caller scans the slice that `chunk` returns, and reports to `take` or `adapt` how many pages were rich.
    """

    theta: float = float(UNIT)
    target: float = SWEEP_TARGET
    pointer: int = 0
    pages: int = 0
    scanned: int = 0
    hits: int = 0

    def chunk(self, n: int, limit: int) -> tuple[int, int]:
        """Return the next slice of a column of n pages, at most `limit` long; it ends where the column does. (0, 0): no
        pages."""
        start = self.pointer if self.pointer < n else 0
        stop = min(n, start + max(limit, 0))
        self.pointer, self.pages = stop % n if n else 0, n
        return start, stop

    def take(self, start: int, stop: int, rich: Pages, costs: Costs, limit: int) -> Pages:
        """Pick those of the slice's rich pages that an allowance of `limit` pays for, and adapt the threshold.

        The next slice begins with the first page left out, so that none is passed over.
        """
        picked, left = afford(rich, costs, limit)
        if left >= 0:
            stop = left
            self.pointer = stop % self.pages
        self.adapt(stop - start, picked.size)
        return picked

    def adapt(self, scanned: int, hits: int) -> None:
        """`hits` of `scanned` pages were rich: every n/64 scanned pages theta moves by a factor of 1/2..2."""
        self.scanned += scanned
        self.hits += hits
        if self.scanned == 0 or self.scanned * 64 < self.pages:
            return
        # the 0.001 keeps a sweep that found nothing from halving theta less than a sweep that found little
        wanted = ((self.hits / self.scanned + 0.001) / self.target) ** 0.5
        self.theta = max(1.0, self.theta * min(max(wanted, 0.5), 2.0))
        self.scanned = self.hits = 0

    def dump(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in self.__struct_fields__}

    @classmethod
    def load(cls, state: Mapping[str, float]) -> Sweep:
        """The sweep that `dump` described. KeyError: a number is missing."""
        whole = {name: int(state[name]) for name in ("pointer", "pages", "scanned", "hits")}
        return cls(theta=float(state["theta"]), target=float(state["target"]), **whole)
