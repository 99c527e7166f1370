"""Refreshing as fast as the web allows: pages in the order of P1's law, on a clock that jumps to the next one due.

A bounded `crawl --refresh` reads without a pause until its bound. Real intervals are then far under a second, and a
page read early would be due again early, so heavy pages would crowd out the others. Here time is virtual: the mean
interval is MEAN virtual seconds, t_i = MEAN S / (n w_i), and popping moves the clock to what it pops. Every page gets
its share of the reads, in proportion to its weight w = sqrt(r lambda), whatever the speed (P1 eq. 22).
"""

from __future__ import annotations

from xyro.refresh.due import DueFolders, Ids
from xyro.wire.ids import LocalPage, local_pages

MEAN = 4096
"""virtual seconds of the mean interval: a share is exact to a part in so many"""
LONGEST = 64 * MEAN
"""a page of little weight, or none, still gets its turn"""
REWIND = 1 << 31
"""virtual seconds after which the clock starts over: folders hold 32 bits of them, a lone page uses MEAN a read"""


class Ahead:
    """Invariant: at most one valid entry a page; `put` again replaces it, and `pop` skips what was replaced."""

    def __init__(self) -> None:
        self.clock = 0
        self._folders = DueFolders(1)
        self._due: dict[LocalPage, int] = {}

    def __len__(self) -> int:
        return len(self._due)

    def put(self, page: LocalPage, weight: float, mean_weight: float) -> None:
        """The page was read; mean_weight = S / n over the pages that are refreshed."""
        wait = MEAN * mean_weight / weight if weight > 0.0 else LONGEST
        self.put_after(page, int(min(max(wait, 1.0), LONGEST)))

    def put_after(self, page: LocalPage, wait: int) -> None:
        """The page's turn comes `wait` virtual seconds from now."""
        due = self._due[page] = self.clock + wait
        self._folders.put(page, due)

    def pop(self, limit: int) -> list[LocalPage]:
        """The next pages, at most `limit`; the clock moves on to the last one's turn."""
        found: list[LocalPage] = []
        while len(found) < limit and (due := self._folders.next_due()) is not None:
            pages: Ids = self._folders.pop(due, limit - len(found))
            for page in local_pages(pages):
                if self._due.get(page) == due:
                    del self._due[page]
                    found.append(page)
            self.clock = max(self.clock, due)
        if self.clock >= REWIND:
            self._rewind()
        return found

    def _rewind(self) -> None:
        """The clock goes back to 0, and all turns with it."""
        passed, waiting = self.clock, sorted(self._due.items(), key=lambda entry: entry[1])
        self.clock, self._folders, self._due = 0, DueFolders(1), {}
        for page, due in waiting:
            self.put_after(page, max(due - passed, 0))
