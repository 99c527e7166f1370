"""Snapshots of a sample's importances: by how much a page moved since shows how wrong it still is.

An estimate's error is not seen, its movement is. In log importance a page's error at the time t of the OPIC clock is

    E(t) = fade(t) B + N(t) / T(t)

B: what it still remembers of an earlier graph and of cash that had not spread yet. That fades as the window forgets,
by 1/T a turnover, and no faster than cash spreads, by MIXING. N: the chance of which cash has come so far; over a
window of T turnovers it is of 1/T, for a window's flow differs from the true one by what it begins and ends with; and
it is another a few turnovers later. So of two snapshots i and j, with q the movement that SURE of the pages stay below,

    q_ij^2 = (fade_i - fade_j)^2 B^2 + (1/T_i^2 + 1/T_j^2) N^2,    W^2 = fade^2 B^2 + N^2 / T^2 of now.

All pairs of the snapshots that are kept are so many equations for B^2 and N^2, both at least 0; they are solved by
least squares over the whole sample. Pages differ in both: one that ten others pay is steady, one that hangs on a page
which spends every third turnover is not, and herds that one menu pays err together, at some moments far. Which page is
which shows in its own movement: with m the one from a snapshot to now, a page's squared half width is W^2 times the
mean of m^2 / q^2 over the snapshots, over that of all pages. Near snapshots count more, by W / q, and the mean of all
pages counts as one more snapshot. PART of that is the half width: the mean of many moments is nearer to the truth than
now is, so m is mostly the error of now. Where all pages err together, or the web itself changes, one moment is farther
off than most: N^2 of now is as many times that of all moments as now lies farther from every snapshot than these from
each other, but never less; and half widths are that many times these which SURE of all movements stay below.

What moves is the middle of a page's interval (importance.centred). A page takes the mean of the ALIKE sample pages
whose importance is nearest to its own, among the NEAR of them that were found just before and after it: those that one
page links to are found together. What the intervals hold on graphs whose truth is known stands in docs/figures.md.

The sample is every `stride`-th page, so it grows with the crawl and is thinned by half when it has twice SAMPLE pages.
A snapshot is taken each STEP of a window, at least a turnover apart; the KEEP last ones, at most 128 kB, reach back
over two windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.opic.arrays import Pages, Reals

SAMPLE = 2048
"""pages at least, where there are as many; fewer than twice that"""
SMALLEST = 24
"""pages of a sample of which there is a movement that SURE of them stay below"""
SURE = 0.95
MIXING = 0.2
"""a turnover: the slowest that cash which lies in the wrong part of a graph spreads, as a power of 1/e (-ln .85 = .16
on the slowest of graphs). On 10 real ones in the running crawl, at 1.6 to 2.2 reads a page, .16 holds 97 % with half
widths of 4.1 errors, .2 95 % with 3.4, .25 93 % with 2.9"""
STEP, SOONEST = 0.25, 1.0
KEEP = 8
APART = 3.0
"""turnovers, but at most half a window, after which the chance of what cash has come is another: a page spends every
second turnover or so"""
PART = 0.84
NEAR, ALIKE = 8, 3
"""sample pages before and after a page among which those of its importance are looked for, and how many are taken"""
ROUNDS = 4
"""of least squares, each weighed by the one before"""
LEAST = 1e-9
GREATEST = 10.0
"""times the mean moment's squared chance that a moment may show"""
FLOOR = 0.01
"""importance below which pages are alike"""


class HalfWidths(NamedTuple):
    """Half widths of the intervals of the sample in log importance, and what they are looked up by."""

    stride: int
    """the sample is the pages 0, stride, 2 stride ..."""
    values: Reals
    """ln of the importances of now; infinite where a page was not measured yet"""
    squares: Reals
    """of the half widths"""

    def look_up(self, pages: Pages, importance: Reals) -> Reals:
        """The half widths of pages with these importances, of mean 1: float64[n]."""
        near = pages[:, None] // self.stride + np.arange(1 - NEAR, 1 + NEAR)
        near = np.clip(near, 0, len(self.values) - 1)
        apart = np.abs(self.values[near] - np.log(np.maximum(importance, FLOOR))[:, None])
        alike = np.take_along_axis(near, np.argsort(apart, axis=1, kind="stable")[:, :ALIKE], axis=1)
        found: Reals = np.sqrt(self.squares[alike].mean(axis=1))
        return found


