"""Hosts of a partition: name <-> number, how many of their pages wait or are out, and what politeness must remember.

A host is an authority as canonical URLs write it (host, and the port where it is not the scheme's own), so http and
https of one host share politeness. Numbers are dense; the counters are numpy columns indexed by them, so a plan can ask
"has the host of each of these pages room?" in one step.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from xyro.metadata import rows
from xyro.metadata.columns import Columns, distinct
from xyro.metadata.rows import HostMask, HostRow
from xyro.metadata.states import FOLDER, State
from xyro.wire.errors import MachineError
from xyro.wire.ids import LocalPage, local_pages
from xyro.wire.urls import host_of, site_of

FEW = 1024
"""rows of politeness that are kept without asking whether they still matter"""
LONGEST = 86_400.0
"""seconds: no back-off and no Retry-After leaves a host alone for longer (xyro/politeness.py)"""

FOLDERS = 1 << 16
"""slots of folders: their URLs share them by a hash that is seeded, so no site can aim at another one's slot"""
QUERIES = FOLDERS // 2
"""the first slot of paths with a query; those before it are of folders"""
QUERY_ORDERS = 24
"""orders of a folder that one of a path with a query counts as: what one program shows is more alike than files are.
Of lists that lead to each other 8 read 75 of 300, 16 up to 65, 20 and more 55 (lab/order/ORDER.md)"""
HALVING = 1 << 16
"""least orders between two halvings"""
_FOLDER, _HOST, _PATTERN = 0, 1 << 32, 2 << 32
"""first numbers of the kinds of rows"""
_ORDERED = [int(state) for state in (State.READ, State.ERROR, State.FAILED, State.DEAD)]
_ROW = struct.Struct("<II")
"""era, orders; of a pattern the pages that it bred, and those that others led to"""
_COPIES_ROW = struct.Struct("<II")
"""behind them, if there are any: era, copies"""
TRIAL = 16
"""pages that a pattern may breed for each page that others led to, before it is of poor standing; none counts as one"""
POOR = 0.02
"""share of the reads that goes to patterns of poor standing"""
MOST_POOR = 1 << 17
"""most reads that are saved for them, or owed"""
MENU = 4
"""most pages of a folder without a query that count as bred by one of its pages: an index of it has many"""
PROOF = 1 << 30
"""pages that a folder counts as having bred at least once it was proved to make pages for any name"""
CLOSED = 128
"""times as many pages as vouch for it that a folder may breed without that proof, before it is of poor standing. Real
ones reach 27 (of 14 sites and cnr-2000 in any layout), endless ones thousands"""
COPIES = 64
"""pages of a pattern that show what others of their host show, before it may be of poor standing for that"""
MOSTLY = 7 / 8
"""of the orders of such a pattern, those that showed a copy"""
HOP = TRIAL + 1
"""pages that the target of a redirect counts as, where both have a query: a chain of them is as poor as it gets"""
PATIENCE = 1 / 2
"""seconds for each order that its pattern had in which a daemon has had nothing else to read before it reads one more
page of poor standing: 300 pages take five hours, 1,000 three days, 3,200 a month; 650, where they are one list"""
POOR_WORTH = 1 / 1024
"""times their importance that pages of poor patterns count when they are dated: intervals 32 times as long by P1"""
_COST = struct.Struct("<QQd")
"""requests, bytes, seconds"""
_DOMAIN = struct.Struct("<QII")
"""credit, pages read, hosts introduced"""
GRANT = 131_072
"""new hosts that the domain of a seed may bring in, with all that these bring in"""
PRICE = 8
"""pages of a domain that have to be read for one new host"""
HERITAGE = 64 * PRICE
"""credit that a domain hands to each host that it introduces, at most a fourth of what it has"""
Ids = NDArray[np.int64]
Counts = NDArray[np.uint32]
Mask = NDArray[np.bool_]
Slots = NDArray[np.uint16]


