"""URLs become pages: minted when first met, as deep as the shortest way to them, read if the scope says so.

A page's state is UNREAD, OUT, BLOCKED or FOREIGN by what the scope says of its URL at its depth. Both change: a shorter
way is found (and so on down the stored links), a place is added, a resumed crawl has other rules. Then the pages that
this concerns are judged again: those that come into scope are read, those that leave it are read no more.

A link in scope becomes a page when the standing of its host allows (WaitingLinks); until then it is stored with the
page that shows it, has no id and mints nothing, and its share of that page's cash goes to the virtual page.
"""

from __future__ import annotations

import math
import zlib
from collections import deque
from collections.abc import Iterable, Sequence
from functools import cache

import msgpack
import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from xyro.configs.schema import FetchSettings, StandingSettings
from xyro.frontier.hooks import Hooks
from xyro.frontier.ledger import LINKS_AT_ONCE, NO_PAGES, Ids, Ledger, Spending
from xyro.frontier.revisit_dates import Schedule
from xyro.frontier.scope import Scope
from xyro.frontier.scope_change import ScopeChange
from xyro.metadata import rows
from xyro.metadata.columns import distinct
from xyro.metadata.hosts import PRICE
from xyro.metadata.partition import Partition
from xyro.metadata.states import State
from xyro.wire.ids import LocalPage, local_pages, page_range
from xyro.wire.urls import authority, host_of, origin, partition_of, site_of

_PLACES = rows.META.key("places")
_OUT, _BLOCKED, _FOREIGN = int(State.OUT), int(State.BLOCKED), int(State.FOREIGN)
PER_ORDER = 64
"""unread pages that a host may have for each order that it got"""
LOOKED = 64
"""most pages with waiting links that one turn looks at"""
SLICE_PAUSE = 0.125
"""seconds between two turns that look at the rest of a long page: others have theirs meanwhile"""
REMEMBERED = 1 << 13
"""hosts of other partitions that a partition remembers to have paid for, some 100 bytes each"""
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


class _Slice(Struct):
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
        self._elsewhere: dict[str, int] = {}
        """host of another partition that was paid for -> URLs of it that may be told of before it is paid for again"""
        self._heirs_elsewhere: dict[str, int] = {}
        """their domains that were left something"""
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
        host = host_of(url)
        heir = site_of(host)
        is_elsewhere = self._partitions > 1 and partition_of(host, self._partitions) != self.partition.number
        if is_elsewhere and (left := self._elsewhere.get(name, 0)):
            self._elsewhere[name] = left - 1
            return True
        known = is_elsewhere and heir in self._heirs_elsewhere
        heritage = self.introductions.introduce(self.domain_of(parent), "" if known else heir)
        if heritage < 0:
            return False
        if is_elsewhere:
            self.heritage[name] = self.heritage.get(name, 0) + PRICE + heritage
            bought = PRICE * PER_ORDER if name in self._elsewhere else self._host_pages
            _remember(self._elsewhere, name, bought)
            if heritage:
                _remember(self._heirs_elsewhere, heir, 0)
        else:
            self._new.add(name)
            self.introductions.inherit(heir, heritage)
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


def _remember(names: dict[str, int], name: str, number: int) -> None:
    """Note the number of a name; the first one is forgotten beyond REMEMBERED."""
    names[name] = number
    if len(names) > REMEMBERED:
        del names[next(iter(names))]


def _parts(urls: Sequence[str]) -> list[Sequence[str]]:
    """Cut links into slices."""
    return [urls[start : start + LINKS_AT_ONCE] for start in range(0, len(urls), LINKS_AT_ONCE)]


def _unseen(slices: Iterable[_Slice]) -> int:
    return sum(not part.looked_at for part in slices)


