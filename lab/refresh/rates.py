"""The change rates that a crawler believes in: the true ones, or those learned from its reads (rate_belief.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from xyro.lab.refresh.copies import CopyVisit
from xyro.lab.refresh.expected_gains import AGES, GainTable, ln_gains
from xyro.lab.refresh.world import Ids, Reals, World
from xyro.refresh.rate_belief import (
    FORKED,
    HAZARD,
    ONSET_CAP,
    PROVEN,
    REFUTED,
    SETTLED,
    START,
    RatePopulation,
    RatePrior,
    codes,
    mix_in,
    quiet,
    rate,
    shares_of_many,
    unread,
)
from xyro.refresh.rate_sums import INSTANT, MEMORY, NO_CHANGES, QUIET, SHORTEST

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
        self._onsets = np.zeros((n, 4))
        """rate_belief.Onset of each page: chance (0: none), V, n, C"""
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
        self._priors[pages] = self.prior.code
        sums, memory = self._sums[pages], self.estimator.memory
        forked = (self._onsets[pages, 0] > 0.0) | visit.changed
        if forked.any():
            self._onsets[pages[forked]] = self._fork(pages[forked], tau[forked], visit.changed[forked], age[forked])
        self._sums[pages] = added(sums, tau, visit.changed, age, memory)
        proven = pages[self._onsets[pages, 0] > PROVEN]
        self._sums[proven], self._onsets[proven] = self._onsets[proven, 1:], 0.0
        self._onsets[pages[self._onsets[pages, 1] >= 0.5 * self._sums[pages, 0]]] = 0.0
        shares = self._believe(pages)
        if self.estimator.refits:
            self._count(pages, shares)

    def _fork(self, pages: Ids, tau: Reals, changed: NDArray[np.bool_], age: Reals) -> Reals:
        """Onsets of pages by what a read showed of each: the chance that its rate is a new one, and the sums since."""
        before, since = self._onsets[pages, 0], self._onsets[pages, 1:]
        fresh = before <= 0.0
        before = np.where(fresh, -HAZARD * np.expm1(-tau / SETTLED), before)
        priors = self._priors[pages].tolist()
        quiet_old = quiet(shares_of_many(self._sums[pages], priors), tau)
        quiet_new = quiet(shares_of_many(since, _renewed(priors)), tau)
        new = before * np.where(changed, 1.0 - quiet_new, quiet_new)
        old = (1.0 - before) * np.where(changed, np.maximum(1.0 - quiet_old, 0.0), quiet_old)
        chance = new / np.maximum(new + old, 1e-300)
        found = np.column_stack((chance, added(since, tau, changed, age, self.estimator.memory)))
        found[chance < np.where(fresh, FORKED, REFUTED)] = 0.0
        return found

    def _believe(self, pages: Ids) -> Reals:
        """Rates of pages by their sums."""
        shares = shares_of_many(self._sums[pages], self._priors[pages].tolist())
        forked = np.flatnonzero(self._onsets[pages, 0] > 0.0)
        if len(forked):
            onsets, priors = self._onsets[pages[forked]], self._priors[pages[forked]].tolist()
            new, old = shares_of_many(onsets[:, 1:], _renewed(priors)), rate(shares[forked])
            most = np.where(
                onsets[:, 1] * onsets[:, 2] < QUIET * onsets[:, 3], ONSET_CAP * onsets[:, 2] / onsets[:, 3], np.inf
            )
            mix_in(shares, forked, onsets[:, 0], new)
            self.now[pages] = rate(shares)
            self.now[pages[forked]] = old * (np.minimum(rate(new), most) / old) ** onsets[:, 0]
        else:
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


def added(sums: Reals, tau: Reals, changed: NDArray[np.bool_], age: Reals, memory: float) -> Reals:
    """The sums of many pages, a row each, after one more read of each (RateSums.after). age: days, NaN: not known."""
    found = sums * (1.0 - 1.0 / memory)
    dated = changed & (age >= 0.0) & (age <= tau)
    bits = changed & ~dated
    count, length = found[bits, 1], tau[bits]
    with np.errstate(divide="ignore", invalid="ignore"):
        ln_mean = np.where(count > NO_CHANGES, np.log(found[bits, 2] / count), 0.0)
    mean = np.exp((np.where(count > NO_CHANGES, count, 0.0) * ln_mean + np.log(length)) / (count + 1.0))
    found[:, 0] += np.where(dated, age, np.where(changed, 0.0, tau))
    found[:, 1] += changed
    found[dated, 2] += INSTANT
    found[bits, 2] = (count + 1.0) * mean
    return found


def _renewed(priors: Sequence[int]) -> list[int]:
    return [RatePrior.decode(code).renewed.code for code in priors]