class SampleImportance(NamedTuple):
    """The log importances of the sample at a time of the OPIC clock."""

    time: float
    """turnovers"""
    window: float
    """T, turnovers"""
    faded: float
    """by how much memory has faded since the first snapshot, as a power of 1/e"""
    values: NDArray[np.float32]
    """ln of importances; NaN of pages that were not measured yet"""


class Snapshots:
    """The snapshots of one crawl. Holds: the values of a snapshot are of the pages 0, stride, 2 stride ..."""

    def __init__(self) -> None:
        self.stride = 1
        self.kept: list[SampleImportance] = []
        """ascending by time"""
        self.next = SOONEST
        """turnovers: no snapshot is due before"""

    def pages(self, known: int) -> NDArray[np.int64]:
        """The sample of so many known pages; it is thinned where it has become too large."""
        while known > 2 * SAMPLE * self.stride:
            self.stride *= 2
            self.kept = [snapshot._replace(values=snapshot.values[::2]) for snapshot in self.kept]
        return np.arange(0, known, self.stride)

    def take(self, time: float, window: float, importance: Reals) -> None:
        """Take note of the importances of the sample, of mean 1 over all pages; NaN where one was not measured yet."""
        self.kept = [*self.kept[1 - KEEP :], self._at(time, window, importance)]
        self.next = time + max(SOONEST, STEP * window)

    def half_widths(self, time: float, window: float, importance: Reals) -> HalfWidths | None:
        """Half widths at this time; importance: as of `take`. None: too early, or too few pages, to tell."""
        if not self.kept or np.isnan(importance).all():
            return None
        now = self._at(time, window, importance)
        looks = [*self.kept[1 - KEEP :], now]
        pairs = [pair for pair in combinations(looks, 2) if pair[1].time - pair[0].time >= min(APART, window / 2)]
        moves = [_moved(*pair, len(importance)) for pair in pairs]
        judged = [(pair, move) for pair, move in zip(pairs, moves, strict=True) if np.isfinite(move).sum() >= SMALLEST]
        if len(judged) < 2 or judged[-1][0][1] is not now:
            return None
        fitted = _fitted(now, judged)
        moves_to_now = np.array([move for (_, late), move in judged if late is now])
        values = np.where(np.isnan(importance), np.inf, now.values).astype(np.float64)
        return HalfWidths(self.stride, values, fitted.whole_now() * _own_parts(fitted, moves_to_now))

    def _at(self, time: float, window: float, importance: Reals) -> SampleImportance:
        values = np.log(np.maximum(importance, FLOOR)).astype(np.float32)
        if not self.kept:
            return SampleImportance(time, window, 0.0, values)
        last = self.kept[-1]
        memory = 0.5 * (window + last.window)
        return SampleImportance(time, window, last.faded + (time - last.time) * min(1.0 / memory, MIXING), values)

    # -- state ---------------------------------------------------------------------------------------------------

    def dump(self) -> tuple[int, float, Sequence[tuple[float, float, float, bytes]]]:
        kept = [(*snapshot[:3], snapshot.values.astype("<f4").tobytes()) for snapshot in self.kept]
        return self.stride, self.next, kept

    @classmethod
    def load(cls, state: Sequence[Any]) -> Snapshots:
        """Take over what `dump` gave; of an older version's nothing."""
        found = cls()
        if not isinstance(state[0], int):
            return found
        found.stride, found.next, kept = state
        found.kept = [
            SampleImportance(time, window, faded, np.frombuffer(values, "<f4").astype(np.float32))
            for time, window, faded, values in kept
        ]
        return found


def _moved(early: SampleImportance, late: SampleImportance, pages: int) -> NDArray[np.float32]:
    """The movements of so many pages: NaN of those that were not measured then, or not known."""
    moves = np.full(pages, np.nan, np.float32)
    both = min(len(early.values), len(late.values), pages)  # a repaired directory may have lost some
    moves[:both] = np.abs(late.values[:both] - early.values[:both])
    return moves


