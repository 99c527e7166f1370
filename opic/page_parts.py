"""Numbers of millions of pages, a part of the pages at a time: the memory is that of a part, which a processor's cache
holds, and who works between other work (an event loop) may stop after each part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from xyro.opic.arrays import Pages, Reals

PART = 1 << 16
"""pages"""
TURN_PART = 1 << 14
"""pages whose sums one turn takes anew: .3 ms, so those of 10 M are 610 turns old at most"""
NEW_PARTS = 8
"""most parts that one turn measures for the first time: a turn brings no more new pages than that"""
Values = Callable[[slice], Reals]


def parts(count: int, size: int = PART) -> Iterator[slice]:
    """Slices of the pages 0 .. count - 1, in order."""
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def in_parts(values: Values, count: int) -> Reals:
    """The values of all pages: float64[count]."""
    found = np.empty(count)
    for part in parts(count):
        found[part] = values(part)
    return found


def greatest(values: Values, count: int, wanted: int) -> tuple[Pages, Reals]:
    """The pages of the `wanted` greatest values, the greatest first (of equal ones the lower page), and these values.

    NaN: a page that is not to be among them.
    """
    pages, best = np.empty(0, np.int64), np.empty(0)
    for part in parts(count):
        here = values(part)
        some = np.flatnonzero(here >= best[-1]) if len(best) >= wanted > 0 else np.flatnonzero(~np.isnan(here))
        pages, best = np.concatenate([pages, some + part.start]), np.concatenate([best, here[some]])
        if len(best) > wanted:
            order = np.argsort(-best, kind="stable")[:wanted]
            pages, best = pages[order], best[order]
    order = np.argsort(-best, kind="stable")
    return pages[order], best[order]


class Mass(NamedTuple):
    """Sums over pages: of the importance of those of this partition, of all entries, and how many of these have any."""

    own: float
    entries: float
    positive: float


class RunningMass:
    """The Mass of a partition, of which `step` takes a part anew: never all at once, as old as a round at most.

    `measure`: the sums of a part as they are now.
    """

    def __init__(self, measure: Callable[[slice], Mass]) -> None:
        self._measure = measure
        self._parts: list[Mass] = []
        self._sum = Mass(0.0, 0.0, 0.0)
        self._next = 0

    def step(self, count: int) -> bool:
        """Take the next part of the pages 0 .. count - 1 anew, and the first ones that never were, so that a look finds
        none of them; True where the dump is another one: a round ends, or it covers more."""
        before = len(self._parts)
        self._take(self._next, count)
        self._next = self._next + 1 if (self._next + 1) * TURN_PART < count else 0
        for _ in range(NEW_PARTS):
            if len(self._parts) * TURN_PART < count:
                self._take(len(self._parts), count)
        return not self._next or len(self._parts) > before

    def _take(self, part: int, count: int) -> None:
        """Take a part anew, the last one or the one after it."""
        start = part * TURN_PART
        found, old = self._measure(slice(start, min(start + TURN_PART, count))), Mass(0.0, 0.0, 0.0)
        if part < len(self._parts):
            old, self._parts[part] = self._parts[part], found
        else:
            self._parts.append(found)
        self._sum = Mass(*(total + new - gone for total, new, gone in zip(self._sum, found, old, strict=True)))

    def total(self, count: int) -> Mass:
        """Of the pages 0 .. count - 1; what was never measured is measured now."""
        if count <= PART:
            return self._measure(slice(0, count))
        while len(self._parts) * TURN_PART < count:
            self._take(len(self._parts), count)
        return self._sum

    def dump(self) -> list[float]:
        """The state, to be stored."""
        return [len(self._parts), *self._sum]

    def load(self, state: list[float]) -> None:
        """Go on from a dump: all parts alike until they are taken anew."""
        count, self._sum = int(state[0]), Mass(*state[1:])
        self._parts = [Mass(*(value / count for value in self._sum))] * count
