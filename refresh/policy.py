"""Policies: what a read of a page is worth, and from that how often it is read (P1 section 6).

A page of importance r that changes lambda times a day and was read a days ago has the index

    phi = (r / lambda) g(x),   x = lambda a                        read the page with the greatest index first

and where the bandwidth is spent evenly every page is read when its index reaches the same multiplier mu: its interval
is t = g^-1(mu lambda / r) / lambda. A policy is its g:

    obsolescence  x^2 / 2                  least weighted obsolescence: t = sqrt(2 mu / (r lambda)) (P1 eq. 18, 22)
    freshness     V(x) = 1 - (1+x) e^-x    most weighted freshness; pages with r / lambda <= mu are never read
    mixed         alpha x^2/2 + beta V(x)  P1's mixed penalty: nothing is given up while alpha > 0
    uniform       x,  r = 1                t = mu: what `xyro plan` compares the others with, no setting

A policy that only the papers' comparison needs is a subclass of its own (lab/refresh/compared_policies.py).

Rates are changes per day, ages and intervals days, r has any scale (the same for all pages: mu scales with it).

Intervals: S = sum sqrt(r lambda) kept exactly, K = S / B, t_i = K / sqrt(r_i lambda_i) (P1 eq. 18, 22 and 6.6).

Minimising the time average of the importance-weighted obsolescence, sum r_i lambda_i t_i / 2, under sum 1/t_i = B gives
t_i ~ 1 / sqrt(r_i lambda_i). (P1 eq. 16 and 17 leave out the division by t_i; its result is right for the average.)

The weight of a page is w = sqrt(r lambda): r its importance, lambda its changes per day. Only ratios of weights matter,
t_i = S / (B w_i), so neither the scale of r nor the unit of lambda does: B in reads per second gives seconds. That is
why S may use the r stored at each page's last update, with the normalisation of r kept outside.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import ClassVar

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from xyro.refresh import doubt
from xyro.refresh.inverse import lost_freshness, mixed_inverse, one_inverse
from xyro.refresh.rate_belief import PageBelief

Floats = NDArray[np.floating]
Reals = NDArray[np.float64]
NAMES = ("obsolescence", "mixed", "freshness", "uniform")
SCATTER = 0.5
"""by so large a part, evenly drawn, a page that waits for its least chance waits longer: pages that were met together
would else be read together for ever"""
_LONGEST = 36_525.0
"""days that a page in doubt waits at most where there is no ceiling"""


class Policy(Struct, frozen=True):
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
        """Tell whether the policy never reads pages that change too fast, for the sake of freshness alone."""
        return self.name in ("freshness", "mixed") and self.parts[0] == 0.0

    def index_in_doubt(self, importance: Floats, rate: Floats, age: Floats, shares: Floats) -> Floats:
        """phi where rates are told by beliefs (a row of shares each): expected, for policies that give up."""
        if not self.gives_up:
            return self.index(importance, rate, age)
        found: Reals = self.parts[1] * importance * doubt.expected_gain(shares, np.asarray(age, np.float64))
        return found

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
        r, lam = np.asarray(importance, np.float64), np.asarray(rate, np.float64)
        if r.shape != lam.shape:
            r, lam = np.broadcast_arrays(r, lam)
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


class Rules(Struct, frozen=True):
    """A policy within bounds. Days; importance relative to the mean.

    floor, ceiling: no interval is shorter or longer. least_chance: nor so short that a page has changed within it with
    less than this chance (0 = any; the ceiling holds before it). least: pages of less importance are not read again.
    hopeless: a page that is fresh less than this share of the time even when read every `floor` days is read every
    `hopeless_days` instead (P1 section 1, observation 3: stock quotations; 0 = nothing is hopeless). haste: times as
    long as by the rate alone that a page waits for its least chance, where only the rate is known: a belief in doubt
    gets there sooner (population.py ChanceWaits).
    """

    policy: Policy = Policy()
    floor: float = 0.0
    ceiling: float = math.inf
    least: float = 0.0
    hopeless: float = 0.0
    hopeless_days: float = 30.0
    least_chance: float = 0.0
    haste: float = 1.0

    def __post_init__(self) -> None:
        if not (0.0 <= self.floor <= self.ceiling and self.ceiling > 0.0 and self.hopeless_days > 0.0):
            raise ValueError(f"Rules: 0 <= floor <= ceiling, hopeless_days > 0; got {self}")
        if not 0.0 <= self.least_chance < 1.0:
            raise ValueError(f"Rules: 0 <= least_chance < 1; got {self}")

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
        found = np.maximum(self.policy.interval(importance, rate, multiplier), self.floor)
        if self.least_chance:
            with np.errstate(divide="ignore"):
                soonest = self.haste * -math.log1p(-self.least_chance) / np.asarray(rate, np.float64)
            found = np.maximum(found, soonest * (1.0 + SCATTER / 2))
        found = np.minimum(found, self.ceiling)
        if (hopeless := self.hopeless_rate) < math.inf:
            found = np.where(np.asarray(rate) >= hopeless, self.hopeless_days, found)
        return np.where(np.asarray(importance) < self.least, math.inf, found) if self.least > 0.0 else found

    def one_interval(
        self, importance: float, rate: float, multiplier: float, belief: PageBelief | None = None
    ) -> tuple[float, str]:
        """(days, what set it: policy | chance | floor | ceiling | hopeless | importance) of one page.

        belief: which `rate` is told by; None: it is known. A page whose every read showed a change is hopeless only if
        the slowest rate that explains that is. One that the policy gives up for a rate in doubt is read again when that
        has become worth it in expectation (doubt.py); the multiplier knows nothing of these few reads.
        """
        if importance < self.least:
            return math.inf, "importance"
        if rate >= self.hopeless_rate and _surely(rate, belief) >= self.hopeless_rate:
            return self.hopeless_days, "hopeless"
        wanted = self.policy.one_interval(importance, rate, multiplier)
        soonest, term = self.soonest(rate, belief)
        if wanted < soonest:
            return soonest, term
        given_up = wanted > self.ceiling or math.isinf(wanted)  # without a ceiling infinity is not above it
        if given_up and belief is not None and self.policy.gives_up and importance > 0.0 and rate > 0.0:
            goal = multiplier / (importance * self.policy.parts[1])
            wanted = max(doubt.wait(belief.shares(), goal, min(self.ceiling, _LONGEST)), soonest)
        return (self.ceiling, "ceiling") if wanted > self.ceiling else (wanted, "policy")

    def reached(self, rate: float, days: float, belief: PageBelief | None = None) -> bool:
        """Tell whether so many days after a read are no less than `soonest`, at a fifth of its cost."""
        if days < self.floor or not self.least_chance or days >= self.ceiling:
            return days >= self.floor
        quiet = math.exp(-rate * days) if belief is None else belief.quiet(days)
        return 1.0 - quiet >= self.least_chance

    def soonest(self, rate: float, belief: PageBelief | None = None) -> tuple[float, str]:
        """(days after a read before which a page of this belief is not read again, what says so: chance | floor)."""
        if not self.least_chance:
            return self.floor, "floor"
        if belief is not None:
            wait = belief.chance_days(self.least_chance)
        else:
            wait = -math.log1p(-self.least_chance) / rate if rate > 0.0 else math.inf
        wait = min(wait, self.ceiling)
        return (wait, "chance") if wait > self.floor else (self.floor, "floor")


def _surely(rate: float, belief: PageBelief | None) -> float:
    """The rate that a page is given up by."""
    if belief is None or belief.sums.quiet_days or not belief.sums.changes:
        return rate
    return min(rate, belief.sums.hopeless_rate)


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
    spends = cache(spends)  # the ends of the interval are looked at twice
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

    def excess(x: float) -> float:
        return math.log(min(max(spends(math.exp(x)) / goal, 1e-300), 1e300))

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


SCALE = 2.0**32
"""Weights are summed in integer steps of 2^-32: a page of lambda = 10^-5 and r = 10^-3 is still 4 * 10^5 steps."""
HEAVIEST = 2.0**30
"""Bound of one weight: r of 10^9 pages in one page that changes 10^9 times a day."""


def weight(importance: float, rate: float) -> float:
    """w = sqrt(r lambda); 0 for a page without importance or without change."""
    product = importance * rate
    return math.sqrt(product) if product > 0.0 else 0.0


class Spread:
    """S over all pages that are refreshed, kept while pages come, change and go.

    Invariant: the sum is an integer, so after any number of updates it equals, to the last bit, the sum over the
    weights as they are now (`Spread.of`). Each `old_weight` must be the very number given before as `new_weight`.
    """

    __slots__ = ("_steps",)

    def __init__(self) -> None:
        self._steps = 0

    @classmethod
    def from_weights(cls, weights: ArrayLike) -> Spread:
        """Build the sum from all weights at once: after a restart, an offline rank or a change of policy."""
        steps = (np.minimum(np.asarray(weights, dtype=np.float64), HEAVIEST) * SCALE).astype(np.int64)
        spread = cls()
        # high and low halves apart: 2^31 weights cannot overflow either sum
        spread._steps = (int((steps >> 31).sum()) << 31) + int((steps & 0x7FFF_FFFF).sum())
        return spread

    def dump(self) -> str:
        """The exact sum, in steps (it may not fit in 64 bits)."""
        return str(self._steps)

    @classmethod
    def load(cls, state: str) -> Spread:
        """Take over what `dump` gave."""
        spread = cls()
        spread._steps = int(state)
        return spread

    def replace(self, old_weight: float, new_weight: float) -> None:
        """A page's weight went from `old_weight` to `new_weight`; 0 = not among the refreshed pages."""
        self._steps += _steps(new_weight) - _steps(old_weight)

    @property
    def total(self) -> float:
        """S."""
        return self._steps / SCALE

    def interval(
        self, weight: float, reads_per_second: float, min_interval: float = 0.0, max_interval: float = math.inf
    ) -> float:
        """Seconds until the next read: t = S / (B w), within [min_interval, max_interval].

        A page without weight, or a crawler without bandwidth, waits for `max_interval`.
        """
        pace = weight * reads_per_second
        wanted = self._steps / SCALE / pace if pace > 0.0 else math.inf
        return min(max(wanted, min_interval), max_interval)


