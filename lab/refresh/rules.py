"""The rules that decide what is read next: our policies by scan, and four outside baselines.

Ours are the indices of refresh/policy.py, executed by scan_execution.py: uniform, proportional, p1, freshness,
mixed:A (alpha = A, beta = 1), kolobov, azar. NAME:filed is the same policy executed by dates, as P1 6.6's folders are;
freshness:doubt takes the index's mean over what is believed of a rate instead of the index of the mean rate. The
baselines are written down from their sources' rules, not their code:

nutch         Apache Nutch's AdaptiveFetchSchedule (org.apache.nutch.crawl, read at commit 0abf975). Interval x 0.8
              after a change, x 1.4 without (db.fetch.schedule.adaptive.dec_rate / inc_rate of nutch-default.xml), 365
              days at most. It knows neither rates nor importance, and says nothing of scarce bandwidth; so, as in
              the prototype, the page that is latest relative to its interval comes first, due or not, and all of the
              bandwidth is spent; at first 7 days, a tick at least, no sync_delta. The kindest reading of it.
nutch-shipped the same as shipped: 30 days at first, 60 s at least; only what is due is read; sync_delta is on: after a
              read without change the interval is at least the age of the last change found, and the next fetch comes
              0.3 of that age earlier (sync_delta_rate of nutch-default.xml).
stormcrawler  StormCrawler's AdaptiveScheduler (com.digitalpebble.stormcrawler.persistence), all defaults: interval
              x 1.5 without a change, at most 14 days; after a change halfway to the least, 60 minutes; at first 1 day.
azar-random   Azar, Horvitz, Lubetzky, Peres, Shahaf: Tractable near-optimal policies for crawling, PNAS 115 (2018):
              Poisson reads at rates max(0, sqrt(r lambda / mu) - lambda), which maximise freshness among them. Their
              deterministic schedule of the same rates is `azar`.
lambdacrawl   Kolobov, Peres, Lu, Horvitz: Staying up to Date with Online Content Changes, NeurIPS 2019 (LambdaCrawl):
              Poisson reads at rates (sqrt(lambda^2 + 4 r lambda / mu) - lambda) / 2, which minimise the harmonic
              penalty. The same rates evenly spaced are `kolobov`.

As shipped, both read what is due, most overdue first, and do not spend what they leave of the bandwidth. The rates of
Azar and LambdaCrawl are solved anew each day from the estimates of that day (sum of rates = bandwidth).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from xyro.lab.refresh.compared_policies import policy_of
from xyro.lab.refresh.scan_execution import Scan
from xyro.lab.refresh.world import Ids, Reals
from xyro.refresh.policy import Policy, Rules, multiplier, spent, water_level

Bools = NDArray[np.bool_]
DAY = 86_400.0
TICK = 21_600
"""seconds from one choice to the next: the 6 h of the prototype"""
AGAIN = 86_400
"""seconds after which a multiplier is solved anew"""
LONGEST = 36_525.0
"""days: the date of a page that is given up"""
MOST_ALPHA = 10_000.0
"""as in the settings"""


@dataclass(slots=True)
class PageArrays:
    """The pages that are there, as a rule sees them: arrays over pages 0..n-1, days and float32."""

    importance: NDArray[np.float32]
    rate: NDArray[np.float32]
    read_at: NDArray[np.uint32]
    """seconds"""
    now: int
    """seconds"""
    shares: Callable[[], NDArray[np.float32] | None] = lambda: None
    """the beliefs that the rates are told by, a row of shares each (rate_belief.py); None: they are known"""


class Rule(Protocol):
    def choose(self, view: PageArrays, limit: int) -> Ids:
        """Return at most `limit` pages, each once."""
        ...

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        """Take the result of reads of these pages; now in days."""
        ...


class Indexed:
    """A rule that reads the page with the greatest index first."""

    def __init__(self, policy: Policy) -> None:
        self._scan = Scan(policy)

    def choose(self, view: PageArrays, limit: int) -> Ids:
        return self._scan.choose(view.importance, view.rate, view.read_at, view.now, limit)

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        """The index is made of rates, which learn by themselves."""


class Doubting:
    """A rule that reads the greatest index first, as expected over beliefs about the rates (refresh/doubt.py)."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def choose(self, view: PageArrays, limit: int) -> Ids:
        age = (view.now - view.read_at.astype(np.float64)) / DAY
        shares = view.shares()
        if shares is None:
            return _least(-self._policy.index(view.importance, view.rate, age).astype(np.float64), limit)
        return _least(-self._policy.index_in_doubt(view.importance, view.rate, age, shares).astype(np.float64), limit)

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        """The index is made of beliefs, which learn by themselves."""


