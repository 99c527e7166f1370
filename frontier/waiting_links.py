"""Links whose host has no room yet: which become pages now, and where the others wait.

A link in scope becomes a page when the standing of its host allows; until then it is stored with the page that shows
it, has no id and mints nothing, and its share of that page's cash goes to the virtual page.
"""

from __future__ import annotations

import math
import zlib
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

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
RELIEF = 1.0
"""seconds between two hosts that a process lets in though nobody earned it, while the crawl has nothing to read"""


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


@dataclass(slots=True)
class _Slice:
    """Waiting links of a page that are looked at together, and the hosts that have no room for them."""

    count: int
    full: set[int] = field(default_factory=set)
    introduces: bool = True
    """some lead to hosts that nobody knows"""
    looked_at: bool = False
    """they have had their turn, and had to wait on"""


class WaitingLinks:
    """Decides which links become pages now, and keeps the others until the standing of their host allows.

    A link waits when its host has as many unread pages as it may, when nobody knows its host and the domain of the page
    has introduced as many hosts as it may (metadata.hosts.Introductions), or when its page shows more than a turn looks
    at. Who fills it: links that pages show. Who empties it: `Pages.admit`, in each turn. It is stored with each page,
    in slices, and found again at a start.
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
        self._new: set[str] = set()
        self._partitions: int = partition.facts["partitions"]
        self.heritage: dict[str, int] = {}
        """host of another partition -> credit for its domain there, until a transfer takes it"""
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
        self._new.clear()
        self._places.clear()

    def admits(self, url: str, depth: int, parent: LocalPage) -> bool:
        """Tell whether an unknown URL becomes a page now, and count it as one."""
        name = authority(url)
        places = self._places.get(name)
        if places is None and (host := self.partition.hosts.numbers.get(name)) is not None:
            places = self.most_unread(host) - int(self.partition.hosts.waiting[host])
        if places is not None:
            self._places[name] = places - 1
            return places > 0  # a host whose pages are out of scope has no unread ones: it is never full
        if name in self._new or self.scope.judge(url, depth) is not State.UNREAD:
            return True
        return self._introduce(name, url, parent)

    def is_full(self, url: str) -> bool:
        """Tell whether the host of a URL gets no more unread pages in this turn."""
        return self._places.get(authority(url), 1) <= 0

    def _introduce(self, name: str, url: str, parent: LocalPage) -> bool:
        heritage = self.introductions.introduce(self.domain_of(parent))
        if heritage < 0:
            return False
        self._new.add(name)
        host = host_of(url)
        if self._partitions > 1 and partition_of(host, self._partitions) != self.partition.number:
            self.heritage[name] = PRICE + heritage
        else:
            self.introductions.hand_over(site_of(host), heritage)
        return True

    def domain_of(self, page: LocalPage) -> str:
        return self.partition.hosts.domain(self.partition.hosts_of[page])

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
        """Slices of which some links may be admitted, of the pages that waited longest first."""
        links = 0
        for _ in range(min(LOOKED, len(self._line))):
            page = self._line[0]
            self._line.rotate(-1)
            slices = self._waits[page]
            place = next((place for place, part in enumerate(slices) if self._may_go(page, part)), None)
            if place is not None:
                links += slices[place].count
                yield page, place
                if links >= LINKS_AT_ONCE:
                    return

    def _may_go(self, page: LocalPage, part: _Slice) -> bool:
        """Half of a host's places have to be free: links are not unpacked for each of them."""
        if not part.looked_at:
            return self._slicing.take(self.now)
        waiting = self.partition.hosts.waiting
        if any(2 * waiting[host] <= self.most_unread(host) for host in part.full):
            return True
        return part.introduces and self.introductions.may_introduce(self.domain_of(page))

    def share(self, other: WaitingLinks) -> None:
        """Let in hosts that nobody earned in turn with another partition of the process."""
        self._relief = other._relief

    def relieve(self, now: float) -> bool:
        """Look whether links may go, once a second; let one more host be introduced, if it is time."""
        if not self._look.take(now):
            return False
        page = next((page for page in self._line if any(part.introduces for part in self._waits[page])), None)
        if page is not None and self._relief.take(now):
            self.introductions.hand_over(self.domain_of(page), PRICE)
        return True


def _parts(urls: Sequence[str]) -> list[Sequence[str]]:
    """Cut links into slices."""
    return [urls[start : start + LINKS_AT_ONCE] for start in range(0, len(urls), LINKS_AT_ONCE)]


def _unseen(slices: Iterable[_Slice]) -> int:
    return sum(not part.looked_at for part in slices)
