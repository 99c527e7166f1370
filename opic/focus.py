"""The virtual page as an instrument: classes of pages that it pays unlike shares (P2, personalisation and focus).

The virtual page "links to all pages"; nothing in the algorithm asks that its links weigh the same. Here each page is in
one of 16 classes, and what the virtual page pays is shared out in proportion to the weights of the classes: a focus
gets several times an ordinary page's share, a class of weight 0 nothing, so that the virtual page's payouts are the
personalisation vector of PageRank. Each class has a scalar of its own, so a payout is still O(1), and a page's cash is
key + scalar of its class. A page that changes its class takes its cash along: its key moves by the scalars'
difference (`moved`).

The link graph itself may weigh links differently too (`Terms`): internal links get less of what their page spends, and
pages with a query give less of it to their links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import Any

import numpy as np
from msgspec import Struct

from xyro.opic.arrays import Pages, Units
from xyro.opic.cash import LINK, VirtualPage

CLASSES = 16
EQUAL = (1,) * CLASSES
"""weights that make no difference"""
HUNDREDTH = 100
"""shares are set to a hundredth of an ordinary page's"""


class Terms(Struct, frozen=True):
    """Terms of sharing cash beside the damping: small edges, the virtual page's payees, weights of links (LINK = 1)."""

    edge: float = 0.0
    """weight of the small edge to the virtual page (opic.cash.Tolls); 0: constant damping"""
    weights: tuple[int, ...] = EQUAL
    """of the classes"""
    internal: int = LINK
    """weight of a link within its host beside the page's other links"""
    query: int = LINK
    """voice of a page whose URL has a query (opic.cash.Tolls.of)"""

    @property
    def by_class(self) -> bool:
        return len(set(self.weights)) > 1

    @property
    def by_query(self) -> bool:
        return self.query != LINK


def weights_of(shares: Sequence[float], unread: float) -> tuple[int, ...]:
    """Integer weights of 16 classes: class 2 s holds read pages of share shares[s], 2 s + 1 unread ones, which get
    `unread` times as much. Classes beyond them weigh like class 0 or 1. ValueError: more than 8 shares, one below 0.

    Rounded to hundredths, in lowest terms; all 0 counts as all equal.
    """
    if not 0 < len(shares) <= CLASSES // 2 or min(*shares, unread) < 0:
        raise ValueError(f"shares {shares}, unread {unread}: 1 to {CLASSES // 2} shares of 0 and more")
    pairs = [(round(share * HUNDREDTH) * HUNDREDTH, round(share * HUNDREDTH) * round(unread * HUNDREDTH))
             for share in shares]  # fmt: skip
    pairs += pairs[:1] * (CLASSES // 2 - len(pairs))
    flat = [weight for pair in pairs for weight in pair]
    common = gcd(*flat)
    return tuple(weight // common for weight in flat) if common else EQUAL


class FocusedPage(VirtualPage):
    """The virtual page over classes; with weights all alike it does what VirtualPage does, unit for unit.

    counts[k]   pages of class k >= 1; class 0 has all others. scalars[k]: paid to each page of class k since the crawl
    began (scalars[0] is `scalar`); rests[k] / scale: the part of a unit that a page of class k is owed beyond that, so
    that shares stay exact in the long run however small a payout is. `account` holds the units behind it.

    While pages of weight 0 are all that is known, all are paid alike: cash that nobody may get would be lost to the
    crawl.
    """

    __slots__ = ("counts", "rests", "scalars", "scale", "weights")

    def __init__(self, weights: Sequence[int] = EQUAL, pot: int = 0, account: int = 0, scalar: int = 0) -> None:
        super().__init__(pot, account, scalar)
        if len(weights) != CLASSES or min(weights) < 0 or not any(weights):
            raise ValueError(f"FocusedPage: {CLASSES} weights of 0 and more, one of them above")
        self.weights = tuple(weights)
        self.scale = max(weights)
        self.scalars: Units = np.zeros(CLASSES, np.int64)
        self.scalars[0] = scalar
        self.counts = [0] * CLASSES
        self.rests = [0] * CLASSES

    @classmethod
    def over(cls, page: VirtualPage, weights: Sequence[int]) -> FocusedPage:
        """A virtual page whose pages are all of class 0 so far."""
        return cls(weights, page.pot, page.account, page.scalar)

    def weighted(self, pages: int) -> int:
        """The `pages` known pages of this partition, each counted as often as its class weighs."""
        return sum(weight * count for weight, count in zip(self.weights, self._counts(pages), strict=True))

    def settle(self, pages: int) -> int:
        """Share the account out to the classes; returns by how much class 0's scalar rose. The account keeps less than
        a unit a page of the heaviest class."""
        counts = self._counts(pages)
        weights = self.weights if self.weighted(pages) else (self.scale,) * CLASSES
        total = sum(weight * count for weight, count in zip(weights, counts, strict=True))
        owed = sum(rest * count for rest, count in zip(self.rests, counts, strict=True))
        level = max(0, self.account * self.scale - owed) // total if total else 0
        if level == 0:
            return 0
        raised = []
        for k, weight in enumerate(weights):
            units, self.rests[k] = divmod(self.rests[k] + weight * level, self.scale)
            raised.append(units)
            self.account -= units * counts[k]
        self.scalars = self.scalars + np.array(raised, np.int64)  # a new array: a selector may have kept the old one
        self.scalar += raised[0]
        return raised[0]

    def joined(self, classes: Pages) -> Units:
        """New pages of these classes: their keys, int64[n], which hold no cash."""
        self._count(classes, 1)
        return -self.scalars[classes]

    def moved(self, old: Pages, new: Pages) -> Units:
        """Pages go from class to class: what their keys change by, int64[n], so that their cash stays."""
        self._count(old, -1)
        self._count(new, 1)
        shift: Units = self.scalars[old] - self.scalars[new]
        return shift

    def recount(self, classes: Pages) -> None:
        """These are the classes of all known pages."""
        self.counts = [0, *np.bincount(classes, minlength=CLASSES)[1:].tolist()]

    def dump(self) -> dict[str, Any]:
        """The dump of VirtualPage where all pages are in class 0 and nothing asks for another."""
        if not any(self.counts) and len(set(self.weights)) == 1:
            return super().dump()
        return {**super().dump(), "scalars": self.scalars.tolist(), "rests": list(self.rests), "scale": self.scale}

    @classmethod
    def restore(cls, state: Mapping[str, Any], weights: Sequence[int]) -> FocusedPage:
        """The page that `dump` described, under the weights of now; `recount` follows. KeyError: one is missing."""
        page = cls.over(VirtualPage.load(state), weights)
        if "scalars" in state:
            page.scalars[:] = state["scalars"]
            if state["scale"] == page.scale:
                page.rests = list(state["rests"])
        return page

    def _counts(self, pages: int) -> list[int]:
        return [pages - sum(self.counts), *self.counts[1:]]

    def _count(self, classes: Pages, sign: int) -> None:
        for k, count in enumerate(np.bincount(classes, minlength=CLASSES).tolist()):
            if k and count:
                self.counts[k] += sign * count
