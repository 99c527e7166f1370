"""Intervals: S = sum sqrt(r lambda) kept exactly, K = S / B, t_i = K / sqrt(r_i lambda_i) (P1 eq. 18, 22 and 6.6).

Minimising the time average of the importance-weighted obsolescence, sum r_i lambda_i t_i / 2, under sum 1/t_i = B gives
t_i ~ 1 / sqrt(r_i lambda_i). (P1 eq. 16 and 17 leave out the division by t_i; its result is right for the average.)

The weight of a page is w = sqrt(r lambda): r its importance, lambda its changes per day. Only ratios of weights matter,
t_i = S / (B w_i), so neither the scale of r nor the unit of lambda does: B in reads per second gives seconds. That is
why S may use the r stored at each page's last update, with the normalisation of r kept outside.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

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
    def of(cls, weights: ArrayLike) -> Spread:
        """The same sum from all weights at once: after a restart, an offline rank or a change of policy."""
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


def intervals(weights: Floats, k: float, min_interval: float = 0.0, max_interval: float = math.inf) -> Floats:
    """t_i = K / w_i within the bounds, for many pages; k in seconds (`water_filled`, or S / B)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = np.where(weights > 0.0, k / weights, math.inf)
    found: Floats = np.clip(wanted, min_interval, max_interval)
    return found


def water_filled(
    weights: Floats, reads_per_second: float, min_interval: float = 0.0, max_interval: float = math.inf
) -> float:
    """K (seconds) with sum 1 / clip(K / w_i, min, max) = B exactly; S / B where no page meets a bound.

    What pages at the floor leave over goes to the others, what pages at the ceiling take is taken from them (with a
    floor alone K = S / B under-spends: algorithms.md 0). 0 where even all floors cannot spend B, infinite where the
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


def freshness(rate: Floats, interval: Floats) -> Floats:
    """Share of the time that a copy read every `interval` days is fresh: (1 - exp(-x)) / x with x = lambda t."""
    x = np.asarray(rate * interval, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        found: Floats = np.where(x > 0.0, -np.expm1(-x) / np.where(x > 0.0, x, 1.0), 1.0)
    return found


def obsolescence(rate: Floats, interval: Floats) -> Floats:
    """Changes missed by a copy read every `interval` days, as time average: lambda t / 2 (P1 eq. 16 divided by t)."""
    return 0.5 * rate * interval


def omega(importance: Floats, rate: Floats, reads_per_day: float) -> float:
    """Least weighted obsolescence that `reads_per_day` reads can reach: (sum sqrt(r lambda))^2 / (2 G) (P1 eq. 22).

    Divided by sum r it is the mean over pages: what t_i = K / sqrt(r_i lambda_i) gives exactly.
    """
    return float(np.sqrt(importance * rate).sum()) ** 2 / (2.0 * reads_per_day)
