"""Delays: from a change of a page to the read that saw it, from a page's birth to its first read.

Counted in bins a quarter of an octave wide (a quantile is right to a few percent where delays are spread, to 19 % where
they are all alike), in whole numbers: those of partitions and of days add up exactly. `Recent` forgets: it tells of the
last ENOUGH to 2 ENOUGH counts.

A change whose time is known (a trusted Last-Modified) counts once for sure; of any other the model knows the
distribution, and its quantiles count a quarter each.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from xyro.refresh.rate_belief import RATES, PageBelief
from xyro.refresh.rate_sums import DAY

WHOLE = 4
"""counts that one change is worth"""
STEPS = 4
"""bins an octave"""
BINS = 30 * STEPS
"""from 1 second to 34 years; what lies outside counts at the ends"""
ENOUGH = 8192
"""changes of a generation"""
_PARTS = tuple((i + 0.5) / WHOLE for i in range(WHOLE))
_SPAN = np.linspace(0.0, 1.0, 9)
"""parts of the time between two reads at which the belief is asked; a line between them is within a bin"""
_FADING = np.multiply.outer(_SPAN, -RATES)


class Delays:
    """A histogram of delays in seconds."""

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts: Counter[int] = Counter(counts or {})

    def add(self, seconds: float, count: int = WHOLE) -> None:
        self.counts[_bin(seconds)] += count

    def merge(self, other: Delays) -> None:
        self.counts.update(other.counts)

    @property
    def total(self) -> int:
        """Counts: WHOLE for each delay."""
        return self.counts.total()

    def quantile(self, share: float) -> float | None:
        """The delay in seconds that this share of all does not exceed; within its bin by its place. None: no delay."""
        wanted = share * self.total
        for place in sorted(self.counts):
            count = self.counts[place]
            if wanted <= count:
                return float(2.0 ** ((place + wanted / count) / STEPS))
            wanted -= count
        return None


class Recent:
    """The last delays: two generations, of which the older goes when the younger is full."""

    def __init__(self, older: Delays | None = None, younger: Delays | None = None) -> None:
        self._older, self._younger = older or Delays(), younger or Delays()

    def certain(self, seconds: float) -> None:
        """A delay that is known."""
        self._count([seconds], WHOLE)

    def between(self, tau: float, belief: PageBelief) -> None:
        """A page was found changed `tau` seconds after its last read; belief: in its change rate, before that read."""
        self._count(missed_for(tau, belief), 1)

    def _count(self, delays: Iterable[float], count: int) -> None:
        if self._younger.total >= ENOUGH * WHOLE:
            self._older, self._younger = self._younger, Delays()
        for seconds in delays:
            self._younger.add(seconds, count)

    @property
    def all(self) -> Delays:
        both = Delays(self._older.counts)
        both.merge(self._younger)
        return both

    def dump(self) -> list[list[int]]:
        """[bins, counts] of the older, then of the younger."""
        both = (self._older.counts, self._younger.counts)
        return [part for counts in both for part in (list(counts), list(counts.values()))]

    @classmethod
    def load(cls, state: Sequence[Sequence[int]]) -> Recent:
        """Take over what `dump` gave."""
        older, younger = (Delays(dict(zip(state[i], state[i + 1], strict=True))) for i in (0, 2))
        return cls(older, younger)


def missed_for(tau: float, belief: PageBelief) -> list[float]:
    """Return how long a page that changed within tau had been out of date: quantiles in seconds, one for each count.

    By the belief the first change after a read comes within t with probability 1 - quiet(t), and here it came within
    tau; the copy is stale for tau - t. For a page that changes seldom that is anything up to tau (tau / 2 on average).
    """
    reached = -np.expm1(_FADING * (tau / DAY)) @ belief.shares()
    if not reached[-1] > 1e-12:
        return [tau * (1.0 - part) for part in _PARTS]
    found: list[float] = (tau * (1.0 - np.interp(reached[-1] * np.array(_PARTS), reached, _SPAN))).tolist()
    return found


def summary(delays: Delays) -> dict[str, Any]:
    """For people and programs: how many, the median, and what nine of ten do not exceed; seconds."""
    median, ninety = delays.quantile(0.5), delays.quantile(0.9)
    return {
        "count": delays.total // WHOLE,
        "median_s": None if median is None else round(median, 1),
        "p90_s": None if ninety is None else round(ninety, 1),
    }


def _bin(seconds: float) -> int:
    return min(max(int(math.log2(seconds) * STEPS), 0), BINS - 1) if seconds > 1.0 else 0
