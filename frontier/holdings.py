"""A partition's pages as selectors see them (opic/choose.py): read pages cost a free spend, dangling ones nothing."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from xyro.metadata.hot import Columns
from xyro.metadata.states import DANGLING, State
from xyro.opic.arrays import Mask, Pages, Units
from xyro.opic.cash import VirtualPage
from xyro.opic.choose import Costs, Held
from xyro.opic.focus import FocusedPage

SCAN = 1 << 16
"""most pages that one commit group's selection looks at: 0.1 ms"""
_COSTS: Costs = np.full(256, -1, np.int8)
_COSTS[State.READ] = 1
_COSTS[list(DANGLING)] = 0


class Cash(Protocol):
    """What is asked of the ledger."""

    columns: Columns

    @property
    def virtual(self) -> VirtualPage | FocusedPage:
        """Who pays all pages."""
        ...

    def effective(self, pages: Pages | slice) -> Units:
        """Cash of pages, units."""
        ...

    def classes(self, pages: Pages | slice) -> Pages:
        """Which of the virtual page's classes they are in."""
        ...


class Holdings(Held):
    """Cash and costs of a ledger's pages, for one pick of at most `free` read ones.

    busy: pages that this group's reports settle; they may spend by those.
    """

    def __init__(self, ledger: Cash, free: int, busy: NDArray[np.int64]) -> None:
        n = ledger.columns.n
        super().__init__(ledger.columns["cash"][:n], ledger.virtual.scalar)
        self.ledger, self.busy = ledger, busy
        self.scan = min(SCAN, max(1, n // 8) + 8 * free)

    def of(self, pages: Pages | slice) -> Units:
        return self.ledger.effective(pages)

    def holding(self, start: int, stop: int, least: float) -> Mask:
        if isinstance(self.ledger.virtual, FocusedPage):
            rich: Mask = self.ledger.effective(slice(start, stop)) >= int(least)
            return rich
        return super().holding(start, stop, int(least))  # one pass and no copy

    def cost(self, pages: Pages) -> Costs:
        costs: Costs = _COSTS[self.ledger.columns["state"][pages]]
        able = np.flatnonzero(costs >= 0)
        if able.size and self.busy.size:
            costs[able[np.isin(pages[able], self.busy)]] = -1
        return costs

    def paid(self) -> Units:
        virtual = self.ledger.virtual
        return virtual.scalars if isinstance(virtual, FocusedPage) else np.array([virtual.scalar])

    def kinds(self, pages: Pages) -> Pages | int:
        return self.ledger.classes(pages) if isinstance(self.ledger.virtual, FocusedPage) else 0
