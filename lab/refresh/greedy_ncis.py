"""GREEDY-NCIS: the page with the greatest crawl value is read next, by its age and the noisy signals since its read.

Busa-Fekete, Zimmert, Gyorgy, Qiu, Sung, Shen, Choi, Subramaniam, Xiao: "A Scalable Crawling Algorithm Utilizing Noisy
Change-Indicating Signals", WWW 2025 (arXiv 2502.02430). Only its abstract and reviews of it were at hand: the formulas
are derived here from its model (Poisson changes, of which a share is signalled; Poisson false signals), in its symbols.

A page changes Delta times a day. A share `recall` of the changes is signalled; alpha = (1 - recall) Delta are not.
False signals come nu times a day, so all signals gamma = recall Delta + nu times, and q = nu / gamma of them are false.
tau days and n signals after a read the copy is fresh with probability

    e^(-alpha tau) q^n = e^(-alpha e),   e = tau + beta n,   beta = -ln q / alpha          (the effective age)

A page that is read when e reaches iota is read every psi days on average, and fresh for w days of them:

    psi = sum_i P_i(gamma (iota - i beta)) / gamma                                          i = 0 .. iota / beta
    w   = sum_i nu^i / (alpha + gamma)^(i+1) P_i((alpha + gamma) (iota - i beta))           P_i(x) = P(Poisson(x) > i)

The most of sum r w / psi at sum 1 / psi = B has w' psi - w psi' = -mu psi' / r for each page, and w' = e^(-alpha iota)
psi', so every page is read as its value V = r (w - e^(-alpha e) psi) reaches the same mu: no solver is needed, only the
greatest value. Without signals V is the freshness index of policy.py.

A crawler that does not know the quality of signals learns it from its reads: the hazard of a read is theta tau Delta +
kappa n, theta = 1 - recall, kappa = -ln q, fitted by expectation and maximisation over all reads (each change that was
seen is shared out between the two in proportion). recall is then the share of all changes that signals account for,
whatever the scale on which rates are believed.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from xyro.lab.refresh.change_signals import SignalQuality
from xyro.lab.refresh.page_arrays import Bools, PageArrays
from xyro.lab.refresh.selection import least
from xyro.lab.refresh.world import Ids, Reals

TERMS: Final = 12
"""signals in a row that the sums look at; the rest weighs less than q^12"""
LEAST_SHARE = 1e-3
"""of a page's changes that are not signalled, of its signals that are false: nobody is beyond proof"""
PSEUDO = 20.0
"""reads that the first guess at the signals' quality (half and half) is worth"""
SPAN = 10.0
"""days that the first guess at a page's rate of signals is worth"""


def crawl_value(
    effective_age: Reals, alpha: Reals, gamma: Reals, false_share: Reals | float, terms: int = TERMS
) -> Reals:
    """V / r in days of pages; arrays of one shape. gamma: signals a day, 0 = none come; alpha > 0."""
    iota = effective_age
    beta = -np.log(false_share) / alpha
    psi, fresh = np.zeros(iota.shape), np.zeros(iota.shape)
    weight = 1.0 / (alpha + gamma)
    for term in range(terms):
        left = iota - term * beta if term else iota
        if not (left > 0.0).any():
            break
        left = np.maximum(left, 0.0)
        psi += _over(gamma, left, term)
        fresh += weight * _beyond((alpha + gamma) * left, term)
        weight = weight * (false_share * gamma / (alpha + gamma))
    found: Reals = fresh - np.exp(-np.minimum(alpha * iota, 700.0)) * psi
    return np.maximum(found, 0.0)


def _beyond(x: Reals, term: int) -> Reals:
    """P(Poisson(x) > term), by its own sum where it is small."""
    x = np.minimum(x, 700.0)
    part = np.exp(-x)
    below = part.copy()
    for i in range(1, term + 1):
        part = part * x / i
        below += part
    above, tail = np.zeros(x.shape), part
    for i in range(term + 1, term + 12):
        tail = tail * x / i
        above += tail
    found: Reals = np.where(x < 0.5, above, 1.0 - below)
    return found


def _over(gamma: Reals, days: Reals, term: int) -> Reals:
    """P_term(gamma days) / gamma; without signals the days themselves, of the first term."""
    without = days if term == 0 else np.zeros(days.shape)
    found: Reals = np.where(gamma > 0.0, _beyond(gamma * days, term) / np.where(gamma > 0.0, gamma, 1.0), without)
    return found


class GreedyNcis:
    """A rule that reads the page with the greatest crawl value first.

    It believes the stated quality of signals where it knows the true rates; else it learns both.
    """

    def __init__(self, n: int) -> None:
        self._causes, self._exposure = np.array((0.5, 0.7)) * PSEUDO, np.full(2, PSEUDO)
        """changes owed to unsignalled time and to signals, and what they would be at hazard 1"""
        self._signals, self._days = np.zeros(n), np.zeros(n)
        """of each page, until its last read"""
        self._exposures: Reals = np.zeros((2, n))
        """of each page at the last choice: changes expected since its read, signals"""
        self._ages: Reals = np.zeros(n)

    @property
    def quality(self) -> SignalQuality:
        """The quality of signals as learned."""
        kappa = float(self._causes[1] / self._exposure[1])
        return SignalQuality(1.0 - math.exp(-kappa), float(self._causes[1] / self._causes.sum()))

    def choose(self, view: PageArrays, limit: int) -> Ids:
        age, rate, n = view.age, np.maximum(view.rate.astype(np.float64), 1e-9), len(view.rate)
        if view.signals is None:
            value = crawl_value(age, rate, np.zeros(n), 0.5)
            return least(-view.importance * value, limit, view.hosts)
        counts = view.signals.counts
        self._ages, self._exposures = age, np.stack((rate * age, counts))
        is_known = view.belief() is None
        quality = view.signals.quality if is_known else self.quality
        false_share = min(max(1.0 - quality.precision, LEAST_SHARE), 1.0 - LEAST_SHARE)
        alpha = rate * max(1.0 - quality.recall, LEAST_SHARE)
        gamma = rate * quality.recall / (1.0 - false_share)
        if not is_known:
            gamma = (self._signals[:n] + counts + SPAN * gamma) / (self._days[:n] + age + SPAN)
        value = crawl_value(age - counts * math.log(false_share) / alpha, alpha, gamma, false_share)
        return least(-view.importance * value, limit, view.hosts)

    def learn(self, pages: Ids, now: float, changed: Bools) -> None:
        """Take one step of expectation and maximisation on the reads of these pages, which were chosen last."""
        exposure = self._exposures[:, pages]
        parts = (self._causes / self._exposure)[:, None] * exposure
        hazard = np.maximum(parts.sum(axis=0), 1e-12)
        expected = np.where(changed, hazard / -np.expm1(-hazard), 0.0)
        self._causes += (parts / hazard * expected).sum(axis=1)
        self._exposure += exposure.sum(axis=1)
        self._signals[pages] += exposure[1]
        self._days[pages] += self._ages[pages]
