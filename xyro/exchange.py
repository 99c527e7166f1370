"""One request and its answer: what they may take, who is late, and how the fast client's answer waits for its reader.

One timer per client, the ConnectionWatch, looks at all exchanges: who is late ends with a failure class. Between two
answers a connection is one of IdleConnections.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct, field

from xyro.decode import Caps
from xyro.tape import Tape
from xyro.wire.clock import SystemClock
from xyro.wire.errors import TheirError

C = TypeVar("C")
BUFFER = 128 * 1024
"""Bytes of a body that wait for us before its connection is paused."""


class ClientLimits(Struct, frozen=True):
    """Seconds and bytes that one request may take. Times run from when it was sent, but for `connect`."""

    connect: float = 10.0
    """for one address, TLS included"""
    first_byte: float = 15.0
    headers: float = 30.0
    """until the last byte of the headers"""
    total: float = 120.0
    slow_bytes: int = 1024
    """a body has to bring so many bytes per second ..."""
    slow_window: float = 20.0
    """... in each window of so many seconds"""
    body: Caps = field(default_factory=Caps)
    wire: int = 16 * 1024 * 1024
    """bytes received for one answer, framing and coding included"""
    head: int = 256 * 1024
    """bytes of headers, interim answers (1xx) included"""
    line: int = 16_384
    header: int = 32_768
    max_headers: int = 256
    idle: float = 15.0
    """a connection is kept for the next page of its host ..."""
    longest_idle: float = 60.0
    """... and for so long where that page is due by then"""
    most_idle: int = 1024
    """connections that are kept, one a host: those whose hosts' next pages are due first, then those used last"""


DEFAULT_LIMITS = ClientLimits()
MONOTONIC = SystemClock().monotonic
"""the loop's own time stands still while it works"""
ORIGINS = 16_384
"""whose servers are known to close idle connections, and when: those heard of last"""
DOUBT = 0.3
"""seconds before and after that moment, at most a quarter of the time until then, in which nothing is sent: the server
may be closing the connection. As long as a request takes to the other end of the world and back"""
_KEEP_ALIVE = re.compile(r"(?:^|,)\s*timeout\s*=\s*(\d{1,6})\b", re.ASCII | re.IGNORECASE).search


def keep_alive(header: str) -> float:
    """Seconds after which a server closes an idle connection, by its header Keep-Alive; 0: it does not say."""
    found = _KEEP_ALIVE(header) if header else None
    return float(found[1]) if found else 0.0


class _Idle(Struct, Generic[C]):
    connection: C
    since: float
    until: float
    """when it is closed"""
    due: float = -math.inf
    """when the next page of its host is due; infinite: nobody knows of one; at first the last one may still be read"""


