"""Signals that a page may have changed, right or wrong: what a sitemap, a ping or a content network says of it.

A change is announced at its moment with probability `recall`. False signals come as a Poisson process of each page, so
often that `precision` of its signals are of a change. A crawler sees how many came since its last read of a page.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Ids = NDArray[np.int64]


class SignalQuality(NamedTuple):
    """The quality of signals."""

    precision: float
    """share of the signals that are of a change"""
    recall: float
    """share of the changes that are signalled"""


class ChangeSignals(NamedTuple):
    """The signals of a world, in the order of time."""

    page: Ids
    times: Reals
    """days"""
    quality: SignalQuality


class SignalsHeard(NamedTuple):
    """Signals as a rule sees them."""

    counts: Ids
    """of each page that is there: signals since its last read"""
    quality: SignalQuality
    """as stated; for a crawler that knows the true rates, others have to learn it"""


class SignalInbox:
    """Counts of the signals of each page since its last read."""

    def __init__(self, signals: ChangeSignals, pages: int) -> None:
        self._signals, self._next = signals, 0
        self._counts: Ids = np.zeros(pages, np.int64)

    def advance(self, now: float) -> None:
        """Take the signals up to and including `now` (days)."""
        end = int(np.searchsorted(self._signals.times, now, side="right"))
        np.add.at(self._counts, self._signals.page[self._next : end], 1)
        self._next = end

    def heard(self, live: int) -> SignalsHeard:
        """Return the signals of the first `live` pages."""
        return SignalsHeard(self._counts[:live], self._signals.quality)

    def read(self, pages: Ids) -> None:
        """Settle the signals of these pages, which were read."""
        self._counts[pages] = 0
