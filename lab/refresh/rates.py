"""The change rates that a crawler believes in: the true ones, or those learned from its reads (refresh/change.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from xyro.lab.refresh.copies import CopyVisit
from xyro.lab.refresh.world import Ids, Reals, World
from xyro.refresh import change
from xyro.refresh.change import DEFAULT_PRIOR, MEMORY, Prior

REFIT = 16
"""ticks from one fit of the prior to the next"""
ENOUGH = 50
"""pages that a prior is fitted to at least, as `change.PriorLearner` wants"""


class Rates(Protocol):
    """The change rates that a crawler believes in.

    `now`: float32[n], changes a day. `shape`: of the beliefs Gamma(shape, shape / now).
    """

    now: NDArray[np.float32]

    @property
    def shape(self) -> Reals | None:
        """The shape of the belief about each page; None: the rates are known."""
        ...

    def born(self, pages: slice) -> None: ...

    def learn(self, pages: Ids, visit: CopyVisit) -> None: ...


class TrueRates:
    """The true rates."""

    shape = None

    def __init__(self, world: World) -> None:
        self.now = world.rate.astype(np.float32)

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
    prior: Prior = DEFAULT_PRIOR
    refits: bool = True

    def rates_for(self, world: World) -> Learned:
        """Make the rates of a crawler that begins to learn this world."""
        return Learned(world.n, self)


class Learned:
    """Gamma(a, b) a page by moment matching, drawn towards a prior that is fitted to the pages read often enough."""

    def __init__(self, n: int, estimator: Estimator) -> None:
        self.estimator = estimator
        self.prior = estimator.prior
        self._a, self._b = np.full(n, self.prior.a), np.full(n, self.prior.b)
        self._reads = np.zeros(n, np.int64)
        self._turns = 0
        self.now = (self._a / self._b).astype(np.float32)

    @property
    def shape(self) -> Reals:
        """a of all pages."""
        return self._a

    def born(self, pages: slice) -> None:
        """New pages start from the prior of now."""
        self._a[pages], self._b[pages] = self.prior.a, self.prior.b
        self.now[pages] = self.prior.a / self.prior.b

    def learn(self, pages: Ids, visit: CopyVisit) -> None:
        """Learn from reads of these pages, each once."""
        age = visit.age if self.estimator.last_modified else np.full(len(pages), np.nan)
        a, b = change.update_many(
            self._a[pages], self._b[pages], visit.tau, visit.changed, age, self.prior, self.estimator.memory
        )
        self._a[pages], self._b[pages], self.now[pages] = a, b, a / b
        self._reads[pages] += 1
        self._turns += 1
        if self.estimator.refits and self._turns % REFIT == 0:
            self._refit()

    def _refit(self) -> None:
        settled = self._reads >= change.SETTLED
        if settled.sum() >= ENOUGH:
            ln: Reals = np.log(self._a[settled] / self._b[settled])
            sigma = min(max(float(ln.std()), change.NARROWEST), change.WIDEST)
            self.prior = Prior.fit(float(ln.mean()), sigma)
