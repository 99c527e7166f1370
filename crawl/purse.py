"""The cash of one partition: spending in commit groups, the virtual page, the OPIC clock (P2; algorithms.md A-C).

Holds, between groups: sum of effective cash over the partition's own pages + pot + account = UNIT x known pages, minus
what went to and plus what came from other partitions. FOREIGN entries hold cash only within a group (post.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metadata.hot import Columns
from metadata.states import DANGLING, State
from opic.cash import UNIT, VirtualPage, credit, seeds_of, shares
from opic.choose import Sweep
from opic.importance import Clock, NewPages, Window, as_if_now, at_birth, measure

Ids = NDArray[np.int64]
NO_PAGES: Ids = np.empty(0, np.int64)
SCAN = 1 << 16
"""most pages that one commit group's sweep looks at: 0.1 ms"""
LEAST_WINDOW = 4.0
"""turnovers that count while the crawl's graph grows; `window` is what it widens to once it has settled"""
_READ = int(State.READ)
_DANGLING = np.zeros(256, np.bool_)
_DANGLING[list(DANGLING)] = True


class Purse:
    """Spends, receives and measures; the caller supplies the links and commits the columns."""

    def __init__(self, columns: Columns, base: int, damping: float, window: float, target: float) -> None:
        self.columns = columns
        self.base = base
        self.damping = damping
        self.window = Window(least=min(window, LEAST_WINDOW), most=window)
        self.virtual = VirtualPage()
        self.clock = Clock()
        self.new_pages = NewPages()
        self.sweep = Sweep(target=target)
        self.spent = 0
        """units spent by this partition since the crawl began"""
        self.spends = 0
        self.foreign = 0
        """FOREIGN entries among the columns: they are not known pages of this partition"""
        self.elsewhere_pages = 0
        self.elsewhere_spent = 0
        """of all other partitions, as last heard"""

    @property
    def known(self) -> int:
        """Known pages of this partition."""
        return self.columns.n - self.foreign

    @property
    def known_everywhere(self) -> int:
        return self.known + self.elsewhere_pages

    def effective(self, pages: Ids | slice) -> NDArray[np.int64]:
        """Cash of pages of this partition, in units."""
        cash: NDArray[np.int64] = self.columns["cash"][pages] + self.virtual.scalar
        return cash

    def mint(self, first: int, foreign: NDArray[np.bool_]) -> None:
        """Pages first .. n-1 are new: each brings one page's worth to the virtual page and holds nothing yet."""
        keys = np.where(foreign, 0, -self.virtual.scalar)
        self.columns["cash"][first : self.columns.n] = keys
        count = int(foreign.sum())
        self.foreign += count
        self.virtual.mint(len(keys) - count)

    def credit(self, pages: Ids, amounts: NDArray[np.int64]) -> None:
        """Cash that came from elsewhere."""
        credit(self.columns["cash"], pages, amounts)
        self.columns.touch("cash", pages)

    def rich(self, free: int, busy: Ids = NO_PAGES) -> tuple[Ids, Ids]:
        """The sweep's next pages to spend without a fetch: (at most `free` read ones, all dangling ones met).

        busy: pages that this group's reports settle; they may spend by those.
        """
        n = self.columns.n
        start, stop = self.sweep.chunk(n, min(SCAN, max(1, n // 8) + 8 * free))
        rich = np.flatnonzero(self.columns["cash"][start:stop] >= int(self.sweep.theta) - self.virtual.scalar) + start
        rich = rich[~np.isin(rich, busy)]
        state = self.columns["state"][rich]
        read = rich[state == _READ] if free else NO_PAGES
        if len(read) > free:
            stop = int(read[free])
            read, rich, state = read[:free], rich[rich < stop], state[rich < stop]
            self.sweep.pointer = stop
        dangling = rich[_DANGLING[state]]
        self.sweep.adapt(stop - start, len(read) + len(dangling))
        return read, dangling

    def spend(self, pages: Sequence[int] | Ids, children: Sequence[NDArray[Any]], born: int, turn: int) -> None:
        """Spend all cash of distinct `pages` over their `children`; pages born.. are new in this group.

        `turn`: number of the commit group, so that a replay draws the same remainders. A page without children pays the
        virtual page.
        """
        columns = self.columns
        now = self.clock.ticks
        if len(pages):
            ids = np.asarray(pages, np.int64)
            degrees = np.fromiter(map(len, children), np.int64, len(children))
            indptr = np.concatenate([[0], np.cumsum(degrees)])
            links = np.concatenate(children).astype(np.int64, copy=False) if len(children) else NO_PAGES
            now = self._spend(ids, indptr, links, turn)
            for name in ("flow", "clock", "cash"):
                columns.touch(name, ids)
            columns.touch("cash", links)
        if columns.n > born:
            ticks = now & 0xFFFF_FFFF
            columns["clock"][born : columns.n] = ticks
            columns["birth"][born : columns.n] = ticks
            columns["flow"][born : columns.n] = at_birth(self.effective(slice(born, columns.n)))

    def _spend(self, ids: Ids, indptr: Ids, links: Ids, turn: int) -> int:
        columns, scalar = self.columns, self.virtual.scalar
        cash = self.effective(ids)
        virtual, amounts = shares(cash, indptr, seeds_of(ids + self.base, turn), self.damping)
        flow, last, now = columns["flow"][ids], columns["clock"][ids], self.clock.ticks
        self.new_pages.learn(flow, cash, last, now)
        window = self.window.at(now)
        columns["flow"][ids] = measure(flow, cash, last, columns["birth"][ids], now, window, self.new_pages.prior)
        columns["clock"][ids] = now & 0xFFFF_FFFF  # before it advances: what this group pays comes after this moment
        columns["cash"][ids] = -scalar
        credit(columns["cash"], links, amounts)
        self.virtual.receive(int(virtual.sum()))
        spent = int(cash.sum())
        self.spent += spent
        self.spends += len(ids)
        return self.clock.advance(spent, UNIT * self.known_everywhere)

    def heard(self, spent: int, pages: int) -> None:
        """Another part of the crawl told its clock: units it spent so far and pages it knows."""
        self.elsewhere_pages = max(self.elsewhere_pages, pages)
        if spent > self.elsewhere_spent:
            self.clock.advance(spent - self.elsewhere_spent, UNIT * max(1, self.known_everywhere))
            self.elsewhere_spent = spent

    def importance(self, pages: Ids | slice) -> NDArray[np.float64]:
        """Flow through pages, as if each were spent now: page-units a turnover (mean about 1; see opic.normalise)."""
        columns = self.columns
        return as_if_now(
            columns["flow"][pages],
            self.effective(pages),
            columns["clock"][pages],
            columns["birth"][pages],
            self.clock.ticks,
            self.window.at(self.clock.ticks),
            self.new_pages.prior,
        )

    def dump(self) -> dict[str, Any]:
        return {
            "virtual": self.virtual.dump(),
            "clock": self.clock.dump(),
            "new_pages": self.new_pages.dump(),
            "sweep": self.sweep.dump(),
            "window": self.window.dump(),
            "spent": self.spent,
            "spends": self.spends,
            "foreign": self.foreign,
            "elsewhere": [self.elsewhere_pages, self.elsewhere_spent],
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Take over what `dump` gave; the settings (window, target) are those of now."""
        target, least, most = self.sweep.target, self.window.least, self.window.most
        self.window = Window.load({**state["window"], "least": least, "most": most})
        self.virtual = VirtualPage.load(state["virtual"])
        self.clock = Clock.load(state["clock"])
        self.new_pages = NewPages.load(state["new_pages"])
        self.sweep = Sweep.load(state["sweep"])
        self.sweep.target = target
        self.spent, self.spends, self.foreign = state["spent"], state["spends"], state["foreign"]
        self.elsewhere_pages, self.elsewhere_spent = state["elsewhere"]
