"""Expected freshness of all pages by the model: importance-weighted freshness and obsolescence in O(1) a read.

A page last read `age` days ago, whose change rate is believed to be Gamma(a, b), is fresh with probability

    E[exp(-lambda age)] = (b / (b + age))^a                      (about exp(-a/b age) once many reads are behind it)

Summed over millions of pages of different ages this has to be kept, not computed. exp(-lambda age) of one rate decays
by the same factor for pages of any age, so the sketch keeps one number for each of NODES rates: the sum over pages of
importance x belief in that rate x exp(-rate age). A read takes a page out with what it has decayed to and puts it in
anew. Obsolescence, the sum of r lambda age, is linear in the time and needs two sums.

Invariant: the sums are those over the pages as they are now (`Expected.of`); those of importance and of weights are
integers and exact, the decaying ones forget their rounding as they decay. A page is taken out with the very numbers
that it was put in with: weight w = sqrt(r lambda) and belief of its row, lambda = a / b, r = w^2 / lambda.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Singles = NDArray[np.float32]

DAY = 86_400.0
STEPS = 4
"""nodes an octave: the sum over them is exact to 1e-3 for any belief (trapezoids on ln lambda)"""
SLOWEST, OCTAVES = -12.0, 22
"""rates from 2^-12 (once in 11 years) to 2^10 a day (every 84 s); what lies outside counts at the ends"""
NODES = OCTAVES * STEPS + 2
"""and one for all rates that are slower: to the eye of a few years, 0"""
SHARP = 64.0
"""a belief of this shape or more is narrower than the nodes are apart: its mean is split between its two neighbours"""
SCALE = 2.0**32
"""importance and squared weights are summed in integer steps of 2^-32"""
HEAVIEST = 2.0**60

LEAST = -80.0
"""e to this power counts as nothing"""

_WIDTH = math.log(2.0) / STEPS
_LN = (math.log(2.0) * SLOWEST + _WIDTH * np.arange(-1, NODES - 1)).astype(np.float32)
_RATES = np.where(np.arange(NODES) > 0, np.exp(_LN), 0.0).astype(np.float32)
_EXACT = _RATES.astype(np.float64)
"""for what is done at every commit, 20 times a second: in single precision e^-x is 1 up to x = 3e-8, and a page that
changes once in ten days would never fade"""


class DatedPage(NamedTuple):
    """A refreshed page, as its row tells. weight: sqrt(r lambda); a, b: belief in its rate, days; read: seconds."""

    weight: float
    a: float
    b: float
    read: float

    @property
    def counts(self) -> bool:
        """Tell whether it is among the refreshed pages."""
        return self.weight > 0.0 and self.a > 0.0 and self.b > 0.0

    @property
    def importance(self) -> float:
        """r, as it was when the page was dated."""
        return self.weight * self.weight * self.b / self.a

    def fresh(self, now: float) -> float:
        """Probability that the page is as it was read."""
        age = max(0.0, now - self.read) / DAY
        return math.exp(-self.a * math.log1p(age / self.b))


class Expected:
    """`replace` as pages are read; `freshness` and `obsolescence` at any time. 2 us a page, 720 bytes of state."""

    def __init__(self) -> None:
        self._fresh: Reals = np.zeros(NODES)
        """sum of importance x belief x exp(-rate age), by node"""
        self._time = 0.0
        """the moment of these sums, seconds"""
        self._importance = 0
        self._weights = 0
        """sum of w^2 = r lambda"""
        self._read = 0
        """sum of r lambda x the second of the last read"""

    @classmethod
    def from_pages(cls, pages: Iterable[DatedPage], now: float, at_once: int = 4096) -> Expected:
        """Build the sums from all pages at once."""
        found, some = cls(), list[DatedPage]()
        for page in pages:
            some.append(page)
            if len(some) == at_once:
                found.replace((), some, now)
                some.clear()
        found.replace((), some, now)
        return found

    def replace(self, old: Iterable[DatedPage], new: Iterable[DatedPage], now: float) -> None:
        """Pages were read, dated anew, or left: what they were, and what they are."""
        gone, come = [page for page in old if page.counts], [page for page in new if page.counts]
        self._advance(max([now, *(page.read for page in come)]))
        for pages, sign in ((gone, -1), (come, 1)):
            if pages:
                self._add(np.array(pages, np.float64), sign)

    def _add(self, pages: Reals, sign: int) -> None:
        weight, a, b, read = pages.T
        importance = weight * weight * b / a
        faded = ((read - self._time) / DAY).astype(np.float32)[:, None] * _RATES
        _exp(faded)
        faded *= belief(a, b)
        self._fresh += sign * (importance @ faded)
        for r, w2, second in zip(importance.tolist(), (weight * weight).tolist(), read.tolist(), strict=True):
            steps = _steps(w2)
            self._importance += sign * _steps(r)
            self._weights += sign * steps
            self._read += sign * steps * int(second)

    def _advance(self, now: float) -> None:
        """Let time pass; a clock that was set back waits."""
        if now > self._time:
            if self._importance:
                self._fresh *= np.exp((self._time - now) / DAY * _EXACT)
            self._time = now

    def merge(self, other: Expected) -> None:
        """Take the pages of another partition in."""
        self._advance(other._time)
        self._fresh += other._fresh * np.exp((other._time - self._time) / DAY * _RATES)
        self._importance += other._importance
        self._weights += other._weights
        self._read += other._read

    # -- what it tells -------------------------------------------------------------------------------------------

    @property
    def importance(self) -> float:
        """Sum of r over the refreshed pages."""
        return self._importance / SCALE

    def freshness(self, now: float) -> float | None:
        """Share of importance whose copy is expected to be as the page is; None without pages."""
        if not self._importance:
            return None
        passed = max(0.0, now - self._time) / DAY
        fresh = float((self._fresh * np.exp(-passed * _RATES)).sum())
        return min(max(fresh / self.importance, 0.0), 1.0)

    def obsolescence(self, now: float) -> float | None:
        """Changes expected to be missed per page, weighted by importance: sum r lambda age / sum r."""
        if not self._importance:
            return None
        missed = self._weights * math.floor(max(now, self._time)) - self._read
        return max(missed / DAY / self._importance, 0.0)

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Sums that may not fit in 64 bits are text."""
        whole = [str(self._importance), str(self._weights), str(self._read)]
        return {"at": self._time, "whole": whole, "fresh": self._fresh.astype("<f8").tobytes()}

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> Expected:
        """Take over what `dump` gave."""
        found = cls()
        found._time = state["at"]
        found._importance, found._weights, found._read = map(int, state["whole"])
        found._fresh = np.frombuffer(state["fresh"], "<f8").astype(np.float64)
        return found


