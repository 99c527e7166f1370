"""The cash of one partition: spending in commit groups, the virtual page, the OPIC clock (P2; algorithms.md A-C).

Holds, between groups: sum of effective cash over the partition's own pages + pot + account = UNIT x known pages, minus
what went to and plus what came from other partitions. FOREIGN entries hold cash only within a group (outbox.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from xyro.frontier.cash_history import History
from xyro.frontier.holdings import Holdings
from xyro.frontier.host_inflow import HostInflow
from xyro.metadata.hot import Columns
from xyro.metadata.states import CLASS_MASK, CLASS_SHIFT, QUERY, State
from xyro.opic.buckets import Levels
from xyro.opic.cash import LINK, UNIT, Tolls, VirtualPage, credit, seeds_of, shares
from xyro.opic.choose import Selector, Sweep
from xyro.opic.focus import FocusedPage, Terms
from xyro.opic.importance import TICKS, WINDOW, Clock, Window, at_birth
from xyro.opic.names import CRAWLED

Ids = NDArray[np.int64]
NO_PAGES: Ids = np.empty(0, np.int64)
_READ = int(State.READ)
PLAIN = Terms()
_UNCLASSED = ~CLASS_MASK & 0xFFFF


class Ledger:
    """Spends, receives and measures; the caller supplies the links and commits the columns."""

    def __init__(
        self,
        columns: Columns,
        base: int,
        damping: float,
        window: float | Literal["auto"],
        target: float,
        terms: Terms = PLAIN,
        *,
        select: str = "sweep",
        history: str = "interpolation",
        measures: int = 8,
    ) -> None:
        self.columns = columns
        self.base = base
        self.history = History(columns, history, window, measures)
        self.terms, self.tolls = terms, Tolls(damping, terms.edge)
        self.virtual: VirtualPage = FocusedPage(terms.weights) if terms.by_class else VirtualPage()
        self.clock = Clock()
        self.strategy, self.target = select, target
        self.select: Selector = self._selector()
        self._busy = NO_PAGES
        self.spent = 0
        """units spent by this partition since the crawl began"""
        self.spends = 0
        self.foreign = 0
        """FOREIGN entries among the columns: they are not known pages of this partition"""
        self.elsewhere_pages = 0
        self.elsewhere_spent = 0
        """of all other partitions, as last heard"""
        self.host_inflow: HostInflow | None = None
        """hears of what is paid over links, if [opic] sites is on"""

    @property
    def known(self) -> int:
        """Known pages of this partition."""
        return self.columns.n - self.foreign

    @property
    def window(self) -> Window:
        return self.history.window

    @property
    def known_everywhere(self) -> int:
        return self.known + self.elsewhere_pages

    @property
    def weighted(self) -> int:
        """Known pages of this partition, each counted as often as the virtual page pays it."""
        known = self.known
        return self.virtual.weighted(known) if isinstance(self.virtual, FocusedPage) else known

    def effective(self, pages: Ids | slice) -> NDArray[np.int64]:
        """Cash of pages of this partition, in units."""
        cash: NDArray[np.int64]
        if isinstance(self.virtual, FocusedPage):
            cash = self.columns["cash"][pages] + self.virtual.scalars[self.classes(pages)]
        else:
            cash = self.columns["cash"][pages] + self.virtual.scalar
        return cash

    def classes(self, pages: Ids | slice) -> Ids:
        """Classes of pages at the virtual page (opic/focus.py)."""
        found: Ids = (self.columns["flags"][pages] & CLASS_MASK).astype(np.int64) >> CLASS_SHIFT
        return found

    def mint(self, first: int, foreign: NDArray[np.bool_]) -> None:
        """Pages first .. n-1 are new: each brings one page's worth to the virtual page and holds nothing yet. Their
        classes are set; FOREIGN entries are of class 0."""
        columns, virtual, own = self.columns, self.virtual, ~foreign
        new = slice(first, columns.n)
        if isinstance(virtual, FocusedPage):
            columns["cash"][new][own] = virtual.joined(self.classes(new)[own])
        else:
            columns["cash"][new][own] = -virtual.scalar
        count = int(foreign.sum())
        self.foreign += count
        virtual.mint(len(foreign) - count)

    def classify(self, pages: Ids, classes: Ids) -> None:
        """Put distinct pages of this partition into these classes; their cash stays."""
        old = self.classes(pages)
        moved = old != classes
        pages, old, new = pages[moved], old[moved], classes[moved]
        if not len(pages):
            return
        if not isinstance(self.virtual, FocusedPage):
            self.virtual = FocusedPage.over(self.virtual, self.terms.weights)
        self.columns["cash"][pages] += self.virtual.moved(old, new)
        flags = self.columns["flags"]
        flags[pages] = flags[pages] & _UNCLASSED | (new << CLASS_SHIFT).astype(np.uint16)
        self.columns.touch("cash", pages)
        self.columns.touch("flags", pages)

    def credit(self, pages: Ids, amounts: NDArray[np.int64]) -> None:
        """Cash that came from elsewhere."""
        credit(self.columns["cash"], pages, amounts)
        if self.host_inflow is not None:
            self.host_inflow.came(pages, amounts)
        self.columns.touch("cash", pages)
        self._tell(pages)

    def rich(self, free: int, busy: Ids = NO_PAGES) -> tuple[Ids, Ids]:
        """The selector's next pages to spend without a fetch: (at most `free` read ones, all dangling ones met).

        busy: pages that this group's reports settle; they may spend by those.
        """
        self._tell(self._busy)  # their states may have changed since
        self._busy = busy
        picked = self.select.pick(Holdings(self, free, busy), free)
        read = self.columns["state"][picked] == _READ
        return picked[read], picked[~read]

    def follow(self, window: float | Literal["auto"], target: float, select: str, history: str, measures: int) -> None:
        """Other settings of who spends and of what is remembered; within a commit group."""
        self.history.follow(history, window, measures)
        if (select, target) != (self.strategy, self.target):
            self.strategy, self.target = select, target
            self.select = self._selector()

    def _selector(self, state: Mapping[str, Any] | None = None) -> Selector:
        """The selector of the settings, new or as `state` says."""
        select = CRAWLED[self.strategy](state)
        if isinstance(select, Sweep):
            select.target = self.target
        return select

    def _tell(self, pages: Ids) -> None:
        """The cash of pages changed: only one selector keeps track of it."""
        if isinstance(self.select, Levels):
            self.select.changed(Holdings(self, 0, NO_PAGES), pages)

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
        columns = self.columns
        cash = self.effective(ids)
        weights, voices = self._weights(ids, indptr, links), self._voices(ids)
        virtual, amounts = shares(cash, indptr, seeds_of(ids + self.base, turn), self.tolls, weights, voices)
        self.history.measure(ids, cash, self.clock.ticks, self.known)  # before the clock advances: pay comes after
        columns["cash"][ids] -= cash
        credit(columns["cash"], links, amounts)
        if self.host_inflow is not None:
            self.host_inflow.spent(ids, np.diff(indptr), links, amounts)
        self._tell(ids)
        self._tell(links)
        self.virtual.receive(int(virtual.sum()))
        spent = int(cash.sum())
        self.spent += spent
        self.spends += len(ids)
        return self.clock.advance(spent, UNIT * self.known_everywhere)

    def _weights(self, ids: Ids, indptr: Ids, links: Ids) -> Ids | None:
        """What links weigh, by the hosts of both ends: stored ones as those just shown. None: all alike."""
        if self.terms.internal == LINK:
            return None
        host = self.columns["host"]
        return np.where(np.repeat(host[ids], np.diff(indptr)) == host[links], self.terms.internal, LINK)

    def _voices(self, ids: Ids) -> Ids | None:
        """How much pages say through their links; None: all alike."""
        if self.terms.query == LINK:
            return None
        return np.where(self.columns["flags"][ids] & QUERY != 0, self.terms.query, LINK)

    def heard(self, spent: int, pages: int) -> None:
        """Another part of the crawl told its clock: units it spent so far and pages it knows."""
        self.elsewhere_pages = max(self.elsewhere_pages, pages)
        if spent > self.elsewhere_spent:
            self.clock.advance(spent - self.elsewhere_spent, UNIT * max(1, self.known_everywhere))
            self.elsewhere_spent = spent

    @property
    def span(self) -> float:
        """Turnovers of settled flow that importance rests on: what was before the crawl last outgrew itself is not."""
        now = self.clock.ticks
        return min(self.window.at(now), max(now - self.window.since, 0) / TICKS)

    @property
    def remembered(self) -> float:
        """Turnovers after which two importances of a page rest on little in common: T, at most WINDOW."""
        return min(self.window.at(self.clock.ticks), WINDOW)

    def importance(self, pages: Ids | slice) -> NDArray[np.float64]:
        """Flow through pages, as if each were spent now: page-units a turnover (mean about 1; see opic.normalise)."""
        return self.history.importance(pages, self.effective(pages), self.clock.ticks)

    def dump(self) -> dict[str, Any]:
        return {
            "virtual": self.virtual.dump(),
            "clock": self.clock.dump(),
            "select": {"name": self.strategy, **self.select.dump()},
            **self.history.dump(),
            "spent": self.spent,
            "spends": self.spends,
            "foreign": self.foreign,
            "elsewhere": [self.elsewhere_pages, self.elsewhere_spent],
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Take over what `dump` gave; the settings (select, history, window, target) are those of now."""
        self.history.load(state)
        self.virtual = self._restored(state["virtual"])
        self.clock = Clock.load(state["clock"])
        chosen = state.get("select") or {"name": "sweep", **state["sweep"]}  # "sweep": of before there were others
        self.select = self._selector(chosen if chosen["name"] == self.strategy else None)
        self.spent, self.spends, self.foreign = state["spent"], state["spends"], state["foreign"]
        self.elsewhere_pages, self.elsewhere_spent = state["elsewhere"]

    def _restored(self, state: Mapping[str, Any]) -> VirtualPage:
        """The virtual page of the dump under the terms of now; who is in which class the columns tell."""
        if not self.terms.by_class and "scalars" not in state:
            return VirtualPage.load(state)
        page = FocusedPage.restore(state, self.terms.weights)
        own = self.columns["state"][: self.columns.n] != State.FOREIGN
        page.recount(self.classes(slice(0, self.columns.n))[own])
        return page
