"""Links in scope that do not become pages yet, for the standing of their host does not allow it (WaitingLinks).

They are stored with the page that shows them, in slices; their share of that page's cash goes to the virtual page.
"""

from __future__ import annotations

import math
import zlib
from collections import deque
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TypeVar

from msgspec import Struct, field

from xyro.configs.schema import StandingSettings
from xyro.frontier.ledger import LINKS_AT_ONCE, Ledger
from xyro.frontier.scope import Scope
from xyro.metadata import rows
from xyro.metadata.hosts import PRICE
from xyro.metadata.partition import Partition
from xyro.metadata.states import State
from xyro.wire.ids import LocalPage
from xyro.wire.urls import authority, host_of, origin, partition_of, site_of

PER_ORDER = 64
"""unread pages that a host may have for each order that it got"""
LOOKED = 64
"""most pages with waiting links that one turn looks at"""
SLICE_PAUSE = 0.125
"""seconds between two turns that look at the rest of a long page: others have theirs meanwhile"""
REMEMBERED = 1 << 13
"""hosts elsewhere of which a partition remembers that they are full, and domains elsewhere that it left something to:
some 100 bytes each"""
FULL_FIRST, FULL_LAST = 30.0, 4 * 3600.0
"""seconds until a link to a host of another partition that was full is tried again, unless that says before that half
of the host's places are free; doubles each time that it still is full"""
ELSEWHERE = 16
"""part of a host's places that one turn takes in another partition once the host was full"""
RELIEF = 1.0
"""seconds between two hosts that a process lets in though nobody earned it, while the crawl has nothing to read"""


T = TypeVar("T")


class WaitingRow(rows.Row, frozen=True):
    """Links of a page that wait."""

    count: int
    packed: bytes
    """URLs of LINKS_AT_ONCE of them at most, a line each, in the order of the page (zlib)"""
    further: tuple[bytes, ...] = ()
    """the next ones"""

    @property
    def slices(self) -> tuple[bytes, ...]:
        return (self.packed, *self.further)

    def urls(self) -> list[str]:
        return [url for packed in self.slices for url in _lines(packed)]


_unpack = rows.reader(WaitingRow)


def _lines(packed: bytes) -> list[str]:
    return zlib.decompress(packed).decode("utf-8", "surrogatepass").split("\n")


def _packed(urls: Sequence[str]) -> bytes:
    return zlib.compress("\n".join(urls).encode("utf-8", "surrogatepass"), 1)


