"""Judges the reads of a scripted site by its script: what was fresh, and what was missed, on each day.

A copy is fresh from its read until the page's next change. A change is missed from the moment it comes until the page's
next read: the mean number of changes that the copy of a page is behind. Both are integrals over the true times, weighed
by importance; a page that was never read is not fresh. Nothing here knows the crawler: reads are lines of a server's
log, or those of a plan (`planned_reads`), which the same budget may pay for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.lab.web.scripted import ScriptedPage
from xyro.lab.web.shape import DAY, ORIGIN

Reals = NDArray[np.float64]
Ids = NDArray[np.int64]
GOLDEN = 0.618_033_988_749_895
"""multiples of it, modulo 1, spread the first reads of a plan evenly"""


class Spans(NamedTuple):
    """Stretches of time with a weight each: copies that are fresh, or changes that are missed."""

    start: Reals
    stop: Reals
    weight: Reals

    def sum(self, start: float, stop: float) -> float:
        """Weight x seconds between two moments."""
        seconds = np.clip(np.minimum(self.stop, stop) - np.maximum(self.start, start), 0.0, None)
        return float((self.weight * seconds).sum())


class ScriptReferee:
    """Over the pages of a script, in its order, with their importance."""

    def __init__(self, site: Mapping[str, ScriptedPage], importance: Reals) -> None:
        self.changes = [np.array(page.changes, np.float64) for page in site.values()]
        self.importance = importance

    def judge(self, pages: Ids, times: Reals, end: float, only: NDArray[np.bool_] | None = None) -> TrueWorth:
        """Judge reads (numbers of pages, and when), in any order. only: bool[pages], the others do not count."""
        weights = self.importance if only is None else np.where(only, self.importance, 0.0)
        order = np.lexsort((times, pages))
        pages, times = pages[order], times[order]
        bounds = np.searchsorted(pages, np.arange(len(self.changes) + 1))
        fresh: list[tuple[Reals, Reals]] = []
        missed: list[tuple[Reals, Reals]] = []
        for page, changes in enumerate(self.changes):
            reads = times[bounds[page] : bounds[page + 1]]
            fresh.append((reads, np.minimum(_after(changes, reads, end), np.append(reads[1:], end))))
            seen = changes[(changes > reads[0]) & (changes < end)] if len(reads) else changes[:0]
            missed.append((seen, _after(reads, seen, end, "left")))
        return TrueWorth(_spans(fresh, weights), _spans(missed, weights), float(weights.sum()))


class TrueWorth(NamedTuple):
    """The copies of the pages over time, as the script tells."""

    fresh: Spans
    missed: Spans
    weight: float

    def freshness(self, start: float, stop: float) -> float:
        """Share of importance x time that was fresh."""
        return self.fresh.sum(start, stop) / (self.weight * (stop - start))

    def changes_missed(self, start: float, stop: float) -> float:
        """Changes that the copy of a page was behind, in the mean by importance."""
        return self.missed.sum(start, stop) / (self.weight * (stop - start))


def _after(times: Reals, since: Reals, end: float, side: str = "right") -> Reals:
    """The first of the times after each moment (side left: or at it), `end` where there is none."""
    place = np.searchsorted(times, since, "right" if side == "right" else "left")
    found: Reals = np.append(times, end)[place]
    return np.minimum(found, end)


def _spans(found: Sequence[tuple[Reals, Reals]], weights: Reals) -> Spans:
    starts, stops = zip(*found, strict=True)
    return Spans(np.concatenate(starts), np.concatenate(stops), np.repeat(weights, [len(times) for times in starts]))


# -- plans that know, or care for, other things ------------------------------------------------------------------------


def best_intervals(importance: Reals, per_day: Reals, budget: float, floor: float) -> Reals:
    """P1's intervals (days) where rates are known: max(floor, K / sqrt(r lambda)), K such that they take the budget."""
    worth = np.sqrt(importance * per_day)
    low, high = -60.0, 60.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        spends = float((1.0 / np.maximum(floor, math.exp(middle) / worth)).sum())
        low, high = (middle, high) if spends > budget else (low, middle)
    found: Reals = np.maximum(floor, math.exp(high) / worth)
    return found


def planned_reads(intervals: Reals, start: float, days: float) -> tuple[Ids, Reals]:
    """Reads of pages at these intervals (days), each read at `start` first: (pages, times)."""
    pages: list[Ids] = []
    times: list[Reals] = []
    for page, interval in enumerate(intervals.tolist()):
        phase = (page * GOLDEN) % 1.0 * interval
        again = start + (phase + interval * np.arange(max(math.ceil((days - phase) / interval), 0))) * DAY
        times.append(np.concatenate([[start], again]))
        pages.append(np.full(len(again) + 1, page, np.int64))
    return np.concatenate(pages), np.concatenate(times)


def day_of(number: int) -> tuple[float, float]:
    """Begin and end of a day, the first is 1."""
    return ORIGIN + (number - 1) * DAY, ORIGIN + number * DAY
