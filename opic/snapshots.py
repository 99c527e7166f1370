"""Snapshots of a sample's importances: by how much they moved since shows how wrong they still are.

An estimate's error is not seen, its movement is. In log importance a page's error at the time t of the OPIC clock is

    E(t) = fade(t) B + N(t) / T(t)

B: what it still remembers of an earlier graph and of cash that had not spread yet. That fades as the window forgets,
by 1/T a turnover, and no faster than cash spreads, by MIXING. N: the chance of which cash has come so far; over a
window of T turnovers it is of 1/T, for a window's flow differs from the true one by what it begins and ends with; and
it is another a few turnovers later. So of two snapshots i and j, with q the movement that SURE of the pages stay below,

    q_ij^2 = (fade_i - fade_j)^2 B^2 + (1/T_i^2 + 1/T_j^2) N^2,    half width now = sqrt(fade^2 B^2 + N^2 / T^2).

All pairs of the snapshots that are kept are so many equations for B^2 and N^2, both at least 0; they are solved by
least squares for each class of importance. Pages may err together: those that the virtual page alone pays spend in one
sweep, and are then all too rich or too poor. Of these one pair holds all or none, so the half width is that many times
the solved one which SURE of the movements of all pages in all pairs stay below, each over what was expected in its
pair. For the same reason chance is not of one size: herds that one menu pays are at some moments far off, and mostly
not. How far they are now shows in how much farther now lies from every snapshot than these lie from each other, over
all pages: N^2 of now is as many times that of all moments, but never less. Without it the intervals of one moment in
eight held 83 to 91 of 100 pages. What moves is the middle of a page's interval (importance.centred). What the intervals
hold on graphs whose truth is known stands in docs/figures.md.

The sample is every `stride`-th page, so it grows with the crawl and is thinned by half when it has twice SAMPLE pages.
A snapshot is taken each STEP of a window, at least a turnover apart; the KEEP last ones, at most 160 kB, reach back
over two windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.opic.arrays import Reals
from xyro.opic.cash import DAMPING

SAMPLE = 2048
"""pages at least, where there are as many; fewer than twice that"""
SMALLEST = 24
"""pages of a sample, or of a class in it, of which there is a movement that SURE of them stay below"""
SURE = 0.95
MIXING = -math.log(DAMPING)
"""a turnover: the slowest that cash which lies in the wrong part of a graph spreads, as a power of 1/e. With .25 half
widths at 5 reads a page are a tenth narrower, but at 2 the intervals of one real graph held 68 of 100, not 91"""
STEP, SOONEST = 0.25, 1.0
KEEP = 10
APART = 3.0
"""turnovers, but at most half a window, after which the chance of what cash has come is another: a page spends every
second turnover or so"""
LOWEST = 0.02
"""share of the pages whose importance counts as what every page has, which is nearly certain"""
CLASSES = np.exp((0.02, 0.06, 0.12, 0.25, 0.5, 1.0, 2.0, 3.0))
"""importances between classes, over that: the more a page has from links, the less certain it is"""
ROUNDS = 4
"""of least squares, each weighed by the one before"""
LEAST = 1e-9
GREATEST = 10.0
"""times the mean moment's squared chance that a moment may show"""
FLOOR = 0.01
"""importance below which pages are alike"""