def belief(a: Reals, b: Reals) -> Singles:
    """Gamma(a, b) as shares of the nodes' rates: of shape (pages, NODES), rows sum to 1. Single precision."""
    shape, scale = a.astype(np.float32)[:, None], b.astype(np.float32)[:, None]
    shares = shape * _LN
    shares -= scale * _RATES
    shares -= shares.max(axis=1, keepdims=True)
    _exp(shares)
    below = shares[:, 1] / (shape[:, 0] * np.float32(_WIDTH))  # all rates below: the integral of e^(a ln rate),
    shares[:, 0] = below / (shape[:, 0] + 1.0)  # whose mean is a / (a + 1) of the slowest rate
    shares[:, 1] *= 0.5
    shares[:, 1] += below - shares[:, 0]
    shares[:, -1] *= 0.5
    shares /= shares.sum(axis=1, keepdims=True)
    sharp = np.flatnonzero(a >= SHARP)
    if len(sharp):
        shares[sharp] = _split(np.log(a[sharp] / b[sharp]))
    return shares


def _exp(powers: Singles) -> None:
    """In place. What is next to nothing is that, not a number that takes the processor 100 times as long."""
    np.maximum(powers, np.float32(LEAST), out=powers)
    np.exp(powers, out=powers)


def _split(ln_rate: Reals) -> Reals:
    """Rates between two nodes belong to both, by their distance."""
    place = 1.0 + np.clip((ln_rate - float(_LN[1])) / _WIDTH, 0.0, NODES - 2.0)
    low = np.minimum(place.astype(np.int64), NODES - 2)
    shares, row = np.zeros((len(place), NODES)), np.arange(len(place))
    shares[row, low], shares[row, low + 1] = 1.0 - (place - low), place - low
    return shares


def _steps(value: float) -> int:
    return int(min(value, HEAVIEST) * SCALE)
