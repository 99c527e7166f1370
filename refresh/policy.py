"""Policies: what a read of a page is worth, and from that how often it is read (algorithms.md F; P1 section 6).

A page of importance r that changes lambda times a day and was read a days ago has the index

    phi = (r / lambda) g(x),   x = lambda a                        read the page with the greatest index first

and where the bandwidth is spent evenly every page is read when its index reaches the same multiplier mu: its interval
is t = g^-1(mu lambda / r) / lambda. A policy is its g:

    obsolescence  x^2 / 2                  least weighted obsolescence: t = sqrt(2 mu / (r lambda)) (P1 eq. 18, 22)
    freshness     V(x) = 1 - (1+x) e^-x    most weighted freshness; pages with r / lambda <= mu are never read
    mixed         alpha x^2/2 + beta V(x)  P1's mixed penalty: nothing is given up while alpha > 0
    uniform       x,  r = 1                t = mu: what `xyro plan` compares the others with, no setting

A policy that only the papers' comparison needs is a subclass of its own (lab/refresh/policies.py).

Rates are changes per day, ages and intervals days, r has any scale (the same for all pages: mu scales with it).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from xyro.refresh import doubt
from xyro.refresh.inverse import lost_freshness, mixed_inverse, one_inverse

Floats = NDArray[np.floating]
Reals = NDArray[np.float64]
NAMES = ("obsolescence", "mixed", "freshness", "uniform")
_LONGEST = 36_525.0
"""days that a page in doubt waits at most where there is no ceiling"""


@dataclass(frozen=True, slots=True)
class Policy:
    """One of `names`; alpha and beta are those of `mixed`. ValueError: no such policy, a penalty that is none."""

    names: ClassVar[tuple[str, ...]] = NAMES
    name: str = "obsolescence"
    alpha: float = 1.0
    beta: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in self.names:
            raise ValueError(f"policy {self.name!r}: one of {', '.join(self.names)}")
        if not (0.0 <= self.alpha < math.inf and 0.0 <= self.beta < math.inf and self.alpha + self.beta > 0.0):
            raise ValueError(f"policy: alpha and beta are finite, 0 or more, not both 0; got {self.alpha}, {self.beta}")

    @property
    def parts(self) -> tuple[float, float]:
        """(alpha, beta) of the policies that are mixed penalties."""
        fixed = {"obsolescence": (1.0, 0.0), "freshness": (0.0, 1.0)}
        return fixed.get(self.name, (self.alpha, self.beta))

    @property
    def gives_up(self) -> bool:
        """Does it never read pages that change too fast, for the sake of freshness alone?"""
        return self.name in ("freshness", "mixed") and self.parts[0] == 0.0

    def index_in_doubt(self, importance: Floats, rate: Floats, age: Floats, shape: Floats) -> Floats:
        """phi where rates are the means of beliefs Gamma(shape, shape / rate): expected, for policies that give up."""
        if not self.gives_up:
            return self.index(importance, rate, age)
        known = np.asarray(rate) > 0.0
        gain = doubt.expected_gain(
            np.asarray(shape, np.float64), np.where(known, rate, 1.0), np.asarray(age, np.float64)
        )
        return np.where(known, self.parts[1] * importance * gain, 0.0)

    def index(self, importance: Floats, rate: Floats, age: Floats) -> Floats:
        """phi of pages: the greatest first. Arrays of one shape (or numbers); keeps float32."""
        if self.name == "uniform":
            return np.asarray(age + 0.0 * rate)
        alpha, beta = self.parts
        if beta == 0.0:  # needs neither exponential nor division
            found = np.asarray(age * age)
            found *= rate
            found *= importance
            found *= 0.5 * alpha
            return found
        x = rate * age
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = importance / rate * (0.5 * alpha * x * x + beta * lost_freshness(x))
        return np.where(rate > 0.0, found, np.zeros_like(found))

    def interval(self, importance: Floats, rate: Floats, multiplier: float) -> Reals:
        """t in days at which phi reaches the multiplier: float64 of the pages' shape; infinite = never."""
        r, lam = np.broadcast_arrays(np.asarray(importance, np.float64), np.asarray(rate, np.float64))
        if self.name == "uniform":
            return np.full(r.shape, multiplier)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            worth = (r > 0.0) & (lam > 0.0)
            wanted = np.where(worth, multiplier * lam / r, math.inf)
            return np.where(worth, self._inverse(wanted) / lam, math.inf)

    def _inverse(self, wanted: Reals) -> Reals:
        """x with g(x) = wanted; infinite where g never gets there."""
        alpha, beta = self.parts
        if beta == 0.0:
            return np.sqrt(2.0 * wanted / alpha)
        return mixed_inverse(wanted, alpha, beta)

    def one_interval(self, importance: float, rate: float, multiplier: float) -> float:
        """`interval` of one page, in 1 us where g has a closed inverse, else 4."""
        if self.name == "uniform":
            return multiplier
        if rate <= 0.0 or importance <= 0.0:
            return math.inf
        wanted = multiplier * rate / importance
        alpha, beta = self.parts
        if beta == 0.0:
            return math.sqrt(2.0 * wanted / alpha) / rate
        return one_inverse(wanted, alpha, beta) / rate