class Filed:
    """A rule that files each page at a date, last read + interval, and reads the earliest first (P1 6.6's folders).

    Intervals are a tick at least, and their multiplier such that they spend the bandwidth (water-filled), solved anew
    each day. What is filed stays where it is until the page is read.
    """

    def __init__(self, policy: Policy, born: Reals) -> None:
        self._rules = Rules(policy, floor=TICK / DAY)
        self._due = np.full(len(born), -1.0)
        self._multiplier, self._solved = 1.0, -AGAIN
        self._view: PageArrays | None = None

    def choose(self, view: PageArrays, limit: int) -> Ids:
        self._view = view
        if view.now - self._solved >= AGAIN:
            importance, rate = view.importance.astype(np.float64), view.rate.astype(np.float64)
            mu = multiplier(importance, rate, limit * (DAY / TICK), self._rules)
            self._multiplier, self._solved = mu if 0.0 < mu < math.inf else self._multiplier, view.now
        new = np.flatnonzero(self._due[: len(view.rate)] < 0.0)
        self._due[new] = view.read_at[new] / DAY + self._intervals(new)
        return _least(self._due[: len(view.rate)], limit)

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
        first = _least(rings, limit)
        chosen: Ids = first[np.isfinite(rings[first])]
        return chosen

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        """The rates are solved from the estimates."""

    def _solve(self, view: PageArrays, limit: int) -> None:
        """Solve for rates of `limit` reads a tick; only ratios and zeros matter, which depend on the multiplier."""
        importance, rate = view.importance.astype(np.float64), view.rate.astype(np.float64)
        wanted = limit * (DAY / TICK)

        def spends(mu: float) -> float:
            return spent(self._policy.interval(importance, rate, mu))

        mu = water_level(wanted, spends, self._multiplier, 1e-3)
        self._multiplier = mu if 0.0 < mu < math.inf else 1.0
        self._rates = 1.0 / self._policy.interval(importance, rate, self._multiplier)
        self._solved = view.now


Adapt = Callable[[Reals, Reals, Bools], tuple[Reals, Reals]]
"""(interval, days since the last change found, changed) -> (interval, days by which the next fetch comes earlier)"""


class Scheduled:
    """A rule of adaptive intervals.

    relative: the latest relative to its interval comes first, due or not; else only due pages are read, the most
    overdue first. first: the interval of a new page (days).
    """

    def __init__(self, born: Reals, first: float, adapt: Adapt, relative: bool = False) -> None:
        self._interval = np.full(len(born), first)
        self._due = born + first
        self._changed_at = born.copy()
        self._adapt, self._relative = adapt, relative

    def choose(self, view: PageArrays, limit: int) -> Ids:
        n = len(view.rate)
        wait = self._due[:n] - view.now / DAY
        if self._relative:
            return _least(wait / self._interval[:n], limit)
        due = np.flatnonzero(wait <= 0.0)
        return due[_least(wait[due], limit)]

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        self._changed_at[pages[changed]] = now
        interval, early = self._adapt(self._interval[pages], now - self._changed_at[pages], changed)
        self._interval[pages] = interval
        self._due[pages] = now + interval - early


