"""A crawl that finds its graph from a seed page, in memory: the crawler's use of xyro.opic, without a web.

It treats the columns as the partition does, commit group by commit group: pages are born when
first linked to, spend when read, and, once read, spend again without a read when the sweep finds them rich ("free
spends"). The tests hold it to the same accuracy as the whole crawler; the laboratory measures policies with it.
"""

from __future__ import annotations

import numpy as np

from xyro.opic.arrays import Mask, Pages, Reals
from xyro.opic.cash import UNIT, VirtualPage, credit, seeds_of, shares
from xyro.opic.graph import Graph
from xyro.opic.importance import TICKS, NewPages, OpicClock, Window, as_if_now, at_birth, centred, measure, normalise
from xyro.opic.sweep import Sweep


class GrowingCrawl:
    """The columns of a crawl of `graph` that knows page `seed` at first.

    Holds after every call: cash of the known pages + virtual page = UNIT x known pages (`total`).
    """

    def __init__(self, graph: Graph, seed: int = 0, window: Window | None = None, spend_ratio: float = 2.0) -> None:
        self.graph, self.spend_ratio = graph, spend_ratio
        self.window = Window() if window is None else window
        self.clock, self.virtual, self.new_pages, self.sweep = OpicClock(), VirtualPage(), NewPages(), Sweep()
        self.keys = np.zeros(graph.n, np.int64)
        self.flow = np.zeros(graph.n, np.float32)
        self.last, self.birth = np.zeros(graph.n, np.uint32), np.zeros(graph.n, np.uint32)
        self.visits = np.zeros(graph.n, np.int64)
        self.found: Mask = np.zeros(graph.n, np.bool_)
        self.read: Mask = np.zeros(graph.n, np.bool_)
        self.order = np.empty(0, np.int64)
        self.reads = self.free_spends = 0
        self._budget = 0.0
        self._hear_of(np.array([seed]))
        self._bear(np.array([seed]))

    @property
    def total(self) -> int:
        return int((self.keys[self.found] + self.virtual.scalar).sum()) + self.virtual.balance

    @property
    def importance(self) -> Reals:
        """Importance of all pages as if read now, mean 1 over the known ones, 0 for the others: float64[n]."""
        found = self.flows
        found[self.order] = normalise(found[self.order])
        return found

    @property
    def flows(self) -> Reals:
        """The same in page-units a turnover."""
        t, now = self.order, self.clock.ticks
        result = np.zeros(self.graph.n)
        cash = self.keys[t] + self.virtual.scalar
        columns = self.flow[t], cash, self.last[t], self.birth[t]
        result[t] = as_if_now(*columns, now, self.window.length_at(now), self.new_pages.prior)
        return result

    @property
    def middles(self) -> Reals:
        """Middles of the intervals of `importance`."""
        t, now, found = self.order, self.clock.ticks, self.flows
        columns = self.flow[t], self.last[t], self.birth[t]
        mean = found[t].mean() or 1.0
        settled = (now - self.window.since) / TICKS
        found[t] = centred(found[t], *columns, now, self.window.length_at(now), settled) / mean
        return found

    def unread(self, limit: int) -> Pages:
        """Return the richest known pages that were never read, at most `limit`."""
        waiting = self.order[~self.read[self.order]]
        return waiting[np.argsort(-self.keys[waiting], kind="stable")[:limit]]

    def fetch(self, pages: Pages) -> None:
        """One commit group: read these distinct known pages, then spend `spend_ratio` pages per read for free."""
        self.read[pages] = True
        self.spend(pages)
        self.reads += pages.size
        self.window.grew(self.order.size + int(self.read.sum()), self.clock.ticks)
        self._budget += self.spend_ratio * pages.size
        self._spend_freely()

    def spend(self, pages: Pages) -> None:
        """Measure these pages, then share their cash over their links."""
        cash, now = self.keys[pages] + self.virtual.scalar, self.clock.ticks
        columns = self.flow[pages], cash, self.last[pages], self.birth[pages]
        self.new_pages.learn(self.flow[pages], cash, self.last[pages], now)
        self.flow[pages] = measure(*columns, now, self.window.length_at(now), self.new_pages.prior)
        self.last[pages] = now & 0xFFFF_FFFF
        indptr, targets = self.graph.links_of(pages)
        virtual, amounts = shares(cash, indptr, seeds_of(pages, self.visits[pages]))
        self.visits[pages] += 1
        self.keys[pages] = -self.virtual.scalar
        fresh = np.unique(targets[~self.found[targets]])
        self._hear_of(fresh)
        credit(self.keys, targets, amounts)
        self.virtual.receive(int(virtual.sum()))
        self.clock.advance(int(cash.sum()), UNIT * self.order.size)
        self._bear(fresh)
        self.virtual.pay(self.order.size)

    def _hear_of(self, pages: Pages) -> None:
        """Pages never heard of become known without cash; their page's worth is minted to the virtual page."""
        self.found[pages] = True
        self.keys[pages] = -self.virtual.scalar
        self.order = np.concatenate((self.order, pages))
        self.virtual.mint(pages.size)

    def _bear(self, pages: Pages) -> None:
        """Their time begins now: what they hold already came because they were found, and is not flow."""
        self.birth[pages] = self.last[pages] = self.clock.ticks & 0xFFFF_FFFF
        self.flow[pages] = at_birth(self.keys[pages] + self.virtual.scalar)

    def _spend_freely(self) -> None:
        """Sweep for read pages rich in cash, at most one turn of the column: what finds no rich page is not saved
        up."""
        left = self.order.size
        while self._budget >= 1 and left > 0:
            start, stop = self.sweep.chunk(self.order.size, min(left, int(self._budget / self.sweep.target)))
            pages = self.order[start:stop]
            rich = pages[self.keys[pages] + self.virtual.scalar >= self.sweep.theta]
            self.sweep.adapt(stop - start, rich.size)
            spent = rich[self.read[rich]]
            if spent.size:
                self.spend(spent)
            left -= stop - start
            self._budget -= spent.size
            self.free_spends += spent.size
        self._budget = min(self._budget, self.spend_ratio)
