"""Selectors: which page to spend next. The papers' three (Cycle, Random, Greedy) beside the crawler's sweep.

A selector sees the cash of all pages (`Cash`) and picks the next ones. All are fair: a page that holds cash is picked
in the end, since the virtual page pays everybody (Random: with probability 1). Those that pick nearly the richest page
by powers of two are in buckets.py; names.py finds a selector by its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from xyro.opic.arrays import Mask, Pages, Units
from xyro.opic.cash import seeds_of
from xyro.opic.sweep import Sweep


class Cash:
    """The cash of pages 0 .. size-1: key + scalar, the scalar being what the virtual page paid each."""

    def __init__(self, keys: Units, scalar: int) -> None:
        self.keys, self.scalar, self.size = keys, scalar, keys.size

    def of_pages(self, pages: Pages | slice) -> Units:
        """Cash of pages, units."""
        cash: Units = self.keys[pages] + self.scalar
        return cash

    def holding(self, start: int, stop: int, least: float) -> Mask:
        """Mark the pages of start .. stop-1 that hold at least `least` units: bool[stop - start]."""
        rich: Mask = self.keys[start:stop] >= least - self.scalar
        return rich


class Selector(Protocol):
    """Picks the pages to spend next, reading no clock and drawing no chance of its own."""

    def pick(self, cash: Cash, limit: int) -> Pages:
        """Return at most `limit` distinct pages, int64; where nobody holds cash none, or pages without cash."""
        ...

    def changed(self, cash: Cash, pages: Pages) -> None:
        """Take note that the keys of these pages changed (they spent or received); a page may occur often."""
        ...


class SweepSelector(Sweep):
    """The crawler's threshold sweep over all pages, any of which may spend."""

    def pick(self, cash: Cash, limit: int) -> Pages:
        """Scan on until a chunk holds rich pages. A chunk is limit / target long, so that it holds about `limit` of
        them. A whole round at the lowest theta without one: nobody holds cash."""
        poor = 0
        while True:
            lowest = self.theta <= 1.0
            start, stop = self.chunk(cash.size, max(1, int(limit / self.target)))
            rich = np.flatnonzero(cash.holding(start, stop, self.theta)) + start
            pages = rich[: max(limit, 0)]
            if rich.size > pages.size:  # goes on after what it took
                stop = int(pages[-1]) + 1
                self.pointer = stop % cash.size
            self.adapt(stop - start, pages.size)
            poor = poor + stop - start if lowest else 0
            if pages.size or poor >= cash.size:
                return pages

    def changed(self, cash: Cash, pages: Pages) -> None:
        """Nothing is kept per page."""


class Greedy:
    """The richest page, exactly: a tournament of two rounds over blocks of about sqrt(n) pages.

    The tournament is of keys: the scalar is the same for all.
    """

    def __init__(self, keys: Units | None = None) -> None:
        self.width, self.best = 1, np.empty(0, np.int64)
        if keys is not None:
            self.renew(keys)

    def renew(self, keys: Units) -> None:
        """Play the tournament anew: any keys may have changed."""
        self.width = max(1, int(keys.size**0.5))
        self.best = np.maximum.reduceat(keys, np.arange(0, keys.size, self.width))

    def pick(self, cash: Cash, limit: int) -> Pages:
        if not cash.size:
            return np.empty(0, np.int64)
        if limit > 1:
            return np.argpartition(cash.keys, max(cash.size - limit, 0))[-limit:]
        if not self.best.size:
            self.renew(cash.keys)
        start = int(self.best.argmax()) * self.width
        return np.array([start + int(cash.keys[start : start + self.width].argmax())])

    def changed(self, cash: Cash, pages: Pages) -> None:
        if self.best.size:
            blocks = np.unique(pages // self.width)
            inside = np.minimum(blocks[:, None] * self.width + np.arange(self.width), cash.size - 1)
            self.best[blocks] = cash.keys[inside].max(axis=1)


@dataclass(slots=True)
class Cycle:
    """All pages in turn: the offline computation on line (Gauss-Seidel)."""

    pointer: int = 0

    def pick(self, cash: Cash, limit: int) -> Pages:
        start = self.pointer if self.pointer < cash.size else 0
        stop = min(cash.size, start + limit)
        self.pointer = stop % max(cash.size, 1)
        return np.arange(start, stop)

    def changed(self, cash: Cash, pages: Pages) -> None:
        """The order does not depend on cash."""


@dataclass(slots=True)
class Random:
    """Pages drawn uniformly (distinct within one pick): draw number k of a seed is always the same."""

    seed: int = 0
    count: int = 0
    """draws so far"""

    def draw(self, n: int, limit: int) -> Pages:
        """The next draws from 0..n-1, with repeats: int64[limit]."""
        numbers = seeds_of(np.arange(self.count, self.count + limit), self.seed)
        self.count += limit
        return (numbers % np.uint64(max(n, 1))).astype(np.int64)

    def pick(self, cash: Cash, limit: int) -> Pages:
        return np.unique(self.draw(cash.size, limit if cash.size else 0))

    def changed(self, cash: Cash, pages: Pages) -> None:
        """The draw does not depend on cash."""
