"""Nearly the richest page, by the power of two of its cash: linked stacks, or a byte a page.

Both give a page whose cash has as many bits as the richest one's (buckets by powers of two). Cash that
grew by the virtual page alone moves nobody, so both are made anew every n/2 picked pages.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from xyro.lab.opic.selectors import Cash
from xyro.opic.arrays import Pages, Units

LEVELS = 64


class Buckets:
    """Stacks of pages whose cash has the same number of bits, as doubly linked lists: no search, 24 B a page.

    top[b] is the page on top of stack b, below[p] and above[p] are p's neighbours in its stack (-1: none); level[p] is
    the stack p lies in, -1 for a page picked and not heard of since.
    """

    LEVELS = LEVELS

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

    def pick(self, cash: Cash, limit: int) -> Pages:
        if self.left <= 0:
            self.rebuild(cash.keys, cash.scalar)
        picked: list[int] = []
        for bits in range(self.LEVELS - 1, -1, -1):
            while len(picked) < limit and (page := int(self.top[bits])) >= 0:
                self._unlink(page)
                picked.append(page)
        self.left -= len(picked)
        return np.array(picked, np.int64)

    def changed(self, cash: Cash, pages: Pages) -> None:
        touched = np.unique(pages)
        now = _bits(cash.of_pages(touched))
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


class Levels:
    """The pages by level of cash, in 1 byte a page: the buckets' choice in less RAM.

    level[p] is the number of bits of p's cash, counts[block, b] the number of pages of a block at level b; the pages of
    a level are looked up block by block.

    A level is of the cash that a page would hold had the virtual page paid nothing since `base`: so it follows from the
    key alone.
    """

    BLOCK = 4096

    def __init__(self) -> None:
        self.base = 0
        """scalar of when the levels were last made anew"""
        self.pointer = self.left = 0
        self.level: NDArray[np.int8] = np.empty(0, np.int8)
        self.counts = np.zeros((0, LEVELS), np.int64)

    def pick(self, cash: Cash, limit: int) -> Pages:
        if self.left <= 0:
            self._renew(cash)
        picked = self._pick(limit)
        if not picked.size:  # the virtual page may have paid since
            self._renew(cash)
            return self._pick(limit)
        self.left -= picked.size
        self.pointer = int(picked[-1]) + 1
        return picked

    def _pick(self, limit: int) -> Pages:
        found: list[Pages] = [np.empty(0, np.int64)]
        for pages in self._from_the_top():
            if limit <= 0:
                break
            found.append(pages[:limit])
            limit -= found[-1].size
        return np.concatenate(found)

    def changed(self, cash: Cash, pages: Pages) -> None:
        touched = np.unique(pages)
        touched = touched[touched < self.level.size]
        if touched.size:
            self._move(touched, self._levels(cash, touched))

    def _renew(self, cash: Cash) -> None:
        """Make all levels anew by the cash that pages hold."""
        n = cash.size
        self.base, self.left = cash.scalar, max(1, n // 2)
        pages = np.arange(n)
        self.level = self._levels(cash, pages)
        self.counts = np.zeros((-(-n // self.BLOCK), LEVELS), np.int64)
        np.add.at(self.counts, (pages // self.BLOCK, self.level), 1)

    def _levels(self, cash: Cash, pages: Pages) -> NDArray[np.int8]:
        return _bits(np.maximum(cash.keys[pages] + self.base, 0)).astype(np.int8)

    def _move(self, pages: Pages, levels: NDArray[np.int8]) -> None:
        blocks = pages // self.BLOCK
        np.subtract.at(self.counts, (blocks, self.level[pages]), 1)
        self.level[pages] = levels
        np.add.at(self.counts, (blocks, self.level[pages]), 1)

    def _from_the_top(self) -> Iterator[Pages]:
        """Pages of the highest level, block by block from the pointer on, then of the next; none of level 0."""
        here = self.pointer // self.BLOCK
        for bits in np.flatnonzero(self.counts[:, 1:].any(axis=0))[::-1] + 1:
            blocks = np.flatnonzero(self.counts[:, bits])
            for block in np.roll(blocks, -int(blocks.searchsorted(here))):
                start = int(block) * self.BLOCK
                pages = np.flatnonzero(self.level[start : start + self.BLOCK] == bits) + start
                yield np.roll(pages, -int(pages.searchsorted(self.pointer))) if block == here else pages


def _bits(cash: Units) -> Pages:
    """Number of bits of each cash (exact below 2^53, which is 10^11 pages' worth): int64[n]."""
    return np.frexp(cash.astype(np.float64))[1].astype(np.int64)