class IdleConnections(Generic[C]):
    """The idle connections of one client, one an origin (https://host:port), each of which is an open file.

    A server that closes an idle connection says when by its header Keep-Alive, or shows it by doing so. Shortly before
    that moment a request would cross its farewell; after it a connection that is still open is as good as before.

    Who fills it: the client, with connections whose answer is over. Who empties it: requests, servers, the timer. What
    bounds it: `most_idle`; the hosts whose next pages are due last give way.
    """

    def __init__(self, limits: ClientLimits, close: Callable[[C], None], loop: asyncio.AbstractEventLoop) -> None:
        self._limits = limits
        self._close = close
        self._loop = loop
        self._idle: dict[str, _Idle[C]] = {}
        """in the order in which they became idle"""
        self._patience: dict[str, float] = {}
        """origin -> seconds after which its server closes an idle connection"""
        self._tick = min(limits.idle / 8, 1.0)
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._idle)

    def add(self, origin: str, connection: C) -> None:
        """The connection to an origin becomes idle; an older one of it is closed."""
        self._end(origin)
        if len(self._idle) >= self._limits.most_idle:  # some at once, for they are looked for among all
            last = sorted(self._idle, key=lambda name: self._idle[name].due, reverse=True)
            for name in last[: self._limits.most_idle // 16 + 1]:
                self._end(name)
        now = self._loop.time()
        self._idle[origin] = _Idle(connection, now, now + self._limits.idle)
        if self._timer is None:
            self._timer = self._loop.call_later(self._tick, self._look)

    def take(self, origin: str) -> C | None:
        """A connection for a request, no longer idle. One that its server may be closing just now is closed."""
        idle = self._idle.get(origin)
        if idle is None:
            return None
        patience = self._patience.get(origin)
        if patience is not None and abs(self._loop.time() - idle.since - patience) <= min(DOUBT, patience / 4):
            self._end(origin)
            return None
        del self._idle[origin]
        return idle.connection

    def expect(self, host: str, seconds: float) -> None:
        """The next page of `host` (authority) is due in so many seconds; infinite: none is known of."""
        for origin in ("https://" + host, "http://" + host):
            idle = self._idle.get(origin)
            if idle is not None:
                due = self._loop.time() + seconds
                idle.due = due if due < idle.since + self._patience.get(origin, math.inf) else math.inf
                awaited = idle.due <= idle.since + self._limits.longest_idle
                idle.until = idle.since + (self._limits.longest_idle if awaited else self._limits.idle)

    def note_patience(self, origin: str, seconds: float) -> None:
        """The server of an origin closes idle connections after so many seconds."""
        self._patience.pop(origin, None)
        self._patience[origin] = seconds
        if len(self._patience) > ORIGINS:
            del self._patience[next(iter(self._patience))]

    def lose(self, origin: str, connection: C) -> None:
        """A connection is gone: if it was idle, its server has closed it."""
        idle = self._idle.get(origin)
        if idle is not None and idle.connection is connection:
            del self._idle[origin]
            self.note_patience(origin, self._loop.time() - idle.since)

    def close(self) -> None:
        """Close all; no timer runs any more."""
        for origin in list(self._idle):
            self._end(origin)
        if self._timer is not None:
            self._timer.cancel()

    def _end(self, origin: str) -> None:
        if (idle := self._idle.pop(origin, None)) is not None:
            self._close(idle.connection)

    def _look(self) -> None:
        """Close those that have been idle for long enough."""
        now = self._loop.time()
        for origin, idle in list(self._idle.items()):
            if now >= idle.until:
                self._end(origin)
        self._timer = self._loop.call_later(self._tick, self._look) if self._idle else None


class WatchedConnection(Protocol):
    """The part of a connection that the watch calls."""

    def fail(self, exchange: Any, kind: str) -> None:
        """End the exchange with a failure class: whoever waits for its head or its body gets it."""


@dataclass(slots=True, eq=False)
class Exchange:
    """One request and its answer on a connection. Times are the loop's; 0.0 where it did not come to that."""

    connection: WatchedConnection
    began: float
    wire: int
    """bytes that it may bring"""
    host: str = ""
    first: float = 0.0
    headed: bool = False
    received: int = 0
    marked: int = 0
    marked_at: float = 0.0
    spoke_http: bool = False
    paused: bool = False
    """it is we who do not read on: its time stands still"""
    failure: str = ""
    tape: Tape | None = None
    """the answer as it came, where it is kept"""
    ended: float = 0.0
    """monotonic seconds, not the loop's: when its last byte came, or it failed"""

    def late(self, now: float, limits: ClientLimits, patience: float = 1.0) -> str:
        """The failure class of an exchange that takes too long, or an empty string. patience: share of the time, above
        0, that it is allowed now."""
        age = now - self.began
        if age > limits.total * patience:
            return "timeout"
        if not self.headed:
            if age > limits.headers * patience:
                return "header-timeout" if self.first else "first-byte-timeout"
            return "first-byte-timeout" if not self.first and age > limits.first_byte * patience else ""
        if now - self.marked_at < limits.slow_window * patience:
            return ""
        slow = self.received - self.marked < limits.slow_bytes / patience * (now - self.marked_at)
        self.marked_at, self.marked = now, self.received
        return "slow-body" if slow else ""


class ConnectionWatch:
    """The one timer; it runs only while there are exchanges."""

    def __init__(
        self,
        limits: ClientLimits,
        patience: Callable[[str], float],
        tape_of: Callable[[], Tape] | None = None,
        monotonic: Callable[[], float] = MONOTONIC,
    ) -> None:
        """monotonic: the clock of whoever keeps the delays of hosts, in which `Exchange.ended` is told."""
        self.limits = limits
        self.tape_of = tape_of
        self._monotonic = monotonic
        self._patience = patience
        shortest = min(limits.first_byte, limits.headers, limits.total, limits.slow_window)
        self._tick = min(max(shortest / 8, 0.005), 1.0)
        self._exchanges: set[Exchange] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._looked = 0.0

    def add(self, exchange: Exchange) -> None:
        self._exchanges.add(exchange)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._tick, self._look)

    def remove(self, exchange: Exchange) -> None:
        """It is over."""
        exchange.ended = exchange.ended or self._monotonic()
        self._exchanges.discard(exchange)

    def close(self) -> None:
        """No time runs any more."""
        if self._timer is not None:
            self._timer.cancel()

    def fail_all(self, kind: str) -> None:
        """End every exchange with a failure class."""
        for exchange in list(self._exchanges):
            exchange.connection.fail(exchange, kind)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._tick, self._look) if self._exchanges else None
        now = loop.time()
        passed, self._looked = now - self._looked, now
        for exchange in list(self._exchanges):
            if exchange.paused:
                exchange.began += min(passed, now - exchange.began)
                exchange.marked_at, exchange.marked = now, exchange.received
                continue
            kind = exchange.late(now, self.limits, self._patience(exchange.host))
            if kind:
                exchange.connection.fail(exchange, kind)


