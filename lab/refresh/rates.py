"""The change rates that a crawler believes in: the true ones, or those learned from its reads (rate_belief.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from xyro.lab.refresh.copies import CopyVisit
from xyro.lab.refresh.expected_gains import AGES, GainTable, ln_gains
from xyro.lab.refresh.world import Ids, Reals, World
from xyro.refresh.rate_belief import START, RatePopulation, RatePrior, codes, rate, shares_of_many, unread
from xyro.refresh.rate_sums import INSTANT, MEMORY, SHORTEST

REFIT = 16
"""ticks from one fit of the prior to the next"""
ENOUGH = 50
"""pages that a prior is fitted to at least, as `rate_belief.PriorLearner` wants"""


class Rates(Protocol):
    """The change rates that a crawler believes in. `now`: float32[n], changes a day."""

    now: NDArray[np.float32]

    def belief(self, live: int) -> GainTable | None:
        """Return what reads of the first `live` pages gain by the beliefs about them; None: the rates are known."""
        ...

    def born(self, pages: slice) -> None: ...

    def learn(self, pages: Ids, visit: CopyVisit) -> None: ...


class TrueRates:
    """The true rates."""

    def __init__(self, world: World) -> None:
        self.now = world.rate.astype(np.float32)

    def belief(self, live: int) -> None:
        """Nothing is in doubt."""

    def born(self, pages: slice) -> None:
        """Nothing to learn."""

    def learn(self, pages: Ids, visit: CopyVisit) -> None:
        """Nothing to learn."""


@dataclass(frozen=True, slots=True)
class Estimator:
    """The settings by which rates are learned.

    memory: reads that count (infinite: all). last_modified: changes come with their date. prior: the belief about a
    page never read. refits: it is fitted anew to the pages read often, as soon as there are enough; else it stays as
    it is.
    """

    memory: float = MEMORY
    last_modified: bool = False
    prior: RatePrior = START
    refits: bool = True

    def rates_for(self, world: World) -> Learned:
        """Make the rates of a crawler that begins to learn this world."""
        return Learned(world.n, self)


class Learned:
    """Three sums a page, and a prior fitted to the pages that were read again, as the crawler learns them."""

    def __init__(self, n: int, estimator: Estimator) -> None:
        self.estimator = estimator
        self.prior = estimator.prior
        self._sums = np.zeros((n, 3))
        self._priors = np.zeros(n, np.int64)
        """code of the prior by which each page is believed"""
        self._population = RatePopulation()
        self._codes = np.zeros(n, np.int64)
        self._ln_gains: NDArray[np.float32] | None = None
        self._turns = 0
        self.now = np.zeros(n, np.float32)

    def belief(self, live: int) -> GainTable:
        """Return the gains of the first pages; kept up from the first time that they are asked for."""
        if self._ln_gains is None:
            self._ln_gains = np.zeros((len(self.now), AGES), np.float32)
            self._believe(np.arange(live))
        return GainTable(self._ln_gains[:live])

    def born(self, pages: slice) -> None:
        """New pages start from the prior of now."""
        self._priors[pages] = self.prior.code
        self.now[pages] = rate(unread(self.prior))
        (code,) = codes(unread(self.prior)[None, :])
        for page in range(*pages.indices(len(self.now))):
            self._population.shift(int(self._codes[page]), code)
            self._codes[page] = code
        if self._ln_gains is not None:
            self._ln_gains[pages] = ln_gains(unread(self.prior))

    def learn(self, pages: Ids, visit: CopyVisit) -> None:
        """Learn from reads of these pages, each once."""
        tau = np.maximum(visit.tau, SHORTEST)
        age = visit.age if self.estimator.last_modified else np.full(len(pages), np.nan)
        dated = visit.changed & (age >= 0.0) & (age <= tau)
        sums = self._sums[pages] * (1.0 - 1.0 / self.estimator.memory)
        sums[:, 0] += np.where(dated, age, np.where(visit.changed, 0.0, tau))
        sums[:, 1] += visit.changed
        sums[:, 2] += np.where(dated, INSTANT, np.where(visit.changed, tau, 0.0))
        self._sums[pages] = sums
        self._priors[pages] = self.prior.code
        shares = self._believe(pages)
        if self.estimator.refits:
            self._count(pages, shares)

    def _believe(self, pages: Ids) -> Reals:
        """Rates of pages by their sums."""
        shares = shares_of_many(self._sums[pages], self._priors[pages].tolist())
        self.now[pages] = rate(shares)
        if self._ln_gains is not None:
            self._ln_gains[pages] = ln_gains(shares)
        return shares

    def _count(self, pages: Ids, shares: Reals) -> None:
        """Count pages in the population, and fit the prior to it now and then."""
        for page, code in zip(pages.tolist(), codes(shares), strict=True):
            self._population.shift(int(self._codes[page]), code)
            self._codes[page] = code
        self._turns += 1
        if self._turns % REFIT == 0 and self._population.pages >= ENOUGH:
            self.prior = self._population.prior()
