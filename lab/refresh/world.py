"""Collections whose every change is known: computed ones, and real change histories (`xyro lab refresh`).

A World is pages with an importance, a mean rate, a birth, and the times of all their changes, in days from its start.
Computed worlds draw ln lambda from N(ln 1/30, 2^2) a day (the prototype's: 4.4 % of the pages change daily or faster)
and importance from the PageRank of the papers' graph, which OPIC converges to; they differ in when changes come:

    poisson      at any time, independently: what every formula here assumes
    periodic     every 1 / lambda days, to within 2 %
    bursty       in bursts of 5 on average (geometric), the gaps within a burst 1/50 of those between bursts
    correlated   poisson, but important pages change more often (rank correlation of ln lambda and r: rho = .5)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.lab.reference_rank import reference
from xyro.lab.refresh.change_signals import ChangeSignals
from xyro.opic.graph import standard

Reals = NDArray[np.float64]
Ids = NDArray[np.int64]
MEAN_LN, SIGMA = -np.log(30.0), 2.0
DAYS, BURN = 150.0, 60.0
"""of computed worlds: days simulated, and how many of them are not measured"""
BURST, WITHIN = 5.0, 0.02
JITTER = 0.02
CORRELATION = 0.5


@dataclass(frozen=True)
class World:
    """A collection of n pages in the order of their births.

    times: all changes, page after page, ascending within each (days).
    """

    importance: Reals
    """float64[n], mean 1"""
    rate: Reals
    """float64[n]: changes a day, the true mean (computed worlds) or the one fitted to the whole history"""
    born: Reals
    """float64[n], ascending; a page is known, and was read, when it is born"""
    indptr: Ids
    """page i changed at times[indptr[i]:indptr[i+1]], all after its birth"""
    times: Reals
    days: float
    burn: float
    signals: ChangeSignals | None = None
    """what a crawler hears of changes; None: nothing"""
    host_of: Ids | None = None
    """host of each page; None: no host bounds its reads"""
    host_share: float = 1.0
    """of the reads of a tick, at most so many go to one host"""
    fading: float | None = None
    """interest in a change fades as e^(-fading x days); None: it does not"""

    @property
    def n(self) -> int:
        return len(self.born)

    @cached_property
    def keys(self) -> Reals:
        """The keys that `past` searches, ascending over all pages."""
        page = np.repeat(np.arange(self.n), np.diff(self.indptr))
        found: Reals = page * self.span + self.times
        return found

    @cached_property
    def summed(self) -> Reals:
        """summed[k]: sum of times[:k]."""
        return np.concatenate(([0.0], np.cumsum(self.times)))

    @cached_property
    def lingering(self) -> Reals:
        """lingering[k]: interest left, at times[k], in the changes of its page up to and including that one."""
        fading, first = self.fading or 0.0, set(self.indptr[:-1].tolist())
        found = np.zeros(len(self.times) + 1)
        gaps = np.exp(-fading * np.maximum(np.diff(self.times, prepend=0.0), 0.0)).tolist()
        left = 0.0
        for place, gap in enumerate(gaps):
            left = 1.0 if place in first else 1.0 + left * gap
            found[place] = left
        return found

    @property
    def span(self) -> float:
        return self.days + 1.0

    def past(self, pages: Ids, now: Reals | float) -> Ids:
        """For each page the place, in `times`, behind its last change up to and including now (a day, or one each)."""
        found: Ids = np.searchsorted(self.keys, pages * self.span + now, side="right")
        return found


def of_events(importance: Reals, rate: Reals, page: Ids, times: Reals, days: float = DAYS, burn: float = BURN) -> World:
    """A world of pages born at 0 from (page, time) of its changes, in any order; times outside (0, days] drop out."""
    within = (times > 0.0) & (times <= days)
    page, times = page[within], times[within]
    order = np.lexsort((times, page))
    counts = np.bincount(page, minlength=len(rate))
    indptr = np.concatenate(([0], np.cumsum(counts)))
    return World(importance, rate, np.zeros(len(rate)), indptr, times[order], days, burn)


@lru_cache(maxsize=2)
def pagerank(n: int, seed: int) -> Reals:
    return reference(standard(n, np.random.default_rng(seed)))


def log_normal_rates(n: int, rng: np.random.Generator) -> Reals:
    rates: Reals = np.exp(MEAN_LN + SIGMA * rng.standard_normal(n))
    return rates


def poisson_changes(rate: Reals, days: float, rng: np.random.Generator) -> tuple[Ids, Reals]:
    """(page, time) of Poisson processes."""
    page = np.repeat(np.arange(len(rate)), rng.poisson(rate * days))
    return page, days * rng.random(len(page))


def poisson(n: int, seed: int) -> World:
    """Make a world whose pages change at any time."""
    rng = np.random.default_rng((seed, 1))
    rate = log_normal_rates(n, rng)
    return of_events(pagerank(n, seed), rate, *poisson_changes(rate, DAYS, rng))


def correlated(n: int, seed: int) -> World:
    """Make a Poisson world in which ln lambda is a normal copula of r's ranks."""
    rng = np.random.default_rng((seed, 2))
    importance = pagerank(n, seed)
    score = np.empty(n)
    score[np.argsort(importance, kind="stable")] = np.sort(rng.standard_normal(n))
    mixed = CORRELATION * score + np.sqrt(1.0 - CORRELATION**2) * rng.standard_normal(n)
    rate = np.exp(MEAN_LN + SIGMA * mixed)
    return of_events(importance, rate, *poisson_changes(rate, DAYS, rng))


