"""All refreshed pages as one sketch: how many there are of each weight and change rate (P1 6.6's S, for every policy).

A page is two numbers: its weight w = sqrt(r lambda), as it stands in S, and its change rate lambda; r = w^2 / lambda.
The sketch counts pages in bins an eighth of an octave wide in either. From the counts it tells what a scan of all pages
would: the multiplier at which a policy spends the bandwidth, floors and ceilings included (water-filling), the
freshness and the obsolescence to expect, the bandwidth a freshness needs. Freshness within a thousandth, 2 where a few
pages have most of the importance (measured over 100,000). Pages are given up, or hopeless, by whole bins: there the
bandwidth is met within 1 %, and missed changes, which are mostly theirs, are told within 10.

Invariant: counts are whole numbers, so the same pages give the same sketch whatever they were in between. A page is
taken out with the very numbers that it was put in with. Pages below the least importance that is read are not put in
(`Rules.least` is exact where a page is dated; here it would cut through a bin). Some 100 bytes a bin that is not empty:
hundreds of thousands of pages fill a thousand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from xyro.refresh.expected import RateMixture, lasting_shares
from xyro.refresh.policy import Reals, Rules, freshness, spent, water_level
from xyro.refresh.rate_belief import NODES, OCTAVES, octave

STEPS = 8
"""bins an octave"""
LEAST_WEIGHT, WEIGHTS = -20.0, 40 * STEPS
"""weights from 2^-20 on, 40 octaves; what lies outside counts in the bins at the ends"""
CHANCE_WAITS = 2_000.0
"""datings that the mean of `ChanceWaits` remembers: at most two days of a thousand reads"""
LEAST_RATE, RATES = -15.0, 27 * STEPS
"""rates from 2^-15 (once in 90 years) to 2^12 (every 20 seconds)"""


@dataclass(frozen=True)
class Bins:
    """The bins that are not empty: pages in each, and the page in its middle."""

    pages: Reals
    importance: Reals
    rate: Reals

    @cached_property
    def weight(self) -> float:
        """Sum of the importance of all pages."""
        return float((self.pages * self.importance).sum())


class Outlook(Struct, frozen=True):
    """The expected result of a policy at a bandwidth, over all refreshed pages, weighted by importance."""

    reads_per_day: float
    multiplier: float
    freshness: float
    """share of importance that is fresh, on average over time"""
    obsolescence: float
    """changes missed per page, on average over time; infinite where a page that changes is never read"""
    never: float
    """share of the pages that are not read again"""


class ChanceWaits(Struct):
    """How long pages wait for the least chance of a change ([refresh] least_chance) beside what their rates alone say.

    A belief is a mixture of rates, whose faster ones reach a small chance sooner than the mean does: a page that was
    never seen to change by a fifth to a quarter. Each dating counts alike, so that rates with the mean ratio tell as
    many reads as are made: sum 1/t_rate over sum 1/t_belief is the mean over all reads of t_belief / t_rate.
    """

    datings: float = 0.0
    total: float = 0.0

    def count(self, ratio: float) -> None:
        """A page is dated at so many times the wait by its rate."""
        fade = 1.0 - 1.0 / CHANCE_WAITS
        self.datings = fade * self.datings + 1.0
        self.total = fade * self.total + ratio

    @property
    def mean(self) -> float:
        """1 before any dating."""
        return self.total / self.datings if self.datings else 1.0

    def merge(self, other: ChanceWaits) -> None:
        """Take the datings of another partition in."""
        self.datings += other.datings
        self.total += other.total

    def dump(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in self.__struct_fields__}


class Population:
    """`add` and `remove` as pages are dated; everything else is computed from the counts of now."""

    def __init__(self, chance_waits: ChanceWaits | None = None) -> None:
        self._counts: dict[int, int] = {}
        """bin -> pages, of those that are not empty"""
        self._bins: Bins | None = None
        self._changed: set[int] = set()
        self.pages = 0
        self.chance_waits = chance_waits or ChanceWaits()

    @classmethod
    def from_pages(cls, weights: Reals, rates: Reals) -> Population:
        """The sketch of all pages at once; pages without weight or rate are not in it."""
        sketch = cls()
        counted = (weights > 0.0) & (rates > 0.0)
        places = np.stack(
            (_places(weights[counted], LEAST_WEIGHT, WEIGHTS), _places(rates[counted], LEAST_RATE, RATES))
        )
        bins, counts = np.unique(places[0] * RATES + places[1], return_counts=True)
        sketch._counts = dict(zip(bins.tolist(), counts.tolist(), strict=True))
        sketch.pages = int(counted.sum())
        return sketch

    def add(self, weight: float, rate: float, sign: int = 1) -> None:
        """A page is refreshed; sign -1: no longer, or not with these numbers. Nothing, where either is 0."""
        if weight > 0.0 and rate > 0.0:
            row, column = _place(weight, LEAST_WEIGHT, WEIGHTS), _place(rate, LEAST_RATE, RATES)
            self._count(row * RATES + column, sign)
            self._changed.add(row * RATES + column)
            self.pages += sign
            self._bins = None

    def _count(self, place: int, pages: int) -> None:
        if count := self._counts.get(place, 0) + pages:
            self._counts[place] = count
        else:
            self._counts.pop(place, None)

    def replace(self, old_weight: float, old_rate: float, weight: float, rate: float) -> None:
        """A page's numbers changed; 0 = it was not, or is no longer, among the refreshed pages."""
        self.add(old_weight, old_rate, -1)
        self.add(weight, rate)

    def merge(self, other: Population) -> None:
        """Take the pages of another partition in, for what they tell together: a sum is not stored."""
        for place, pages in other._counts.items():
            self._count(place, pages)
        self.pages += other.pages
        self.chance_waits.merge(other.chance_waits)
        self._bins = None

    def joined(self, other: Population) -> Population:
        """Return the bins of both, for what they tell: neither table is copied, and pages cannot be added."""
        both = Population(ChanceWaits(self.chance_waits.datings, self.chance_waits.total))
        both.chance_waits.merge(other.chance_waits)
        both.pages = self.pages + other.pages
        here, there = self.bins, other.bins
        both._bins = Bins(
            np.concatenate((here.pages, there.pages)),
            np.concatenate((here.importance, there.importance)),
            np.concatenate((here.rate, there.rate)),
        )
        return both

    def supersede(self, other: Population) -> None:
        """This sketch takes the place of another that is stored: all that differs is to be written."""
        self._changed = {place for place, _ in self._counts.items() ^ other._counts.items()} | other._changed
        self.chance_waits = other.chance_waits

    def _rules(self, rules: Rules) -> Rules:
        """The rules for pages of which only the rates are known."""
        return replace(rules, least=0.0, haste=self.chance_waits.mean)

    @property
    def bins(self) -> Bins:
        """The counts as arrays."""
        if self._bins is None:
            places = sorted(self._counts)
            row, column = np.divmod(np.array(places, np.int64), RATES)
            weight = np.exp2(LEAST_WEIGHT + (row + 0.5) / STEPS)
            rate = np.exp2(LEAST_RATE + (column + 0.5) / STEPS)
            pages = np.array([self._counts[place] for place in places], np.float64)
            self._bins = Bins(pages, weight * weight / rate, rate)
        return self._bins

    # -- what it tells -------------------------------------------------------------------------------------------

    def scale(self) -> float:
        """Return the factor that brings importance to mean 1 over the refreshed pages."""
        bins = self.bins
        return self.pages / bins.weight if bins.weight > 0.0 else 1.0

    def multiplier(self, reads_per_day: float, rules: Rules, start: float = 1.0) -> float:
        """mu at which the pages take so many reads a day; 0 and infinite as of `water_level`.

        Importance is relative to the mean (`scale`). start: a guess, such as the last one.
        """
        bins = self.bins
        if not bins.pages.size:
            return math.inf
        importance, rules = bins.importance * self.scale(), self._rules(rules)
        return water_level(
            reads_per_day, lambda mu: spent(rules.intervals(importance, bins.rate, mu), bins.pages), start, 1e-9
        )

    def spends(self, multiplier: float, rules: Rules, scale: float = 0.0) -> float:
        """Reads a day that the pages take at this multiplier. scale: of importance, where more pages share the mean."""
        bins, rules = self.bins, self._rules(rules)
        importance = bins.importance * (scale or self.scale())
        return spent(rules.intervals(importance, bins.rate, multiplier), bins.pages) if bins.pages.size else 0.0

    def outlook(self, reads_per_day: float, rules: Rules, believed: RateMixture | None = None) -> Outlook:
        """Predict the result of a number of reads a day. believed: of these pages; None: their rates are known."""
        bins = self.bins
        if not bins.pages.size:
            return Outlook(reads_per_day, math.inf, 1.0, 0.0, 0.0)
        mu, rules = self.multiplier(reads_per_day, rules), self._rules(rules)
        importance = bins.importance * self.scale()
        intervals = rules.intervals(importance, bins.rate, mu)
        importance_sums = bins.pages * importance
        never = np.isinf(intervals)
        finite = np.where(never, 1.0, intervals)
        lasting = freshness(bins.rate, finite) if believed is None else believed.fresh(bins.rate, finite)
        fresh = np.where(never, 0.0, lasting)
        missed = 0.5 * bins.rate * intervals
        return Outlook(
            reads_per_day=spent(intervals, bins.pages),
            multiplier=mu,
            freshness=float((importance_sums * fresh).sum() / importance_sums.sum()),
            obsolescence=float((importance_sums * missed).sum() / importance_sums.sum()),
            never=float(bins.pages[never].sum() / self.pages),
        )

    def long_run(self, reads_per_day: float, rules: Rules) -> Reals:
        """Return the share of the time that copies are fresh in the long run: float64[OCTAVES, NODES], in the mean of
        the pages of an octave of rates, by importance, as if they changed at a node's rate."""
        bins, found = self.bins, np.zeros((OCTAVES, NODES))
        if not bins.pages.size:
            return found
        mu, rules = self.multiplier(reads_per_day, rules), self._rules(rules)
        intervals = rules.intervals(bins.importance * self.scale(), bins.rate, mu)
        importance, read = bins.pages * bins.importance, np.isfinite(intervals)
        octaves = np.array([octave(each) for each in bins.rate.tolist()], np.int64)
        np.add.at(found, octaves[read], lasting_shares(intervals[read]) * importance[read, None])
        whole = np.bincount(octaves, importance, OCTAVES)
        found /= np.maximum(whole, 1e-300)[:, None]
        return found

    def needed(self, target: float, rules: Rules, believed: RateMixture | None = None) -> float:
        """Reads a day that give this freshness (0 < target < 1); infinite where no bandwidth does, by the rules.

        Freshness rises with the bandwidth: found by halving on a logarithmic scale.
        """
        if not 0.0 < target < 1.0:
            raise ValueError(f"target {target:g}: a freshness between 0 and 1")
        if not self.bins.pages.size:
            return 0.0
        low, high = math.log(self.pages * 1e-6), math.log(self.pages * 1e6)
        if self.outlook(math.exp(high), rules, believed).freshness < target:
            return math.inf
        while high - low > 1e-6:
            middle = 0.5 * (low + high)
            reached = self.outlook(math.exp(middle), rules, believed).freshness >= target
            low, high = (low, middle) if reached else (middle, high)
        return math.exp(high)

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> list[list[int]]:
        """[bin, pages] of the bins that are not empty."""
        filled = sorted(self._counts)
        return [filled, [self._counts[place] for place in filled]]

    @classmethod
    def load(cls, state: Sequence[Sequence[int]], chance_waits: ChanceWaits | None = None) -> Population:
        """Take over what `dump` gave."""
        sketch = cls(chance_waits)
        places, counts = state
        sketch._counts = {place: pages for place, pages in zip(places, counts, strict=True) if pages}
        sketch.pages = sum(counts)
        return sketch

    def changed(self) -> list[tuple[int, int]]:
        """(bin, pages) of the bins whose count changed since this was asked last: what a store has to write."""
        cells = sorted(self._changed)
        self._changed.clear()
        return [(cell, self._counts.get(cell, 0)) for cell in cells]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Population) and self._counts == other._counts

    __hash__ = None  # type: ignore[assignment]


def _place(value: float, least: float, bins: int) -> int:
    return min(max(int((math.log2(value) - least) * STEPS), 0), bins - 1)


def _places(values: Reals, least: float, bins: int) -> NDArray[np.int64]:
    """Return the bins of many weights: math.log2 and numpy's differ in the last bit, so one of them decides."""
    return np.array([_place(value, least, bins) for value in values.tolist()], np.int64)
