"""Who decides what is read next: our policies by scan, and four outside baselines.

Ours are the indices of refresh/policy.py, executed by refresh/scan.py itself: uniform, proportional, p1, freshness,
mixed:A (alpha = A, beta = 1), kolobov, azar. The baselines are written down from their sources' rules, not their code:

nutch         Apache Nutch's AdaptiveFetchSchedule (org.apache.nutch.crawl, read at commit 0abf975). Interval x 0.8
              after a change, x 1.4 without (db.fetch.schedule.adaptive.dec_rate / inc_rate as in nutch-default.xml), in
              [60 s, 365 days], at first 30 days. sync_delta (on by default): after a read without change the interval
              is at least the age of the last change found, and the next fetch comes 0.3 of that age earlier
              (sync_delta_rate of nutch-default.xml). Neither rate nor importance is known to it.
nutch-plain   the same with sync_delta off.
stormcrawler  StormCrawler's AdaptiveScheduler (com.digitalpebble.stormcrawler.persistence), all defaults: interval
              x 1.5 without a change, at most 14 days; after a change halfway to the least, 60 minutes; at first 1 day.
azar-random   Azar, Horvitz, Lubetzky, Peres, Shahaf: Tractable near-optimal policies for crawling, PNAS 115 (2018):
              Poisson reads at rates max(0, sqrt(r lambda / mu) - lambda), which maximise freshness among them. Their
              deterministic schedule of the same rates is `azar`.
lambdacrawl   Kolobov, Peres, Lu, Horvitz: Staying up to Date with Online Content Changes, NeurIPS 2019 (LambdaCrawl):
              Poisson reads at rates (sqrt(lambda^2 + 4 r lambda / mu) - lambda) / 2, which minimise the harmonic
              penalty. The same rates evenly spaced are `kolobov`.

Nutch and StormCrawler read what is due, most overdue first; what they leave of the bandwidth is not spent. The rates of
Azar and LambdaCrawl are solved anew each day from the estimates of that day (sum of rates = bandwidth).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lab.refresh_world import Ids, Reals
from refresh.policy import Name, Policy, spent, water_level
from refresh.scan import Scan

Bools = NDArray[np.bool_]


@dataclass(slots=True)
class View:
    """What a rule sees of the pages that are there: arrays over pages 0..n-1, days and float32."""

    importance: NDArray[np.float32]
    rate: NDArray[np.float32]
    read_at: NDArray[np.uint32]
    """seconds"""
    now: int
    """seconds"""


class Rule(Protocol):
    def choose(self, view: View, most: int) -> Ids:
        """At most `most` pages, each once."""
        ...

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        """What reads of these pages showed; now in days."""
        ...


class Indexed:
    """The greatest index first."""

    def __init__(self, policy: Policy) -> None:
        self._scan = Scan(policy)

    def choose(self, view: View, most: int) -> Ids:
        return self._scan.choose(view.importance, view.rate, view.read_at, view.now, most)

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        """The index is made of rates, which learn by themselves."""


class Random:
    """Poisson reads at a policy's rates: the first `most` to ring of independent exponential clocks."""

    AGAIN = 86_400
    """seconds after which rates are solved anew"""

    def __init__(self, policy: Policy, rng: np.random.Generator) -> None:
        self._policy, self._rng = policy, rng
        self._multiplier, self._solved = 1.0, -self.AGAIN
        self._rates: Reals = np.zeros(0)

    def choose(self, view: View, most: int) -> Ids:
        if view.now - self._solved >= self.AGAIN or len(self._rates) != len(view.rate):
            self._solve(view, most)
        n = len(view.rate)
        with np.errstate(divide="ignore"):
            rings = self._rng.exponential(size=n) / self._rates
        first = np.argpartition(rings, most - 1)[:most] if most < n else np.arange(n)
        chosen: Ids = first[np.isfinite(rings[first])]
        return chosen

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        """The rates are solved from the estimates."""

    def _solve(self, view: View, most: int) -> None:
        """Rates that take `most` reads a tick; only their ratios and zeros matter, and those hang on the multiplier."""
        importance, rate = view.importance.astype(np.float64), view.rate.astype(np.float64)
        wanted = most * (86_400.0 / TICK)

        def spends(mu: float) -> float:
            return spent(self._policy.interval(importance, rate, mu))

        mu = water_level(wanted, spends, self._multiplier, 1e-3)
        self._multiplier = mu if 0.0 < mu < math.inf else 1.0
        self._rates = 1.0 / self._policy.interval(importance, rate, self._multiplier)
        self._solved = view.now


