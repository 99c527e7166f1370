"""The ledger is the account book of OPIC cash, no write-ahead log: what pages spend, the virtual page, the clock (P2).

pages.py mints new pages, and a Spending gathers the pages that spend in a turn; `spend` measures the flow through
those pages and moves their cash over their links. outbox.py carries cash to other partitions; `importance` weighs dates
and orders.

Between groups holds: sum of effective cash over the partition's own pages + pot + account = UNIT x known pages, minus
what went to and plus what came from other partitions. FOREIGN entries hold cash only within a group, or while the
outbox is full (outbox.py).

Importance is told by interpolation: the column `flow` keeps what flowed through a page over the last T turnovers
(opic/importance.py). T applies when flow is measured and when it is read; nothing stored depends on it. With
window = "auto" a contest on a sample of the pages chooses T (opic/contest.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from xyro.frontier.host_inflow import HostInflow
from xyro.metadata.columns import Columns
from xyro.metadata.states import CITED, CLASS_MASK, CLASS_SHIFT, DANGLING, QUERY, VOICE, State
from xyro.opic.cash import LINK, UNIT, Births, Tolls, VirtualPage, credit, seeds_of, shares
from xyro.opic.contest import SampledContest
from xyro.opic.focus import FocusedPage, Terms
from xyro.opic.importance import TICKS, WINDOW, NewPages, OpicClock, Window, as_if_now, at_birth, centred, measure
from xyro.opic.sweep import Costs, Sweep
from xyro.wire.ids import LocalPage, local_pages
from xyro.wire.messages import LINK_HINT, LINK_NOFOLLOW, LoadReport

Ids = NDArray[np.int64]
NO_PAGES: Ids = np.empty(0, np.int64)
NO_CHILDREN: NDArray[np.uint32] = np.empty(0, np.uint32)
_UNFOLLOWED = frozenset(f for f in range(256) if f & (LINK_NOFOLLOW | LINK_HINT))
PLAIN = Terms()
LINKS_AT_ONCE = 4096
"""links of a page that one turn looks at, up to 10 us each if they are new: the rest waits (pages.py)"""
SCAN = 1 << 16
"""most pages that one commit group's sweep looks at: 0.1 ms"""
FLOOR = UNIT // 16
"""units that every unread page counts beside what links paid it, in the order of discovery"""
LEAST_WINDOW = 4.0
"""turnovers that count while the crawl's graph grows; T is what it widens to once it has settled"""
SLOTS = "slots"
"""optional column of earlier versions: the last measures of each page"""
_UNREAD, _READ = int(State.UNREAD), int(State.READ)
_UNCLASSED = ~CLASS_MASK & 0xFFFF_FFFF
_COSTS: Costs = np.full(256, -1, np.int8)
"""by state: read pages cost a free spend, dangling ones nothing, others cannot spend without a read"""
_COSTS[State.READ] = 1
_COSTS[list(DANGLING)] = 0


class Spending:
    """The pages that spend in this turn, and their children; URLs are resolved for all pages at once."""

    def __init__(self) -> None:
        self.pages: list[LocalPage] = []
        self.children: list[NDArray[Any]] = []
        self.dangling: Ids = NO_PAGES
        """further pages that spend, all of it to the virtual page"""
        self.urls: list[str] = []
        self.open: list[tuple[int, int, int]] = []
        """(index into pages, start, stop) of URL runs that wait to be resolved"""
        self.rest: dict[int, Sequence[str]] = {}
        """by the place of a run: links of its page beyond LINKS_AT_ONCE"""
        self.loaded: list[tuple[LocalPage, LoadReport]] = []
        """pages whose load ended, and what was found there: sitemaps and feeds tell of other pages' changes"""
        self.redirects: set[LocalPage] = set()
        """pages of which the only link is a redirect"""
        self.first_reads: set[LocalPage] = set()
        """pages that the web answered for the first time in this turn"""
        self.loads = False
        """from here on loads are applied: their pages may have spent already"""

    def over(self, page: LocalPage, children: NDArray[Any]) -> None:
        self.pages.append(page)
        self.children.append(children)

    def over_urls(self, page: LocalPage, urls: Sequence[str]) -> None:
        start = len(self.urls)
        self.urls.extend(urls[:LINKS_AT_ONCE])
        if len(urls) > LINKS_AT_ONCE:
            self.rest[len(self.open)] = urls[LINKS_AT_ONCE:]
        self.open.append((self._index(page), start, len(self.urls)))

    def _index(self, page: LocalPage) -> int:
        """A page spends once a turn: the links of a load that ends now replace what it would have spent over."""
        if self.loads:
            self.dangling = self.dangling[self.dangling != page]
            if page in self.pages:
                return self.pages.index(page)
        self.over(page, NO_CHILDREN)
        return len(self.pages) - 1


