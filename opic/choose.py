"""Which pages to spend next: the threshold sweep that the crawler uses, and its rivals (algorithms.md D).

A selector sees the cash of the pages (`Held`) and says which are next, in the laboratory (simulate.py) and in a crawl
(its ledger) alike. The sweep walks the column with a cyclic pointer and takes the pages with cash >= theta; theta
follows the share of pages it finds rich. It keeps nothing per page, reads memory in order, costs a twentieth of a heap
and ends with less error than exact greedy.

All are fair: a page that holds cash is picked in the end, since the virtual page pays everybody (Random: with
probability 1). All but the laboratory's Buckets can be dumped in a few numbers, and go on from them as if they had
never stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from xyro.opic.arrays import Mask, Pages, Units
from xyro.opic.cash import UNIT, seeds_of

SWEEP_TARGET = 0.1
"""share of the scanned pages that should be rich: .05-.1 gave the least error, .2-.5 nears Cycle"""
Costs = NDArray[np.int8]


class Held:
    """What pages 0 .. size-1 hold: key + what the virtual page paid each. Here all may spend; a crawl says who may."""

    scan = 0
    """most pages that one pick may look at; then it may find none. 0: it looks until it finds one"""

    def __init__(self, keys: Units, scalar: int) -> None:
        self.keys, self.scalar, self.size = keys, scalar, keys.size

    def of(self, pages: Pages | slice) -> Units:
        """Cash of pages, units."""
        cash: Units = self.keys[pages] + self.scalar
        return cash

    def holding(self, start: int, stop: int, least: float) -> Mask:
        """Which of the pages start .. stop-1 hold at least so much."""
        rich: Mask = self.keys[start:stop] >= least - self.scalar
        return rich

    def cost(self, pages: Pages) -> Costs:
        """What each takes of the pages wanted: 1, 0 for one that spends without cost, -1 if it may not spend now."""
        return np.ones(pages.size, np.int8)

    def paid(self) -> Units:
        """What the virtual page paid each page so far, one number for each kind of pages."""
        return np.array([self.scalar])

    def kinds(self, pages: Pages) -> Pages | int:
        """Where in `paid` to look for these pages."""
        return 0


class Select(Protocol):
    """Which pages to spend next. Everything a policy needs comes in; it reads no clock and draws no chance."""

    def pick(self, held: Held, most: int) -> Pages:
        """Distinct pages to spend next, int64, of which at most `most` cost 1. None only where `held.scan` pages were
        looked at in vain or, if that is 0, where nobody holds cash and may spend it."""
        ...

    def changed(self, held: Held, pages: Pages) -> None:
        """The keys of these pages changed (they spent or received); a page may occur often."""
        ...


class Selector(Select, Protocol):
    """One that a crawl can stop with."""

    def dump(self) -> dict[str, Any]:
        """All that it needs to go on."""
        ...


def afford(pages: Pages, costs: Costs, most: int) -> tuple[Pages, int]:
    """The pages that may spend, in their order, until `most` are used up; and the first left out, -1 if none was.

    With nothing to give away those that cost something are passed over.
    """
    able = np.flatnonzero(costs >= 0 if most > 0 else costs == 0)
    pages, used = pages[able], costs[able].cumsum(dtype=np.int64)
    if not used.size or used[-1] <= most:
        return pages, -1
    end = int(used.searchsorted(most, "right"))
    return pages[:end], int(pages[end])


@dataclass(slots=True)
class Sweep:
    """The threshold sweep. theta is in units of cash; at most n/64 pages are scanned between two corrections of it.

    Who scans by himself scans columns[start:stop] of `chunk` and tells `adapt` how many were rich.
    """

    theta: float = float(UNIT)
    target: float = SWEEP_TARGET
    pointer: int = 0
    pages: int = 0
    scanned: int = 0
    hits: int = 0

    def chunk(self, n: int, most: int) -> tuple[int, int]:
        """The next slice of a column of n pages, at most `most` long; it ends at the column's end. (0, 0): no pages."""
        start = self.pointer if self.pointer < n else 0
        stop = min(n, start + max(most, 0))
        self.pointer, self.pages = stop % n if n else 0, n
        return start, stop

    def adapt(self, scanned: int, hits: int) -> None:
        """`hits` of `scanned` pages were rich: every n/64 scanned pages theta moves by a factor of 1/2..2."""
        self.scanned += scanned
        self.hits += hits
        if self.scanned == 0 or self.scanned * 64 < self.pages:
            return
        # the 0.001 keeps a sweep that found nothing from halving theta less than a sweep that found little
        wanted = ((self.hits / self.scanned + 0.001) / self.target) ** 0.5
        self.theta = max(1.0, self.theta * min(max(wanted, 0.5), 2.0))
        self.scanned = self.hits = 0

    def pick(self, held: Held, most: int) -> Pages:
        """Scan on until a chunk holds rich pages. A chunk is `most` / target long, so that it holds about `most` of
        them. A whole round at the lowest theta without one: nobody can spend."""
        poor = 0
        while True:
            lowest = self.theta <= 1.0
            start, stop = self.chunk(held.size, held.scan or max(1, int(most / self.target)))
            rich = np.flatnonzero(held.holding(start, stop, self.theta)) + start
            pages, left = afford(rich, held.cost(rich), most)
            if left >= 0:  # a crawl goes on with what it could not afford, the laboratory after what it took
                stop = left if held.scan else int(pages[-1]) + 1
                self.pointer = stop % held.size
            self.adapt(stop - start, pages.size)
            poor = poor + stop - start if lowest else 0
            if pages.size or held.scan or poor >= held.size:
                return pages

    def changed(self, held: Held, pages: Pages) -> None:
        """Nothing is kept per page."""

    def dump(self) -> dict[str, float]:
        return asdict(self)

    @classmethod
    def load(cls, state: Mapping[str, float]) -> Sweep:
        whole = {name: int(state[name]) for name in ("pointer", "pages", "scanned", "hits")}
        return cls(theta=float(state["theta"]), target=float(state["target"]), **whole)