class HalfWidths(NamedTuple):
    """Half widths of the intervals in log importance, by class of importance."""

    ends: Reals
    """importances (mean 1) between the classes, ascending: float64[classes - 1]"""
    by_class: Reals
    """float64[classes]"""

    def look_up(self, importance: Reals) -> Reals:
        """The half widths at importances of mean 1: float64[n]."""
        found: Reals = self.by_class[np.searchsorted(self.ends, importance)]
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
        if not self.kept or time - self.kept[0].time < 2.0 * APART or np.isnan(importance).all():
            return None
        now = self._at(time, window, importance)
        looks = [*self.kept[1 - KEEP :], now]
        pairs = [pair for pair in combinations(looks, 2) if pair[1].time - pair[0].time >= min(APART, window / 2)]
        moves = [_move(early.values, late.values, len(importance)) for early, late in pairs]
        fitted = _fitted(now, pairs, moves)
        if fitted is None:
            return None
        more = fitted.chance_now()
        whole = fitted.half_width(more)
        ends = float(np.nanquantile(importance, LOWEST)) * CLASSES
        classes, found = np.searchsorted(ends, importance), np.full(len(ends) + 1, whole)
        for number in range(len(found)):
            inside = classes == number
            own = _fitted(now, pairs, [move[inside[: len(move)]] for move in moves])
            found[number] = whole if own is None else own.half_width(more)
        return HalfWidths(ends, found)

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


def _move(early: NDArray[np.float32], late: NDArray[np.float32], pages: int) -> NDArray[np.float32]:
    """The movements of the pages of both snapshots that are still known: a repaired directory may have lost some."""
    both = min(len(early), len(late), pages)
    moves: NDArray[np.float32] = np.abs(late[:both] - early[:both])
    return moves


class _Fit(NamedTuple):
    """The remembered error and the chance that fit the movements of some pages between pairs of snapshots."""

    remembered: float
    """(fade B)^2 of now"""
    chance: float
    """(N / T)^2 at the mean moment, with the window of now"""
    sure: float
    """times the expected movement that SURE of the pages stay below in their pairs"""
    parts: Reals
    """what both are multiplied by in the pairs of which one is now: float64[pairs, 2]"""
    squares: Reals
    """the squared movements of these: float64[pairs]"""

    def half_width(self, more: float) -> float:
        """The half width where the squared chance of now is so many times that of the mean moment."""
        return self.sure * math.sqrt(self.remembered + more * self.chance)

    def chance_now(self) -> float:
        """By how much the squared chance of now exceeds that of the mean moment: 1 to GREATEST."""
        if not (self.chance > 0.0 and len(self.squares)):
            return 1.0
        others = self.parts @ (self.remembered, self.chance) - self.chance
        shown = np.average(self.squares / self.sure**2 - others, weights=1.0 / np.maximum(others + self.chance, LEAST))
        return min(max(float(shown) / self.chance, 1.0), GREATEST)


def _fitted(
    now: SampleImportance,
    pairs: Sequence[tuple[SampleImportance, SampleImportance]],
    moves: Sequence[NDArray[np.float32]],
) -> _Fit | None:
    """Fit the movements of pages between pairs of snapshots; None: there are too few of them."""
    moves = [move[np.isfinite(move)] for move in moves]
    judged = [(pair, move) for pair, move in zip(pairs, moves, strict=True) if len(move) >= SMALLEST]
    if len(judged) < 2:
        return None
    parts, squares = np.hsplit(np.array([_equation(now, *pair, move) for pair, move in judged]), [2])
    squares = squares.ravel()
    both, weights = np.zeros(2), 1.0 / squares
    for _ in range(ROUNDS):  # a square is as uncertain as it is expected to be large
        both = _solved(parts * weights[:, None], squares * weights)
        weights = 1.0 / np.maximum(parts @ both, LEAST)
    expected = np.sqrt(np.maximum(parts @ both, LEAST))
    times = np.concatenate([move / much for (_, move), much in zip(judged, expected.tolist(), strict=True)])
    sure = max(float(np.quantile(times, SURE)), LEAST)
    with_now = np.array([pair[1] is now for pair, _ in judged])
    return _Fit(float(both[0]), float(both[1]), sure, parts[with_now], squares[with_now])


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
    level = min(SURE * (len(move) + 1) / len(move), 1.0)  # conformal prediction's, of a page that is not among them
    square = max(float(np.quantile(move, level)) ** 2, LEAST)
    fades = np.exp(now.faded - early.faded) - np.exp(now.faded - late.faded)
    chances = (now.window / early.window) ** 2 + (now.window / late.window) ** 2
    return float(fades * fades), float(chances), square