@dataclass(frozen=True, slots=True)
class Rules:
    """A policy within bounds. Days; importance relative to the mean.

    floor, ceiling: no interval is shorter or longer. least: pages of less importance are not read again. hopeless: a
    page that is fresh less than this share of the time even when read every `floor` days is read every `hopeless_days`
    instead (P1 section 1, observation 3: stock quotations; 0 = nothing is hopeless).
    """

    policy: Policy = Policy()
    floor: float = 0.0
    ceiling: float = math.inf
    least: float = 0.0
    hopeless: float = 0.0
    hopeless_days: float = 30.0

    def __post_init__(self) -> None:
        if not (0.0 <= self.floor <= self.ceiling and self.ceiling > 0.0 and self.hopeless_days > 0.0):
            raise ValueError(f"Rules: 0 <= floor <= ceiling, hopeless_days > 0; got {self}")

    @property
    def hopeless_rate(self) -> float:
        """Changes a day from which on a page is hopeless: freshness (1 - e^-x)/x at x = lambda floor."""
        if self.hopeless <= 0.0 or self.floor <= 0.0:
            return math.inf
        low, high = 1e-9, 1.0 / self.hopeless + 1.0  # (1 - e^-x)/x <= 1/x
        for _ in range(100):
            x = 0.5 * (low + high)
            low, high = (x, high) if -math.expm1(-x) / x > self.hopeless else (low, x)
        return high / self.floor

    def intervals(self, importance: Floats, rate: Floats, multiplier: float) -> Reals:
        """Days between reads of pages, at this multiplier; infinite = never."""
        found = np.clip(self.policy.interval(importance, rate, multiplier), self.floor, self.ceiling)
        found = np.where(np.asarray(rate) >= self.hopeless_rate, self.hopeless_days, found)
        return np.where(np.asarray(importance) < self.least, math.inf, found)

    def one_interval(
        self, importance: float, rate: float, multiplier: float, shape: float = math.inf
    ) -> tuple[float, str]:
        """(days, what set it: policy | floor | ceiling | hopeless | importance) of one page.

        shape: of the belief whose mean `rate` is. A page that the policy gives up for a rate in doubt is read again
        when that has become worth it in expectation (doubt.py); the multiplier knows nothing of these few reads.
        """
        if importance < self.least:
            return math.inf, "importance"
        if rate >= self.hopeless_rate:
            return self.hopeless_days, "hopeless"
        wanted = self.policy.one_interval(importance, rate, multiplier)
        if wanted < self.floor:
            return self.floor, "floor"
        if wanted > self.ceiling and shape < doubt.SURE and self.policy.gives_up and importance > 0.0 and rate > 0.0:
            goal = multiplier / (importance * self.policy.parts[1])
            wanted = max(doubt.wait(shape, rate, goal, min(self.ceiling, _LONGEST)), self.floor)
        return (self.ceiling, "ceiling") if wanted > self.ceiling else (wanted, "policy")


def spent(intervals: Floats, pages: Floats | None = None) -> float:
    """Reads a day that intervals (days) take; `pages`: how many have each (default one)."""
    with np.errstate(divide="ignore"):
        rates = 1.0 / np.asarray(intervals, np.float64)
    return float(rates.sum() if pages is None else (rates * pages).sum())


def water_level(
    reads_per_day: float, spends: Callable[[float], float], start: float = 1.0, tolerance: float = 1e-12
) -> float:
    """The multiplier at which `spends(mu)`, which falls as mu grows, is reads_per_day.

    0.0 where even all floors spend less; infinite where the ceilings alone spend more.
    """
    if reads_per_day <= spends(math.inf):
        return math.inf
    low = high = math.log(start) if 0.0 < start < math.inf else 0.0
    step = 1.0
    while spends(math.exp(low)) < reads_per_day:
        low, step = low - step, 2.0 * step
        if low < -700.0:
            return 0.0
    step = 1.0
    while spends(math.exp(high)) > reads_per_day:
        high, step = high + step, 2.0 * step
        if high > 700.0:
            return math.inf
    return math.exp(_root(reads_per_day, spends, low, high, tolerance))


def _root(goal: float, spends: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """ln mu within [low, high], by false position on ln of what is spent (Illinois), which is smooth and monotone."""

    def excess(at: float) -> float:
        return math.log(min(max(spends(math.exp(at)) / goal, 1e-300), 1e300))

    above, below = excess(low), excess(high)
    side = 0
    while high - low > tolerance and above > 0.0 > below:
        middle = (low * below - high * above) / (below - above)
        middle = min(max(middle, low + 1e-3 * (high - low)), high - 1e-3 * (high - low))
        value = excess(middle)
        if abs(value) < tolerance:
            return middle
        if value > 0.0:
            low, above = middle, value
            below *= 0.5 if side > 0 else 1.0
            side = 1
        else:
            high, below = middle, value
            above *= 0.5 if side < 0 else 1.0
            side = -1
    return low if abs(above) < abs(below) else high


def multiplier(importance: Floats, rate: Floats, reads_per_day: float, rules: Rules) -> float:
    """mu with sum 1/t_i = reads_per_day over these very pages (water-filled: floors, ceilings and all)."""
    return water_level(reads_per_day, lambda mu: spent(rules.intervals(importance, rate, mu)))