class Greedy:
    """The richest page, exactly: a tournament of two rounds over blocks of about sqrt(n) pages.

    A crawl's pick sorts all pages that may spend, so there it is for tests and small crawls (0.1 s a million pages).
    The tournament, for the laboratory's single picks, is of keys: the scalar is the same for all.
    """

    def __init__(self, keys: Units | None = None) -> None:
        self.width, self.best = 1, np.empty(0, np.int64)
        if keys is not None:
            self.renew(keys)

    def renew(self, keys: Units) -> None:
        """Any keys may have changed."""
        self.width = max(1, int(keys.size**0.5))
        self.best = np.maximum.reduceat(keys, np.arange(0, keys.size, self.width))

    def pick(self, held: Held, most: int) -> Pages:
        if held.scan:
            return self._of_all(held, most)
        if not held.size:
            return np.empty(0, np.int64)
        if most > 1:
            return np.argpartition(held.keys, max(held.size - most, 0))[-most:]
        if not self.best.size:
            self.renew(held.keys)
        start = int(self.best.argmax()) * self.width
        return np.array([start + int(held.keys[start : start + self.width].argmax())])

    def _of_all(self, held: Held, most: int) -> Pages:
        """In the order of their cash, the first page first among equals; those without cash stay."""
        pages = np.flatnonzero(held.holding(0, held.size, 1.0))
        pages = pages[held.cost(pages) >= 0]
        pages = pages[np.argsort(-held.of(pages), kind="stable")][: held.scan]
        return afford(pages, held.cost(pages), most)[0]

    def changed(self, held: Held, pages: Pages) -> None:
        if self.best.size:
            blocks = np.unique(pages // self.width)
            inside = np.minimum(blocks[:, None] * self.width + np.arange(self.width), held.size - 1)
            self.best[blocks] = held.keys[inside].max(axis=1)

    def dump(self) -> dict[str, Any]:
        return {}

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> Greedy:
        return cls()


@dataclass(slots=True)
class Cycle:
    """All pages in turn: the offline computation on line (Gauss-Seidel). A crawl passes over those without cash."""

    pointer: int = 0

    def pick(self, held: Held, most: int) -> Pages:
        start = self.pointer if self.pointer < held.size else 0
        stop = min(held.size, start + (held.scan or most))
        pages = np.arange(start, stop)
        if held.scan:
            pages = pages[held.holding(start, stop, 1.0)]
            pages, left = afford(pages, held.cost(pages), most)
            stop = left if left >= 0 else stop
        self.pointer = stop % max(held.size, 1)
        return pages

    def changed(self, held: Held, pages: Pages) -> None:
        """The order does not depend on cash."""

    def dump(self) -> dict[str, int]:
        return asdict(self)

    @classmethod
    def load(cls, state: Mapping[str, int]) -> Cycle:
        return cls(int(state["pointer"]))


@dataclass(slots=True)
class Random:
    """Pages drawn uniformly (distinct within one pick): draw number k of a seed is always the same."""

    seed: int = 0
    count: int = 0
    """draws so far"""

    DRAWS = 16
    """a crawl draws so many for each page wanted, since many of its pages may not spend (unread, say)"""

    def draw(self, n: int, most: int) -> Pages:
        """The next draws from 0..n-1, with repeats: int64[most]."""
        numbers = seeds_of(np.arange(self.count, self.count + most), self.seed)
        self.count += most
        return (numbers % np.uint64(max(n, 1))).astype(np.int64)

    def pick(self, held: Held, most: int) -> Pages:
        if not held.scan:
            return np.unique(self.draw(held.size, most if held.size else 0))
        drawn = self.draw(held.size, min(held.scan, self.DRAWS * max(most, 1)))
        pages = drawn[np.sort(np.unique(drawn, return_index=True)[1])] if held.size else drawn[:0]
        pages = pages[held.of(pages) > 0]
        return afford(pages, held.cost(pages), most)[0]

    def changed(self, held: Held, pages: Pages) -> None:
        """The draw does not depend on cash."""

    def dump(self) -> dict[str, int]:
        return asdict(self)

    @classmethod
    def load(cls, state: Mapping[str, int]) -> Random:
        return cls(int(state["seed"]), int(state["count"]))
