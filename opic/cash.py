"""Integer cash: how a page shares its cash, and the virtual page that pays all pages alike (P2 s.2-3).

This is the arithmetic; frontier/ledger.py moves the cash of a partition by it.

Cash is counted in units, 2^16 to a page: no measurable loss of precision, and sums are exact on any machine in any
order. With damping c a page that holds e pays floor(e (1-c)) to the virtual page and the rest R to its d links: R //
d each, and one unit more to R mod d neighbouring links from a pseudo-random start, so nothing is lost, nobody is
favoured and a replay repeats every unit. A page without links pays everything to the virtual page (P2 s.2; fixpoint:
PageRank with damping c). P2's small edge gives every page a damping of its own (`Tolls`), and links may weigh
differently (`_by_weight`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from xyro.opic.arrays import Mask, Pages, Reals, Seeds, Units

UNIT = 65_536
"""units of cash in a page's worth; every known page mints one page's worth (2^12 would still be exact to 0.02 %)"""
DAMPING = 0.85
LINK = 1000
"""weight of an ordinary link where links weigh differently: shares of cash are set to a thousandth"""
PAYOUT_SHARE = 1000
"""the virtual page pays out once it holds 1/1000 of all cash; with 0.1 to 5 % the error after ten reads a page is
the same, 11.3 to 11.4 %"""

GRAIN = UNIT >> 8
"""units by which the scalar rises before `Births` gets another entry: 1/16 of the least that a score counts"""
BIRTHS_A_ROW = 64
"""entries of `Births` that are stored together"""

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
    return _part(cash, round((1 - damping) * (1 << _BITS)))


def _thousandths(cash: Units, voices: Units) -> Units:
    """floor(cash voices / LINK)."""
    part: Units = cash // LINK * voices + cash % LINK * voices // LINK
    return part


def _part(cash: Units, weight: int | Units) -> Units:
    """floor(cash weight / 2^31)."""
    part: Units = (cash >> _BITS) * weight + (((cash & _LOW) * weight) >> _BITS)
    return part


class Tolls(Struct, frozen=True):
    """The share that pages with links pay the virtual page: 1 - damping of what they spend, or, where `edge` > 0, that
    of one more edge of that weight beside links of weight 1: w / (d + w), a damping of its own for every page."""

    damping: float = DAMPING
    edge: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.damping <= 1 and 0 <= self.edge < np.inf):
            raise ValueError(f"damping {self.damping}, edge {self.edge}: between 0 and 1, and 0 or more")

    def toll(self, cash: Units, links: Reals, voices: Units | None = None) -> Units:
        """The toll of pages whose links weigh links[i] > 0 together (an ordinary one 1): int64[n], 0..cash.

        voices: int64[n], 0..LINK; where one is lower, that share only of what would go along the page's links does, or
        its links weigh that much less beside the small edge.
        """
        if not self.edge:
            toll = teleport(cash, self.damping)
            return toll if voices is None else cash - _thousandths(cash - toll, voices)
        links = links if voices is None else links * voices / LINK
        return _part(cash, np.rint(self.edge / (links + self.edge) * (1 << _BITS)).astype(np.int64))


def shares(
    cash: Units,
    indptr: Pages,
    seeds: Seeds,
    damping: float | Tolls = DAMPING,
    weights: Units | None = None,
    voices: Units | None = None,
) -> tuple[Units, Units]:
    """Split what pages spend: page i spends cash[i] over links indptr[i]:indptr[i+1].

    damping: c, or how else the virtual page's share is found; weights: int64[m] >= 0 of the links, LINK for an
    ordinary one, all alike if None; voices: int64[n] of the pages (`Tolls.toll`), LINK if None.

    Returns (virtual int64[n], amounts int64[m]): virtual[i] + sum of page i's amounts == cash[i], to the unit. Self
    links and repeated links are links like any other; a page whose links all weigh nothing has none.
    ValueError: cash or weights below 0, lengths that do not fit, a page's links of 2^31 and more.
    """
    if cash.size + 1 != indptr.size or seeds.size != cash.size:
        raise ValueError(f"shares: {cash.size} pages, {indptr.size} row pointers, {seeds.size} seeds")
    if cash.size and cash.min() < 0:
        raise ValueError("shares: cash is never below 0")
    tolls = damping if isinstance(damping, Tolls) else Tolls(damping)
    if weights is not None:
        return _by_weight(cash, indptr, seeds, tolls, weights, voices)
    degree = np.diff(indptr)
    links = np.maximum(degree, 1)
    virtual = np.where(degree > 0, tolls.toll(cash, links, voices), cash)
    each, odd = np.divmod(cash - virtual, links)
    start = (seeds % links.astype(np.uint64)).astype(np.int64)
    return virtual, _in_runs(degree, each, odd, start)


def _by_weight(
    cash: Units, indptr: Pages, seeds: Seeds, tolls: Tolls, weights: Units, voices: Units | None
) -> tuple[Units, Units]:
    """`shares` over weighted links: link l of weight q_l gets floor(x_l) or one more, x_l = R q_l / Q exact.

    The page's links lie end to end on a line of R units; the marks at start/Q, 1 + start/Q ... fall into them, and a
    link gets as many units as marks: R in all, x_l on average over the starts, nothing to a link of weight 0.
    """
    if weights.size != indptr[-1] or (weights.size and weights.min() < 0):
        raise ValueError(f"shares: {weights.size} weights for {indptr[-1]} links; none is below 0")
    ends = np.concatenate(([0], np.cumsum(weights)))
    total = np.diff(ends[indptr])
    if total.size and total.max() >= 1 << _BITS:
        raise ValueError("shares: the links of a page weigh less than 2^31 together")
    scale = np.maximum(total, 1)
    virtual = np.where(total > 0, tolls.toll(cash, scale / LINK, voices), cash)
    each, odd = np.divmod(cash - virtual, scale)
    start = (seeds % scale.astype(np.uint64)).astype(np.int64)
    page = np.repeat(np.arange(cash.size), np.diff(indptr))
    before, after = (ends[shift : shift + weights.size] - ends[indptr[page]] for shift in (0, 1))
    low, high = ((odd[page] * place + start[page]) // scale[page] for place in (before, after))
    return virtual, each[page] * weights + high - low


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
    """The page that links to all and is linked by all, in three integers.

    pot      income gathered here and not yet shared out (on partition 0 everybody's; elsewhere until it is sent there)
    account  what was paid to this partition and is not yet in its scalar: less than a unit a page after `settle`
    scalar   paid to each page of this partition since the crawl began. A page's key is its cash minus the scalar of
             the moment, so cash = key + scalar, and raising the scalar pays every page in O(1)

    Holds: sum of (key + scalar) over the pages + pot + account + transfers on their way = UNIT x pages.
    A new page has key -scalar (no cash): its UNIT is minted into the pot; so T keeps its meaning as the graph grows.
    """

    __slots__ = ("account", "pot", "scalar")

    def __init__(self, pot: int = 0, account: int = 0, scalar: int = 0) -> None:
        if min(pot, account, scalar) < 0:
            raise ValueError("VirtualPage: pot, account and scalar are >= 0")
        self.pot, self.account, self.scalar = pot, account, scalar

    @property
    def balance(self) -> int:
        """Units the virtual page holds here."""
        return self.pot + self.account

    def receive(self, units: int) -> None:
        """Income from pages spent here, or from another partition. ValueError: below 0."""
        if units < 0:
            raise ValueError("VirtualPage.receive: units >= 0")
        self.pot += units

    def refill(self, units: int) -> None:
        """Let the pot hold so much: what pages here paid was counted elsewhere. ValueError: below 0."""
        if units < 0:
            raise ValueError("VirtualPage.refill: units >= 0")
        self.pot = units

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

    def split(self, counts: Sequence[int]) -> list[int]:
        """Partition 0: share the pot out, to each partition q floor(V N_q / N); the pot keeps the remainder."""
        pages = sum(counts)
        parts = [self.pot * part // pages for part in counts] if pages else [0] * len(counts)
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


class Births:
    """Scalars of the virtual page at the births of pages, by which cash that came over links is told apart.

    A page is born without cash. So until it spends, its key + the scalar at its birth is what it received over links;
    the rest of its cash is what the virtual page paid it for waiting, as it pays all pages. Page numbers are given in
    the order of birth, and the scalar only rises: a short table (first page, scalar) tells the scalar of every birth,
    to within GRAIN. `note` at each minting, `scalars` at a look. One scalar an entry, or one a class (focus.py).
    """

    def __init__(self) -> None:
        self._count = 0
        self._table: Units = np.zeros((BIRTHS_A_ROW, 2), np.int64)
        """an entry a row: first page, scalars"""
        self._changed: set[int] = set()
        """chunks that are to be stored"""

    def __len__(self) -> int:
        return self._count

    def note(self, first: int, scalars: Units) -> None:
        """Pages from `first` on are born while the virtual page has paid these scalars: int64[1], or one a class."""
        if not self._count:
            self._table = np.zeros((BIRTHS_A_ROW, 1 + len(scalars)), np.int64)
        self.reshape(scalars)
        if self._count and int((scalars - self._table[self._count - 1, 1:]).max()) < GRAIN:
            return
        if self._count == len(self._table):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        self._table[self._count, 0], self._table[self._count, 1:] = first, scalars
        self._changed.add(self._count // BIRTHS_A_ROW)
        self._count += 1

    def reshape(self, scalars: Units) -> None:
        """Classes may have come, or gone: what pages were paid before counts for each class as it did for all."""
        if not self._count or 1 + len(scalars) == self._table.shape[1]:
            return
        old = self._table
        self._table = np.zeros((len(old), 1 + len(scalars)), np.int64)
        self._table[: self._count, 0] = old[: self._count, 0]
        self._table[: self._count, 1:] = old[: self._count, 1:2] - scalars[0] + scalars
        self._changed.update(range(-(-self._count // BIRTHS_A_ROW)))

    def scalars(self, pages: Pages, classes: Pages | None = None) -> Units:
        """The scalars at the births of pages, which are sorted: int64[n]. classes: of the pages, None: all are alike.

        A page born before the first entry counts as born at it; without entries all are 0.
        """
        if not self._count:
            return np.zeros(len(pages), np.int64)
        ends = np.searchsorted(pages, self._table[1 : self._count, 0])
        runs = np.diff(np.concatenate(([0], ends, [len(pages)])))
        if classes is None or self._table.shape[1] == 2:
            return np.repeat(self._table[: self._count, 1], runs)
        found: Units = self._table[np.repeat(np.arange(self._count), runs), 1 + classes]
        return found

    def changes(self) -> Iterator[tuple[int, bytes]]:
        """Yield the chunks to store since the last call: their numbers and values."""
        while self._changed:
            chunk = self._changed.pop()
            rows = self._table[chunk * BIRTHS_A_ROW : min((chunk + 1) * BIRTHS_A_ROW, self._count)]
            yield chunk, np.int64(self._table.shape[1]).tobytes() + rows.astype("<i8").tobytes()

    @classmethod
    def load(cls, chunks: Iterable[bytes]) -> Births:
        """The table of stored chunks, in the order of their numbers."""
        births = cls()
        parts = [np.frombuffer(chunk, "<i8") for chunk in chunks]
        if parts:
            births._table = np.concatenate([part[1:].reshape(-1, int(part[0])) for part in parts])
            births._count = len(births._table)
        return births
