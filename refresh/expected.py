"""Expected freshness of all pages by the model, weighted by importance.

A page last read `age` days ago is fresh with probability sum p e^(-l age), p the shares of the rates l that are
believed of it. `Expected` has the sums of that over pages, by the octave of their rate and by node, so that freshness
can be told at any later time, of several partitions together, and (`believed`: the same pages undecayed) of any plan:
for the long run and (`coming`) for the days from now on. It is made of a sample of the pages (dated_pages.py) when
somebody asks, by what is believed of them as part of all pages (fitted_rates.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyro.refresh.dated_pages import DatedPage
from xyro.refresh.policy import freshness
from xyro.refresh.rate_belief import LEAST, NODES, OCTAVES, RATES, octave
from xyro.refresh.rate_sums import DAY, SHORTEST

Reals = NDArray[np.float64]

NEGLIGIBLE = 1e-7
"""part of the largest sum of an octave that a dump may lose: as much as float32 does"""

BARELY = 5e-4
"""the same of what is believed, of which float16 is kept"""
TINY = 1e-300


class RateMixture:
    """Beliefs about the rates of all pages together: by octave and node, the sum of importance x share of the rate.

    A page's rate stands for a belief that may be wide: one of which nothing was shown is believed to change .28 times
    a day, and to be quiet for ten days with probability .41, where one that is known to change so often is with .06. A
    plan that went by rates alone would be far too low. What is sent to other nodes has three digits of each sum: a plan
    needs no more.
    """

    def __init__(self, sums: Reals | None = None) -> None:
        """sums: float64[OCTAVES, NODES]; None: of no page."""
        self.sums = np.zeros((OCTAVES, NODES)) if sums is None else sums

    def add(self, octaves: Sequence[int], shares: Reals) -> None:
        """Add pages. shares: a row each, times the page's importance."""
        np.add.at(self.sums, octaves, shares)

    def merge(self, other: RateMixture) -> None:
        """Take the pages of another partition in."""
        self.sums += other.sums

    def fresh(self, rates: Reals, days: Reals) -> Reals:
        """Share of the time that copies of pages of these rates are fresh which are read every so many days (finite).

        The mean of (1 - e^-x) / x over what is believed in the octave of the rate, x = l t; where there is no page that
        says so, the rate is taken for known.
        """
        octaves = np.array([octave(each) for each in rates.tolist()], np.int64)
        sums = self.sums[octaves]
        whole = sums.sum(axis=1)
        lasting = (sums * lasting_shares(days)).sum(axis=1)
        return np.where(whole > 0.0, lasting / np.maximum(whole, TINY), freshness(rates, days))

    def dump(self, octaves: Sequence[int]) -> list[tuple[int, float, bytes]]:
        """(octave, largest sum, all sums in parts of it) of these octaves, which have pages: some 90 bytes each."""
        rows = self.sums[list(octaves)]
        largest = rows.max(axis=1, initial=0.0)
        parts = rows / np.maximum(largest, TINY)[:, None]
        ends = NODES - (parts[:, ::-1] > BARELY).argmax(axis=1)
        packed = parts.astype("<f2")
        return [
            (number, peak, row[:end].tobytes())
            for number, peak, row, end in zip(octaves, largest.tolist(), packed, ends.tolist(), strict=True)
        ]

    @classmethod
    def load(cls, state: Sequence[tuple[int, float, bytes]]) -> RateMixture:
        """Take over what `dump` gave."""
        found = cls()
        for number, largest, packed in state:
            parts = np.frombuffer(packed, "<f2")
            found.sums[number, : len(parts)] = largest * parts.astype(np.float64)
        return found


def fading(shares: Reals, days: float) -> tuple[float, float]:
    """Of one page by its shares, so many days after a read: the probability that it is as it was, and the days of these
    for which its copy is expected to be stale (the integral of 1 - that)."""
    gone = np.expm1(np.maximum(RATES * -days, LEAST))
    return 1.0 + float(shares @ gone), max(days + float(shares @ (gone / RATES)), 0.0)


def lasting_shares(days: Reals) -> Reals:
    """Share of the time that a copy is fresh which is read every so many days, by node: (1 - e^-x) / x, x = l t."""
    x = np.maximum(days, SHORTEST)[:, None] * RATES
    found: Reals = -np.expm1(np.maximum(-x, LEAST)) / x
    return found


