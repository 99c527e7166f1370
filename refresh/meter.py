"""The audit of freshness: pages read at random, whatever the plan thinks of them, and what that proves.

A page is chosen with a probability in proportion to its importance, so the share of audited pages that had not changed
since they were last read estimates the importance-weighted freshness without bias (Hansen-Hurwitz), whether changes are
Poisson or not and whatever the model believes. Each audit is a coin of its own, fresh with the freshness of its moment;
so Wilson's interval (JASA 1927) holds for the mean over the window, and is wide where coins are few.

Choosing in proportion from millions of pages has to be cheap: `Blocks` keeps the importance of each run of BLOCK pages
as it last saw it, chooses a block by that and a page in it by the importances of now. That a block's sum has moved
since makes its pages more or less likely than they should be by a factor that is then known; the audit weighs as much.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

WINDOW = 512
"""audits that count: half a 95 % interval is 3.5 points at a freshness of .8"""
PARTS = 16
"""the window moves on by a part"""
Z = 1.959964
"""of 95 %"""
BLOCK = 4096
"""pages a block: 50 us to look at"""


@dataclass(slots=True)
class Part:
    """Sums over audits that followed each other."""

    audits: int = 0
    weights: float = 0.0
    squares: float = 0.0
    """sum of squared weights"""
    fresh: float = 0.0
    """sum of the weights of pages that had not changed"""
    expected: float = 0.0
    """sum of weight x the probability of that by the model"""
    since: float = 0.0
    """first audit, seconds"""

    def numbers(self) -> list[float]:
        return [self.audits, self.weights, self.squares, self.fresh, self.expected, self.since]


class Found(NamedTuple):
    """What audits say: the mean freshness over the time of the window, all weighted by importance."""

    freshness: float | None
    """None: nothing was audited yet"""
    low: float
    high: float
    """the 95 % interval"""
    expected: float | None
    """what the model expected of the same pages at the same moments"""
    audits: int
    since: float
    """the window's first audit, seconds"""


@dataclass(slots=True)
class Window:
    """The last WINDOW audits, to within a part. 16 x 6 numbers."""

    parts: list[Part] = field(default_factory=list)

    def add(self, fresh: bool, expected: float, weight: float, now: float) -> None:
        """A page was audited. weight: as its importance was chosen for, about 1."""
        if not self.parts or self.parts[-1].audits >= WINDOW // PARTS:
            self.parts = [*self.parts[1 - PARTS :], Part(since=now)]
        part = self.parts[-1]
        part.audits += 1
        part.weights += weight
        part.squares += weight * weight
        part.fresh += weight * fresh
        part.expected += weight * expected

    @property
    def whole(self) -> Part:
        """All parts together."""
        whole = Part(since=self.parts[0].since if self.parts else 0.0)
        for part in self.parts:
            whole.audits += part.audits
            whole.weights += part.weights
            whole.squares += part.squares
            whole.fresh += part.fresh
            whole.expected += part.expected
        return whole

    def dump(self) -> list[list[float]]:
        return [part.numbers() for part in self.parts]

    @classmethod
    def load(cls, state: Iterable[Sequence[float]]) -> Window:
        """Take over what `dump` gave."""
        return cls([Part(int(audits), *sums) for audits, *sums in state])


def found(windows: Iterable[tuple[Window, float]]) -> Found:
    """What the windows of partitions say together; each with the importance of its pages, which strata weigh."""
    held = [(part, size) for window, size in windows if (part := window.whole).audits and size > 0.0]
    if not held:
        return Found(None, 0.0, 1.0, None, 0, 0.0)
    total = sum(size for _, size in held)
    fresh = sum(size * part.fresh / part.weights for part, size in held) / total
    expected = sum(size * part.expected / part.weights for part, size in held) / total
    spread = sum(size * size * part.squares / (part.weights * part.weights) for part, size in held)
    low, high = wilson(fresh, total * total / spread)
    return Found(fresh, low, high, expected, sum(part.audits for part, _ in held), min(part.since for part, _ in held))


def wilson(share: float, coins: float, z: float = Z) -> tuple[float, float]:
    """Wilson's interval of a share seen in so many coins (of unequal weights: Kish's effective number)."""
    if coins <= 0.0:
        return 0.0, 1.0
    square = z * z / coins
    middle = (share + 0.5 * square) / (1.0 + square)
    half = z / (1.0 + square) * math.sqrt(max(share * (1.0 - share) / coins, 0.0) + 0.25 * square / coins)
    return max(0.0, middle - half), min(1.0, middle + half)


class Chosen(NamedTuple):
    page: int
    weight: float
    """the importance of its block now by what it was when the block was chosen by it: about 1"""


class Blocks:
    """Importance by block of pages, as last seen. 8 bytes for 4,096 pages.

    `look` at every block now and then (`behind` says which is next); until all were seen once nothing is chosen.
    """

    def __init__(self) -> None:
        self._sums: Reals = np.zeros(0)
        self._next = 0

    def __len__(self) -> int:
        return len(self._sums)

    def whole(self, pages: int) -> bool:
        """Has every block of so many pages been looked at?"""
        return len(self._sums) * BLOCK >= pages

    def behind(self, pages: int) -> int:
        """The block to look at next: a new one, else each in its turn."""
        if not self.whole(pages):
            return len(self._sums)
        self._next = (self._next + 1) % max(1, len(self._sums))
        return self._next

    def look(self, block: int, importance: Reals) -> None:
        """The importance of a block's pages is now; 0 of those that cannot be audited."""
        if block == len(self._sums):
            self._sums = np.append(self._sums, 0.0)
        self._sums[block] = importance.sum()

    def block(self, random: float) -> int | None:
        """A block in proportion to its importance; random: 0 <= random < 1. None: no importance anywhere."""
        sums = np.cumsum(self._sums)
        if not len(sums) or not sums[-1] > 0.0:
            return None
        return min(int(np.searchsorted(sums, random * sums[-1], side="right")), len(sums) - 1)

    def page(self, block: int, importance: Reals, random: float) -> Chosen | None:
        """A page of the chosen block, in proportion to the importances of now. None: none of it can be audited."""
        before = float(self._sums[block])
        self.look(block, importance)
        sums = np.cumsum(importance)
        if not sums[-1] > 0.0:
            return None
        place = int(np.searchsorted(sums, random * sums[-1], side="right"))
        return Chosen(block * BLOCK + min(place, len(sums) - 1), float(sums[-1]) / before)
