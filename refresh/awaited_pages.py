"""Pages that a notice promises: ordered for it and not read yet, and those that it was due without.

Kept by the partition of the pages; when a notice is due subscriptions.py says. Times are seconds since 1970.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct, field

from xyro.refresh.lateness import Late, late
from xyro.wire.ids import LocalPage

MOST_PAGES = 100_000
"""pages whose lateness is measured at once"""


class AwaitedPages(Struct):
    """The pages of one partition: `promise`, then `miss` or `read`."""

    awaited: dict[LocalPage, float] = field(default_factory=dict)
    """pages ordered for a notice and not read -> when it is due; at most MOST_PAGES"""
    overdue: dict[LocalPage, float] = field(default_factory=dict)
    """pages not refreshed for a notice -> when it was due; at most MOST_PAGES"""
    lateness: float = 0.0
    """seconds past notices' dates that pages were refreshed, summed over the pages: what missed deadlines cost"""

    def resume(self, lateness: float) -> None:
        """Go on counting the lateness of an earlier life."""
        self.lateness = lateness

    def promise(self, pages: Iterable[LocalPage], due: float) -> None:
        """Pages are ordered for a notice that is due then."""
        for page in pages:
            if page in self.awaited or len(self.awaited) < MOST_PAGES:
                self.awaited[page] = min(due, self.awaited.get(page, math.inf))

    def miss(self, pages: Iterable[LocalPage], due: float) -> None:
        """A notice that was due then had to say that these pages were not refreshed for it."""
        for page in pages:
            self.awaited.pop(page, None)
            if page in self.overdue or len(self.overdue) < MOST_PAGES:
                self.overdue[page] = min(due, self.overdue.get(page, math.inf))

    def deadline(self, page: LocalPage) -> float:
        """By when a page is to be read for a notice: one that was missed comes first; 0 = none needs it."""
        return self.overdue.get(page) or self.awaited.get(page, 0.0)

    def late(self, now: float) -> Late:
        """Pages whose notice was due before they were read: the cost that runs up now."""
        return late(self.overdue.values(), now)

    def read(self, page: LocalPage, now: float) -> None:
        """A page was read: was it overdue?"""
        self.awaited.pop(page, None)
        due = self.overdue.pop(page, None)
        if due is not None:
            self.lateness += max(now - due, 0.0)