TICK = 21_600
"""seconds from one choice to the next: the 6 h of algorithms.md F"""


class Overdue:
    """Pages whose next fetch is due, most overdue first; `adapt` is what a schedule makes of a read."""

    def __init__(self, n: int, born: Reals, first: float, adapt: Callable[[Reals, Reals, Bools], tuple[Reals, Reals]]):
        self._interval = np.full(n, first)
        self._due = born + first
        self._changed_at = born.copy()
        self._adapt = adapt

    def choose(self, view: View, most: int) -> Ids:
        due = np.flatnonzero(self._due[: len(view.rate)] <= view.now / 86_400.0)
        if len(due) > most:
            due = due[np.argpartition(self._due[due], most - 1)[:most]] if most else due[:0]
        return due

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        self._changed_at[pages[changed]] = now
        interval, early = self._adapt(self._interval[pages], now - self._changed_at[pages], changed)
        self._interval[pages] = interval
        self._due[pages] = now + interval - early


def nutch(sync: bool) -> Callable[[Reals, Reals, Bools], tuple[Reals, Reals]]:
    """(interval, days since the last change found, changed) -> (interval, days the next fetch comes earlier)."""

    def adapt(interval: Reals, since: Reals, changed: Bools) -> tuple[Reals, Reals]:
        interval = interval * np.where(changed, 0.8, 1.4)
        early = np.zeros(len(interval))
        if sync:
            interval, early = np.maximum(interval, since), 0.3 * since
        return np.clip(interval, 60.0 / 86_400.0, 365.0), early

    return adapt


def stormcrawler(interval: Reals, since: Reals, changed: Bools) -> tuple[Reals, Reals]:
    """The same of StormCrawler."""
    shorter = 0.5 * interval + 0.5 * (60.0 / 1440.0)
    return np.where(changed, shorter, np.minimum(1.5 * interval, 14.0)), np.zeros(len(interval))


def _named(name: Name) -> Policy:
    return Policy(name)


POLICIES: Mapping[str, Policy] = {
    "uniform": _named("uniform"),
    "proportional": _named("proportional"),
    "p1": _named("obsolescence"),
    "freshness": _named("freshness"),
    "mixed:0.1": Policy("mixed", 0.1, 1.0),
    "mixed:0.3": Policy("mixed", 0.3, 1.0),
    "mixed:1": Policy("mixed", 1.0, 1.0),
    "kolobov": _named("kolobov"),
    "azar": _named("azar"),
}
BASELINES = ("nutch", "nutch-plain", "stormcrawler", "azar-random", "lambdacrawl")
NAMES = (*POLICIES, *BASELINES)
LEARNERS = ("uniform", "nutch", "nutch-plain", "stormcrawler")
"""rules that use no rates: the same whether rates are known or not"""


def rule(name: str, born: Reals, seed: int) -> Rule:
    """The rule of that name for pages born then (days). ValueError: no such rule."""
    if name in POLICIES:
        return Indexed(POLICIES[name])
    if name.startswith("mixed:"):
        return Indexed(Policy("mixed", float(name[6:]), 1.0))
    rng = np.random.default_rng((seed, 6))
    makers: Mapping[str, Callable[[], Rule]] = {
        "nutch": lambda: Overdue(len(born), born, 30.0, nutch(True)),
        "nutch-plain": lambda: Overdue(len(born), born, 30.0, nutch(False)),
        "stormcrawler": lambda: Overdue(len(born), born, 1.0, stormcrawler),
        "azar-random": lambda: Random(POLICIES["azar"], rng),
        "lambdacrawl": lambda: Random(POLICIES["kolobov"], rng),
    }
    if name not in makers:
        raise ValueError(f"policy {name!r}: one of {', '.join(NAMES)}, or mixed:ALPHA")
    return makers[name]()