def followed(urls: tuple[str, ...], flags: bytes) -> Sequence[str]:
    """Links that give cash and new pages."""
    if _UNFOLLOWED.isdisjoint(flags):
        return urls
    return [url for url, flag in zip(urls, flags, strict=True) if flag not in _UNFOLLOWED]


class Ledger:
    """Spends, receives and measures; the caller supplies the links and commits the columns."""

    def __init__(
        self,
        columns: Columns,
        base: int,
        damping: float,
        window: float | Literal["auto"],
        sweep_target: float,
        terms: Terms = PLAIN,
        host_inflow: HostInflow | None = None,
    ) -> None:
        if SLOTS in columns:
            columns.drop(SLOTS)
        self.columns = columns
        self.base = base
        self.terms, self.tolls = terms, Tolls(damping, terms.edge)
        self.virtual: VirtualPage = FocusedPage(terms.weights) if terms.by_class else VirtualPage()
        self.births = Births()
        self.host_inflow = host_inflow
        """None: [opic] sites is off"""
        self.sweep = Sweep(target=sweep_target)
        self.clock = OpicClock()
        self.new_pages = NewPages()
        self.contest = SampledContest() if window == "auto" else None
        self.window = _widening(WINDOW if window == "auto" else window)
        self.spent = 0
        """units spent by this partition since the crawl began"""
        self.spends = 0
        self.excess = 0
        """units that are too many since this partition was restored from a backup: what it paid out again"""
        self.foreign = 0
        """FOREIGN entries among the columns: they are not known pages of this partition"""
        self.withheld: dict[LocalPage, int] = {}
        """pages with links that wait (pages.py): what would go along these goes to the virtual page"""
        self.elsewhere_pages = 0
        self.elsewhere_spent = 0
        """of all other partitions, as last reported"""

    # -- counts --------------------------------------------------------------------------------------------------

    @property
    def known_pages(self) -> int:
        """Known pages of this partition."""
        return self.columns.n - self.foreign

    @property
    def known_everywhere(self) -> int:
        return self.known_pages + self.elsewhere_pages

    @property
    def weighted(self) -> int:
        """Known pages of this partition, each counted as often as the virtual page pays it."""
        pages = self.known_pages
        return self.virtual.weighted(pages) if isinstance(self.virtual, FocusedPage) else pages

    @property
    def settled(self) -> float:
        """Turnovers since the crawl last outgrew itself."""
        return max(self.clock.ticks - self.window.since, 0) / TICKS

    @property
    def span(self) -> float:
        """Turnovers of settled flow that importance rests on: what was before the crawl last outgrew itself is not."""
        now = self.clock.ticks
        return min(self.window.length_at(now), max(now - self.window.since, 0) / TICKS)

    @property
    def remembered(self) -> float:
        """Turnovers after which two importances of a page rest on little in common: T, at most WINDOW."""
        return min(self.window.length_at(self.clock.ticks), WINDOW)

    # -- pages ---------------------------------------------------------------------------------------------------

    def effective(self, pages: Ids | slice) -> NDArray[np.int64]:
        """Cash of pages of this partition, in units."""
        cash: NDArray[np.int64]
        if isinstance(self.virtual, FocusedPage):
            cash = self.columns["cash"][pages] + self.virtual.scalars[self.classes(pages)]
        else:
            cash = self.columns["cash"][pages] + self.virtual.scalar
        return cash

    def linked(self, pages: Ids) -> NDArray[np.int64]:
        """Units that came over links to sorted pages of this partition that never spent (opic.cash.Births)."""
        classes = None
        if isinstance(self.virtual, FocusedPage):
            self.births.reshape(self.virtual.scalars)
            classes = self.classes(pages)
        units: NDArray[np.int64] = self.columns["cash"][pages] + self.births.scalars(pages, classes)
        return np.maximum(units, 0, out=units)

    def floor(self, pages: Ids) -> NDArray[np.int64]:
        """Units that a score counts beside those, of sorted unread pages: FLOOR; a class that the virtual page pays
        more than others counts so much more, and what its pages were paid since birth beyond ordinary ones."""
        virtual = self.virtual
        if not isinstance(virtual, FocusedPage) or not (weighted := self.weighted):
            return np.full(len(pages), FLOOR)
        classes = self.classes(pages)
        floors = np.array([FLOOR * self.known_pages * weight // weighted for weight in virtual.weights])
        paid, ordinary = (
            virtual.scalars[kinds] - self.births.scalars(pages, kinds) for kinds in (classes, np.full_like(classes, 1))
        )
        units: NDArray[np.int64] = floors[classes] + np.maximum(paid - ordinary, 0)
        return units

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
            self.births.note(first, virtual.scalars)
            columns["cash"][new][own] = virtual.joined(self.classes(new)[own])
        else:
            self.births.note(first, np.array([virtual.scalar]))
            columns["cash"][new][own] = -virtual.scalar
        count = int(foreign.sum())
        self.foreign += count
        virtual.mint(len(foreign) - count)

    def classify(self, pages: Ids, classes: Ids) -> None:
        """Put distinct pages of this partition into these classes; their cash stays.

        ValueError: the virtual page pays all pages alike, and a page is to change its class.
        """
        old = self.classes(pages)
        moved = old != classes
        pages, old, new = pages[moved], old[moved], classes[moved]
        if not len(pages):
            return
        if not isinstance(self.virtual, FocusedPage):
            raise ValueError("Ledger.classify: the virtual page pays all pages alike")
        self.columns["cash"][pages] += self.virtual.moved(old, new)
        flags = self.columns["flags"]
        flags[pages] = flags[pages] & _UNCLASSED | (new << CLASS_SHIFT).astype(np.uint32)
        self.columns.touch("cash", pages)
        self.columns.touch("flags", pages)

    def credit(self, pages: Ids, amounts: NDArray[np.int64]) -> None:
        """Credit pages with cash that came from other partitions."""
        credit(self.columns["cash"], pages, amounts)
        self.columns.touch("cash", pages)
        self._cite(pages, amounts)  # each host lies in one partition

    def _cite(self, pages: Ids, amounts: Ids) -> None:
        """Pages of other hosts link to these, and pay them amounts."""
        if self.host_inflow is not None:
            self.host_inflow.add(pages, amounts, self.clock.ticks)
        state, flags = self.columns["state"], self.columns["flags"]
        new = pages[(state[pages] == _UNREAD) & (flags[pages] & CITED == 0)]
        if len(new):
            flags[new] |= CITED
            self.columns.touch("flags", new)

    # -- spending ------------------------------------------------------------------------------------------------

    def rich(self, free: int, busy: Ids = NO_PAGES) -> tuple[Ids, Ids]:
        """The sweep's next pages to spend without a fetch: (at most `free` read ones, all dangling ones met).

        busy: pages that this group's reports settle; they may spend by those.
        """
        columns, n = self.columns, self.columns.n
        start, stop = self.sweep.chunk(n, min(SCAN, max(1, n // 8) + 8 * free))
        pages = self._holding(start, stop, int(self.sweep.theta))
        costs: Costs = _COSTS[columns["state"][pages]]
        if pages.size and busy.size:
            places = np.minimum(pages.searchsorted(busy), len(pages) - 1)
            costs[places[pages[places] == busy]] = -1
        picked = self.sweep.take(start, stop, pages, costs, free)
        read = columns["state"][picked] == _READ
        return picked[read], picked[~read]

    def _holding(self, start: int, stop: int, least: int) -> Ids:
        """Return those of the pages start .. stop-1 that hold at least so many units."""
        if isinstance(self.virtual, FocusedPage):
            return np.flatnonzero(self.effective(slice(start, stop)) >= least) + start
        return np.flatnonzero(self.columns["cash"][start:stop] >= least - self.virtual.scalar) + start  # no copy

    def spend(
        self,
        pages: Sequence[LocalPage] | Ids,
        children: Sequence[NDArray[Any]],
        born: int,
        turn: int,
        dangling: Ids = NO_PAGES,
    ) -> None:
        """Spend all cash of distinct `pages` over their `children`; pages born.. are new in this group.

        `turn`: number of the commit group, so that a replay draws the same remainders. A page without children pays the
        virtual page; `dangling` are further ones, which differ from `pages`.
        """
        columns = self.columns
        now = self.clock.ticks
        if len(pages) or dangling.size:
            ids = np.concatenate([np.asarray(pages, np.int64), dangling])
            degrees = np.fromiter(map(len, children), np.int64, len(children))
            indptr = np.concatenate([[0], np.cumsum(degrees), np.full(dangling.size, degrees.sum())])
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
        if self.host_inflow is not None:
            self.host_inflow.store(now, self.remembered)

    def _spend(self, ids: Ids, indptr: Ids, links: Ids, turn: int) -> int:
        """Returns the time after the pages spent, in ticks."""
        columns = self.columns
        cash = self.effective(ids)
        weights, voices = self._weights(ids, indptr, links), self._voices(ids, indptr)
        virtual, amounts = shares(cash, indptr, seeds_of(ids + self.base, turn), self.tolls, weights, voices)
        self._measure(ids, cash, self.clock.ticks)  # before the clock advances: pay comes after
        columns["cash"][ids] -= cash
        credit(columns["cash"], links, amounts)
        apart = np.flatnonzero(np.repeat(columns["host"][ids], np.diff(indptr)) != columns["host"][links])
        self._cite(links[apart], amounts[apart])
        self.virtual.receive(int(virtual.sum()))
        spent = int(cash.sum())
        self.spent += spent
        self.spends += len(ids)
        return self.clock.advance(spent, UNIT * self.known_everywhere)

    def _weights(self, ids: Ids, indptr: Ids, links: Ids) -> Ids | None:
        """Weights of links, by the hosts of both ends: stored ones as those just shown. None: all alike."""
        if self.terms.internal == LINK:
            return None
        host = self.columns["host"]
        return np.where(np.repeat(host[ids], np.diff(indptr)) == host[links], self.terms.internal, LINK)

    def _voices(self, ids: Ids, indptr: Ids) -> Ids | None:
        """Return the weight of each page's links; None: all alike."""
        voices: Ids | None = None
        if self.terms.query != LINK:
            voices = np.where(self.columns["flags"][ids] & QUERY != 0, self.terms.query, LINK)
        if VOICE in self.columns:
            own: Ids = self.columns[VOICE][ids].astype(np.int64)
            own = np.where(own > 0, own - 1, LINK)
            voices = own if voices is None else voices * own // LINK
        if self.withheld:
            waiting = np.array([self.withheld.get(page, 0) for page in local_pages(ids)], np.int64)
            links = np.diff(indptr)
            voices = (LINK if voices is None else voices) * links // np.maximum(links + waiting, 1)
        return voices

    def count_elsewhere(self, spent: int, pages: int) -> None:
        """Take note of the rest of the crawl: units that all other partitions spent so far, and pages they know."""
        self.elsewhere_pages = max(self.elsewhere_pages, pages)
        if spent > self.elsewhere_spent:
            self.clock.advance(spent - self.elsewhere_spent, UNIT * max(1, self.known_everywhere))
            self.elsewhere_spent = spent

    def repay(self) -> None:
        """Take units that are too many out of what pages here paid the virtual page."""
        taken = min(self.excess, self.virtual.pot)
        self.virtual.pot -= taken
        self.excess -= taken

    def pay(self) -> None:
        """Pay the pot of the virtual page to all pages, when it is due: in a crawl of one partition."""
        self.virtual.pay(self.known_pages)

    # -- importance ----------------------------------------------------------------------------------------------

    def _measure(self, ids: Ids, cash: Ids, now: int) -> None:
        """Distinct pages are about to spend `cash`, at `now` ticks: take it into their flow."""
        columns, prior = self.columns, self.new_pages
        flow, last, birth = columns["flow"][ids], columns["clock"][ids], columns["birth"][ids]
        prior.learn(flow, cash, last, now)
        if self.contest is not None:
            settled = max(Window.SHARE * (now - self.window.since) / TICKS, LEAST_WINDOW)
            self.contest.measure(ids, flow, cash, last, birth, now, settled, prior.prior)
            self.contest.passed(len(ids), self.known_pages)
            self.window.widen_to(self.contest.window, LEAST_WINDOW)
        columns["flow"][ids] = measure(flow, cash, last, birth, now, self.window.length_at(now), prior.prior)
        columns["clock"][ids] = now & 0xFFFF_FFFF

    def importance(self, pages: Ids | slice) -> NDArray[np.float64]:
        """Flow through pages, as if each were spent now: page-units a turnover (mean about 1; see opic.normalise)."""
        columns, now = self.columns, self.clock.ticks
        flow, last, birth = columns["flow"][pages], columns["clock"][pages], columns["birth"][pages]
        return as_if_now(
            flow, self.effective(pages), last, birth, now, self.window.length_at(now), self.new_pages.prior
        )

    def centred(self, importance: NDArray[np.float64], pages: Ids | slice) -> NDArray[np.float64]:
        """Middles of the intervals of pages with these importances (opic.importance.centred)."""
        columns, now = self.columns, self.clock.ticks
        flow, last, birth = columns["flow"][pages], columns["clock"][pages], columns["birth"][pages]
        return centred(importance, flow, last, birth, now, self.window.length_at(now), self.settled)

    def inflow_of_hosts(self) -> NDArray[np.float64] | None:
        """External inflow of each host, over links from other hosts, page-units a turnover. None: not measured."""
        if self.host_inflow is None:
            return None
        return self.host_inflow.estimate(self.clock.ticks, self.remembered)

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        state = {
            "virtual": self.virtual.dump(),
            "clock": self.clock.dump(),
            "sweep": self.sweep.dump(),
            "new_pages": self.new_pages.dump(),
            "window": self.window.dump(),
            "spent": self.spent,
            "spends": self.spends,
            "foreign": self.foreign,
            "elsewhere": [self.elsewhere_pages, self.elsewhere_spent],
        }
        if self.excess:
            state["excess"] = self.excess
        return state if self.contest is None else {**state, "sampled": self.contest.dump()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from what `dump` returned; the settings (window, sweep_target, terms) are those of now."""
        self.virtual = self._restored(state["virtual"])
        self.clock = OpicClock.load(state["clock"])
        chosen = state.get("sweep") or state["select"]  # "select": of when there were other selectors
        if chosen.get("name", "sweep") == "sweep":
            self.sweep = replace(Sweep.load(chosen), target=self.sweep.target)
        self.new_pages = NewPages.load(state["new_pages"])
        longest, self.window = self.window.longest, Window.load(state["window"])
        if self.contest is not None and "sampled" in state:
            self.contest = SampledContest.load(state["sampled"])
            longest = self.contest.window
        self.window.widen_to(longest, LEAST_WINDOW)
        self.spent, self.spends, self.foreign = state["spent"], state["spends"], state["foreign"]
        self.excess = state.get("excess", 0)
        self.elsewhere_pages, self.elsewhere_spent = state["elsewhere"]

    def recover_births(self, chunks: Sequence[bytes]) -> None:
        """Load the stored table of births; of a directory that has none all cash so far counts as of links."""
        self.births = Births.load(chunks)
        if not chunks:
            virtual = self.virtual
            self.births.note(0, virtual.scalars if isinstance(virtual, FocusedPage) else np.array([virtual.scalar]))

    def _restored(self, state: Mapping[str, Any]) -> VirtualPage:
        """The virtual page of the dump under the terms of now; the columns hold the classes of its pages."""
        if not self.terms.by_class and "scalars" not in state:
            return VirtualPage.load(state)
        page = FocusedPage.restore(state, self.terms.weights)
        own = self.columns["state"][: self.columns.n] != State.FOREIGN
        page.recount(self.classes(slice(0, self.columns.n))[own])
        return page


def _widening(longest: float) -> Window:
    window = Window()
    window.widen_to(longest, LEAST_WINDOW)
    return window
