"""Policies that only the papers' comparison needs, as subclasses of the crawler's own (refresh/policy.py).

    kolobov       g = x^2 / (1+x)          harmonic penalty (LambdaCrawl), evenly spaced
    azar          g = x^2 / (1+x)^2        rates of Azar et al. 2018, evenly spaced
    proportional  phi = x                  reads in proportion to change rates: t = mu / lambda
    whittle       phi = r lambda V(c a)    Whittle index of ephemeral content

The Whittle index is that of Avrachenkov and Borkar, "Whittle index policy for crawling ephemeral content" (IEEE
Trans. Control of Network Systems 5, 2018; arXiv 1503.08558), derived here anew in continuous time, because only the
abstract was at hand. Content appears at rate lambda and is worth r, and interest in it fades as e^(-c t): a days after
a read x(a) = r lambda (1 - e^(-c a)) / c waits, which a read collects. The index is the price of a read at which
intervals a and a + da are worth the same: (x - W) / a = x', W = x - a x' = r lambda / c (1 - (1 + c a) e^(-c a)), V of
policy.py. So it is the freshness index with the interest's decay in place of the change rate; FADING is its c.

`policy_of` makes any policy by its name, so that the simulator and the benchmarks treat all alike.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from xyro.refresh import policy as product
from xyro.refresh.inverse import lost_freshness, one_inverse
from xyro.refresh.policy import Floats, Policy, Reals

COMPARED = ("proportional", "kolobov", "azar", "whittle")
FADING = 1.0 / 3.0
"""a day: users lose interest "after several days or hours" (their abstract)"""
NAMES = (*product.NAMES, *COMPARED)


class Compared(Policy, frozen=True):
    """A policy of COMPARED. ValueError: no such policy."""

    names: ClassVar[tuple[str, ...]] = COMPARED
    name: str = "proportional"

    def index(self, importance: Floats, rate: Floats, age: Floats) -> Floats:
        """Compute phi of pages; arrays of one shape (or numbers); float32 stays float32."""
        if self.name == "proportional":
            return np.asarray(rate * age)
        if self.name == "whittle":
            return np.asarray(importance * rate * lost_freshness(np.asarray(FADING * age)))
        lost = importance * rate * age * age
        shrink = 1.0 + rate * age
        return np.asarray(lost / shrink if self.name == "kolobov" else lost / (shrink * shrink))

    def interval(self, importance: Floats, rate: Floats, multiplier: float) -> Reals:
        """Compute t in days at which phi reaches the multiplier; infinite = never."""
        if self.name == "whittle":
            found: Reals = np.vectorize(self.one_interval, otypes=[np.float64])(importance, rate, multiplier)
            return found
        if self.name != "proportional":
            return Policy.interval(self, importance, rate, multiplier)
        _, lam = np.broadcast_arrays(np.asarray(importance, np.float64), np.asarray(rate, np.float64))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.where(lam > 0.0, multiplier / lam, math.inf)

    def _inverse(self, wanted: Reals) -> Reals:
        if self.name == "kolobov":
            return 0.5 * (wanted + np.sqrt(wanted * (wanted + 4.0)))
        root = np.sqrt(wanted)
        return np.where(root < 1.0, root / (1.0 - root), math.inf)

    def one_interval(self, importance: float, rate: float, multiplier: float) -> float:
        """Compute `interval` of one page."""
        if rate <= 0.0 or (importance <= 0.0 and self.name != "proportional"):
            return math.inf
        if self.name == "proportional":
            return multiplier / rate
        if self.name == "whittle":
            return one_inverse(multiplier / (importance * rate), 0.0, 1.0) / FADING
        wanted = multiplier * rate / importance
        if self.name == "kolobov":
            return 0.5 * (wanted + math.sqrt(wanted * (wanted + 4.0))) / rate
        root = math.sqrt(wanted)
        return root / (1.0 - root) / rate if root < 1.0 else math.inf


def policy_of(name: str, alpha: float = 1.0, beta: float = 0.0) -> Policy:
    """Make the policy of this name, the crawler's or one of COMPARED. ValueError: no such policy."""
    return Compared(name) if name in COMPARED else Policy(name, alpha, beta)
