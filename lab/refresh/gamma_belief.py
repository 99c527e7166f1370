"""The Gamma belief in change rates that the crawler had before: for comparison, not the crawler's.

A page is a Poisson process of unknown rate lambda; the belief is Gamma(a, b): mean a / b changes per day.

    no change over tau                       b += tau                                   exact
    a change whose age is trusted            a += 1, b += age                           exact
    a change, only the bit                   the Gamma with the posterior's two moments (P1 eq. 9, as the product)
    before each of these                     both are drawn towards the prior by 1 / M  (forgetting)

The prior it is drawn towards is worth 1.17 days of reads, so pages read every few minutes are never believed to change
more than some 54 times a day: what became of it (refresh/rate_belief.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.refresh.rate_sums import MEMORY, SHORTEST

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

NEGLIGIBLE = 1e-12
"""Relative variance under which moment matching has no digits left (a ~ 1e12: unreachable with forgetting)."""


@dataclass(frozen=True, slots=True)
class Prior:
    """Belief about a page never read: Gamma(a, b), b in days. Default: median 0.1 a day, sigma of ln lambda 1.8."""

    a: float = 0.309
    b: float = 1.168

    def __post_init__(self) -> None:
        if not (0.0 < self.a < math.inf and 0.0 < self.b < math.inf):
            raise ValueError(f"Prior: a and b are positive and finite, got {self.a}, {self.b}")

    @classmethod
    def fit(cls, mean_ln: float, sigma: float) -> Prior:
        """From a population of ln lambda: a = 1 / sigma^2, b = a / (median exp(0.3 sigma^2)), fitted."""
        a = 1.0 / (sigma * sigma)
        return cls(a, a * math.exp(-mean_ln - 0.3 * sigma * sigma))


DEFAULT_PRIOR = Prior()


class Evidence(NamedTuple):
    """The evidence of one read: days since the previous read, whether the page changed, the change's trusted age
    (days)."""

    tau_days: float
    changed: bool
    age_days: float | None = None


def rate(a: float, b: float) -> float:
    """Expected changes per day."""
    return a / b


def update(
    a: float, b: float, tau_days: float, changed: bool, age_days: float | None, prior: Prior, memory: float = MEMORY
) -> tuple[float, float]:
    """Belief after one more read. An age outside [0, tau] contradicts the visit and leaves the change bit only.

    memory: reads that count, > 1; infinite = never forget.
    """
    keep = 1.0 - 1.0 / memory
    a = prior.a + keep * (a - prior.a)
    b = prior.b + keep * (b - prior.b)
    tau = tau_days if tau_days > SHORTEST else SHORTEST
    if not changed:
        return a, b + tau
    if age_days is not None and 0.0 <= age_days <= tau:
        return a + 1.0, b + age_days
    return _after_change(a, b, tau)


def _after_change(a: float, b: float, tau: float) -> tuple[float, float]:
    """Gamma with the mean and variance of the posterior lambda^(a-1) exp(-b lambda) (1 - exp(-lambda tau)).

    `spread` = E[lambda^2] / E[lambda]^2 - 1 has no unit, so no power of a tiny or huge b is formed.
    """
    ln_r = -math.log1p(tau / b)
    d0 = -math.expm1(a * ln_r)
    d1 = -math.expm1((a + 1.0) * ln_r)
    d2 = -math.expm1((a + 2.0) * ln_r)
    spread = (a + 1.0) / a * (d2 * d0) / (d1 * d1) - 1.0
    if spread <= NEGLIGIBLE:
        return a + 1.0, b + 0.5 * tau
    matched = 1.0 / spread
    return matched, matched * b * d0 / (a * d1)


def first_read(prior: Prior, age_days: float | None) -> tuple[float, float]:
    """Belief after the first read; age_days: the age that its Last-Modified proves, or None.

    The age is the backward recurrence time of a Poisson process, exponential like a full interval: one change seen.
    Without it a first read shows nothing (P1 6.1.2 says both "always a change interval" and "we do not assume that").
    """
    return (prior.a, prior.b) if age_days is None else (prior.a + 1.0, prior.b + age_days)


def learn(evidence: Iterable[Evidence], prior: Prior = DEFAULT_PRIOR, memory: float = MEMORY) -> tuple[float, float]:
    """Belief after a whole history of visits, oldest first (a page whose base line was reset, or a replay)."""
    a, b = prior.a, prior.b
    for tau, changed, age in evidence:
        a, b = update(a, b, tau, changed, age, prior, memory)
    return a, b


def update_many(
    a: Floats, b: Floats, tau_days: Floats, changed: Bools, age_days: Floats, prior: Prior, memory: float = MEMORY
) -> tuple[Floats, Floats]:
    """`update` for many pages at once, arrays of one shape; age_days: NaN where no age is trusted."""
    keep = 1.0 - 1.0 / memory
    a = prior.a + keep * (a - prior.a)
    b = prior.b + keep * (b - prior.b)
    tau = np.maximum(tau_days, SHORTEST)
    dated = changed & (age_days >= 0.0) & (age_days <= tau)
    matched_a, matched_b = _after_change_many(a, b, tau)
    new_a = np.where(dated, a + 1.0, np.where(changed, matched_a, a))
    new_b = np.where(dated, b + age_days, np.where(changed, matched_b, b + tau))
    return new_a, new_b


def _after_change_many(a: Floats, b: Floats, tau: Floats) -> tuple[Floats, Floats]:
    ln_r = -np.log1p(tau / b)
    d0, d1, d2 = (-np.expm1((a + k) * ln_r) for k in (0.0, 1.0, 2.0))
    spread = (a + 1.0) / a * (d2 * d0) / (d1 * d1) - 1.0
    blurred = spread <= NEGLIGIBLE
    matched = 1.0 / np.where(blurred, 1.0, spread)
    return np.where(blurred, a + 1.0, matched), np.where(blurred, b + 0.5 * tau, matched * b * d0 / (a * d1))
