"""Expected freshness of all pages by the model: importance-weighted freshness and obsolescence in O(1) a read.

A page last read `age` days ago is fresh with probability sum p e^(-l age), p the shares of the rates l that are
believed of it (rate_belief.py).

Summed over millions of pages of different ages this has to be kept, not computed. exp(-lambda age) of one rate decays
by the same factor for pages of any age, so the sketch keeps one number for each of the NODES rates: the sum over pages
of importance x share of that rate x exp(-rate age). Pages are summed by the octave of their rate, for the belief may be
off by another factor in each (calibration.py). A read takes a page out with what it has decayed to and puts it in anew.
Obsolescence, the sum of r lambda age, is linear in the time and needs two sums. `believed` holds the same pages as they
are at their reads, undecayed: what a plan rests on, for the long run and (`coming`) for the days from now on.

Invariant: the sums are those over the pages as they are now (`Expected.of`); those of importance and of weights are
integers and exact, the decaying ones forget their rounding as they decay. A page is taken out with the very numbers
that it was put in with: weight w = sqrt(r lambda), lambda and belief of its row, r = w^2 / lambda.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.refresh.policy import freshness
from xyro.refresh.rate_belief import LEAST, NODES, OCTAVES, RATES, PageBelief, octave, shares_of_pages
from xyro.refresh.rate_sums import DAY, SHORTEST

Reals = NDArray[np.float64]

SCALE = 2.0**32
"""importance and squared weights are summed in integer steps of 2^-32"""
HEAVIEST = 2.0**60
NEGLIGIBLE = 1e-7
"""part of the largest sum of an octave that a dump may lose: as much as float32 does"""

BARELY = 5e-4
"""the same of what is believed, of which float16 is kept"""
TINY = 1e-300


class DatedPage(NamedTuple):
    """A refreshed page, as its row tells."""

    weight: float
    """sqrt(r lambda)"""
    pace: float
    """lambda, changes a day"""
    belief: PageBelief
    """by which it fades"""
    read: float
    """seconds"""

    @property
    def counts(self) -> bool:
        """Tell whether it is among the refreshed pages."""
        return self.weight > 0.0 and self.pace > 0.0

    @property
    def importance(self) -> float:
        """r, as it was when the page was dated."""
        return self.weight * self.weight / self.pace

    def fresh(self, now: float) -> float:
        """Probability that the page is as it was read."""
        return self.belief.quiet(max(0.0, now - self.read) / DAY)


class RateMixture:
    """Beliefs about the rates of all pages together: by octave and node, the sum of importance x share of the rate.

    A page's rate stands for a belief that may be wide: one of which nothing was shown is believed to change .28 times
    a day, and to be quiet for ten days with probability .41, where one that is known to change so often is with .06. A
    plan that went by rates alone would be far too low. `add` as pages come and go: what a page adds is taken out again
    with the numbers that it was put in with. A restart keeps three digits of each sum: a plan needs no more.
    """

    def __init__(self, sums: Reals | None = None) -> None:
        """sums: float64[OCTAVES, NODES]; None: of no page."""
        self.sums = np.zeros((OCTAVES, NODES)) if sums is None else sums

    def add(self, octaves: Sequence[int], shares: Reals) -> None:
        """Add pages. shares: a row each, times the page's importance; negative where it is taken out."""
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
        sums = np.maximum(self.sums, 0.0)[octaves]
        whole = sums.sum(axis=1)
        lasting = (sums * lasting_shares(days)).sum(axis=1)
        return np.where(whole > 0.0, lasting / np.maximum(whole, TINY), freshness(rates, days))

    def dump(self, octaves: Sequence[int]) -> list[tuple[int, float, bytes]]:
        """(octave, largest sum, all sums in parts of it) of these octaves, which have pages: some 90 bytes each."""
        rows = np.maximum(self.sums[list(octaves)], 0.0)
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


def lasting_shares(days: Reals) -> Reals:
    """Share of the time that a copy is fresh which is read every so many days, by node: (1 - e^-x) / x, x = l t."""
    x = np.maximum(days, SHORTEST)[:, None] * RATES
    found: Reals = -np.expm1(np.maximum(-x, LEAST)) / x
    return found