class Expected:
    """Sums over some pages at one moment, and what they tell of it and of later ones."""

    def __init__(self) -> None:
        self._fresh: Reals = np.zeros((OCTAVES, NODES))
        """sum of importance x belief x exp(-rate age), by octave and node"""
        self._time = 0.0
        """the moment of these sums, seconds"""
        self._importance: Reals = np.zeros(OCTAVES)
        self.believed = RateMixture()

    @classmethod
    def from_pages(cls, pages: Sequence[DatedPage], now: float, shares: Reals, importance: Reals) -> Expected:
        """Build the sums from pages that count. shares: what is believed of each, a row each; importance: what each
        stands for."""
        found = cls()
        found._time = max([now, *(page.read for page in pages)])
        if not pages:
            return found
        octaves = [octave(page.pace) for page in pages]
        weighed = shares * importance[:, None]
        found.believed.add(octaves, weighed)
        powers = (np.array([page.read for page in pages]) - found._time)[:, None] * (RATES / DAY)
        np.maximum(powers, LEAST, out=powers)
        weighed *= np.exp(powers, out=powers)
        np.add.at(found._fresh, octaves, weighed)
        np.add.at(found._importance, octaves, importance)
        return found

    def scale(self, importance: float) -> None:
        """Let the pages stand for so much importance altogether."""
        if self.importance > 0.0:
            factor = importance / self.importance
            self._fresh *= factor
            self._importance *= factor
            self.believed.sums *= factor

    def _advance(self, now: float) -> None:
        """Let time pass; a clock that was set back waits."""
        if now > self._time:
            if self._importance.any():
                self._fresh *= np.exp((self._time - now) / DAY * RATES)
            self._time = now

    def merge(self, other: Expected) -> None:
        """Take the pages of another partition in."""
        self._advance(other._time)
        self._fresh += other._fresh * np.exp((other._time - self._time) / DAY * RATES)
        self._importance = self._importance + other._importance
        self.believed.merge(other.believed)

    # -- what it tells -------------------------------------------------------------------------------------------

    @property
    def importance(self) -> float:
        """Sum of r over the refreshed pages."""
        return float(self._importance.sum())

    def freshness(self, now: float) -> float | None:
        """Share of importance whose copy is expected to be as the page is; None without pages."""
        if not self._importance.any():
            return None
        return 1.0 - self.stale(now) / self.importance

    def stale(self, now: float) -> float:
        """Sum of r over the pages whose copy is expected to be out of date."""
        passed = max(0.0, now - self._time) / DAY
        fresh = float((self._fresh @ np.exp(-passed * RATES)).sum())
        return min(max(self.importance - fresh, 0.0), self.importance)

    def coming(self, long_run: Reals, now: float, days: float) -> float:
        """As `stale`, in the mean of so many days from now. long_run: the shares that reads keep fresh
        (Population.long_run).

        There reads give back what is lost, l f a day of a node of rate l of which the share f is kept. Where more or
        less is stale than that, they give more or less in proportion: what is fresh goes towards f as e^(-k t), with
        k = l / (1 - f). That is 2 / t where reads are frequent, t days apart, and l where there is none.
        """
        paces = RATES / np.maximum(1.0 - long_run, 1e-9) * days
        now_fresh = self._fresh * np.exp(-max(0.0, now - self._time) / DAY * RATES)
        goal = self.believed.sums * long_run
        fresh = goal + (now_fresh - goal) * (-np.expm1(-paces) / paces)
        return min(max(self.importance - float(fresh.sum()), 0.0), self.importance)

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Of the octaves that have pages, by their numbers: some 220 bytes each; sums are float32, up to the last that
        counts: fast rates have faded, or nobody believes them."""
        filled = np.flatnonzero(self._importance).tolist()
        sums = self._fresh[filled].astype("<f4")
        large = np.abs(sums)
        counts = large > NEGLIGIBLE * large.max(axis=1, keepdims=True)
        ends = np.where(counts.any(axis=1), NODES - counts[:, ::-1].argmax(axis=1), 0).tolist()
        rows = zip(filled, sums, ends, strict=True)
        octaves = [(n, float(self._importance[n]), row[:end].tobytes()) for n, row, end in rows]
        return {"at": self._time, "sums": octaves, "believed": self.believed.dump(filled)}

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> Expected:
        """Take over what `dump` gave."""
        found = cls()
        found._time = state["at"]
        for number, importance, fresh in state["sums"]:
            found._importance[number] = importance
            sums = np.frombuffer(fresh, "<f4")
            found._fresh[number, : len(sums)] = sums
        found.believed = RateMixture.load(state["believed"])
        return found
