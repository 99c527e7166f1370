"""The simulator's prediction for a daemon that refreshes the computed web: one number, before it is measured.

The daemon knows more of the web than its reads' change bits, and so does this one, by the same code (refresh/):

    Last-Modified   every change that a read finds has its date; so has the page's last change before its first read
    lists           a feed or sitemap that is read and has changed says which of its pages changed since their last
                    read: their next read draws nearer by the trust that the host has earned with such claims

It reads at the very tick in which the daemon's folders begin, by the daemon's execution (P1 6.6;
lab/refresh/executions.py). It starts from the importance by which the daemon dated each page when it first read it: in
folders that stands until the next read, an audit, or a recount (frontier/redating.py), whose moments and importance are
given to it, too. It differs in two points: a page that is read is dated by its true importance (the daemon's is within
some 6 % in the end), and it learns one prior for all pages, where the daemon learns one a host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from xyro.lab.refresh.executions import Execution, RecountMoment, execution_of
from xyro.lab.refresh.page_arrays import DAY, Bools, PageArrays
from xyro.lab.refresh.rates import Estimator, Learned, Rates, TrueRates
from xyro.lab.refresh.sim import Score, Watch, simulate
from xyro.lab.refresh.world import Ids, Reals, World
from xyro.refresh.evidence import sooner
from xyro.refresh.policy import Policy
from xyro.refresh.rate_sums import RateSums
from xyro.refresh.trust import Source, Trust

AUDIT = 0.01
"""of the reads go to pages at random by importance, as `[refresh] audit` says: these are dated anew, too"""
OWED = 16.0
"""most audits that wait to be made: so many follow the first reads"""


class Listing(NamedTuple):
    """A feed or sitemap of the world."""

    page: int
    host: int
    source: Source
    """SITEMAP or FEED"""
    items: Ids
    """pages whose last change it dates"""


class CrawlHistory(NamedTuple):
    """The history of a crawl of the computed web, as the simulator gets it."""

    world: World
    ages: Reals
    """as of Dated"""
    listings: Sequence[Listing]
    start: Reals
    """importance by which pages are dated at their first read, in units of the world's"""
    recounts: Sequence[RecountMoment] = ()
    """in folders: when all pages were dated anew, in the order of time"""


class Dated(Learned):
    """Rates learned from dated changes. ages: days since the last change at birth, NaN where no date tells it."""

    def __init__(self, n: int, ages: Reals) -> None:
        super().__init__(n, Estimator(last_modified=True))
        self._ages = ages

    def born(self, pages: slice) -> None:
        """The first read of these pages: the age of each is a change seen."""
        super().born(pages)
        first = np.arange(pages.start, pages.stop)
        for page in first[np.isfinite(self._ages[pages])].tolist():
            self._sums[page] = RateSums().dated(float(self._ages[page]))
        self._believe(first)


class Hearing:
    """A rule that reads the pages whose change a list announced, in their time, then those that its execution chooses.

    Invariant: `_claims` holds the claims of each page that no read has settled, at most one of a source.
    """

    def __init__(self, execution: Execution, history: CrawlHistory, audit: float = AUDIT) -> None:
        """audit: share of the reads that are audits; the first reads of all pages count."""
        self._audit, self._owed = audit, min(audit * history.world.n, OWED)
        self._drawn = np.cumsum(history.world.importance)
        self._rng = np.random.default_rng(0)
        self._execution, self._world = execution, history.world
        self._listings: Mapping[int, Listing] = {listing.page: listing for listing in history.listings}
        self._read_at = history.world.born.copy()
        self._due: Reals = np.full(history.world.n, np.inf)
        """days: when a page that a list calls changed is read"""
        self._claims: dict[int, list[Listing]] = {}
        self._trust: dict[int, Trust] = {}
        self._chance: Reals = np.zeros(0)
        """of each chosen page: probability that it has changed, whatever a list claims"""

    def choose(self, view: PageArrays, limit: int) -> Ids:
        now, dated = view.now / DAY, np.isfinite(self._due)
        audits = self._audits(limit)
        dated[audits] = True
        due = np.setdiff1d(np.flatnonzero(self._due <= now), audits, assume_unique=True)
        due = due[np.argsort(self._due[due], kind="stable")][: limit - len(audits)]
        rest = self._execution.choose(view, limit - len(audits) - len(due), dated)
        chosen = np.concatenate((audits, due, rest))
        self._chance = -np.expm1(-view.rate[chosen] * (now - self._read_at[chosen]))
        return chosen

    def _audits(self, limit: int) -> Ids:
        """Draw the pages to audit, whatever is believed of them, each once."""
        self._owed = min(self._owed + self._audit * limit, OWED)
        many = min(int(self._owed), limit)
        self._owed -= many
        draws = self._rng.random(many) * self._drawn[-1]
        return np.unique(np.searchsorted(self._drawn, draws, side="right"))

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        """Settle the claims on the pages that were just read. pages: those chosen last, in that order."""
        for page, has_changed, chance in zip(pages.tolist(), changed.tolist(), self._chance.tolist(), strict=True):
            for claim in self._claims.pop(page, ()):
                self._trust_of(claim).changed(claim.source, has_changed, chance)
        self._read_at[pages], self._due[pages] = now, np.inf
        for page in pages[changed].tolist():
            if page in self._listings:
                self._hear(self._listings[page], now)

    def _hear(self, listing: Listing, now: float) -> None:
        """Take the claims of a list that was read, and had changed."""
        items, world = listing.items, self._world
        moved = world.past(items, now) > world.past(items, self._read_at[items])
        trust = self._trust_of(listing).weight(listing.source)
        for page in items[moved].tolist():
            claims = self._claims.setdefault(page, [])
            if all(claim.source != listing.source for claim in claims):
                claims.append(listing)
                self._due[page] = sooner(min(self._due[page], self._execution.planned(page)), now, trust)

    def _trust_of(self, listing: Listing) -> Trust:
        return self._trust.setdefault(listing.host, Trust())


class RefreshPlan(NamedTuple):
    """The settings of the daemon that a prediction is for."""

    policy: Policy
    execution: str
    """folders | scan"""
    bandwidth: float
    """reads a day for each page"""
    tick: int
    """seconds"""


def predicted(
    history: CrawlHistory, plan: RefreshPlan, true_rates: bool = False, watch: Watch = lambda share: None
) -> Score:
    """Predict the score of a daemon with these settings. true_rates: the simulator knows the rates and learns none."""
    world = history.world
    rates: Rates = TrueRates(world) if true_rates else Dated(world.n, history.ages)
    execution = execution_of(plan.execution, plan.policy, plan.bandwidth, plan.tick, history.start, history.recounts)
    return simulate(world, Hearing(execution, history), rates, plan.bandwidth, watch, plan.tick)