class Hosts:
    """Always holds: waiting[h] + leased[h] = pages of h that are to be read now or are being read (never below 0);
    exploring[h] <= leased[h]."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.names: list[str] = []
        self.waiting: NDArray[np.int32] = np.zeros(64, np.int32)
        """unread pages in scope that no order has taken, by host"""
        self.leased: NDArray[np.int32] = np.zeros(64, np.int32)
        """orders that are out, by host"""
        self.exploring: NDArray[np.int32] = np.zeros(64, np.int32)
        """those of them that are for unread pages"""
        self.open: NDArray[np.bool_] = np.ones(64, np.bool_)
        """not paused and not blocked by a person"""
        self.barren: NDArray[np.bool_] = np.zeros(64, np.bool_)
        """all unread pages that were looked at last are of poor standing, by host; not stored"""
        self._gaps: NDArray[np.float32] = np.full(64, np.nan, np.float32)
        """seconds for which a host was left alone after its last answer; NaN: it has not answered since the start"""
        self.clocks: dict[int, HostRow] = {}
        """hosts with politeness to remember (a later next_at, failures) or a hold; those it is over for are dropped
        whenever their number has doubled"""
        self._max_clocks = FEW
        self.trust: dict[int, bytes] = {}
        """what claims of the host were worth, packed by refresh/trust.py: of hosts with settled claims only"""
        self.rates: dict[int, bytes] = {}
        """change rates of its pages, packed by refresh/change.py: of hosts with pages that were read often only"""
        self.masks: dict[int, HostMask] = {}
        """hosts that showed answers that are not their pages"""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def revisiting(self) -> NDArray[np.int32]:
        """Orders that are out for pages that were read before, by host; a copy."""
        return self.leased - self.exploring

    def number(self, name: str) -> int:
        """The host's number; a new name gets the next one, and its row must be stored."""
        found = self.numbers.get(name)
        if found is not None:
            return found
        number = self.numbers[name] = len(self.names)
        self.names.append(name)
        if number >= len(self.waiting):
            self.waiting = np.concatenate([self.waiting, np.zeros_like(self.waiting)])
            self.leased = np.concatenate([self.leased, np.zeros_like(self.leased)])
            self.exploring = np.concatenate([self.exploring, np.zeros_like(self.exploring)])
            self.open = np.concatenate([self.open, np.ones_like(self.open)])
            self.barren = np.concatenate([self.barren, np.zeros_like(self.barren)])
            self._gaps = np.concatenate([self._gaps, np.full_like(self._gaps, np.nan)])
        return number

    def domain(self, number: int) -> str:
        """The registrable domain of a host."""
        return site_of(host_of(f"http://{self.names[number]}/"))

    def note_gap(self, number: int, seconds: float) -> None:
        """The host answered, and is left alone for so long."""
        self._gaps[number] = max(seconds, 0.0)

    def gaps(self, usual: float) -> NDArray[np.float64]:
        """Seconds for which each host is left alone after a read; the usual ones where it has not answered yet."""
        gaps = self._gaps[: len(self)].astype(np.float64)
        gaps[np.isnan(gaps)] = usual
        return gaps

    def row(self, number: int) -> HostRow:
        """Return the row to store of the host."""
        row = self.clocks.get(number) or HostRow(name=self.names[number])
        trust, rates, mask = self.trust.get(number, b""), self.rates.get(number, b""), self.masks.get(number)
        if not trust and not rates and mask is None:
            return row
        return msgspec.structs.replace(row, trust=trust, rates=rates, masks=() if mask is None else (mask,))

    def remember(self, number: int, next_at: float, failures: int, now: float) -> bool:
        """Note a host's politeness (next_at 0: it may be read at once); True where its row must be stored."""
        old = self.clocks.get(number)
        if old is None and not failures and not next_at:
            return False
        hold = old.hold if old else ""
        self.clocks[number] = HostRow(name=self.names[number], next_at=next_at, failures=failures, hold=hold)
        if len(self.clocks) > self._max_clocks:
            self._forget(now)
        return True

    def _forget(self, now: float) -> None:
        """Drop the rows that say nothing any more; the stored ones say it of a time that is over."""
        self.clocks = {
            number: row for number, row in self.clocks.items() if row.failures or row.hold or row.next_at > now
        }
        self._max_clocks = max(FEW, 2 * len(self.clocks))

    def rewind(self, now: float) -> None:
        """The clock may have been set back: what it said of a time that is far ahead holds for LONGEST, no longer."""
        for number, row in self.clocks.items():
            if row.next_at > now + LONGEST:
                self.clocks[number] = msgspec.structs.replace(row, next_at=now + LONGEST)

    def hold(self, number: int, hold: str) -> None:
        """held: '' | paused | blocked."""
        old = self.row(number)
        self.clocks[number] = HostRow(name=old.name, next_at=old.next_at, failures=old.failures, hold=hold)
        self.open[number] = not hold

    def load(self, number: int, row: HostRow) -> None:
        """Take over a stored row; rows come in the order of their numbers."""
        if self.number(row.name) != number:
            raise ValueError(f"host {number}: {row.name} is stored out of order")
        if row.trust:
            self.trust[number] = row.trust
        if row.rates:
            self.rates[number] = row.rates
        if row.masks:
            self.masks[number] = row.masks[0]
        if row.next_at or row.failures or row.hold:
            self.clocks[number] = row
            self.open[number] = not row.hold

    def stored(self, number: int) -> tuple[bytes, bytes]:
        """Key and value of the host's row."""
        return rows.HOST.key(number), rows.pack(self.row(number))


