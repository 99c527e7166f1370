"""Unread pages: not a queue, a scan of the columns for hosts that run low on orders (refresh/sharing.py chooses).

The page of the best score comes first:

    score = (w L + floor) / sqrt((1 + R_folder / 8) (1 + R_host))

L is the cash that came over links (opic.cash.Births), without what the virtual page pays for waiting: whoever has
waited longest is richest by that, which is breadth first. w is CITED_WEIGHT where a page of another host links to the
page, else 1: the menus of a host pay all of its pages alike, and say little of which of them matter. R counts the
orders that unread pages of the folder and of the host got so far (metadata.hosts.Standing): pages of a folder come in
herds, all paid by the same menu, and the first of them tell what the rest is like. The pages of one path with a query
are such a herd, too, of which one order tells more: it counts as QUERY_ORDERS. A folder's own page ("/a/b/",
"/a/b/index.html") belongs to the first folder above it (wire.urls.folder_of). A folder alone would still invite sites
that open a new one for each page, so its host counts, too. Measured on a real graph (lab/order/ORDER.md): a broad
plateau, floors of 1/256 and of 1 page differ by .02 of the importance read.

A pattern that breeds, whose pages are met on its own pages or by redirects and hardly elsewhere, is of poor standing:
calendars, lists in every order, endless redirects. Paths with a query are at once; a folder is when it leads on from a
name that nobody can have made (impostors.py), for honest folders breed, too; or when nothing speaks for it
(vouchers.py). While a folder breeds its newest pages go first, a few at a time: what has an end shows it soon so. All
patterns of poor standing get POOR of the reads, read again (revisits.py) or not, and what they had before that was
known counts (metadata.hosts.Standing). Where there is nothing else to read, a crawl that ends reads the rest, and one
that never does reads them one by one, ever more slowly.

For each twenty orders of a host, at first for each seven, there is one of the page that has waited longest (SCOUT),
breadth first as in P1 section 6: what looks poor is tried all the same, and no page waits for ever beside a trap whose
pages hand all they have to the next. How far ahead a host's pages are ordered, look_ahead.py says.

With gamma = "auto" the index of the poorest that are chosen says how much an unread page is worth beside one that is
due (bandwidth.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from xyro.configs.schema import Settings
from xyro.frontier.bandwidth import DAY, Bandwidth
from xyro.frontier.host_inflow import mixed
from xyro.frontier.host_limits import HostLimits
from xyro.frontier.ledger import NO_PAGES, Ledger
from xyro.frontier.look_ahead import LEAST_AHEAD, LookAhead
from xyro.metadata import rows
from xyro.metadata.hosts import POOR
from xyro.metadata.partition import Partition
from xyro.metadata.states import CITED, FOLDER, LEASED, State
from xyro.opic.cash import UNIT, seeds_of
from xyro.refresh.rate_belief import START, PageBelief
from xyro.refresh.rate_sums import RateSums
from xyro.refresh.sharing import choose, crowd, rank_in_run
from xyro.wire.ids import LocalPage, local_pages
from xyro.wire.messages import Priority

SCAN = 1 << 17
"""most pages that one turn looks at for unread ones: 2 ms where all are"""
SAMPLE = 16
"""pages by which the margin is told"""
SCOUTS = 0.05
"""orders of pages that waited longest, for each other one of their host"""
FIRST_SCOUTS = 0.15
"""the same of a host that had no orders yet, of which little is known"""
SCOUT_PATIENCE = 128.0
"""orders of a host by which its scouts are half as many"""
CITED_WEIGHT = 2
"""times its cash from links that a page counts if another host links to it: 4 costs computed graphs .03 of the
importance in the first tenth of the reads, 2 nothing (lab/order/ORDER.md)"""
FOLDER_PATIENCE = 8.0
"""orders of a folder that weigh as much as one of a host"""
SCALE = 1 << 16
"""scores are counted in so small parts of a unit that those of very long lists differ, too"""
_UNREAD = int(State.UNREAD)
_UNREAD_RATE = PageBelief(RateSums(), START).rate()
"""changes a day of a page that was never read"""
Ids = NDArray[np.int64]
Counts = NDArray[np.uint32]
Places = NDArray[np.int32]


class ScoreParts(NamedTuple):
    """A score and its parts, cash in pages' worth (discovery.py)."""

    score: float
    linked: float
    """cash that came over links"""
    weight: int
    """of that: more than 1 where a page of another host links to it"""
    floor: float
    """what every page counts beside it"""
    folder_orders: int
    """QUERY_ORDERS for each of a path with a query"""
    host_orders: int


