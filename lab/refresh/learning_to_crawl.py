"""Learning to Crawl: explore, then commit. All pages are read alike for a while, then at the optimum of the estimates.

Upadhyay, Busa-Fekete, Kotlowski, Pal, Szorenyi: "Learning to Crawl", AAAI 2020. Only its abstract was at hand ("the
explore-and-commit algorithm achieves an O(sqrt T) regret with a carefully chosen exploration horizon"); what follows is
derived from it. They build on Azar et al. 2018, whose Poisson reads are committed to (`azar-random`).

    explore   for sqrt(T) mean intervals of T that the world lasts: all pages every 1 / B days
    estimate  the rate at which as many of a page's reads show a change as did: sum (1 - e^(-l tau_i)) = changes, by
              moments; with intervals alike l = -ln(1 - changes / reads) / tau; a page of which all reads, or none,
              showed a change counts half a read of the other kind, which bounds l
    commit    Azar et al.'s Poisson reads at these rates, for good; a page born later counts as the median one until the
              estimates are made anew, at the next birth
"""

from __future__ import annotations

import math

import numpy as np

from xyro.lab.refresh.index_rules import RandomRule
from xyro.lab.refresh.page_arrays import DAY, Bools, PageArrays
from xyro.lab.refresh.selection import least
from xyro.lab.refresh.world import Ids, Reals

LEAST_READS = 2.0
"""of a page, before what is known of it is committed to"""


class LearningToCrawl:
    """A rule that explores evenly, and then commits."""

    def __init__(self, born: Reals, days: float, optimum: RandomRule) -> None:
        """days: that the world lasts."""
        n = len(born)
        self._days, self._optimum = days, optimum
        self._reads, self._changes, self._exposure = np.zeros(n), np.zeros(n), np.zeros(n)
        self._read_at = born.copy()
        self._explores_until = -1.0
        self._rates: Reals | None = None

    def choose(self, view: PageArrays, limit: int) -> Ids:
        now, n = view.now / DAY, len(view.rate)
        if self._explores_until < 0.0:
            mean = n * view.tick / DAY / limit
            self._explores_until = now + math.sqrt(self._days * mean)
        if now < self._explores_until:
            return least(self._read_at[:n], limit, view.hosts)
        if self._rates is None or len(self._rates) < n:
            self._rates = self._estimates(n)
        view.rate = self._rates.astype(np.float32)
        return self._optimum.choose(view, limit)

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        if self._rates is None or len(self._rates) < len(self._read_at):
            self._reads[pages] += 1.0
            self._changes[pages] += changed
            self._exposure[pages] += now - self._read_at[pages]
        self._read_at[pages] = now

    def _estimates(self, n: int) -> Reals:
        """Return the rates of the first n pages; of a page with too few reads, the mean of the others."""
        reads = self._reads[:n]
        settled = reads >= LEAST_READS
        share = np.clip(self._changes[:n], 0.5, np.maximum(reads - 0.5, 0.5)) / np.maximum(reads, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = -np.log1p(-np.minimum(share, 0.999)) * reads / self._exposure[:n]
        usual = float(np.median(found[settled])) if settled.any() else 1.0
        rates: Reals = np.where(settled, found, usual)
        return rates
