"""Which pages to spend next: the threshold sweep that the crawler uses, and its rivals (algorithms.md D).

A selector sees the key column and the virtual page's scalar: a page's cash is key + scalar. The sweep walks the
column with a cyclic pointer and takes the pages with cash >= theta; theta follows the share of pages it finds rich.
It keeps nothing per page, reads memory in order, costs a twentieth of a heap and ends with less error than exact
greedy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from opic.arrays import Pages, Units
from opic.cash import UNIT

SWEEP_TARGET = 0.1
"""share of the scanned pages that should be rich: .05-.1 gave the least error, .2-.5 nears Cycle"""


class Select(Protocol):
    """A policy of the laboratory."""

    def pick(self, keys: Units, scalar: int, most: int) -> Pages:
        """1..most distinct pages to spend next, int64; key + scalar is a page's cash."""
        ...

    def changed(self, keys: Units, scalar: int, pages: Pages) -> None:
        """The keys of these pages changed (they spent or received); a page may occur often."""
        ...


@dataclass(slots=True)
class Sweep:
    """The threshold sweep. theta is in units of cash; at most n/64 pages are scanned between two corrections of it.

    The caller scans columns[start:stop] of `chunk`, takes what has cash >= theta and tells `adapt` what it found.
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

    def pick(self, keys: Units, scalar: int, most: int) -> Pages:
        """Scan on until a chunk holds rich pages. A chunk is `most` / target long, so that it holds about `most` of
        them."""
        while True:
            start, stop = self.chunk(keys.size, max(1, int(most / self.target)))
            rich = np.flatnonzero(keys[start:stop] >= self.theta - scalar)
            if rich.size > most:
                rich, stop = rich[:most], start + int(rich[most - 1]) + 1
                self.pointer = stop % keys.size
            self.adapt(stop - start, rich.size)
            if rich.size:
                return rich + start

    def changed(self, keys: Units, scalar: int, pages: Pages) -> None:
        """Nothing is kept per page."""

    def dump(self) -> dict[str, float]:
        return asdict(self)

    @classmethod
    def load(cls, state: Mapping[str, float]) -> Sweep:
        whole = {name: int(state[name]) for name in ("pointer", "pages", "scanned", "hits")}
        return cls(theta=float(state["theta"]), target=float(state["target"]), **whole)


class Greedy:
    """The richest page, exactly: a tournament of two rounds over blocks of about sqrt(n) pages.

    The scalar is the same for all, so the order of the keys is the order of the cash. Laboratory and tests only.
    """

    def __init__(self, keys: Units) -> None:
        self.width = max(1, int(keys.size**0.5))
        self.best = np.maximum.reduceat(keys, np.arange(0, keys.size, self.width))

    def pick(self, keys: Units, scalar: int, most: int) -> Pages:
        if most > 1:
            return np.argpartition(keys, max(keys.size - most, 0))[-most:]
        start = int(self.best.argmax()) * self.width
        return np.array([start + int(keys[start : start + self.width].argmax())])

    def changed(self, keys: Units, scalar: int, pages: Pages) -> None:
        blocks = np.unique(pages // self.width)
        inside = np.minimum(blocks[:, None] * self.width + np.arange(self.width), keys.size - 1)
        self.best[blocks] = keys[inside].max(axis=1)


@dataclass(slots=True)
class Cycle:
    """All pages in turn: the offline computation on line (Gauss-Seidel)."""

    pointer: int = 0

    def pick(self, keys: Units, scalar: int, most: int) -> Pages:
        start, stop = self.pointer, min(keys.size, self.pointer + most)
        self.pointer = stop % keys.size
        return np.arange(start, stop)

    def changed(self, keys: Units, scalar: int, pages: Pages) -> None:
        """The order does not depend on cash."""


@dataclass(slots=True)
class Random:
    """Pages drawn uniformly (distinct within one pick)."""

    rng: np.random.Generator

    def pick(self, keys: Units, scalar: int, most: int) -> Pages:
        return np.unique(self.rng.integers(keys.size, size=most))

    def changed(self, keys: Units, scalar: int, pages: Pages) -> None:
        """The draw does not depend on cash."""


class Buckets:
    """Nearly the richest page: stacks of pages whose cash has the same number of bits.

    Holds: a page is live in one stack, the one of `level[page]`; an entry elsewhere is stale and dropped when met.
    Cash that grew by the scalar alone moves no page, so the stacks are rebuilt every n/2 picked pages.
    """

    def __init__(self, keys: Units, scalar: int) -> None:
        self._rebuild(keys, scalar)

    def _rebuild(self, keys: Units, scalar: int) -> None:
        self.level = _bits(keys + scalar)
        order = np.argsort(self.level, kind="stable")
        ends = np.searchsorted(self.level[order], np.arange(65))
        self.stacks = [order[a:b].tolist() for a, b in pairwise(ends.tolist())]
        self.left = max(1, keys.size // 2)

    def pick(self, keys: Units, scalar: int, most: int) -> Pages:
        if self.left <= 0:
            self._rebuild(keys, scalar)
        picked: list[int] = []
        for bits in range(63, -1, -1):
            stack = self.stacks[bits]
            while stack and len(picked) < most:
                page = stack.pop()
                if self.level[page] == bits:
                    self.level[page] = -1
                    picked.append(page)
        self.left -= len(picked)
        return np.array(picked, np.int64)

    def changed(self, keys: Units, scalar: int, pages: Pages) -> None:
        touched = np.unique(pages)
        now = _bits(keys[touched] + scalar)
        moved = now != self.level[touched]
        self.level[touched[moved]] = now[moved]
        for page, bits in zip(touched[moved].tolist(), now[moved].tolist(), strict=True):
            self.stacks[bits].append(page)


def _bits(cash: Units) -> Pages:
    """Number of bits of each cash (exact below 2^53, which is 10^11 pages' worth): int64[n]."""
    return np.frexp(cash.astype(np.float64))[1].astype(np.int64)
