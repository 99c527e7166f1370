"""Integer cash: how a page shares what it holds, and the virtual page that pays everybody alike (algorithms.md A, C).

Cash is counted in units, 2^16 to a page: no measurable loss of precision, and sums are exact on any machine in any
order. With damping c a page that holds e pays floor(e (1-c)) to the virtual page and the rest R to its d links: R //
d each, and one unit more to R mod d neighbouring links from a pseudo-random start, so nothing is lost, nobody is
favoured and a replay repeats every unit. A page without links pays everything to the virtual page (P2 s.2; fixpoint:
PageRank with damping c).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from opic.arrays import Mask, Pages, Seeds, Units

UNIT = 65_536
"""units of cash in a page's worth; every known page mints one page's worth (2^12 would still be exact to 0.02 %)"""
DAMPING = 0.85
PAYOUT_SHARE = 1000
"""the virtual page pays out once it holds 1/1000 of all cash; 0.1, 1 and 5 % gave the same error (algorithms.md A)"""

_BITS = 31
"""1-c is used as a rational over 2^31: off by at most 2.4e-10, and every product below stays within int64"""
_LOW = (1 << _BITS) - 1


def seeds_of(pages: Pages, visits: Pages | int) -> Seeds:
    """A well-mixed number for (page id, visit number), the same on every replay: uint64[n] (splitmix64's finaliser)."""
    x = pages.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.asarray(visits).astype(np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def teleport(cash: Units, damping: float = DAMPING) -> Units:
    """floor(cash (1-damping)) in integers, for any cash of 0..2^63-1: int64[n]. ValueError: damping outside 0..1."""
    if not 0 <= damping <= 1:
        raise ValueError(f"damping {damping}: between 0 and 1")
    weight = round((1 - damping) * (1 << _BITS))
    virtual: Units = (cash >> _BITS) * weight + (((cash & _LOW) * weight) >> _BITS)
    return virtual


def shares(cash: Units, indptr: Pages, seeds: Seeds, damping: float = DAMPING) -> tuple[Units, Units]:
    """Split what pages spend: page i spends cash[i] over links indptr[i]:indptr[i+1].

    Returns (virtual int64[n], amounts int64[m]): virtual[i] + sum of page i's amounts == cash[i], to the unit. Self
    links and repeated links are links like any other. ValueError: cash below 0, lengths that do not fit.
    """
    if cash.size + 1 != indptr.size or seeds.size != cash.size:
        raise ValueError(f"shares: {cash.size} pages, {indptr.size} row pointers, {seeds.size} seeds")
    if cash.size and cash.min() < 0:
        raise ValueError("shares: cash is never below 0")
    degree = np.diff(indptr)
    links = np.maximum(degree, 1)
    virtual = np.where(degree > 0, teleport(cash, damping), cash)
    each, odd = np.divmod(cash - virtual, links)
    start = (seeds % links.astype(np.uint64)).astype(np.int64)
    return virtual, _in_runs(degree, each, odd, start)


def _in_runs(degree: Pages, each: Units, odd: Units, start: Pages) -> Units:
    """Amounts link by link: links start .. start+odd-1 (mod degree) get each+1, the others each.

    Round a page's links these are at most three runs of equal amounts, so one np.repeat writes them all.
    """
    end = start + odd
    wraps: Mask = end > degree
    runs = np.empty((degree.size, 3), np.int64)
    runs[:, 0] = np.where(wraps, end - degree, start)
    runs[:, 1] = np.where(wraps, degree - odd, odd)
    runs[:, 2] = degree - runs[:, 0] - runs[:, 1]
    amounts = np.empty((degree.size, 3), np.int64)
    amounts[:, 0] = amounts[:, 2] = each + wraps
    amounts[:, 1] = each + ~wraps
    return np.repeat(amounts.ravel(), runs.ravel())


def credit(keys: Units, targets: Pages, amounts: Units) -> None:
    """Add each amount to its target's key, in place; a target may occur often (2-3 ns a link)."""
    np.add.at(keys, targets, amounts)


class VirtualPage:
    """The page that links to all and is linked by all, in three integers (design.md section 6, Partitions).

    pot      income gathered here and not yet shared out (on partition 0: everybody's; elsewhere: until it is sent
    there) account  what was paid to this partition and is not yet in its scalar: less than a unit a page after `settle`
    scalar   paid to each page of this partition since the crawl began. A page's key is its cash minus the scalar of
             the moment, so cash = key + scalar, and raising the scalar pays every page in O(1)

    Holds: sum of (key + scalar) over the pages + pot + account + transfers on their way = UNIT x pages.
    A new page has key -scalar (no cash): its UNIT is minted into the pot (algorithms.md C: growing graph).
    """

    __slots__ = ("account", "pot", "scalar")

    def __init__(self, pot: int = 0, account: int = 0, scalar: int = 0) -> None:
        if min(pot, account, scalar) < 0:
            raise ValueError("VirtualPage: pot, account and scalar are >= 0")
        self.pot, self.account, self.scalar = pot, account, scalar

    @property
    def held(self) -> int:
        """Units the virtual page holds here."""
        return self.pot + self.account

    def receive(self, units: int) -> None:
        """Income from pages spent here, or from another partition. ValueError: below 0."""
        if units < 0:
            raise ValueError("VirtualPage.receive: units >= 0")
        self.pot += units

    def mint(self, pages: int) -> None:
        """`pages` pages became known: each brings one page's worth of new cash."""
        self.receive(UNIT * pages)

    def due(self, pages: int) -> bool:
        """The pot holds at least 1/PAYOUT_SHARE of the cash of `pages` pages (all the crawl knows)."""
        return pages > 0 and self.pot * PAYOUT_SHARE >= UNIT * pages

    def pay(self, pages: int) -> int:
        """One partition: pay the pot to its `pages` pages if it is due. Returns by how much the scalar rose."""
        if not self.due(pages):
            return 0
        self.deposit(self.split([pages])[0])
        return self.settle(pages)

    def take(self) -> int:
        """Partition q: empty the pot, to be sent to partition 0."""
        units, self.pot = self.pot, 0
        return units

    def split(self, known: Sequence[int]) -> list[int]:
        """Partition 0: what each partition q gets, floor(V N_q / N); the pot keeps the remainder."""
        pages = sum(known)
        parts = [self.pot * part // pages for part in known] if pages else [0] * len(known)
        self.pot -= sum(parts)
        return parts

    def deposit(self, units: int) -> None:
        """Partition q: a payout of partition 0 arrived. ValueError: below 0."""
        if units < 0:
            raise ValueError("VirtualPage.deposit: units >= 0")
        self.account += units

    def settle(self, pages: int) -> int:
        """Partition q: raise the scalar by floor(account / pages) and return that; the account keeps the remainder."""
        raised = self.account // pages if pages else 0
        self.account -= raised * pages
        self.scalar += raised
        return raised

    def dump(self) -> dict[str, int]:
        return {"pot": self.pot, "account": self.account, "scalar": self.scalar}

    @classmethod
    def load(cls, state: Mapping[str, int]) -> VirtualPage:
        """The page that `dump` described. KeyError: a number is missing."""
        return cls(pot=state["pot"], account=state["account"], scalar=state["scalar"])
