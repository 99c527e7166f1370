"""Which pages to spend next: the threshold sweep that the crawler uses, and its rivals (algorithms.md D).

A selector sees the key column and the virtual page's scalar: a page's cash is key + scalar. The sweep walks the
column with a cyclic pointer and takes the pages with cash >= theta; theta follows the share of pages it finds rich.
It keeps nothing per page, reads memory in order, costs a twentieth of a heap and ends with less error than exact
greedy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
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
        self.renew(keys)

    def renew(self, keys: Units) -> None:
        """Any keys may have changed."""
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
    """Nearly the richest page: stacks of pages whose cash has the same number of bits, as doubly linked lists.

    top[b] is the page on top of stack b, below[p] and above[p] are p's neighbours in its stack (-1: none); level[p] is
    the stack p lies in, -1 for a page picked and not heard of since. Cash that grew by the scalar alone moves no page,
    so the stacks are rebuilt every n/2 picked pages.
    """

    LEVELS = 64

    def __init__(self, keys: Units, scalar: int) -> None:
        self.rebuild(keys, scalar)

    def rebuild(self, keys: Units, scalar: int) -> None:
        """Stack all pages anew by the cash they hold."""
        n = keys.size
        self.level = _bits(keys + scalar)
        order = np.argsort(self.level, kind="stable")
        same = self.level[order[1:]] == self.level[order[:-1]]
        self.below, self.above = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
        self.below[order[1:][same]] = order[:-1][same]
        self.above[order[:-1][same]] = order[1:][same]
        self.top = np.full(self.LEVELS, -1, np.int64)
        tops = order[np.append(~same, True)] if n else order
        self.top[self.level[tops]] = tops
        self.left = max(1, n // 2)

    def pick(self, keys: Units, scalar: int, most: int) -> Pages:
        if self.left <= 0:
            self.rebuild(keys, scalar)
        picked: list[int] = []
        for bits in range(self.LEVELS - 1, -1, -1):
            while len(picked) < most and (page := int(self.top[bits])) >= 0:
                self._unlink(page)
                picked.append(page)
        self.left -= len(picked)
        return np.array(picked, np.int64)

    def changed(self, keys: Units, scalar: int, pages: Pages) -> None:
        touched = np.unique(pages)
        now = _bits(keys[touched] + scalar)
        moved = now != self.level[touched]
        for page, bits in zip(touched[moved].tolist(), now[moved].tolist(), strict=True):
            self._unlink(page)
            self._push(page, bits)

    def _push(self, page: int, bits: int) -> None:
        old = int(self.top[bits])
        self.level[page], self.below[page], self.above[page], self.top[bits] = bits, old, -1, page
        if old >= 0:
            self.above[old] = page

    def _unlink(self, page: int) -> None:
        bits, below, above = int(self.level[page]), int(self.below[page]), int(self.above[page])
        if bits < 0:
            return
        if above >= 0:
            self.below[above] = below
        else:
            self.top[bits] = below
        if below >= 0:
            self.above[below] = above
        self.level[page] = -1


def _bits(cash: Units) -> Pages:
    """Number of bits of each cash (exact below 2^53, which is 10^11 pages' worth): int64[n]."""
    return np.frexp(cash.astype(np.float64))[1].astype(np.int64)