class TurnClock:
    """When something was last done that has its turn every so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last = -math.inf

    @property
    def next(self) -> float:
        return self._last + self._seconds

    def take(self, now: float) -> bool:
        """Take the turn, if it is time."""
        if self._last <= now < self.next:
            return False
        self._last = now
        return True


class _Slice(Struct):
    """Waiting links of a page that are looked at together, and the hosts that have no room for them."""

    count: int
    full: set[int] = field(default_factory=set)
    introduces: bool = True
    """some lead to hosts that nobody knows"""
    looked_at: bool = False
    """they have had their turn, and had to wait on"""


class _Pause(Struct):
    """When links to a host of another partition are let through again."""

    until: float
    """wall clock, seconds"""
    wait: float
    """seconds that led to it"""

    def holds(self, now: float) -> bool:
        """Tell whether it is not over; one that would begin later is of before the clock was set back."""
        return self.until - self.wait <= now < self.until


class WaitingLinks:
    """Decides which links become pages now, and keeps the others until the standing of their host allows.

    A link waits when its host has as many unread pages as it may, when nobody knows its host and the domain of the page
    has introduced as many hosts as it may (metadata.hosts.Introductions), or when its page shows more than a turn looks
    at. The partition of a host says in its Acks that it is full, and that it is full no more; others then hold their
    links to it back, so that a crawl of many partitions is bounded like one. Who fills it: links that pages show. Who
    empties it: `Pages.admit`, in each turn. It is stored with each page, in slices, and found again at a start.
    """

    def __init__(self, partition: Partition, scope: Scope, ledger: Ledger, settings: StandingSettings) -> None:
        self.partition = partition
        self.scope = scope
        self.introductions = partition.introductions
        self.introductions.set_grant(settings.new_hosts)
        self.counts = ledger.withheld
        """page -> links that wait"""
        self._host_pages = settings.host_pages
        self._waits: dict[LocalPage, list[_Slice]] = {}
        self._line: deque[LocalPage] = deque()
        self._partitions: int = partition.facts["partitions"]
        self.heritage: dict[str, int] = {}
        """host of another partition -> credit for its domain there, until a transfer takes it"""
        self._heirs_elsewhere: dict[str, None] = {}
        """domains of such hosts that were left something"""
        self._full_elsewhere: dict[str, _Pause] = {}
        """hosts of other partitions that these say are full"""
        self._unanswered: dict[int, dict[str, int]] = {}
        """other partition -> host of it -> new URLs that it was told since its last Ack"""
        self._rooms: dict[str, tuple[int, int]] = {}
        """such a host of which links are being admitted -> its partition, and places that it had at first"""
        self.now = 0.0
        self._places: dict[str, int] = {}
        """host -> unread pages that it may still get"""
        self._relief = TurnClock(RELIEF)
        self._look = TurnClock(RELIEF)
        self._slicing = TurnClock(SLICE_PAUSE)
        self._unseen = 0
        """slices that had no turn yet"""

    def has_unseen(self, page: LocalPage) -> bool:
        """Tell whether links of a page wait for their turn."""
        return _unseen(self._waits.get(page, ())) > 0

    def __len__(self) -> int:
        return len(self._waits)

    def links(self) -> int:
        """Links that wait, one that two pages show counted twice."""
        return sum(self.counts.values())

    def recover(self) -> None:
        """Find the waiting links of a stored crawl again."""
        for key, value in self.partition.scan(rows.WAIT.prefix):
            row = _unpack(value)
            self._note(rows.WAIT.split(key), row.count, [_Slice(min(row.count, LINKS_AT_ONCE)) for _ in row.slices])

    def stored(self, page: LocalPage) -> list[str]:
        """The waiting links of a page."""
        found = self.partition.get(rows.WAIT.key(page))
        return [] if found is None else _unpack(found).urls()

    def most_unread(self, host: int) -> int:
        """Unread pages that a host may have."""
        return max(self._host_pages, PER_ORDER * self.partition.standing.of_host(host))

    # -- links that were shown -----------------------------------------------------------------------------------

    def begin(self) -> None:
        for name, (owner, places) in self._rooms.items():
            hosts = self._unanswered.setdefault(owner, {})
            hosts[name] = hosts.get(name, 0) + places - max(self._places[name], 0)
        self._rooms.clear()
        self._places.clear()

    def admits(self, url: str, depth: int, parent: LocalPage) -> bool:
        """Tell whether an unknown URL becomes a page now, and count it as one."""
        name = authority(url)
        places = self._places.get(name)
        if places is None and (host := self.partition.hosts.numbers.get(name)) is not None:
            places = self._room(name, host)
        if places is not None:
            self._places[name] = places - 1
            return places > 0  # a host whose pages are out of scope has no unread ones: it is never full
        if self.scope.judge(url, depth) is not State.UNREAD:
            return True
        return self._introduce(name, url, parent)

    def _room(self, name: str, host: int) -> int:
        """Unread pages that a host may still get now."""
        if self._partitions == 1 or (owner := self.partition.owners().item(host)) == self.partition.number:
            return self.most_unread(host) - int(self.partition.hosts.waiting[host])
        room = max(self._most_sent(name) - self._sent(owner, name), 0)
        self._rooms[name] = owner, room
        return room

    def _sent(self, owner: int, name: str) -> int:
        """New URLs of a host of another partition that this one was sent and has not acknowledged."""
        return self._unanswered.get(owner, {}).get(name, 0)

    def _most_sent(self, name: str) -> int:
        """New URLs of a host of another partition that this one is told before it answers."""
        pause = self._full_elsewhere.get(name)
        if pause is None:
            return self._host_pages
        return 0 if pause.holds(self.now) else -(-self._host_pages // ELSEWHERE)

    def is_full(self, url: str) -> bool:
        """Tell whether the host of a URL gets no more unread pages in this turn."""
        return self._places.get(authority(url), 1) <= 0

    def _introduce(self, name: str, url: str, parent: LocalPage) -> bool:
        heir, owner = site_of(host_of(url)), partition_of(host_of(url), self._partitions)
        is_elsewhere = owner != self.partition.number
        was_left = is_elsewhere and heir in self._heirs_elsewhere
        heritage = self.introductions.introduce(self.domain_of(parent), "" if was_left else heir)
        if heritage < 0:
            return False
        self._places[name] = self._host_pages - 1
        if not is_elsewhere:
            self.introductions.inherit(heir, heritage)
        else:
            self.heritage[name] = PRICE + heritage
            self._rooms[name] = owner, self._host_pages
            if heritage:
                _remember(self._heirs_elsewhere, heir, None)
        return True

    def domain_of(self, page: LocalPage) -> str:
        return self.partition.hosts.domain(self.partition.hosts_of[page])

    # -- hosts that links of several partitions lead to ------------------------------------------------------------

    def full(self, hosts: Iterable[int]) -> list[int]:
        """Return those of the hosts that have as many unread pages as they may."""
        waiting = self.partition.hosts.waiting
        return [host for host in hosts if waiting[host] >= self._host_pages and waiting[host] >= self.most_unread(host)]

    def answered(self, owner: int, full: Iterable[str], free: Iterable[str], now: float) -> None:
        """Another partition has what it was told: links to those of its hosts that are full are held back, those to
        hosts that are full no more go on."""
        self.begin()
        self._unanswered.pop(owner, None)
        for name in full:
            old = self._full_elsewhere.get(name, _Pause(0.0, 0.0))
            if not old.holds(now):
                wait = min(max(2 * old.wait, FULL_FIRST), FULL_LAST)
                _remember(self._full_elsewhere, name, _Pause(now + wait, wait))
        for name in free:
            if name in self._full_elsewhere:
                self._full_elsewhere[name] = _Pause(now, 0.0)

    # -- storage -----------------------------------------------------------------------------------------------------

    def put(self, page: LocalPage, urls: Sequence[str], rest: Sequence[str] = ()) -> None:
        """Store the links of a page that wait, in place of those that did; nobody looked at the rest."""
        if rest:
            self._slicing.take(self.now)  # this turn has looked at enough
        slices = [_Slice(len(part)) for part in _parts(rest)] + [self._looked_at(part) for part in _parts(urls)]
        packed = [_packed(part) for part in (*_parts(rest), *_parts(urls))]
        self._store(page, len(urls) + len(rest), packed, slices)

    def look(self, page: LocalPage, place: int) -> list[str]:
        """The links of one slice."""
        return _lines(_unpack(self.partition.get(rows.WAIT.key(page)) or b"").slices[place])

    def put_back(self, page: LocalPage, place: int, urls: Sequence[str]) -> None:
        """Store what of a slice has to wait on."""
        row, slices = _unpack(self.partition.get(rows.WAIT.key(page)) or b""), list(self._waits[page])
        packed = list(row.slices)
        count = row.count - len(_lines(packed[place])) + len(urls)  # after a start the slice knows no more than a bound
        packed[place : place + 1] = [_packed(urls)] if urls else []
        slices[place : place + 1] = [self._looked_at(urls)] if urls else []
        self._store(page, count, packed, slices)

    def _looked_at(self, urls: Sequence[str]) -> _Slice:
        names = {authority(f"{site}/") for site in set(map(origin, urls))}
        numbers = [self.partition.hosts.numbers.get(name) for name in names]
        full = {number for number in numbers if number is not None}
        return _Slice(len(urls), full, None in numbers, looked_at=True)

    def _store(self, page: LocalPage, count: int, packed: list[bytes], slices: list[_Slice]) -> None:
        if slices:
            self._note(page, count, slices)
            self.partition.put(rows.WAIT.key(page), rows.pack(WaitingRow(count, packed[0], tuple(packed[1:]))))
        elif page in self._waits:
            self._unseen -= _unseen(self._waits.pop(page))
            self._line.remove(page)
            del self.counts[page]
            self.partition.delete(rows.WAIT.key(page))

    def _note(self, page: LocalPage, count: int, slices: list[_Slice]) -> None:
        if page not in self._waits:
            self._line.append(page)
        self._unseen += _unseen(slices) - _unseen(self._waits.get(page, ()))
        self._waits[page] = slices
        self.counts[page] = count

    # -- links that have waited ----------------------------------------------------------------------------------

    def next_time(self) -> float:
        """Return when the rest of a long page may be looked at (wall clock)."""
        return self._slicing.next if self._unseen else math.inf

    def ready(self) -> Iterable[tuple[LocalPage, int]]:
        """Slices of which some links may be admitted, of the pages that waited longest first: each as things are once
        the one before was put back, which may have taken the last credit or place."""
        links, hosts_of, rooms = 0, self.partition.hosts_of, Rooms(self)
        for _ in range(min(LOOKED, len(self._line))):
            page = self._line[0]
            self._line.rotate(-1)
            slices = self._waits[page]
            host = hosts_of[page]
            place = next((place for place, part in enumerate(slices) if self._may_go(host, part, rooms)), None)
            if place is not None:
                links += slices[place].count
                yield page, place
                rooms = Rooms(self)
                if links >= LINKS_AT_ONCE:
                    return

    def _may_go(self, host: int, part: _Slice, rooms: Rooms) -> bool:
        """Half of a host's places have to be free: links are not unpacked for each of them."""
        if not part.looked_at:
            return self._slicing.take(self.now)
        if any(map(rooms.half_free, part.full)):
            return True
        return part.introduces and rooms.may_introduce(host)

    def half_free(self, host: int) -> bool:
        """Tell whether half of the places of a host are free."""
        if self._partitions > 1 and (owner := self.partition.owners().item(host)) != self.partition.number:
            name = self.partition.hosts.names[host]
            places = self._most_sent(name)
            return places > 0 and 2 * self._sent(owner, name) <= places
        return 2 * int(self.partition.hosts.waiting[host]) <= self.most_unread(host)

    def may_introduce(self, host: int) -> bool:
        """Tell whether pages of a host may bring in one more host."""
        return self.introductions.may_introduce(self.partition.hosts.domain(host))

    def share(self, other: WaitingLinks) -> None:
        """Let in hosts that nobody earned in turn with another partition of the process."""
        self._relief = other._relief

    def relieve(self, now: float) -> bool:
        """Look whether links may go, once a second; let one more host be introduced, if it is time."""
        if not self._look.take(now):
            return False
        page = next((page for page in self._line if any(part.introduces for part in self._waits[page])), None)
        if page is not None and self._relief.take(now):
            self.introductions.give(self.domain_of(page), PRICE)
        return True


class Rooms:
    """Remembers what hosts have room for, as things are now: thousands of pages wait for few of them."""

    def __init__(self, links: WaitingLinks) -> None:
        self.half_free = cache(links.half_free)
        self.may_introduce = cache(links.may_introduce)


def _remember(names: dict[str, T], name: str, value: T) -> None:
    """Note the value of a name; the first one is forgotten beyond REMEMBERED."""
    names[name] = value
    if len(names) > REMEMBERED:
        del names[next(iter(names))]


def _parts(urls: Sequence[str]) -> list[Sequence[str]]:
    """Cut links into slices."""
    return [urls[start : start + LINKS_AT_ONCE] for start in range(0, len(urls), LINKS_AT_ONCE)]


def _unseen(slices: Iterable[_Slice]) -> int:
    return sum(not part.looked_at for part in slices)
