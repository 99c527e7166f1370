"""Audit reads: pages chosen at random by importance, whatever is thought of their staleness (refresh/meter.py).

    choose    at the end of a turn: the pages to be read now, beside what the plan orders
    settled   the order of a page was answered: was it an audit, it counts
    lost      the order was taken back, or could not be given: the audit counts for nothing

A page that is out already when it is chosen is not ordered again: the read that is under way becomes the audit. To pass
it over would favour pages that the plan thinks fresh. An audit whose read failed temporarily says nothing, and counts
as missed; one that found the page gone found it changed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from xyro.metadata import keys
from xyro.metadata.manager import Partition
from xyro.metadata.states import LEASED
from xyro.refresh.meter import BLOCK, Blocks, Found, Window, found

OWED = 16.0
"""most audits that wait to be made; what a pause leaves unread is not made up for"""
LOOKS = 8
"""blocks looked at for each audit; of a million pages each is looked at anew every 31 audits"""
FIRST_LOOKS = 16
"""blocks looked at in one turn while some were never: 1 ms"""
_WINDOW = keys.META.key("audits")


class Audits:
    """Of one partition. importance: of the pages start .. stop - 1, 0 of those that are not refreshed.

    Invariant: whether a page is chosen depends on its importance alone. The draws follow from the directory's seed and
    the number of the draw, so a turn that is made again draws the same.
    """

    def __init__(self, partition: Partition, importance: Callable[[int, int], NDArray[np.float64]]) -> None:
        self.partition = partition
        self.importance = importance
        self.share = 0.0
        """of the reads of pages that had been read before"""
        self.window = Window()
        self.pending: dict[int, float] = {}
        """pages whose audit is out -> weight"""
        self.made = self.missed = 0
        self._blocks = Blocks()
        self._owed = 0.0
        self._draws = 0
        self._stored = True

    def answered(self, reads: int) -> None:
        """So many pages were read again. (First reads owe none: to read a page of just now again would say nothing.)"""
        self._owed = min(self._owed + self.share * reads, OWED)

    def choose(self, allowance: int) -> list[int]:
        """Pages to order now, none of which is out; at most `allowance`. 60 us each, nothing while none is owed."""
        chosen: list[int] = []
        if self._owed < 1.0 or not self._prepared():
            return chosen
        while self._owed >= 1.0 and len(chosen) < allowance:
            self._owed -= 1.0
            page = self._draw()
            if page is not None and not self.partition.flags[page] & LEASED and page not in chosen:
                chosen.append(page)
        return chosen

    def settled(self, page: int, changed: bool | None, expected: float, now: float) -> None:
        """A read of `page` ended. changed: None where that is not known; expected: probability that it was fresh."""
        weight = self.pending.pop(page, 0.0)
        if not weight:
            return
        if changed is None:
            self.missed += 1
        else:
            self.made += 1
            self.window.add(not changed, expected, weight, now)
        self._stored = False

    def lost(self, page: int) -> None:
        """No read of `page` will say anything."""
        if self.pending.pop(page, 0.0):
            self.missed += 1
            self._stored = False

    def _prepared(self) -> bool:
        """Was every block of pages looked at? New ones are, some at a time."""
        pages = self.partition.columns.n
        looks = min(LOOKS, len(self._blocks)) if self._blocks.whole(pages) else FIRST_LOOKS
        for _ in range(looks):
            block = self._blocks.behind(pages)
            if block * BLOCK < pages:
                self._blocks.look(block, self._of(block))
        return self._blocks.whole(pages)

    def _draw(self) -> int | None:
        self._draws += 1
        facts = self.partition.facts
        draw = random.Random(f"{facts['seed']}:{self.partition.number}:{self._draws}")
        block = self._blocks.block(draw.random())
        one = None if block is None else self._blocks.page(block, self._of(block), draw.random())
        if one is None:
            return None
        self.pending[one.page] = self.pending.get(one.page, 0.0) + one.weight
        return one.page

    def _of(self, block: int) -> NDArray[np.float64]:
        return self.importance(block * BLOCK, min((block + 1) * BLOCK, self.partition.columns.n))

    # -- state ---------------------------------------------------------------------------------------------------

    def store(self) -> None:
        """Put what changed into the open commit group."""
        if not self._stored:
            self.partition.put(_WINDOW, msgpack.packb([self.made, self.missed, self.window.dump()]))
            self._stored = True

    def dump(self) -> dict[str, Any]:
        return {"owed": self._owed, "draws": self._draws}

    def load(self, state: Mapping[str, Any]) -> None:
        self._owed, self._draws = state["owed"], state["draws"]
        stored = self.partition.get(_WINDOW)
        if stored:
            self.made, self.missed, window = msgpack.unpackb(stored)
            self.window = Window.load(window)


def together(parts: list[tuple[Audits, float]]) -> Found:
    """What the audits of partitions say; each with the importance of its pages."""
    return found((audits.window, importance) for audits, importance in parts)
