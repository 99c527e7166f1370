"""Admits connections to a server: so many of one sender, so many of all. Before that nothing is parsed.

aiohttp bounds what comes over a connection (its length of lines and heads, seconds without a whole head, bodies), not
how many there are. A connection beyond the bounds is closed without an answer: who opens hundreds is no publisher. A
server whose users can prove themselves may ask for room instead: then the connection that has gone longest without a
proof is closed for the new one (`replacing`, `trust`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Network, ip_address
from typing import Any, cast

CONNECTION_LIMIT, SENDER_LIMIT = 512, 32
"""connections at once: behind a proxy all have its address, so there `listen` on loopback knows no senders"""


class Admission:
    """`enter` is the protocol factory of a server; `inside` makes the protocol of a connection that is let in."""

    def __init__(
        self, inside: Callable[[], asyncio.Protocol], of_sender: int = SENDER_LIMIT, replacing: bool = False
    ) -> None:
        self._inside = inside
        self._of_sender = of_sender
        self._replacing = replacing
        self._strangers: dict[asyncio.BaseTransport, None] = {}
        """connections without a proof, oldest first; kept where they may be replaced"""
        self._connections: Counter[str] = Counter()
        self.refused = 0
        """connections that were closed at once"""

    def __len__(self) -> int:
        """Number of open connections."""
        return self._connections.total()

    def enter(self) -> asyncio.Protocol:
        return _Guest(self, self._inside)

    def take(self, sender: str) -> bool:
        """Count a new connection if there is room for it; tell whether there was."""
        if len(self) >= CONNECTION_LIMIT or self._connections[sender] >= self._of_sender:
            self.refused += 1
            if not self._make_room():
                return False
        self._connections[sender] += 1
        return True

    def watch(self, transport: asyncio.BaseTransport) -> None:
        """Remember a connection that was let in, until it is trusted or closed."""
        if self._replacing:
            self._strangers[transport] = None

    def trust(self, transport: asyncio.BaseTransport | None) -> None:
        """Keep a connection, whoever comes: its user proved to be one of ours. Also: forget one that was closed."""
        if transport is not None:
            self._strangers.pop(transport, None)

    def _make_room(self) -> bool:
        """Close the connection that has gone longest without a proof. (It is counted until the loop has closed it.)"""
        oldest = next(iter(self._strangers), None)
        if oldest is None:
            return False
        del self._strangers[oldest]
        cast(asyncio.Transport, oldest).abort()
        return True

    def leave(self, sender: str) -> None:
        self._connections[sender] -= 1
        if not self._connections[sender]:
            del self._connections[sender]


def sender_of(remote: str) -> str:
    """Return the sender that an address stands for: of IPv6 everybody has a whole network."""
    address = ip_address(remote)
    if isinstance(address, IPv4Address):
        return str(address)
    return str(address.ipv4_mapped or IPv6Network((int(address), 64), strict=False))


class _Guest(asyncio.Protocol):
    """One connection: counted, and everything else is passed on."""

    def __init__(self, admission: Admission, inside: Callable[[], asyncio.Protocol]) -> None:
        self._admission = admission
        self._make = inside
        self._inside: asyncio.Protocol | None = None
        self._sender = ""
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        peer: Any = transport.get_extra_info("peername")
        self._sender = sender_of(str(peer[0])) if peer else ""
        self._transport = transport
        if self._admission.take(self._sender):
            self._admission.watch(transport)
            self._inside = self._make()
            self._inside.connection_made(transport)
        else:
            cast(asyncio.Transport, transport).abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._inside is not None:
            self._admission.leave(self._sender)
            self._admission.trust(self._transport)
            self._inside.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._inside is not None:
            self._inside.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inside.eof_received() if self._inside is not None else None

    def pause_writing(self) -> None:
        if self._inside is not None:
            self._inside.pause_writing()

    def resume_writing(self) -> None:
        if self._inside is not None:
            self._inside.resume_writing()