class Feeders:
    """Which other pattern of its host led to most pages of a pattern, by a vote of the majority (Boyer and Moore). Not
    stored: who fed patterns that go on growing shows again."""

    LONGEST = 4
    """patterns of the longest circle that is looked for"""

    def __init__(self) -> None:
        self._feeders: Slots = np.zeros(FOLDERS, np.uint16)
        self._votes: Counts = np.zeros(FOLDERS, np.uint32)

    def close(self, slot: int, feeder: int, count: int) -> bool:
        """A pattern led to so many pages of another: tell whether that one led to it, itself or by further ones."""
        votes = self._votes.item(slot)
        if not votes or self._feeders.item(slot) == feeder:
            self._feeders[slot], self._votes[slot] = feeder, votes + count
        elif votes >= count:
            self._votes[slot] = votes - count
        else:
            self._feeders[slot], self._votes[slot] = feeder, count - votes
        for _ in range(self.LONGEST - 1):
            if not self._votes.item(feeder):
                return False
            feeder = self._feeders.item(feeder)
            if feeder == slot:
                return True
        return False


def _order_of(folder: int) -> int:
    """Return what an order of a page in this slot counts in it."""
    return QUERY_ORDERS if folder >= QUERIES else 1


class Standing:
    """Standing of the hosts and folders of a partition: how many orders the crawl has given their unread pages so far.

    Whatever is counted by host or folder over the life of a crawl belongs into this table. A folder is a slot that
    folders share by a hash; a path with a query is one, too, whose orders count QUERY_ORDERS times. `lease` each order
    of an unread page, and `unlease` it; the rows that `changes` yields belong into the commit group. All counts are
    halved once as many orders as there are known pages were given out (HALVING at least), so what was long ago counts
    less. A stored count is of an era, the number of halvings before it; counts of earlier eras are halved as they are
    loaded. It leaves out the orders that are out: the next run voids them, and gives them out, and counts them, again.
    """

    def __init__(self, hosts: Hosts, columns: Columns) -> None:
        self._hosts = hosts
        self._columns = columns
        self.folders: Counts = np.zeros(FOLDERS, np.uint32)
        self.hosts: Counts = np.zeros(64, np.uint32)
        self._era = 0
        self._orders = 0
        """since the last halving"""
        self._changed: set[int] = set()
        """numbers of rows"""
        self._out: set[LocalPage] = set()
        """pages that were unread when the orders for them went out, which are not answered"""
        self._unstored: dict[int, int] = {}
        """what these orders count, by the number of the row"""
        self.bred: Counts = np.zeros(FOLDERS, np.uint32)
        """pages of a pattern that its own pages, or redirects, led to first"""
        self.fed: Counts = np.zeros(FOLDERS, np.uint32)
        """pages of a pattern that others led to first, and signs that its folder has an outside, and ends"""
        self._circled: Counts = np.zeros(FOLDERS, np.uint32)
        """those of them that patterns led to which are led to by this one; not stored"""
        self._feeders = Feeders()
        self._copies: Counts = np.zeros(FOLDERS, np.uint32)
        """pages of a pattern that showed what others of their host show"""
        self.any_doubt = False
        """some folder breeds: whoever speaks for it is to be heard (frontier/vouchers.py)"""
        self.poor_reads = 0.0
        """reads that pages of poor standing may have now; below 0: they had more before that was known"""
        self.any_poor = False
        """some pattern is, or was, of poor standing"""
        self.served_at = 0.0
        """when an order was given out last for a page of good standing, or one that was not earned; not stored"""

    def earn(self, reads: int) -> None:
        """So many pages were read: those of poor standing may have a share of as many more."""
        self.poor_reads = min(self.poor_reads + POOR * reads, MOST_POOR)

    def pay(self, reads: int) -> None:
        """So many pages of poor standing are read, or were, before their pattern was known for it."""
        self.poor_reads = max(self.poor_reads - reads, -MOST_POOR)

    def unearned(self, pages: Ids, now: float, endless: bool) -> Ids:
        """Which of these pages of poor standing may be read though no reads are left for them, for nothing else is to
        be read: all, in a crawl that ends. Else one of the pattern that had the fewest reads, after a rest that grows
        with these: what has an end comes to it, and what has none is read ever more slowly."""
        if not endless or not len(pages):
            return pages
        if self.served_at <= now < self.served_at + self.rest(pages):
            return pages[:0]
        least = int(self.folders[self._columns[FOLDER][pages]].argmin())
        return pages[least : least + 1]

    def rest(self, pages: Ids) -> float:
        """Seconds from one read to the next that is not earned, of some of these pages: one at least."""
        return min(PATIENCE * int(self.folders[self._columns[FOLDER][pages]].min()), LONGEST)

    def take_unearned(self, now: float) -> None:
        """Begin the rest: a page that `unearned` allowed is read."""
        self.served_at = now

    def serve(self, page: LocalPage, now: float) -> None:
        """An order goes out: where its page is of good standing, there was something else to read."""
        if self.any_poor and not self.is_poor(page):
            self.served_at = now

    def note_births(
        self, pages: Ids, parents: Ids, redirected: Mask, again: Mask, form: Callable[[LocalPage], str]
    ) -> list[LocalPage]:
        """New pages were met on `parents`, which redirect to them or show them. again: the parent was read before: then
        they speak for their pattern no more, for a page may show others each time. form: of a page's URL. What a
        redirect into another partition leads to is not known here: it counts as an endless one, and the pattern of the
        page that redirects has to be led to by others as often.

        Return a page of each folder that breeds, and of each pattern whose pages are met on patterns that are met on
        its pages: it is to be asked for a URL that cannot exist (`prove`).
        """
        folder, host = self._columns[FOLDER], self._columns["host"]
        slots, above = folder[pages], folder[parents]
        queries, near = slots >= QUERIES, (host[pages] == host[parents]) & ~redirected
        own = near & (slots == above)
        menu = np.ones(len(pages), np.uint32)
        for i in np.flatnonzero(near & ~own & queries & (above >= QUERIES)).tolist():
            # sessions: each path with the same key is met on all of them, and each speaks for the others
            own[i] = form(LocalPage(int(pages[i]))) == form(LocalPage(int(parents[i])))
            menu[i] = MENU
        foreign = redirected & queries & (self._columns["state"][pages] == State.FOREIGN)
        onward = above[foreign & (above >= QUERIES)]
        before = self.poor_slots(queried := distinct(np.concatenate([slots[queries], onward])))
        np.add.at(self.bred, onward, TRIAL)
        np.add.at(self.bred, slots[redirected & queries & (above >= QUERIES) | foreign], HOP)
        np.add.at(self.bred, slots[own & queries], menu[own & queries])
        menus, counts = np.unique(parents[own & ~queries], return_counts=True)
        np.add.at(self.bred, folder[menus], np.minimum(counts, MENU).astype(np.uint32))
        np.add.at(self.fed, slots[~own & ~redirected & ~again], 1)
        self._changed.update((_PATTERN + distinct(np.concatenate([slots, onward])).astype(np.int64)).tolist())
        self._charge(queried[self.poor_slots(queried) & ~before])
        menus = menus[self.doubtful(folder[menus])]
        self.any_doubt |= len(menus) > 0
        self.any_poor |= bool(self.poor_slots(folder[menus]).any())
        first = np.unique(folder[menus], return_index=True)[1]
        asked = local_pages(menus[first])
        if (crossed := np.flatnonzero(near & ~own & ~again)).size:
            asked += [LocalPage(int(pages[crossed[i]])) for i in self._circle(slots[crossed], above[crossed])]
        return asked

    def _circle(self, slots: Slots, feeders: Slots) -> list[int]:
        """Pages of these patterns were met on pages of others of their hosts. Return the place of one page of each that
        has hardly any pages but in a circle."""
        fed: dict[tuple[int, int], int] = {}
        places: dict[int, int] = {}
        for place, pair in enumerate(zip(slots.tolist(), feeders.tolist(), strict=True)):
            fed[pair] = fed.get(pair, 0) + 1
            places[pair[0]] = place
        for (slot, feeder), count in fed.items():
            if self._feeders.close(slot, feeder, count):
                self._circled[slot] += count
        return [place for slot, place in places.items() if self._runs_in_a_circle(slot)]

    def _runs_in_a_circle(self, slot: int) -> bool:
        circled, fed = self._circled.item(slot), self.fed.item(slot)
        return circled > TRIAL * max(fed - circled, 1) and self.bred.item(slot) < PROOF

    def _breeds(self, slots: Slots, times: int = TRIAL) -> Mask:
        """Tell which patterns breed: their pages are met on their own pages, hardly on others."""
        breeds: Mask = self.bred[slots] > times * np.maximum(self.fed[slots], 1).astype(np.int64)
        return breeds

    def doubtful(self, slots: Slots) -> Mask:
        """Tell which patterns are folders that breed and were not proved to make pages for any name."""
        return self._breeds(slots) & (slots < QUERIES) & (self.bred[slots] < PROOF)

    def vouch(self, slots: Slots) -> None:
        """Count signs, one for each entry, that a folder belongs to a web that has an outside, and ends."""
        np.add.at(self.fed, slots, 1)
        self._changed.update((_PATTERN + distinct(slots).astype(np.int64)).tolist())

    def _charge(self, slots: Slots) -> None:
        """Patterns are of poor standing from now on: what their pages were read before counts, too."""
        self.any_poor |= len(slots) > 0
        self.pay(int(self._reads(slots).sum()))

    def prove(self, page: LocalPage) -> None:
        """The folder of a page makes pages of its own for any name: it is of poor standing."""
        slot = int(self._columns[FOLDER][page])
        self._charge(np.array([slot], np.uint16))
        self.bred[slot] = max(int(self.bred[slot]), PROOF)
        self._changed.add(_PATTERN + slot)

    def note_copy(self, page: LocalPage) -> None:
        """A page shows what others of its host show: it counts as an order more, for it was worth nothing. A pattern
        of almost nothing else is of poor standing, whoever led to its pages: a sitemap may name thousands."""
        self.count(page)
        slot = self._columns[FOLDER][[page]]
        before = bool(self.poor_slots(slot)[0])
        self._copies[slot] += 1
        self._changed.add(_PATTERN + int(slot[0]))
        if not before:
            self._charge(slot[self.poor_slots(slot)])

    def copied(self, slots: Slots) -> Mask:
        """Tell which patterns have hardly a page with a text of its own."""
        copies = self._copies[slots].astype(np.int64)
        copied: Mask = (copies > COPIES) & (copies > MOSTLY * self._reads(slots))
        return copied

    def _reads(self, slots: Slots) -> NDArray[np.int64]:
        """Count the orders of patterns: in their counters one of a copy stands twice."""
        orders: NDArray[np.int64] = self.folders[slots].astype(np.int64) // np.where(slots >= QUERIES, QUERY_ORDERS, 1)
        return np.maximum(orders - self._copies[slots].astype(np.int64), 0)

    def poor_slots(self, slots: Slots) -> Mask:
        """Tell which patterns are of poor standing: those with a query that breed, folders that were proved to, or
        that lead nowhere but on, and those whose pages all show the same."""
        return self._breeds(slots) & ((slots >= QUERIES) | self._breeds(slots, CLOSED)) | self.copied(slots)

    def poor(self, pages: Ids) -> Mask:
        """Tell which pages belong to a pattern of poor standing."""
        return self.poor_slots(self._columns[FOLDER][pages])

    def is_poor(self, page: LocalPage) -> bool:
        """Tell whether one page does; most cost a single look."""
        slot = int(self._columns[FOLDER][page])
        tried = self.bred.item(slot) > TRIAL or self._copies.item(slot) > COPIES
        return tried and bool(self.poor(np.array([page]))[0])

    def worth(self, pages: Ids, children: Callable[[LocalPage], NDArray[np.uint32] | None]) -> NDArray[np.float64]:
        """How many times its importance each page counts when it is dated: POOR_WORTH if its pattern is of poor
        standing; of any other the square of the share of its links that do not lead into such patterns, for sessions
        change their doors at each read, and intervals go by the root. children: stored ones of a page."""
        worths = np.ones(len(pages))
        if not self.any_poor:
            return worths
        worths[self.poor(pages)] = POOR_WORTH
        for place in np.flatnonzero(worths == 1.0).tolist():
            links = children(LocalPage(int(pages[place])))
            if links is not None and len(links):
                worths[place] = max((1.0 - float(self.poor(links.astype(np.int64)).mean())) ** 2, POOR_WORTH)
        return worths

    def count(self, page: LocalPage) -> None:
        """A page counts as an order that was answered."""
        host, folder = int(self._columns["host"][page]), int(self._columns[FOLDER][page])
        self._reach(host + 1)
        self.folders[folder] += _order_of(folder)
        self.hosts[host] += 1
        self._orders += 1
        self._changed.update((_FOLDER + folder, _HOST + host))

    def lease(self, page: LocalPage) -> None:
        """An order for an unread page goes out."""
        self.count(page)
        self._out.add(page)
        for row, orders in self._rows_of(page):
            self._unstored[row] = self._unstored.get(row, 0) + orders

    def unlease(self, page: LocalPage) -> None:
        """The order for a page was answered, or taken back: if it was for an unread one, it stays counted."""
        if page not in self._out:
            return
        self._out.remove(page)
        for row, orders in self._rows_of(page):
            if (left := self._unstored.pop(row, 0) - orders) > 0:  # halved meanwhile, they may be fewer
                self._unstored[row] = left
            self._changed.add(row)

    def _rows_of(self, page: LocalPage) -> tuple[tuple[int, int], tuple[int, int]]:
        """The rows that an order of the page counts in, and as how many."""
        host, folder = int(self._columns["host"][page]), int(self._columns[FOLDER][page])
        return (_FOLDER + folder, _order_of(folder)), (_HOST + host, 1)

    def of_host(self, host: int) -> int:
        """Orders that unread pages of the host got."""
        return int(self.hosts[host]) if host < len(self.hosts) else 0

    def of_folder(self, page: LocalPage) -> int:
        """Orders that unread pages of the page's folder got; of a path with a query each counts as QUERY_ORDERS."""
        return int(self.folders[self._columns[FOLDER][page]])

    def of_hosts(self, count: int) -> Counts:
        """The orders of hosts 0 .. count - 1."""
        self._reach(count)
        return self.hosts[:count]

    def orders(self, pages: Ids) -> tuple[Counts, Counts]:
        """The orders that the folders of pages got, and those that their hosts got: uint32[n] each."""
        self._reach(len(self._hosts))
        return self.folders[self._columns[FOLDER][pages]], self.hosts[self._columns["host"][pages]]

    def _reach(self, count: int) -> None:
        if count > len(self.hosts):
            more = max(count, 2 * len(self.hosts)) - len(self.hosts)
            self.hosts = np.concatenate([self.hosts, np.zeros(more, np.uint32)])

    # -- state ---------------------------------------------------------------------------------------------------

    def changes(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values of the rows to store; then halve all counts if it is time."""
        while self._changed:
            number = self._changed.pop()
            if number >= _PATTERN:
                folder = number - _PATTERN
                copies = _COPIES_ROW.pack(self._era, self._copies[folder]) if self._copies[folder] else b""
                yield rows.STANDING.key(number), _ROW.pack(self.bred[folder], self.fed[folder]) + copies
                continue
            counts = self.hosts if number >= _HOST else self.folders
            answered = int(counts[number & (_HOST - 1)]) - self._unstored.get(number, 0)
            yield rows.STANDING.key(number), _ROW.pack(self._era, max(answered, 0))
        if self._orders >= max(HALVING, self._columns.n):
            self._orders, self._era = 0, self._era + 1
            self.folders >>= 1
            self.hosts >>= 1
            self._copies >>= 1
            self._unstored = {number: orders >> 1 for number, orders in self._unstored.items()}

    def dump(self) -> list[float]:
        return [self._era, max(self._orders - len(self._out), 0), self.poor_reads]

    def load(self, state: list[float] | None, stored: Iterable[tuple[bytes, bytes]]) -> None:
        """Go on from a dump and the stored rows (keys and values). None: the directory is older than this table."""
        if state is None:
            self._begin()
            return
        self._era, self._orders = map(int, state[:2])
        self.poor_reads = sum(state[2:])  # a directory of before it was stored has none
        for key, value in stored:
            number = rows.STANDING.split(key)
            if number >= _PATTERN:
                self._load_pattern(number - _PATTERN, value)
                continue
            era, orders = _ROW.unpack(value)
            if number >= _HOST:
                self._reach((number & (_HOST - 1)) + 1)
            counts = self.hosts if number >= _HOST else self.folders
            counts[number & (_HOST - 1)] = orders >> min(self._era - era, 31)

    def _load_pattern(self, slot: int, value: bytes) -> None:
        self.bred[slot], self.fed[slot] = _ROW.unpack_from(value)
        if len(value) > _ROW.size:
            era, copies = _COPIES_ROW.unpack_from(value, _ROW.size)
            self._copies[slot] = copies >> min(self._era - era, 31)
        bred = bool(self.bred[slot] > TRIAL)
        self.any_poor |= bred or bool(self._copies[slot] > COPIES)
        self.any_doubt |= bred and slot < QUERIES

    def _begin(self) -> None:
        """Count the pages that were read, or tried, as an order each."""
        columns, n = self._columns, self._columns.n
        ordered = np.isin(columns["state"][:n], _ORDERED)
        self._reach(len(self._hosts))
        for counts, name, kind in ((self.folders, FOLDER, _FOLDER), (self.hosts, "host", _HOST)):
            counts[:] = np.bincount(columns[name][:n][ordered], minlength=len(counts))
            counts[QUERIES:] *= QUERY_ORDERS if kind == _FOLDER else 1
            self._changed.update((kind + np.flatnonzero(counts)).tolist())


class Introductions:
    """Credit of registrable domains for hosts that nobody knew: what it costs that a link leads to one.

    A domain that a person names is granted credit, and pages of any domain earn some when they are read first. It pays
    PRICE for each new host that its links bring in, and leaves part of the rest to its domain. So credit is never made
    by introducing: all hosts that a farm brings in, however deep, cost what was left once to the domain that led to it,
    and it runs dry by itself, unless there are PRICE pages to be read for each of its hosts.
    """

    def __init__(self) -> None:
        self.grant = GRANT * PRICE
        self.numbers: dict[str, int] = {}
        """of domains"""
        self._credit, self._reads, self._introduced = array("Q"), array("I"), array("I")
        self._changed: dict[str, None] = {}

    def set_grant(self, hosts: int) -> None:
        """Grant the domains of seeds credit for so many new hosts, from now on."""
        self.grant = PRICE * hosts

    def _number(self, domain: str, credit: int) -> int:
        """The number of a domain, which begins with this credit."""
        number = self.numbers.get(domain)
        if number is None:
            number = self.numbers[domain] = len(self.numbers)
            for column, value in ((self._credit, credit), (self._reads, 0), (self._introduced, 0)):
                column.append(value)
        self._changed[domain] = None
        return number

    def found(self, domain: str) -> None:
        """A person names a page of the domain."""
        number = self._number(domain, self.grant)
        self._credit[number] = max(self._credit[number], self.grant)

    def inherit(self, domain: str, heritage: int) -> None:
        """Another domain introduced a host of this one, which keeps the largest heritage until it introduces itself."""
        number = self._number(domain, 0)
        if not self._introduced[number]:
            self._credit[number] = max(self._credit[number], heritage)

    def give(self, domain: str, credit: int) -> None:
        """Add credit that the domain did not earn: so that a link goes on, or because it was paid for a host that was
        known already."""
        self._credit[self._number(domain, 0)] += credit

    def count_read(self, domain: str) -> None:
        """A page of the domain was read for the first time."""
        number = self._number(domain, self.grant)
        self._credit[number] += 1
        self._reads[number] += 1

    def introduce(self, domain: str, heir: str) -> int:
        """A link of the domain brings in a new host of the domain `heir`: the credit to leave to that, -1 where there
        is too little for the host. A thousand hosts of one heir, introduced one by one, inherit as much as a single
        one. An empty heir inherits nothing."""
        number = self._number(domain, self.grant)
        credit = self._credit[number] - PRICE
        if credit < 0:
            return -1
        heritage = min(HERITAGE, credit >> 2)
        known = self.numbers.get(heir)
        if heir in ("", domain) or (known is not None and (self._introduced[known] or self._credit[known] >= heritage)):
            heritage = 0
        self._credit[number] = credit - heritage
        self._introduced[number] += 1
        return heritage

    def may_introduce(self, domain: str) -> bool:
        """Tell whether the domain has credit for one more host."""
        return self.state(domain)[0] >= PRICE

    def state(self, domain: str) -> tuple[int, int, int]:
        """Credit of a domain, its pages that were read, and the hosts that it introduced."""
        number = self.numbers.get(domain)
        if number is None:
            return self.grant, 0, 0
        return self._credit[number], self._reads[number], self._introduced[number]

    def changes(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values of the rows to store."""
        while self._changed:
            domain, _ = self._changed.popitem()
            yield rows.DOMAIN.key(domain), _DOMAIN.pack(*self.state(domain))

    def load(self, stored: Iterable[tuple[bytes, bytes]]) -> None:
        """Go on from the stored rows."""
        for number, (key, value) in enumerate(stored):
            self.numbers[rows.DOMAIN.split(key)] = number
            for column, figure in zip(
                (self._credit, self._reads, self._introduced), _DOMAIN.unpack(value), strict=True
            ):
                column.append(figure)


class HostCost(NamedTuple):
    """Costs of the reads of a host's pages. Those of its robots.txt are not among them."""

    requests: int = 0
    bytes: int = 0
    """received: heads and bodies, as coded on their way"""
    seconds: float = 0.0
    """from the beginning of each request to the end of its answer, or failure"""


class HostCosts:
    """Costs by the number of the host, 20 bytes each. The rows that `changes` yields belong into the commit group."""

    def __init__(self) -> None:
        self._requests, self._bytes, self._seconds = array("I"), array("Q"), array("d")
        self._changed: set[int] = set()

    def add(self, host: int, received: int, seconds: float) -> None:
        """A request was answered, or failed."""
        if host >= len(self._seconds):
            self._reach(host + 1)
        self._requests[host] += 1
        self._bytes[host] += received
        self._seconds[host] += seconds
        self._changed.add(host)

    def of_host(self, host: int) -> HostCost:
        """The cost of a host since it is known."""
        if host >= len(self._seconds):
            return HostCost()
        return HostCost(self._requests[host], self._bytes[host], self._seconds[host])

    def changes(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values of the rows to store."""
        while self._changed:
            host = self._changed.pop()
            yield rows.COST.key(host), _COST.pack(*self.of_host(host))

    def load(self, stored: Iterable[tuple[bytes, bytes]], hosts: int) -> None:
        """Go on from the stored rows. hosts: how many there are. MachineError: damaged."""
        for key, value in stored:
            host = rows.COST.split(key)
            if host >= hosts or len(value) != _COST.size:
                raise MachineError(f"damaged store: {key!r} is no cost of a host: run `xyro audit`, restore a copy")
            self._reach(host + 1)
            self._requests[host], self._bytes[host], self._seconds[host] = _COST.unpack(value)

    def _reach(self, count: int) -> None:
        if (more := count - len(self._seconds)) > 0:
            more = max(more, len(self._seconds))
            for column in (self._requests, self._bytes, self._seconds):
                column.frombytes(bytes(more * column.itemsize))