class ReplyConnection(WatchedConnection, Protocol):
    """The part of a connection that its replies call."""

    loop: asyncio.AbstractEventLoop
    address: str

    def resume(self) -> None:
        """Go on reading after a pause."""

    def release(self, reply: Any) -> None:
        """The reply is whole, or nobody reads it any more: keep the connection for the next request, or close it."""


class FastReply(Exchange):
    """A request that was sent, then its answer; `page_client.Reply` says what its methods do."""

    __slots__ = (
        *("_closed", "_more", "_waiter", "announced", "buffered", "count", "detail", "framed", "head", "headers"),
        *("over", "pieces", "refused_lengths", "request", "status"),
    )
    connection: ReplyConnection

    def __init__(
        self, connection: ReplyConnection, began: float, wire: int, host: str, tape: Tape | None, request: bytes
    ) -> None:
        super().__init__(connection, began, wire, host)
        self.tape = tape
        self.request = request
        self.status = 0
        self.headers: dict[str, str] = {}
        self.count = 0
        """headers of this head so far"""
        self.framed = False
        """the answer ends where it says, not where the connection ends"""
        self.announced = 0
        self.head: list[bytes] = []
        """packets, until the head is whole"""
        self.refused_lengths = False
        """the head is gathered because it tells a length twice"""
        self.pieces: list[bytes] = []
        """of the body: those that nobody read yet"""
        self.buffered = 0
        self.over = False
        self.detail = ""
        self._more: dict[str, list[str]] = {}
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    @property
    def address(self) -> str:
        return self.connection.address

    @property
    def whole(self) -> bool:
        return self.over and not self.failure

    def values(self, name: str) -> list[str]:
        if name in self._more:
            return self._more[name]
        return [self.headers[name]] if name in self.headers else []

    def note_header(self, name: str, value: str) -> None:
        """Keep a header that is read here: the first by itself, all of them in `values`."""
        first = self.headers.setdefault(name, value)
        if first is not value:
            self._more.setdefault(name, [first]).append(value)

    def begin_head(self) -> None:
        """Forget what was read of a head: another follows (1xx), or it is read again."""
        self.headers, self._more, self.count = {}, {}, 0

    def wake(self) -> None:
        """Something came, or it is over."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def headed_or_failed(self) -> None:
        """Wait for the head. TheirError with the failure class."""
        while not self.headed:
            if self.failure:
                raise TheirError(self.failure, self.detail)
            await self._wait()

    async def read(self) -> bytes:
        while not self.pieces:
            if self.failure:
                raise TheirError(self.failure, self.detail)
            if self.over:
                return b""
            await self._wait()
        pieces, self.pieces, self.buffered = self.pieces, [], 0
        if not self._closed:
            self.connection.resume()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def widen(self, wire: int) -> None:
        self.wire = max(self.wire, wire)

    def pause(self, paused: bool) -> None:
        self.paused = paused

    async def drop(self, tiny: int = 16 * 1024) -> None:
        if not self.over and not self.failure and 0 < self.announced <= tiny:
            try:
                while await self.read():
                    pass
            except TheirError:
                pass
        self.close()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.connection.release(self)

    async def _wait(self) -> None:
        self._waiter = self.connection.loop.create_future()
        await self._waiter