def periodic(n: int, seed: int) -> World:
    """A page changes every 1 / lambda days, from a random first day on."""
    rng = np.random.default_rng((seed, 3))
    rate = log_normal_rates(n, rng)
    return of_events(pagerank(n, seed), rate, *periodic_changes(rate, rng))


def periodic_changes(rate: Reals, rng: np.random.Generator) -> tuple[Ids, Reals]:
    """(page, time) of pages that change by the clock."""
    counts = np.ceil(rate * DAYS).astype(np.int64) + 1
    page = np.repeat(np.arange(len(rate)), counts)
    turn = np.arange(len(page)) - np.repeat(np.cumsum(counts) - counts, counts)
    phase = rng.random(len(rate))[page] + JITTER * (2.0 * rng.random(len(page)) - 1.0)
    return page, (turn + phase) / rate[page]


def bursty(n: int, seed: int) -> World:
    """Bursts come as a Poisson process of lambda / BURST; they began long before the world does."""
    rng = np.random.default_rng((seed, 4))
    rate = log_normal_rates(n, rng)
    return of_events(pagerank(n, seed), rate, *bursty_changes(rate, rng))


def bursty_changes(rate: Reals, rng: np.random.Generator) -> tuple[Ids, Reals]:
    """(page, time) of pages that change in bursts."""
    page, begin = poisson_changes(rate / BURST, 2.0 * DAYS, rng)
    sizes = rng.geometric(1.0 / BURST, len(page))
    burst = np.repeat(np.arange(len(page)), sizes)
    gaps = rng.exponential(1.0, len(burst)) * (WITHIN * BURST / rate[page])[burst]
    first = np.cumsum(sizes) - sizes
    gaps[first] = 0.0
    run = np.cumsum(gaps)
    offset = run - np.repeat(run[first], sizes)
    return page[burst], begin[burst] - DAYS + offset


COMPUTED: Mapping[str, Callable[[int, int], World]] = {
    "poisson": poisson,
    "periodic": periodic,
    "bursty": bursty,
    "correlated": correlated,
}


class PageHistory(NamedTuple):
    """A page of a history file: its birth (the first A) and the times of all later events (seconds since 1970)."""

    path: str
    born: float
    changes: Sequence[float]


BURN_SHARE = 0.3
"""of the span of a history: not measured"""


def of_histories(histories: Sequence[PageHistory], importance: Reals) -> World:
    """Real histories as one world from their first event to their last, of at least two different times.

    The rate is the one that fits the whole life of a page: changes / days from birth to the end. importance: a number
    above 0 for each, of any scale.
    """
    begin = min(history.born for history in histories)
    end = max(max((history.born, *history.changes)) for history in histories)
    order = sorted(range(len(histories)), key=lambda index: histories[index].born)
    born = np.array([histories[index].born - begin for index in order]) / 86_400.0
    counts = np.array([len(histories[index].changes) for index in order])
    times = np.array([t - begin for index in order for t in sorted(histories[index].changes)]) / 86_400.0
    days = (end - begin) / 86_400.0
    rate = counts / np.maximum(days - born, 1.0)
    indptr = np.concatenate(([0], np.cumsum(counts)))
    weight = importance[order] / importance.mean()
    return World(weight, rate, born, indptr, times, days, BURN_SHARE * days)


def zipf(n: int, seed: int) -> Reals:
    """r = 1 / rank, ranks dealt out at random: float64[n] of mean 1."""
    weight = 1.0 / (1.0 + np.random.default_rng((seed, 5)).permutation(n))
    found: Reals = weight / weight.mean()
    return found
