"""Rules that read by a policy's index: greatest first, by dates, at random rates, sooner where a signal came."""

from __future__ import annotations

import math

import numpy as np

from xyro.lab.refresh.page_arrays import DAY, TICK, Bools, PageArrays
from xyro.lab.refresh.scan_execution import Scan
from xyro.lab.refresh.selection import least
from xyro.lab.refresh.world import Ids, Reals
from xyro.refresh.policy import Policy, Rules, multiplier, spent, water_level
from xyro.refresh.trust import Source, Trust

AGAIN = 86_400
"""seconds after which a multiplier is solved anew"""
LONGEST = 36_525.0
"""days: the date of a page that is given up"""


class Indexed:
    """A rule that reads the page with the greatest index first."""

    def __init__(self, policy: Policy) -> None:
        self._scan = Scan(policy)

    def choose(self, view: PageArrays, limit: int) -> Ids:
        if view.hosts is not None:
            index = self._scan.policy.index(view.importance, view.rate, view.age.astype(np.float32))
            return least(-index.astype(np.float64), limit, view.hosts)
        return self._scan.choose(view.importance, view.rate, view.read_at, view.now, limit)

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        """The index is made of rates, which learn by themselves."""


class Doubting:
    """A rule that reads the greatest gain in freshness first, as expected over beliefs about the rates.

    With known rates it is Cho and Garcia-Molina's optimum. With the mean of a belief in place of the rate that gives
    up, for good, pages that changed at their first reads; in expectation nothing is given up on little evidence.
    """

    def __init__(self) -> None:
        self._known = Indexed(Policy("freshness"))

    def choose(self, view: PageArrays, limit: int) -> Ids:
        gains = view.belief()
        if gains is None:
            return self._known.choose(view, limit)
        return least(-view.importance * gains.gain(view.age), limit, view.hosts)

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        """The gain is made of beliefs, which learn by themselves."""


class Filed:
    """A rule that files each page at a date, last read + interval, and reads the earliest first (P1 6.6's folders).

    Intervals are a tick at least, and their multiplier such that they spend the bandwidth (water-filled), solved anew
    each day. What is filed stays where it is until the page is read.
    """

    def __init__(self, policy: Policy, born: Reals, tick: int = TICK) -> None:
        self._rules = Rules(policy, floor=tick / DAY)
        self._due = np.full(len(born), -1.0)
        self._multiplier, self._solved = 1.0, -AGAIN
        self._view: PageArrays | None = None

    def choose(self, view: PageArrays, limit: int) -> Ids:
        self._view = view
        if view.now - self._solved >= AGAIN:
            importance, rate = view.importance.astype(np.float64), view.rate.astype(np.float64)
            mu = multiplier(importance, rate, limit * (DAY / view.tick), self._rules)
            self._multiplier, self._solved = mu if 0.0 < mu < math.inf else self._multiplier, view.now
        new = np.flatnonzero(self._due[: len(view.rate)] < 0.0)
        self._due[new] = view.read_at[new] / DAY + self._intervals(new)
        return least(self._due[: len(view.rate)], limit, view.hosts)

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        self._due[pages] = now + self._intervals(pages)

    def _intervals(self, pages: Ids) -> Reals:
        assert self._view is not None
        importance, rate = self._view.importance[pages], self._view.rate[pages]
        return np.minimum(self._rules.intervals(importance, rate, self._multiplier), LONGEST)


class RandomRule:
    """Poisson reads at a policy's rates: the first `limit` to ring of independent exponential clocks."""

    def __init__(self, policy: Policy, rng: np.random.Generator) -> None:
        self._policy, self._rng = policy, rng
        self._multiplier, self._solved = 1.0, -AGAIN
        self._rates: Reals = np.zeros(0)

    def choose(self, view: PageArrays, limit: int) -> Ids:
        if view.now - self._solved >= AGAIN or len(self._rates) != len(view.rate):
            self._solve(view, limit)
        with np.errstate(divide="ignore"):
            rings = self._rng.exponential(size=len(view.rate)) / self._rates
        first = least(rings, limit, view.hosts)
        chosen: Ids = first[np.isfinite(rings[first])]
        return chosen

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        """The rates are solved from the estimates."""

    def _solve(self, view: PageArrays, limit: int) -> None:
        """Solve for rates of `limit` reads a tick; only ratios and zeros matter, which depend on the multiplier."""
        importance, rate = view.importance.astype(np.float64), view.rate.astype(np.float64)
        wanted = limit * (DAY / view.tick)

        def spends(mu: float) -> float:
            return spent(self._policy.interval(importance, rate, mu))

        mu = water_level(wanted, spends, self._multiplier, 1e-3)
        self._multiplier = mu if 0.0 < mu < math.inf else 1.0
        self._rates = 1.0 / self._policy.interval(importance, rate, self._multiplier)
        self._solved = view.now


class Heeding(Indexed):
    """A rule that reads the greatest index first, and sooner where a page is said to have changed.

    The crawler's way with claims (refresh/evidence.py, refresh/trust.py), all signals from one host: of the time until
    the index reaches the last one read, a signal takes the host's trust. Reads tell it how good signals are.
    """

    def __init__(self, policy: Policy, n: int) -> None:
        super().__init__(policy)
        self._policy, self._trust = policy, Trust()
        self._least = 0.0
        """index of the last page that was read"""
        self._heard: Ids = np.zeros(n, np.int64)
        """signals of each page that its lead follows already"""
        self._lead, self._chance = np.zeros(n), np.zeros(n)
        """days by which signals draw each page nearer; that it has changed, at the last choice, whatever is said"""

    def choose(self, view: PageArrays, limit: int) -> Ids:
        if view.signals is None:
            return super().choose(view, limit)
        counts, n, age = view.signals.counts, len(view.rate), view.age
        self._chance = -np.expm1(-view.rate * age)
        signalled, lead = self._heard[:n], self._lead[:n]
        fresh = np.flatnonzero(counts > signalled)
        if len(fresh) and self._least > 0.0:
            whole = self._policy.interval(view.importance[fresh], view.rate[fresh], self._least)
            rest = np.clip(whole - age[fresh] - lead[fresh], 0.0, LONGEST)
            lead[fresh] += rest * (1.0 - (1.0 - self._trust.weight(Source.SITEMAP)) ** (counts - signalled)[fresh])
            signalled[fresh] = counts[fresh]
        index = self._policy.index(view.importance, view.rate, (age + lead).astype(np.float32))
        chosen = least(-index.astype(np.float64), limit, view.hosts)
        self._least = float(index[chosen].min()) if len(chosen) else 0.0
        return chosen

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        signal = self._heard[pages] > 0
        for has_changed, likely in zip(changed[signal].tolist(), self._chance[pages[signal]].tolist(), strict=True):
            self._trust.changed(Source.SITEMAP, has_changed, likely)
        self._heard[pages], self._lead[pages] = 0, 0.0