class _Fit(NamedTuple):
    """The remembered error and the chance that fit the movements of the sample."""

    remembered: float
    """(fade B)^2 of now"""
    chance: float
    """(N / T)^2 at the mean moment, with the window of now"""
    sure: float
    """the square, over the expected one, that SURE of the movements of all pages in all pairs stay below"""
    expected: Reals
    """q^2 of the pairs of which one is now"""
    squares: Reals
    """the squared movements that SURE of the pages stay below in these"""

    def whole_now(self) -> float:
        """W^2 of now, of which PART is the half width, squared."""
        return PART * PART * self.sure * (self.remembered + self.chance_now() * self.chance)

    def chance_now(self) -> float:
        """By how much the squared chance of now exceeds that of the mean moment: 1 to GREATEST."""
        if not self.chance > 0.0:
            return 1.0
        others = self.expected - self.chance
        shown = np.average(self.squares / self.sure - others, weights=1.0 / self.expected)
        return min(max(float(shown) / self.chance, 1.0), GREATEST)


def _own_parts(fitted: _Fit, moves: NDArray[np.float32]) -> Reals:
    """Return each page's squared movements to now, over the expected ones, in parts of the mean page's: float64[n].

    moves: float32[snapshots, pages]; the mean page's count as one more snapshot of each.
    """
    ratios = np.square(moves) / fitted.expected[:, None]
    whole = fitted.remembered + fitted.chance
    weights = np.where(np.isfinite(ratios), np.sqrt(np.minimum(whole / fitted.expected, 1.0))[:, None], 0.0)
    mean = max(float(np.nanmean(ratios)), LEAST)
    found: Reals = ((weights * np.nan_to_num(ratios)).sum(axis=0) / mean + 1.0) / (weights.sum(axis=0) + 1.0)
    return found


def _fitted(
    now: SampleImportance, judged: Sequence[tuple[tuple[SampleImportance, SampleImportance], NDArray[np.float32]]]
) -> _Fit:
    """Fit the movements of the sample between pairs of snapshots."""
    rows = np.array([_equation(now, *pair, move) for pair, move in judged])
    parts, squares = np.hsplit(rows, [2])
    squares = squares.ravel()
    both, weights = np.zeros(2), 1.0 / squares
    for _ in range(ROUNDS):  # a square is as uncertain as it is expected to be large
        both = _solved(parts * weights[:, None], squares * weights)
        weights = 1.0 / np.maximum(parts @ both, LEAST)
    expected = np.maximum(parts @ both, LEAST)
    times = np.concatenate([np.square(move) / much for (_, move), much in zip(judged, expected.tolist(), strict=True)])
    with_now = np.array([late is now for (_, late), _ in judged])
    sure = max(float(np.nanquantile(times, SURE)), LEAST)
    return _Fit(float(both[0]), float(both[1]), sure, expected[with_now], squares[with_now])


def _solved(parts: Reals, squares: Reals) -> Reals:
    """Two numbers of at least 0 whose multiples in `parts` add up to the squares, in the sense of least squares."""
    both: Reals = np.linalg.lstsq(parts, squares, rcond=None)[0].astype(np.float64)
    if both.min() >= 0.0:
        return both
    alone = np.maximum(squares @ parts, 0.0) / np.maximum(np.square(parts).sum(axis=0), LEAST)
    misfit = np.square(parts * alone - squares[:, None]).sum(axis=0)
    only: Reals = np.where(misfit == misfit.min(), alone, 0.0)
    return only


def _equation(
    now: SampleImportance, early: SampleImportance, late: SampleImportance, move: NDArray[np.float32]
) -> tuple[float, float, float]:
    """By what (fade B)^2 and (N / T)^2 of now are multiplied in the squared movement of two snapshots, and that."""
    move = move[np.isfinite(move)]
    level = min(SURE * (len(move) + 1) / len(move), 1.0)  # conformal prediction's, of a page that is not among them
    square = max(float(np.quantile(move, level)) ** 2, LEAST)
    fades = np.exp(now.faded - early.faded) - np.exp(now.faded - late.faded)
    chances = (now.window / early.window) ** 2 + (now.window / late.window) ** 2
    return float(fades * fades), float(chances), square