class Expected:
    """`replace` as pages are read; `freshness` and `obsolescence` at any time. 8 to 10 us a read, of a few at once."""

    def __init__(self) -> None:
        self._fresh: Reals = np.zeros((OCTAVES, NODES))
        """sum of importance x belief x exp(-rate age), by octave and node"""
        self._time = 0.0
        """the moment of these sums, seconds"""
        self._importance = [0] * OCTAVES
        self._weights = 0
        """sum of w^2 = r lambda"""
        self._read = 0
        """sum of r lambda x the second of the last read"""
        self.believed = RateMixture()

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
        if pages := gone + come:
            self._add(pages, [-1] * len(gone) + [1] * len(come))

    def _add(self, pages: Sequence[DatedPage], signs: Sequence[int]) -> None:
        """signs: 1, or -1 where a page is taken out. All at once, for a turn has few."""
        shares = shares_of_pages([page.belief for page in pages])
        importance, octaves = [page.importance for page in pages], [octave(page.pace) for page in pages]
        shares *= np.multiply(signs, importance)[:, None]
        self.believed.add(octaves, shares)
        powers = (np.array([page.read for page in pages]) - self._time)[:, None] * (RATES / DAY)
        np.maximum(powers, LEAST, out=powers)
        shares *= np.exp(powers, out=powers)
        np.add.at(self._fresh, octaves, shares)
        for page, sign, r, number in zip(pages, signs, importance, octaves, strict=True):
            steps = sign * _steps(page.weight * page.weight)
            self._importance[number] += sign * _steps(r)
            self._weights += steps
            self._read += steps * int(page.read)

    def _advance(self, now: float) -> None:
        """Let time pass; a clock that was set back waits."""
        if now > self._time:
            if any(self._importance):
                self._fresh *= np.exp((self._time - now) / DAY * RATES)
            self._time = now

    def merge(self, other: Expected) -> None:
        """Take the pages of another partition in."""
        self._advance(other._time)
        self._fresh += other._fresh * np.exp((other._time - self._time) / DAY * RATES)
        self._importance = [own + theirs for own, theirs in zip(self._importance, other._importance, strict=True)]
        self._weights += other._weights
        self._read += other._read
        self.believed.merge(other.believed)

    # -- what it tells -------------------------------------------------------------------------------------------

    @property
    def importance(self) -> float:
        """Sum of r over the refreshed pages."""
        return sum(self._importance) / SCALE

    def freshness(self, now: float) -> float | None:
        """Share of importance whose copy is expected to be as the page is; None without pages."""
        if not any(self._importance):
            return None
        return 1.0 - float(self.stale(now).sum()) / self.importance

    def stale(self, now: float) -> Reals:
        """Sum of r over the pages whose copy is expected to be out of date: float64[OCTAVES], each at least 0."""
        passed = max(0.0, now - self._time) / DAY
        importance = np.array(self._importance) / SCALE
        found: Reals = np.clip(importance - self._fresh @ np.exp(-passed * RATES), 0.0, importance)
        return found

    def coming(self, long_run: Reals, now: float, days: float) -> Reals:
        """As `stale`, in the mean of so many days from now. long_run: the shares that reads keep fresh
        (Population.long_run).

        There reads give back what is lost, l f a day of a node of rate l of which the share f is kept. Where more or
        less is stale than that, they give more or less in proportion: what is fresh goes towards f as e^(-k t), with
        k = l / (1 - f). That is 2 / t where reads are frequent, t days apart, and l where there is none.
        """
        paces = RATES / np.maximum(1.0 - long_run, 1e-9) * days
        now_fresh = self._fresh * np.exp(-max(0.0, now - self._time) / DAY * RATES)
        goal = np.maximum(self.believed.sums, 0.0) * long_run
        fresh = goal + (now_fresh - goal) * (-np.expm1(-paces) / paces)
        importance = np.array(self._importance) / SCALE
        found: Reals = np.clip(importance - fresh.sum(axis=1), 0.0, importance)
        return found

    def obsolescence(self, now: float) -> float | None:
        """Changes expected to be missed per page, weighted by importance: sum r lambda age / sum r."""
        if not any(self._importance):
            return None
        missed = self._weights * math.floor(max(now, self._time)) - self._read
        return max(missed / DAY / sum(self._importance), 0.0)

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Of the octaves that have pages, by their numbers: some 220 bytes each. Sums that may not fit in 64 bits are
        text; those that decay are float32, up to the last that counts: fast rates have faded, or nobody believes them.
        """
        filled = [number for number, importance in enumerate(self._importance) if importance]
        sums = self._fresh[filled].astype("<f4")
        large = np.abs(sums)
        counts = large > NEGLIGIBLE * large.max(axis=1, keepdims=True)
        ends = np.where(counts.any(axis=1), NODES - counts[:, ::-1].argmax(axis=1), 0).tolist()
        rows = zip(filled, sums, ends, strict=True)
        octaves = [(n, str(self._importance[n]), row[:end].tobytes()) for n, row, end in rows]
        whole = [str(self._weights), str(self._read)]
        believed = self.believed.dump(filled)
        return {"nodes": NODES, "at": self._time, "whole": whole, "octaves": octaves, "believed": believed}

    @staticmethod
    def reads(state: Mapping[str, Any]) -> bool:
        """Tell whether this is a dump of these nodes; an older version does not say of which it is, or what is
        believed."""
        return state.get("nodes") == NODES and "believed" in state

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> Expected:
        """Take over what `dump` gave."""
        found = cls()
        found._time = state["at"]
        found._weights, found._read = map(int, state["whole"])
        for number, importance, fresh in state["octaves"]:
            found._importance[number] = int(importance)
            sums = np.frombuffer(fresh, "<f4")
            found._fresh[number, : len(sums)] = sums
        found.believed = RateMixture.load(state["believed"])
        return found


def _steps(value: float) -> int:
    return int(min(value, HEAVIEST) * SCALE)