def _least(values: Reals, count: int) -> Ids:
    """Return the places of the `count` least values, in any order."""
    if count >= len(values):
        return np.arange(len(values))
    found: Ids = np.argpartition(values, count - 1)[:count] if count else np.empty(0, np.int64)
    return found


def nutch(interval: Reals, since: Reals, changed: Bools) -> tuple[Reals, Reals]:
    """Nutch without sync_delta, a tick at least."""
    return np.clip(interval * np.where(changed, 0.8, 1.4), TICK / DAY, 365.0), np.zeros(len(interval))


def nutch_shipped(interval: Reals, since: Reals, changed: Bools) -> tuple[Reals, Reals]:
    """Nutch with sync_delta, a minute at least."""
    longer = np.maximum(interval * np.where(changed, 0.8, 1.4), since)
    return np.clip(longer, 60.0 / DAY, 365.0), 0.3 * since


def stormcrawler(interval: Reals, since: Reals, changed: Bools) -> tuple[Reals, Reals]:
    """StormCrawler's AdaptiveScheduler with its defaults."""
    shorter = 0.5 * interval + 0.5 * (60.0 / 1440.0)
    return np.where(changed, shorter, np.minimum(1.5 * interval, 14.0)), np.zeros(len(interval))


POLICIES: Mapping[str, Policy] = {
    "uniform": policy_of("uniform"),
    "proportional": policy_of("proportional"),
    "p1": policy_of("obsolescence"),
    "freshness": policy_of("freshness"),
    "mixed:0.1": Policy("mixed", 0.1, 1.0),
    "mixed:0.3": Policy("mixed", 0.3, 1.0),
    "mixed:1": Policy("mixed", 1.0, 1.0),
    "kolobov": policy_of("kolobov"),
    "azar": policy_of("azar"),
}
OTHERWISE = ("freshness:doubt", "proportional:filed", "p1:filed")
"""of those, executed in another way"""
BASELINES = ("nutch", "nutch-shipped", "stormcrawler", "azar-random", "lambdacrawl")
NAMES = (*POLICIES, *OTHERWISE, *BASELINES)
BLIND = ("uniform", "nutch", "nutch-shipped", "stormcrawler")
"""rules that use no rates: the same whether rates are known or not"""


def _mixed(name: str) -> Policy:
    """Make a mixed policy of its name. ValueError: alpha is no number, or larger than single precision allows."""
    try:
        alpha = float(name.removeprefix("mixed:"))
    except ValueError:
        alpha = math.nan
    if not 0.0 <= alpha <= MOST_ALPHA:
        raise ValueError(f"policy {name!r}: mixed:ALPHA, ALPHA a number from 0 to {MOST_ALPHA:,.0f}")
    return Policy("mixed", alpha, 1.0)


def rule(name: str, born: Reals, seed: int) -> Rule:
    """Make the rule of this name. born: when each page was born, days. ValueError: no such rule."""
    if name in POLICIES:
        return Indexed(POLICIES[name])
    policy, _, how = name.rpartition(":")
    if how == "filed" and policy in POLICIES:
        return Filed(POLICIES[policy], born)
    if name == "freshness:doubt":
        return Doubting(POLICIES["freshness"])
    if name.startswith("mixed:"):
        return Indexed(_mixed(name))
    rng = np.random.default_rng((seed, 6))
    makers: Mapping[str, Callable[[], Rule]] = {
        "nutch": lambda: Scheduled(born, 7.0, nutch, relative=True),
        "nutch-shipped": lambda: Scheduled(born, 30.0, nutch_shipped),
        "stormcrawler": lambda: Scheduled(born, 1.0, stormcrawler),
        "azar-random": lambda: RandomRule(POLICIES["azar"], rng),
        "lambdacrawl": lambda: RandomRule(POLICIES["kolobov"], rng),
    }
    if name not in makers:
        raise ValueError(f"policy {name!r}: one of {', '.join(NAMES)}, or mixed:ALPHA")
    return makers[name]()