class Discovery:
    """`take` fills hosts that run low; `reads`: of the crawl so far."""

    def __init__(
        self,
        partition: Partition,
        ledger: Ledger,
        settings: Settings,
        host_limits: HostLimits,
        look_ahead: LookAhead,
        endless: bool = False,
    ) -> None:
        self._endless = endless
        """the crawl goes on when all was read, so pages of poor standing never have their turn by that"""
        self.poor_only = False
        """the last scan found nothing but pages of poor standing"""
        self._rest = 0.0
        """seconds between two reads of these that are not earned"""
        self.partition = partition
        self.ledger = ledger
        self.settings = settings
        self.host_limits = host_limits
        self.look_ahead = look_ahead
        self.standing = partition.standing
        self.reads = 0
        self.chosen: Ids = NO_PAGES
        """unread pages of the last choice, the best first"""
        self._scouts: NDArray[np.float64] = np.zeros(0)
        """scouts that each host is owed"""
        self._poor_mixed = False
        self._some_barren = False
        self._next = 0
        """page at which the next scan begins"""

    def follow(self, settings: Settings) -> None:
        """Go on with other settings."""
        self.settings = settings

    def dump(self) -> dict[str, Any]:
        return {"reads": self.reads, "standing": self.standing.dump()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a dump, and from the stored rows of the standing."""
        self.reads = state["reads"]
        self.standing.load(state.get("standing"), self.partition.scan(rows.STANDING.prefix))

    def count(self, reads: int) -> None:
        """Count so many more reads."""
        self.reads += reads
        self.standing.earn(reads)

    def take(self, room: int, busy: bool, now: float) -> Iterator[tuple[LocalPage, Priority]]:
        """Pages for hosts that run low, each up to its room, in one choice over the pages scanned.

        busy: some order is out; else the scan goes on through all pages.
        """
        hosts, count = self.partition.hosts, len(self.partition.hosts)
        spare = self.look_ahead.spare()
        hungry = spare > 0
        if room <= 0 or not hungry.any():
            return
        pages = self._of_good_standing(self._scan(hungry, busy), busy, now)
        if not len(pages):
            return
        wanted = min(room, int(np.minimum(spare, hosts.waiting[:count]).sum()))
        scouts = self._oldest(pages, spare, wanted)
        if len(scouts):
            spare -= self._by_host(scouts, count)
            pages = np.delete(pages, pages.searchsorted(scouts))
        self.chosen = self._best(pages, spare, wanted - len(scouts))
        share = np.maximum(FIRST_SCOUTS / (1.0 + self.standing.of_hosts(count) / SCOUT_PATIENCE), SCOUTS)
        self._scouts[:count] += share * self._by_host(self.chosen, count)
        if self._poor_mixed:
            ordered = np.concatenate([self.chosen, scouts])
            self.standing.pay(int(self.standing.poor(ordered).sum()))
        elif self.poor_only:
            self.standing.take_unearned(now)
        yield from ((page, Priority.DISCOVER) for page in local_pages(self.chosen))
        yield from ((page, Priority.SCOUT) for page in local_pages(scouts))

    def _of_good_standing(self, pages: Ids, busy: bool, now: float) -> Ids:
        """Pages without those of poor standing, but for as many as these are owed; all, where nothing else is left."""
        poor = self.standing.poor(pages)
        self._poor_mixed = bool(poor.any())
        self._note_barren(pages, poor)
        if not self._poor_mixed:
            self.poor_only = False
            return pages
        good = pages[~poor]
        self.poor_only = not len(good)
        self._rest = self.standing.rest(pages) if self.poor_only and self._endless else 0.0
        if self.poor_only and not busy and len(unearned := self.standing.unearned(pages, now, self._endless)):
            self._poor_mixed = False  # they take nobody's place: nothing is paid for them
            return unearned
        served = pages[poor]
        served = served[self._may_be_poor()[self.partition.columns["host"][served]]]
        return np.sort(np.concatenate([good, served[: max(int(self.standing.poor_reads), 0)]]))

    def _may_be_poor(self) -> NDArray[np.bool_]:
        """Hosts of which pages of poor standing may be read: those that have no others, and of the rest a share drawn
        by lot. A slow host among many would spend all of its reads out of what the whole crawl has earned."""
        hosts = np.arange(len(self.partition.hosts))
        lots = seeds_of(hosts, self.partition.next_number) >> np.uint64(1)
        drawn: NDArray[np.bool_] = lots.astype(np.float64) < POOR * 2.0**63
        return drawn | self.partition.hosts.barren[: len(hosts)]

    def _note_barren(self, pages: Ids, poor: NDArray[np.bool_]) -> None:
        """Note which hosts have nothing but poor pages: for these none of their known pages come before their time."""
        if self._poor_mixed or self._some_barren:
            barren, host = self.partition.hosts.barren, self.partition.columns["host"][pages]
            barren[host] = True
            barren[host[~poor]] = False
            self._some_barren = bool(barren.any())

    def _best(self, pages: Ids, spare: Places, wanted: int) -> Ids:
        """The pages of the best scores, at most `wanted` and as many of each host as it has places to spare."""
        score = self.score(pages)
        if self.standing.any_doubt and not self.poor_only:
            pages, score = self._descend(pages, score)
        if len(pages) > wanted:
            near = crowd(score, wanted)
            pages, score = pages[near], score[near]
        return pages[choose(score, self.partition.columns["host"][pages], spare, wanted)]

    def _descend(self, pages: Ids, score: Ids) -> tuple[Ids, Ids]:
        """Pages and scores with, of each folder that breeds, its newest pages alone, in the places of its best ones, a
        few more for each sign that speaks for it (vouchers.py): who goes down a folder that people made comes to an end
        soon, and that is such a sign; of the best pages each may lead on."""
        slots = self.partition.columns[FOLDER][pages]
        some = np.flatnonzero(self.standing.doubtful(slots))
        newest = some[np.lexsort((-pages[some], slots[some]))]
        score[newest] = score[some[np.lexsort((-score[some], slots[some]))]]
        later = rank_in_run(slots[newest]) >= np.maximum(self.standing.fed[slots[newest]], LEAST_AHEAD)
        return np.delete(pages, newest[later]), np.delete(score, newest[later])

    def score(self, pages: Ids) -> Ids:
        """Scores of sorted unread pages: the greatest is read first."""
        units = self.ledger.linked(pages) * self._weights(pages) + self.ledger.floor(pages)
        if weight := self.settings.opic.site_weight:
            inflow = self.ledger.inflow_of_hosts()
            units = units if inflow is None else mixed(units, inflow[self.partition.columns["host"][pages]], weight)
        return scores(units, *self.standing.orders(pages))

    def _weights(self, pages: Ids) -> Ids:
        """Weights of the cash that came to pages over links."""
        return np.where(self.partition.columns["flags"][pages] & CITED, CITED_WEIGHT, 1)

    def explain(self, page: LocalPage) -> ScoreParts:
        """Tell the score of an unread page part by part."""
        pages, standing = np.array([page]), self.standing
        linked, floor = int(self.ledger.linked(pages)[0]), int(self.ledger.floor(pages)[0])
        host_orders = standing.of_host(self.partition.hosts_of[page])
        score, weight = float(self.score(pages)[0]) / SCALE / UNIT, int(self._weights(pages)[0])
        return ScoreParts(score, linked / UNIT, weight, floor / UNIT, standing.of_folder(page), host_orders)

    def _oldest(self, pages: Ids, spare: Places, wanted: int) -> Ids:
        """Pages that waited longest, of hosts that are owed some, as many as these have places to spare; none of a
        folder that breeds, of which the newest go first (`_descend`)."""
        if len(spare) > len(self._scouts):
            more = 2 * len(spare) - len(self._scouts)
            self._scouts = np.concatenate([self._scouts, np.zeros(more)])
        places = np.minimum(self._scouts[: len(spare)], spare).astype(np.int32)
        if not places.any():
            return NO_PAGES
        hosts = self.partition.columns["host"][pages]
        owed = places[hosts] > 0
        if self.standing.any_doubt:
            owed &= ~self.standing.doubtful(self.partition.columns[FOLDER][pages])
        some = np.flatnonzero(owed)
        oldest: Ids = pages[some[choose(-pages[some], hosts[some], places, wanted)]]
        self._scouts -= self._by_host(oldest, len(self._scouts))
        return oldest

    def _by_host(self, pages: Ids, count: int) -> Places:
        """Count pages by host, of hosts 0 .. count - 1."""
        return np.bincount(self.partition.columns["host"][pages], minlength=count).astype(np.int32)

    def _scan(self, hungry: NDArray[np.bool_], busy: bool) -> Ids:
        """Unread pages of hungry hosts among the next SCAN pages; on through all pages while nothing is out at all."""
        columns, n = self.partition.columns, self.partition.columns.n
        scanned = 0
        while scanned < n:
            start, stop = self._next, min(n, self._next + SCAN)
            self._next = stop % n
            scanned += stop - start
            unread = columns["state"][start:stop] == _UNREAD
            unread &= (columns["flags"][start:stop] & LEASED) == 0
            pages = np.flatnonzero(unread) + start
            pages = pages[hungry[columns["host"][pages]]]
            if len(pages) or busy:
                return pages
        return NO_PAGES

    def margin(self, bandwidth: Bandwidth, now: float) -> float:
        """Index of the poorest pages of the last choice: as pages of the prior's mean rate, as old as their URL."""
        pages = self.chosen[-SAMPLE:]
        if not len(pages) or not self.ready:
            return 0.0
        met = [rows.first_seen(self.partition.get(rows.MAP.key(page)) or b"") for page in local_pages(pages)]
        age = np.maximum(now - np.array(met, np.float64), 0.0) / DAY
        rate = np.full(len(pages), _UNREAD_RATE)
        index = bandwidth.rules.policy.index(self.ledger.importance(pages) * bandwidth.scale, rate, age)
        return float(np.median(index))

    @property
    def rests_until(self) -> float:
        """Return when one more unread page may be read where only those of poor standing are left; 0: now."""
        resting = self.poor_only and self._endless and self.standing.poor_reads < 1
        return self.standing.served_at + self._rest if resting else 0.0

    @property
    def waiting(self) -> int:
        """Unread pages in scope that wait for an order, of hosts that no person holds (shut ones are read later)."""
        hosts = self.partition.hosts
        count = len(hosts)
        return int(hosts.waiting[:count][hosts.open[:count]].sum())

    @property
    def ready(self) -> int:
        """Count the waiting pages, without those of hosts that a blackout or a spent budget shuts."""
        if not self.host_limits.until:
            return self.waiting
        hosts = self.partition.hosts
        count = len(hosts)
        return int(hosts.waiting[:count][hosts.open[:count] & ~self.host_limits.shut[:count]].sum())


def scores(units: Ids, folder_orders: Counts, host_orders: Counts) -> Ids:
    """Return the scores of pages that hold `units` (links and floor): int64[n].

    Floating point that every machine rounds alike: a replay orders the same pages.
    """
    patience = np.sqrt((1.0 + folder_orders / FOLDER_PATIENCE) * (1.0 + host_orders))
    found: Ids = (units * (SCALE / patience)).astype(np.int64)
    return found