def _steps(weight: float) -> int:
    return int((weight if weight < HEAVIEST else HEAVIEST) * SCALE)


def intervals(weights: Reals, k: float, min_interval: float = 0.0, max_interval: float = math.inf) -> Reals:
    """t_i = K / w_i within the bounds, for many pages; k in seconds (`water_filled`, or S / B)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.where(weights > 0.0, k / weights, math.inf)
    found: Reals = np.clip(wanted, min_interval, max_interval)
    return found


def water_filled(
    weights: Reals, reads_per_second: float, min_interval: float = 0.0, max_interval: float = math.inf
) -> float:
    """K (seconds) with sum 1 / clip(K / w_i, min, max) = B exactly; S / B where no page meets a bound.

    What pages at the floor leave over goes to the others, what pages at the ceiling take is taken from them (with a
    floor alone K = S / B spends 57 to 99 % of B). 0 where even all floors cannot spend B, infinite where the
    ceilings alone spend it. Linear between the rates at which pages meet their bounds: sorted once, O(n log n).
    """
    w = weights[weights > 0.0]
    low, high = 1.0 / max_interval, 1.0 / min_interval if min_interval > 0.0 else math.inf
    at_ceiling = len(weights) * low
    if len(w) == 0 or reads_per_second <= at_ceiling:
        return math.inf
    # as u = 1 / K grows a page's rate stays at `low` until u = low / w, then is u w, then stays at `high`
    bounds = np.concatenate((low / w, high / w))
    order = np.argsort(bounds, kind="stable")
    bounds = bounds[order]
    slopes = np.cumsum(np.concatenate((w, -w))[order])
    reached = int(np.isfinite(bounds).sum())
    bounds, slopes = bounds[:reached], slopes[: reached - 1]
    spent = at_ceiling + np.concatenate(([0.0], np.cumsum(slopes * np.diff(bounds))))
    if reads_per_second < spent[-1]:
        return 1.0 / float(np.interp(reads_per_second, spent, bounds))
    # past the last bound: every page is at its floor, or, without floors, on its way up
    return 0.0 if high < math.inf else 1.0 / float(bounds[-1] + (reads_per_second - spent[-1]) / w.sum())


def freshness(rate: Reals, interval: Reals) -> Reals:
    """Share of the time that a copy read every `interval` days is fresh: (1 - exp(-x)) / x with x = lambda t."""
    x = np.asarray(rate * interval, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        found: Reals = np.where(x > 0.0, -np.expm1(-x) / np.where(x > 0.0, x, 1.0), 1.0)
    return found


def obsolescence(rate: Reals, interval: Reals) -> Reals:
    """Changes missed by a copy read every `interval` days, as time average: lambda t / 2 (P1 eq. 16 divided by t)."""
    return 0.5 * rate * interval


def omega(importance: Reals, rate: Reals, reads_per_day: float) -> float:
    """Least weighted obsolescence that `reads_per_day` reads can reach: (sum sqrt(r lambda))^2 / (2 G) (P1 eq. 22).

    Divided by sum r it is the mean over pages: what t_i = K / sqrt(r_i lambda_i) gives exactly.
    """
    return float(np.sqrt(importance * rate).sum()) ** 2 / (2.0 * reads_per_day)
