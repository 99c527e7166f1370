"""Makes the connections of one client: TCP to an address that the guard allows, a proxy's tunnel, TLS.

There is one judge of certificates, and it is made once. A handshake that resumes a session costs less than half of a
new one, and judges nothing: so a session is resumed only where nothing differs of what was judged when it began: the
same client (one guard, one judge), name, port, address, and proxy.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from aiohappyeyeballs import start_connection

from xyro.guard import Guard, family_of
from xyro.page_client import check_tls
from xyro.proxy import ProxyOf, Tunnels
from xyro.resolver import Resolver
from xyro.site_entries import Proxy
from xyro.tls_transport import TlsTransport
from xyro.wire.urls import address_of

STAGGER = 0.25
"""Seconds after which the next address of a host is tried beside the first (RFC 8305)."""
SESSIONS = 2_048
"""that are remembered, those used last"""


class TlsPlace(NamedTuple):
    """The other end of a handshake: a session is resumed with no other."""

    name: str
    """what its certificate has to say, and SNI"""
    port: int
    address: str
    proxy: Proxy | None
    """what the connection leads through"""


class ConnectedProtocol(asyncio.Protocol):
    """The protocol of a connection, as a client makes it. `address`: the server's, empty where a proxy alone knows it;
    `place`: None without TLS; `proxy`: what it leads through."""

    address: str
    proxy: Proxy | None = None
    place: TlsPlace | None


_P = TypeVar("_P", bound=ConnectedProtocol)


class Connector:
    """`tls`: the judge of certificates; None: one that knows the system's authorities, made when it is asked for, for
    they take a while to load. `seconds`: most for a connection with TLS; a proxy gets as
    many for its tunnel."""

    def __init__(
        self,
        guard: Guard,
        resolver: Resolver,
        tls: ssl.SSLContext | None,
        proxy_of: ProxyOf | None,
        seconds: float,
    ) -> None:
        check_tls(tls)
        self._guard, self._seconds = guard, seconds
        self.proxy_of = proxy_of
        """the proxy of a host; None: there are none"""
        self._tunnels = Tunnels(guard, resolver)
        self._tls = tls
        self._sessions: dict[TlsPlace, ssl.SSLSession] = {}

    async def connect(
        self, factory: Callable[[], _P], authority: str, port: int, addresses: Sequence[str], name: str = ""
    ) -> _P:
        """The protocol of a connection to one of a host's addresses. `authority`: whom a proxy is chosen for; `name`:
        what certificates have to say, empty without TLS. OSError (ssl.SSLError and TimeoutError are), RuntimeError
        (uvloop's), ValueError (a name that TLS cannot have) or TheirError: there is none."""
        proxy = self.proxy_of(authority) if self.proxy_of is not None else None
        target, sock = "", None
        if proxy is not None:
            sock, target = await self._tunnels.open(proxy, addresses, port, self._seconds)
        async with asyncio.timeout(self._seconds):
            sock = sock or await self._socket(addresses, port)
            return await self._protocol(factory, sock, port, name, target, proxy)

    async def _protocol(
        self, factory: Callable[[], _P], sock: socket.socket, port: int, name: str, target: str, proxy: Proxy | None
    ) -> _P:
        """The protocol on a socket, which is closed if there is none."""
        try:
            if name:
                place = TlsPlace(name, port, target or sock.getpeername()[0], proxy)
                protocol = await self._secured(factory, sock, place)
            else:
                _, protocol = await asyncio.get_running_loop().create_connection(factory, sock=sock)
        except BaseException:
            sock.close()
            raise
        protocol.proxy = proxy
        if target:
            protocol.address = target if address_of(target) is not None or ":" in target else ""
        return protocol

    def note_session(self, place: TlsPlace, transport: asyncio.BaseTransport) -> None:
        """Remember the session of a connection for the next one to the same place. An answer has come on it: servers of
        TLS 1.3 send it behind the handshake."""
        session = transport.get_extra_info("ssl_object").session
        if session is None or not (session.has_ticket or session.id):
            return
        self._sessions.pop(place, None)
        self._sessions[place] = session
        if len(self._sessions) > SESSIONS:
            del self._sessions[next(iter(self._sessions))]

    async def _socket(self, addresses: Sequence[str], port: int) -> socket.socket:
        infos = [
            (family_of(address), socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port)) for address in addresses
        ]
        return await start_connection(
            infos,
            happy_eyeballs_delay=STAGGER,
            interleave=1,
            loop=asyncio.get_running_loop(),
            socket_factory=self._guard.socket_factory,
        )

    async def _secured(self, factory: Callable[[], _P], sock: socket.socket, place: TlsPlace) -> _P:
        """The protocol on a connected socket, after the handshake. A session is given out once (RFC 8446 C.4), so one
        that a server chokes on is tried once."""
        loop = asyncio.get_running_loop()
        shaken: asyncio.Future[None] = loop.create_future()
        coded, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = self._sessions.pop(place, None)
        tls = self._judge().wrap_bio(coded, out, server_hostname=place.name, session=session)
        protocol = factory()
        protocol.place = place
        beneath = TlsTransport(protocol, tls, coded, out, shaken)
        transport, _ = await loop.create_connection(lambda: beneath, sock=sock)
        try:
            await shaken
        except BaseException:
            transport.abort()
            raise
        return protocol

    def _judge(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        self._tls.options |= ssl.OP_NO_RENEGOTIATION  # writing waits for no reading
        return self._tls