class Pages:
    """The pages of one partition; `begin` is called in each turn.

    Invariant, between turns: a page is OUT or BLOCKED as the scope judges it at its depth, unless it was exempt, or a
    change of scope has not reached it yet (scope_change.py).
    """

    def __init__(
        self,
        partition: Partition,
        scope: Scope,
        scope_change: ScopeChange,
        fetch: FetchSettings,
        ledger: Ledger,
        hooks: Hooks,
        schedule: Schedule,
        standing: StandingSettings,
    ) -> None:
        self.partition = partition
        self.columns = partition.columns
        self.scope = scope
        self.ledger = ledger
        self.hooks = hooks
        self.schedule = schedule
        self.waiting_links = WaitingLinks(partition, scope, ledger, standing)
        self.heritage = self.waiting_links.heritage
        self.touched: list[Ids] = []
        """pages that URLs were resolved to in this turn"""
        self.nearer: list[Ids] = []
        """pages of other partitions to which a shorter way was found in this turn"""
        self.slices: list[tuple[LocalPage, list[str]]] = []
        """pages of whose waiting links some were looked at in this turn, and these"""
        self.admitted: list[tuple[LocalPage, NDArray[np.uint32]]] = []
        """pages of whose waiting links some became pages in this turn, or were by then, and these"""
        self._partitions: int = partition.facts["partitions"]
        self._is_foreign: list[bool] = []
        """hosts of other partitions, by number, of those met until now"""
        self._bounds = repr((fetch.only_net, fetch.allow_private, fetch.ports))
        self._places: set[str] = set()
        """places of the scope by which the pages here were judged; stored"""
        self.scope_change = scope_change
        self._now = 0

    @property
    def rules(self) -> str:
        """The rules that decide, beside the places, which URLs are read: other rules on a resume apply to all known
        pages."""
        return self.scope.text + self._bounds

    def recover(self, rules: str) -> None:
        """Go on where pages were judged by these rules."""
        self.scope_change.recover()
        if rules != self.rules:
            self.scope_change.begin(None)
        self.waiting_links.recover()
        self.ledger.recover_births([births for _, births in self.partition.scan(rows.BIRTHS.prefix)])
        if self.scope.mode == "any":
            return
        if rules.startswith(self.scope.kind):
            self._places.update(msgpack.unpackb(self.partition.get(_PLACES) or b"\x90"))
            self.scope.places.update(self._places)
        else:
            for page in local_pages(np.flatnonzero(self.columns["depth"][: self.columns.n] == 0)):
                if self.partition.states[page] != _FOREIGN:
                    self.scope.add_seed(self.partition.url(page))

    def begin(self, now: float) -> None:
        """A turn begins: nothing is touched yet, and pages are as the scope of now says."""
        self._now, self.waiting_links.now = int(now), now
        self.touched, self.nearer, self.slices, self.admitted = [], [], [], []
        self.follow_scope()

    # -- URLs ----------------------------------------------------------------------------------------------------

    def resolve(
        self,
        urls: Sequence[str],
        depths: Sequence[int] | Ids,
        exempt: bool = False,
        parents: Ids | None = None,
    ) -> Ids:
        """Pages of URLs; unknown ones are minted at the least depth given. exempt: scope does not hold for them.
        parents: the pages that show them; then those that have to wait are -1."""
        pages = np.array(self.partition.url_index.find(urls), np.int64)
        unknown = np.flatnonzero(pages < 0)
        if len(unknown):
            deep = np.asarray(depths, np.int64)[unknown].tolist()
            new: dict[str, int] = {}
            if parents is not None:
                self._admit(urls, unknown.tolist(), deep, parents, new)
            else:
                for i, depth in zip(unknown.tolist(), deep, strict=True):
                    url = urls[i]
                    new[url] = min(depth, new.get(url, depth))
                    if exempt and authority(url) not in self.partition.hosts.numbers:
                        self.partition.introductions.inherit(site_of(host_of(url)), 0)
            if new:
                first = self._mint(list(new), list(new.values()), exempt)
                numbers = dict(zip(new, page_range(first, len(new)), strict=True))
                pages[unknown] = [numbers.get(urls[i], -1) for i in unknown.tolist()]
        self.touched.append(pages[pages >= 0])
        return pages

    def _admit(
        self, urls: Sequence[str], unknown: list[int], depths: list[int], parents: Ids, new: dict[str, int]
    ) -> None:
        """Add the unknown URLs that become pages now to `new`, with their depths."""
        admits, is_full = self.waiting_links.admits, self.waiting_links.is_full
        self.waiting_links.begin()
        waiting: set[str] = set()
        full: set[str] = set()
        for i, depth in zip(unknown, depths, strict=True):
            url = urls[i]
            if url in new:
                new[url] = min(depth, new[url])
            elif (site := origin(url)) not in full and url not in waiting:  # tens of thousands of one page may wait
                if admits(url, depth, LocalPage(int(parents[i]))):
                    new[url] = depth
                elif is_full(url):
                    full.add(site)
                else:
                    waiting.add(url)

    def resolve_links(self, spending: Spending, store: bool) -> None:
        """Turn the URL runs of the pages that spend into children, and store these; the links that wait, too."""
        runs = spending.open
        owners = [spending.pages[index] for index, _, _ in runs]
        lengths = [stop - start for _, start, stop in runs]
        depths = np.repeat(self.columns["depth"][owners].astype(np.int64) + 1, lengths)
        found = self.resolve(spending.urls, depths, parents=np.repeat(np.array(owners, np.int64), lengths))
        whole = bool((found >= 0).all())
        numbers = found.astype(np.uint32)
        for run, (index, start, stop) in enumerate(runs):
            page, children = spending.pages[index], numbers[start:stop]
            if not whole:
                known = found[start:stop] >= 0
                children = children[known]
            rest = spending.rest.get(run, ())
            if not whole or rest or page in self.waiting_links.counts:
                late = [spending.urls[start + i] for i in np.flatnonzero(found[start:stop] < 0).tolist()]
                self.waiting_links.put(page, late, rest)
            spending.children[index] = children
            if store:
                self.partition.put(rows.LINK.key(page), rows.pack_links(children))
        if self.scope.by_depth:
            self.shorten(found[found >= 0], depths[found >= 0])

    def admit(self, store: bool) -> None:
        """Let links that have waited become pages, as far as the standing of their hosts allows."""
        for page, place in self.waiting_links.ready():
            urls = self.waiting_links.look(page, place)
            self.slices.append((page, urls))
            depth = int(self.columns["depth"][page]) + 1
            found = self.resolve(urls, [depth] * len(urls), parents=np.full(len(urls), page))
            admitted = found[found >= 0].astype(np.uint32)
            late = [url for url, number in zip(urls, found.tolist(), strict=True) if number < 0]
            self.waiting_links.put_back(page, place, late)
            self.admitted.append((page, admitted))
            if len(admitted) and store:
                children = self.partition.children(page)
                whole = admitted if children is None else np.concatenate([children, admitted])
                self.partition.put(rows.LINK.key(page), rows.pack_links(whole))
            if self.scope.by_depth:
                self.shorten(admitted.astype(np.int64), np.full(len(admitted), depth))

    def receive(self, urls: list[str], depths: list[int]) -> Ids:
        """Pages that another partition has news or cash of."""
        pages = self.resolve(urls, depths)
        if self.scope.by_depth:
            self.shorten(pages, np.array(depths, np.int64))
        return pages

    def may_be_read(self, url: str, depth: int) -> bool:
        """Tell whether scope lets a page in that another partition met."""
        return self.scope.judge(url, depth) is State.UNREAD

    def _mint(self, urls: list[str], depths: list[int], exempt: bool) -> LocalPage:
        judge_url = self.scope.judge
        hosts = [self.partition.host(authority(url)) for url in urls]
        is_foreign = self._foreign_hosts()
        states = []
        for url, depth, host in zip(urls, depths, hosts, strict=True):
            if is_foreign[host]:
                states.append(State.FOREIGN)
            elif exempt:
                states.append(State.UNREAD if not self.scope.why_refused(url) else self.scope.refusal(url))
            else:
                states.append(judge_url(url, depth))
        first = self.partition.mint(urls, hosts, states, depths, self._now)
        for born in self.hooks.born:
            born(first, urls)
        self.ledger.mint(first, np.array(states, np.uint8) == State.FOREIGN)
        for chunk, births in self.ledger.births.changes():
            self.partition.put(rows.BIRTHS.key(chunk), births)
        return first

    def _foreign_hosts(self) -> list[bool]:
        """Tell which hosts are of other partitions, by their numbers."""
        own, partitions = self.partition.number, self._partitions
        for name in self.partition.hosts.names[len(self._is_foreign) :]:
            owner = partition_of(host_of(f"http://{name}/"), partitions) if partitions > 1 else own
            self._is_foreign.append(owner != own)
        return self._is_foreign

    # -- depth ---------------------------------------------------------------------------------------------------

    def shorten(self, pages: Ids, depths: Ids) -> None:
        """A shorter way to a page: its depth falls, what was too deep may come into scope, and so on down."""
        column = self.columns["depth"]
        while len(pages):
            nearer = depths < column[pages]
            pages, depths = pages[nearer], depths[nearer]
            np.minimum.at(column, pages, np.minimum(depths, 255).astype(np.uint8))
            pages = distinct(pages)
            self.columns.touch("depth", pages)
            states = self.columns["state"][pages]
            self.nearer.append(pages[states == _FOREIGN])
            for page in local_pages(pages[states == _OUT]):
                self.judge(page)
            pages, depths = self._below(pages) if self.scope.by_depth else (NO_PAGES, NO_PAGES)

    def _below(self, pages: Ids) -> tuple[Ids, Ids]:
        """The stored children of pages, and how deep they lie by this way."""
        found = [
            (page, children) for page in local_pages(pages) if (children := self.partition.children(page)) is not None
        ]
        if not found:
            return NO_PAGES, NO_PAGES
        depths = self.columns["depth"][[page for page, _ in found]].astype(np.int64) + 1
        below = np.concatenate([children for _, children in found]).astype(np.int64)
        return below, np.repeat(depths, [len(children) for _, children in found])

    # -- scope ---------------------------------------------------------------------------------------------------

    def follow_scope(self) -> None:
        """Judge again what a change of scope concerns: all pages after other rules, else those of the places added."""
        if len(self._places) != len(self.scope.places):
            added = self.scope.places - self._places
            self._places |= added
            self.partition.put(_PLACES, msgpack.packb(sorted(self._places)))
            self.scope_change.begin(added)
        if self.scope_change.pending:
            self.scope_change.step()

    def judge(self, page: LocalPage) -> None:
        """Bring one page's state in line with the scope. What was read before and is in scope again is due at once."""
        old = self.partition.states[page]
        outside = old in (_OUT, _BLOCKED)
        judged = self.scope.judge(self.partition.url(page), int(self.columns["depth"][page]))
        if judged is State.UNREAD and not outside:
            return
        if judged is State.UNREAD:
            row = self.partition.row(page)
            if row is not None and row.reads:
                judged = State.READ
                self.schedule.put_due(page, self._now)
        elif not outside:
            self.schedule.retire(page)
        self.partition.set_state(page, judged)
        for hook in self.hooks.judged:
            hook(page, self.partition.url(page))
