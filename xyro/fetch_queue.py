"""The fetch queue: five levels (P1 section 3), the gamma share between discovery and refresh, fairness between hosts.

Filled by the frontier's orders, through the pool; emptied by the pool, one `pop` for each free slot; bounded by the
frontier, which leases at most 64 orders a host ahead. Pure: `now` is monotonic seconds that the caller passes.

A host is in exactly one of these states:

    idle      no orders; remembered only until its floor has passed      put -> waiting
    waiting   has orders, its floor has not passed                       in the heap of floors
    ready     has orders, may be read                                    in the ring of every level it has orders for
    busy      one of its orders is being read                            release -> waiting or idle
    held      paused by a person, whatever else it is                    resume

A ready host is of a kind (slot_shares.py): while hosts of its kind may have no slot, `pop` passes over them.

Entries of heaps and rings are not searched for when a host changes state: they are recognised as stale when they come
up (a heap entry by its stamp, a ring entry by the host's state) and dropped then, so every step is O(log hosts) at
most.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator
from operator import attrgetter

from msgspec.structs import replace

from xyro.wire.messages import FetchOrder, Priority

WORTH = 4.0
"""seconds of a slot that one answer is worth"""
FAILURE = 8.0
"""answers that a failure costs: the seconds that a read may take until its headers, however short it was cut"""
NOTHING, BEST, WORST = 1.0, 5.0, -32.0
"""standing of a host that nobody knows, and the most and least there is: a read that takes WORTH seconds halves any"""
UNKNOWN_FROM, TRIED_FROM, PROVEN_FROM = 0.5, 1.5, 4.0
"""least standing: for what is not in debt; after an answer within 1.3 s; after four at once. 8, 2.7 and 1 s keep it"""
DEBTOR, UNKNOWN, TRIED, PROVEN = range(4)
"""kinds of hosts"""
KINDS = 4
REMEMBERED = 1 << 17
"""hosts with a standing, 150 bytes each: the one that was read first is forgotten, and is unknown again"""
SCARCE = 4_096
"""orders taken in a row, as slots came free, from which on slots are what hosts wait for; or one for each host"""
GOLDEN = 100.0 * (math.sqrt(5.0) - 1.0) / 2.0
"""percent points between what two hosts owe at first: spread evenly, so that of many hosts, too, any stretch of choices
has the right part"""
_LEVELS = 4
"""lines of a host: one for each priority, but that DISCOVER and SCOUT, whose pages waited longest, share theirs"""
_ORDERED = Priority.ORDERED.value
_DEADLINE = attrgetter("deadline")
_REFRESH, _DISCOVER = Priority.REFRESH.value, Priority.DISCOVER.value


def kind_of(standing: float) -> int:
    """Return the kind of a host that has such a standing."""
    return (standing >= UNKNOWN_FROM) + (standing >= TRIED_FROM) + (standing >= PROVEN_FROM)


def charged(standing: float, seconds: float) -> float:
    """Return what is left of a standing after so many seconds of a slot; a debt grows by their worth."""
    return standing / (1.0 + seconds / WORTH) if standing > 0.0 else max(WORST, standing - seconds / WORTH)


class _Host:
    """One host's orders, a first-in-first-out line per level, and its state.

    A line is a list: a deque is 624 bytes if it holds one order, and there are thousands of hosts with few.
    """

    __slots__ = ("busy", "in_rings", "kind", "lines", "name", "orders", "owed", "paused", "ready", "ready_at", "stamp")

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[list[FetchOrder] | None] = [None] * _LEVELS
        self.orders = 0
        self.ready_at = -math.inf
        self.ready = False
        self.busy = False
        self.paused = False
        self.kind = UNKNOWN
        """as it was when it became ready"""
        self.in_rings = 0
        """bit R: an entry of this host is in the ring of number R (perhaps a stale one)"""
        self.stamp = 0
        """the heap entry with this stamp is the valid one"""
        self.owed = 0.0
        """percent points of its reads that are owed to discovery, of those for which it had orders of both sides"""


_Heap = list[tuple[float, int, _Host]]
_Ring = deque[tuple[int, _Host]]


class FetchQueue:
    """Levels 0 and 1 first, in that order; then `gamma` percent of what remains goes to discovery (3 and 4, which stand
    in one line), the rest to refresh (2). Where only one of the two sides has an order that may be read, it takes all,
    and nothing is owed to the other. So it is with a host that has orders of one side alone, as long as slots are left
    over (every host that may be read is): hosts that are found one after another are read at once, and take nothing
    from refresh at others. Each host has an account of its own of what it owes discovery: of two that are read in turn,
    one would else have all of it and the other none. Within a level ready hosts take turns; a host has at most one
    order out; a host's orders of one level leave in the order they came, those of level 1 by their deadlines: what is
    past its own is first, and if any order keeps all deadlines of a host, this one does (earliest deadline first, on
    one server).
    """

    def __init__(self, gamma: float = 50.0) -> None:
        if not 0.0 <= gamma <= 100.0:
            raise ValueError(f"gamma: 0..100 percent, not {gamma!r}")
        self.gamma = gamma
        """percent for discovery; `share` changes it"""
        self._owed = 0.0
        """percent points owed to discovery where slots are scarce: at 100 it is discovery's turn"""
        self._phase = 0.0
        """what the next host owes at first"""
        self._in_a_row = 0
        """orders popped since there was none that might be read"""
        self._hosts: dict[str, _Host] = {}
        self._paused: set[str] = set()
        self.standing: dict[str, float] = {}
        """of hosts, in answers (slot_shares.py writes it); absent: UNKNOWN"""
        self._rings: tuple[_Ring, ...] = tuple(deque() for _ in range(KINDS * _LEVELS))
        """of debtors by level, then of hosts of better kinds: (when it came in, host)"""
        self._entries = 0
        self._waiting: _Heap = []
        self._cooling: _Heap = []
        self._stamps = 0
        self._counts = [0] * len(Priority)

    def share(self, gamma: float) -> None:
        """Give discovery so many percent of the orders of levels 2 to 4 from now on."""
        self.gamma = gamma

    def __len__(self) -> int:
        return sum(self._counts)

    def counts(self) -> tuple[int, int, int, int, int]:
        """Orders queued per priority (orders that are out are not)."""
        a, b, c, d, e = self._counts
        return a, b, c, d, e

    def waiting(self, host: str) -> int:
        """Orders queued for `host`."""
        entry = self._hosts.get(host)
        return entry.orders if entry is not None else 0

    def paused_orders(self) -> int:
        """Orders of hosts that are held."""
        return sum(map(self.waiting, self._paused))

    def next_read(self, host: str) -> float:
        """The moment from which the next order of `host` may be read; infinite: there is none, or it is held."""
        entry = self._hosts.get(host)
        return entry.ready_at if entry is not None and entry.orders and not entry.paused else math.inf

    def hosts(self) -> int:
        """Hosts remembered: with orders, out, held, or with a floor that has not passed."""
        return len(self._hosts)

    def lined(self, kind: int) -> int:
        """About how many hosts of one kind are ready: at least those, at most five times as many."""
        first = _LEVELS * kind
        return sum(map(len, self._rings[first : first + _LEVELS]))

    def kind(self, host: str) -> int:
        """Return the kind of a host by its standing."""
        return kind_of(self.standing.get(host, NOTHING))

    def put(self, order: FetchOrder, host: str) -> bool:
        """Queue `order` behind its host's other orders of its level. True: it is the first of a host that was read
        lately and has none out, so `next_read` is another moment now."""
        entry = self._host(host)
        self._add(order, entry, front=False)
        return entry.orders == 1 and not entry.busy and entry.ready_at > -math.inf

    def put_first(self, order: FetchOrder, host: str) -> None:
        """Queue `order` before its host's other orders of its level."""
        self._add(order, self._host(host), front=True)

    def give_back(self, order: FetchOrder, host: str, ready_at: float) -> None:
        """An order that was popped could not be read yet: it becomes the first of its level again, and its host
        free."""
        self._add(order, self._host(host), front=True)
        self.release(host, ready_at)

    def lift(self, order: FetchOrder, host: str) -> bool:
        """An order of this page and epoch that is queued takes the level and deadline of `order`, if those are more
        urgent. False: it is not queued (it is being read, or was), or as urgent already; then nothing changes."""
        entry = self._hosts.get(host)
        queued = _queued(entry, order) if entry is not None else None
        if entry is None or queued is None or urgency(order) >= urgency(queued):
            return False
        level = level_of(queued)
        line = entry.lines[level]
        assert line is not None
        line.remove(queued)
        if not line:
            entry.lines[level] = None
        entry.orders -= 1
        self._counts[queued.priority] -= 1
        self._add(replace(order, raised=False), entry, front=False)
        return True

    def pop(self, now: float, least: int = 0) -> tuple[str, FetchOrder] | None:
        """The next order to read and its host, which is busy from here on; None if no host may be read at `now`.
        least: kind of host that may be read."""
        if self._waiting and self._waiting[0][0] <= now:
            self._wake(now)
        if self._cooling and self._cooling[0][0] <= now:
            self._forget(now)
        host, level = self._choose(least)
        if host is None:
            self._in_a_row = 0
            return None
        self._in_a_row += 1
        ring = level + _LEVELS * host.kind
        self._rings[ring].popleft()
        host.in_rings &= ~(1 << ring)
        host.ready = False
        host.busy = True
        line = host.lines[level]
        assert line, "a ready host in a ring has an order of its level"
        order = line.pop(0)
        if not line:
            host.lines[level] = None
        host.orders -= 1
        self._counts[order.priority] -= 1
        return host.name, order

    def release(self, host: str, ready_at: float) -> None:
        """The order of `host` that was out is done; the host may be read again at `ready_at`."""
        entry = self._hosts.get(host)
        if entry is not None and entry.busy:
            entry.busy = False
            entry.ready_at = ready_at
            self._park(entry)

    def postpone(self, host: str, ready_at: float) -> None:
        """`host` may not be read before `ready_at`; never makes it earlier. (A floor kept over a restart.)"""
        entry = self._host(host)
        if ready_at > entry.ready_at:
            entry.ready_at = ready_at
            if not entry.busy:
                self._park(entry)

    def hold(self, host: str) -> None:
        """Pause: give out no order of `host` until `resume`. Orders are kept and still taken in."""
        entry = self._host(host)
        entry.paused = True
        self._paused.add(host)
        entry.ready = False
        entry.stamp = 0

    def is_held(self, host: str) -> bool:
        """Tell whether `host` is paused."""
        entry = self._hosts.get(host)
        return entry is not None and entry.paused

    def resume(self, host: str) -> None:
        """End a pause."""
        entry = self._hosts.get(host)
        if entry is not None and entry.paused:
            entry.paused = False
            self._paused.discard(host)
            if not entry.busy:
                self._park(entry)

    def drop(self, host: str) -> list[FetchOrder]:
        """Take out all queued orders of `host`, most urgent first (block). The one that is out is not among them."""
        entry = self._hosts.get(host)
        if entry is None or not entry.orders:
            return []
        dropped = [order for line in entry.lines if line for order in line]
        for order in dropped:
            self._counts[order.priority] -= 1
        entry.lines = [None] * _LEVELS
        entry.orders = 0
        if not (entry.busy or entry.paused):
            self._park(entry)
        return dropped

    def waiting_hosts(self, moment: float) -> list[str]:
        """Hosts with orders that may not be read before `moment`; those that a person holds are not among them."""
        return [host.name for ready_at, stamp, host in self._waiting if host.stamp == stamp and ready_at > moment]

    def wake_at(self, least: int = 0) -> float | None:
        """The earliest moment at which `pop` may succeed, in the past if it may now; None if only `put`, `release` or
        `resume` can change anything."""
        host, _ = self._choose(least, peek=True)
        if host is not None:
            return host.ready_at
        heap = self._waiting
        while heap:
            ready_at, stamp, host = heap[0]
            if host.stamp == stamp:
                return ready_at
            heapq.heappop(heap)
        return None

    def _host(self, name: str) -> _Host:
        entry = self._hosts.get(name)
        if entry is None:
            entry = self._hosts[name] = _Host(name)
            entry.owed, self._phase = self._phase, (self._phase + GOLDEN) % 100.0
        return entry

    def _add(self, order: FetchOrder, host: _Host, *, front: bool) -> None:
        level = level_of(order)
        line = host.lines[level]
        if line is None:
            line = host.lines[level] = []
        if level == _ORDERED and line:
            place = (bisect_left if front else bisect_right)(line, order.deadline, key=_DEADLINE)
            line.insert(place, order)
        elif front:
            line.insert(0, order)
        else:
            line.append(order)
        self._counts[order.priority] += 1
        host.orders += 1
        if host.ready:
            self._enter(host, level)
        elif host.orders == 1 and not (host.busy or host.paused):
            self._park(host)

    def _park(self, host: _Host) -> None:
        """A host that is neither busy nor held: with orders it waits for its floor (or is ready), without it cools."""
        host.ready = False
        if host.paused:
            return
        if host.orders and host.ready_at == -math.inf:
            self._admit(host)
            return
        self._stamps += 1
        host.stamp = self._stamps
        heapq.heappush(self._waiting if host.orders else self._cooling, (host.ready_at, host.stamp, host))

    def _admit(self, host: _Host) -> None:
        """The host's floor has passed: it takes its place in the ring of every level it has orders for."""
        host.ready = True
        host.stamp = 0
        host.kind = self.kind(host.name)
        for level, line in enumerate(host.lines):
            if line:
                self._enter(host, level)

    def _enter(self, host: _Host, level: int) -> None:
        ring = level + _LEVELS * host.kind
        bit = 1 << ring
        if not host.in_rings & bit:
            host.in_rings |= bit
            self._entries += 1
            self._rings[ring].append((self._entries, host))

    def _wake(self, now: float) -> None:
        for host in _ripe(self._waiting, now):
            self._admit(host)

    def _forget(self, now: float) -> None:
        for host in _ripe(self._cooling, now):
            del self._hosts[host.name]

    def _first(self, number: int) -> tuple[int, _Host] | None:
        """The first entry of a ring; stale ones before it are dropped."""
        ring = self._rings[number]
        kind, level = divmod(number, _LEVELS)
        while ring:
            entry = ring[0]
            host = entry[1]
            if host.ready and host.lines[level] and host.kind == kind:
                return entry
            ring.popleft()
            host.in_rings &= ~(1 << number)
        return None

    def _head(self, level: int, least: int) -> _Host | None:
        """The host whose turn it is at `level`: of the kinds that may be read, whoever came first."""
        first = None
        for number in range(level + _LEVELS * least, KINDS * _LEVELS, _LEVELS):
            if self._rings[number]:
                other = self._first(number)
                if other is not None and (first is None or other[0] < first[0]):
                    first = other
        return None if first is None else first[1]

    def _choose(self, least: int, peek: bool = False) -> tuple[_Host | None, int]:
        """The next host and the level of its order; unless `peek`, a choice between the two sides is booked."""
        for level in (0, 1):
            if self._counts[level] and (host := self._head(level, least)) is not None:
                return host, level
        refresh = self._head(_REFRESH, least) if self._counts[_REFRESH] else None
        found = self._head(_DISCOVER, least)
        if refresh is None:
            return found, _DISCOVER
        if found is None or peek:
            return refresh, _REFRESH
        if not (scarce := self._in_a_row >= min(len(self._hosts), SCARCE)):
            if not found.lines[_REFRESH]:
                return found, _DISCOVER
            if not refresh.lines[_DISCOVER]:
                return refresh, _REFRESH
        owed = self._owed if scarce and found is not refresh else found.owed
        discovers = owed + self.gamma >= 100.0
        host = found if discovers else refresh
        if scarce:
            self._owed = self._booked(self._owed, discovers)
        if host.lines[_REFRESH] and host.lines[_DISCOVER]:
            host.owed = self._booked(host.owed, discovers)
        return host, _DISCOVER if discovers else _REFRESH

    def _booked(self, owed: float, discovers: bool) -> float:
        """Return what is owed after a choice between both sides. Error diffusion: of any 100 choices that one account
        decides, gamma (+-1) fall to discovery; where the other one decided, no more than one choice is made up for."""
        return min(max(owed + self.gamma - 100.0 * discovers, -100.0), 100.0)


def level_of(order: FetchOrder) -> int:
    """Return the line of its host in which the order stands."""
    return min(order.priority.value, _DISCOVER)


def urgency(order: FetchOrder) -> tuple[int, float]:
    """The least goes first."""
    return order.priority.value, order.deadline if order.priority is Priority.ORDERED else 0.0


def _queued(host: _Host, wanted: FetchOrder) -> FetchOrder | None:
    """The host's order of the same page and epoch."""
    for line in host.lines:
        for order in line or ():
            if order.page == wanted.page and order.epoch == wanted.epoch:
                return order
    return None


def _ripe(heap: _Heap, now: float) -> Iterator[_Host]:
    """Take the hosts whose moment has come out of `heap`, without the stale entries."""
    while heap and heap[0][0] <= now:
        _, stamp, host = heapq.heappop(heap)
        if host.stamp == stamp:
            yield host
