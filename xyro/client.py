"""One HTTP/1.1 GET by aiohttp with everything that trusts a server taken out, and its errors as failure classes.

The client of `[fetch] client = "aiohttp"`. aiohttp knows no deadline for the first byte, the headers or a body that
drips, and its timers cost two calls per packet. So `Connection`, the protocol of one TCP connection, notes in an
Exchange (one request and its answer) what arrived when, and the ConnectionWatch looks at all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any, cast

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection as Lease
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from xyro.complaints import first_answer, framing, kind
from xyro.connector import ConnectedProtocol, Connector, TlsPlace
from xyro.exchange import (
    BUFFER,
    DEFAULT_LIMITS,
    MONOTONIC,
    ClientLimits,
    ConnectionWatch,
    Exchange,
    IdleConnections,
    keep_alive,
)
from xyro.guard import Guard, family_of
from xyro.headers import one_length
from xyro.mistakes import detail_of
from xyro.page_client import request_headers
from xyro.proxy import ProxyOf
from xyro.resolver import Resolver
from xyro.tape import Tape
from xyro.wire.errors import TheirError
from xyro.wire.text import short


class Connection(ResponseHandler, ConnectedProtocol):
    """One TCP connection. While `exchange` is None it is idle and nothing may arrive: what does belongs to no request
    and closes the connection, so that it is never taken for the next answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, watch: ConnectionWatch, connector: _AiohttpConnector) -> None:
        super().__init__(loop)
        self._watch = watch
        self._connector = connector
        self.key: ConnectionKey | None = None
        """aiohttp's, once it was idle"""
        self.place: TlsPlace | None = None
        self.patience = 0.0
        """seconds after which its server closes it when it is idle; 0: it does not say"""
        self.address = ""
        self.exchange: Exchange | None = None
        self._params: dict[str, Any] = {}
        self._requests = 0
        self._surplus = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""

    def set_response_params(self, **params: Any) -> None:
        """aiohttp's call just before a request is written."""
        self.exchange = Exchange(self, self._loop.time(), self._watch.limits.wire)
        if self._watch.tape_of is not None:
            self.exchange.tape = self._watch.tape_of()
        self._watch.add(self.exchange)
        self._params = params
        self._requests += 1
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        exchange = self.exchange
        if exchange is None:
            if data:  # none: aiohttp's way to go on after a pause
                self.abort()
            return
        if exchange.tape is not None:
            exchange.tape.take(data)
        if not exchange.received:
            exchange.first = self._loop.time()
            exchange.spoke_http = data.startswith(b"HTTP/")
            exchange.received += len(data)
            data = one_length(data)
        else:
            exchange.received += len(data)
        super().data_received(data)
        if self._surplus:
            self._receive_first(exchange, data)
        limits = self._watch.limits
        if not exchange.headed:
            if exchange.received > limits.head:
                self.fail(exchange, "headers-too-large")
        elif self._payload is not None and self._payload.is_eof():
            self.end(exchange)
        elif isinstance(self._exception, TheirError):  # the parser gave up in a body: it tells only who awaits heads
            self.fail(exchange, self._exception.kind)
        elif exchange.received > exchange.wire:
            self.fail(exchange, "too-large")

    def _receive_first(self, exchange: Exchange, data: bytes) -> None:
        """One packet brought a whole answer and more: the parser refused it whole. What is too much is dropped (zoo 26,
        39), the connection is not used again."""
        self._surplus = False
        answer = first_answer(data)
        if answer:
            super().set_response_params(**self._params)
            super().data_received(answer)
            self.force_close()
        else:
            self.fail(exchange, "bad-framing")

    def feed_data(self, data: Any, size: int = 0) -> None:
        """aiohttp's parser found the head of an answer (of an interim one: 1xx)."""
        exchange = self.exchange
        if exchange is not None and not exchange.headed:
            exchange.headed = data[0].code >= 200 or data[0].code == 101
            exchange.marked_at, exchange.marked = self._loop.time(), exchange.received
            self.patience = keep_alive(data[0].headers.get("Keep-Alive", ""))
            if exchange.headed and self._requests == 1 and self.place is not None and self.transport is not None:
                self._connector.connections.note_session(self.place, self.transport)
        super().feed_data(data, size)

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        """aiohttp's call when reading has failed: what its parser complains about becomes a failure class here."""
        if isinstance(exc, HttpProcessingError) and self.exchange is not None:
            complaint = cause[0] if cause else exc
            if "Expected HTTP/" in str(complaint) and self.exchange.spoke_http and not self.exchange.headed:
                self._surplus = True
                return
            exc = TheirError(framing(complaint, self.exchange.spoke_http), short(complaint))
        super().set_exception(exc, *cause)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connector.lose(self)
        exchange = self.exchange
        if exchange is not None:
            if exc is not None and exchange.headed and not exchange.failure:
                exchange.failure = "disconnect"
            self.end(exchange)
            if not exchange.received and not exchange.failure and self._requests > 1:
                self.set_exception(TheirError("closed-idle"))  # it was closing as our request left: no fault of either
        super().connection_lost(exc)

    def end(self, exchange: Exchange) -> None:
        """The exchange is over, whatever came of it."""
        self._watch.remove(exchange)
        if self.exchange is exchange:
            self.exchange = None

    def fail(self, exchange: Exchange, kind: str) -> None:
        """End the exchange with a failure class: whoever waits for its head or its body gets it."""
        exchange.failure = exchange.failure or kind
        error = TheirError(exchange.failure)
        payload = self._payload
        transport = self.transport
        self.end(exchange)
        self.set_exception(error)
        if payload is not None:
            payload.set_exception(error)
        if transport is not None:
            transport.abort()


class _Response(aiohttp.ClientResponse):
    """Remembers its exchange: a connection may be serving the next request before the body of this one is looked at."""

    exchange: Exchange
    tcp: Connection

    async def start(self, connection: Lease) -> aiohttp.ClientResponse:
        protocol = connection.protocol
        assert isinstance(protocol, Connection)
        assert protocol.exchange is not None
        self.exchange, self.tcp = protocol.exchange, protocol
        self.exchange.host = self.url.raw_authority
        return await super().start(connection)


class _AiohttpConnector(aiohttp.TCPConnector):
    """Has our connector make our protocol, and keeps its idle connections as the other client does."""

    def __init__(self, watch: ConnectionWatch, connections: Connector, **options: Any) -> None:
        super().__init__(**options)
        self.connections = connections
        self.idle: IdleConnections[Connection] = IdleConnections(watch.limits, self._drop, self._loop)
        self._factory = functools.partial(Connection, self._loop, watch, self)  # type: ignore[assignment]

    async def _wrap_create_connection(
        self, *args: Any, addr_infos: list[Any], req: aiohttp.ClientRequest, **options: Any
    ) -> tuple[asyncio.Transport, ResponseHandler]:
        """A connection to one of these addresses."""
        try:
            protocol = await self.connections.connect(
                cast(Callable[[], Connection], self._factory),
                req.url.raw_authority,
                int(addr_infos[0][4][1]),
                [str(info[4][0]) for info in addr_infos],
                options["server_hostname"] or "",
            )
        except ssl.SSLError as error:
            raise aiohttp.ClientConnectorSSLError(req.connection_key, error) from error
        except OSError as error:
            if isinstance(error, TimeoutError) and error.errno is None:
                raise
            raise aiohttp.ClientConnectorError(req.connection_key, error) from error
        if protocol.transport is None:
            raise aiohttp.ClientConnectorError(req.connection_key, ConnectionResetError("closed at once"))
        return protocol.transport, protocol

    async def _get(self, key: ConnectionKey, traces: Any) -> Lease | None:
        """An idle connection, or none."""
        origin = _origin(key)
        self.idle.take(origin)
        proxy_of = self.connections.proxy_of
        proxy = proxy_of and proxy_of(origin.partition("://")[2])
        for protocol in [protocol for protocol, _ in self._conns.get(key, ())]:
            if isinstance(protocol, Connection) and protocol.proxy != proxy:  # since then other settings came
                self._drop(protocol)
        return await super()._get(key, traces)

    def _release(self, key: ConnectionKey, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        """A connection becomes idle, or is closed."""
        super()._release(key, protocol, should_close=should_close)
        if key in self._conns and isinstance(protocol, Connection) and self._conns[key][-1][0] is protocol:
            protocol.key, origin = key, _origin(key)
            self.idle.add(origin, protocol)
            if protocol.patience:
                self.idle.note_patience(origin, protocol.patience)

    def lose(self, protocol: Connection) -> None:
        """A connection is gone."""
        if protocol.key is not None:
            self.idle.lose(_origin(protocol.key), protocol)

    def _drop(self, protocol: Connection) -> None:
        """Close an idle connection."""
        if protocol.key is not None:
            rest = [pair for pair in self._conns.pop(protocol.key, ()) if pair[0] is not protocol]
            if rest:
                self._conns[protocol.key].extend(rest)
        protocol.close()


def _origin(key: ConnectionKey) -> str:
    """https://host:port of a connection, without a default port."""
    port = "" if key.port in (None, 443 if key.is_ssl else 80) else f":{key.port}"
    return f"http{'s' if key.is_ssl else ''}://{key.host}{port}"


class _AllowedAddresses(AbstractResolver):
    """Our resolver as aiohttp asks it."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            {"hostname": host, "host": address, "port": port, "family": family_of(address),
             "proto": socket.IPPROTO_TCP, "flags": socket.AI_NUMERICHOST | socket.AI_NUMERICSERV}
            for address in await self._resolver.allowed(host, port)
        ]  # fmt: skip

    async def close(self) -> None:
        """It is its owner's."""


class AiohttpReply:
    """An answer whose headers are here. Its body is read piece by piece; `drop` or `close` ends it in any case."""

    __slots__ = ("_exchange", "_response", "address", "headers", "status")

    def __init__(self, response: _Response) -> None:
        self._response = response
        self._exchange = response.exchange
        self.address = response.tcp.address
        self.headers = response.headers
        self.status = response.status

    def values(self, name: str) -> list[str]:
        """All values of a header, in their order."""
        return self.headers.getall(name, [])

    @property
    def tape(self) -> Tape | None:
        """The answer as it came, where it is kept."""
        return self._exchange.tape

    @property
    def whole(self) -> bool:
        """Tell whether the answer came to its end."""
        return self._response.content.is_eof() and not self._exchange.failure

    @property
    def request(self) -> bytes:
        """The head of the request as it was sent."""
        info = self._response.request_info
        lines = [f"{info.method} {info.url.raw_path_qs} HTTP/1.1", *(f"{k}: {v}" for k, v in info.headers.items())]
        return "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape")

    @property
    def received(self) -> int:
        """Bytes that came for this answer so far, headers and framing included."""
        return self._exchange.received

    @property
    def ended(self) -> float:
        """Monotonic seconds: when its last byte came, or it failed; 0.0 while it goes on."""
        return self._exchange.ended

    async def read(self) -> bytes:
        """The next bytes of the body as they were sent (coded), empty at its end. TheirError if it breaks."""
        content = self._response.content
        try:
            data = content.read_nowait() if content.is_eof() else await content.readany()
        except Exception as error:
            failure = self._exchange.failure or kind(error)
            raise TheirError(failure, detail_of(failure, error)) from error
        return data

    def widen(self, wire: int) -> None:
        """Raise the number of bytes that this answer may have; never lower it."""
        self._exchange.wire = max(self._exchange.wire, wire)

    def pause(self, paused: bool) -> None:
        """Stop the answer's clocks while it waits for us, or let them go on."""
        self._exchange.paused = paused

    async def drop(self, tiny: int = 16 * 1024) -> None:
        """End the answer. A rest of at most `tiny` announced bytes is read, which keeps the connection for the next
        page; otherwise the connection is closed."""
        response = self._response
        if not response.content.is_eof() and not self._exchange.failure and 0 < (response.content_length or 0) <= tiny:
            with contextlib.suppress(TheirError):
                while await self.read():
                    pass
        self.close()

    def close(self) -> None:
        """End the answer at once: a connection whose body was not read to its end is closed."""
        if self._response.content.is_eof() and not self._exchange.failure and self.status >= 200:
            self._response.release()
        else:
            self._response.tcp.end(self._exchange)
            self._response.close()


class AiohttpClient:
    """`user_agent`: the whole header (it has to contain robots.txt's product token); `contact`: a mail address for
    From, or empty; `tls`: a context that knows further authorities. To be made inside a running loop, and closed."""

    def __init__(
        self,
        guard: Guard,
        resolver: Resolver,
        *,
        user_agent: str,
        contact: str = "",
        reads: bool = True,
        limits: ClientLimits = DEFAULT_LIMITS,
        tls: ssl.SSLContext | None = None,
        patience: Callable[[str], float] = lambda host: 1.0,
        tape_of: Callable[[], Tape] | None = None,
        proxy_of: ProxyOf | None = None,
        monotonic: Callable[[], float] = MONOTONIC,
    ) -> None:
        """reads: False where it only posts, and says nothing of the pages it would accept. patience: share of the
        deadlines that a host (host[:port]) is allowed now. tape_of: what records an answer, None where it is not kept.
        monotonic: the clock by which `ended` is told.
        """
        self.guard = guard
        self.resolver = resolver
        self.limits = limits
        self.watch = ConnectionWatch(limits, patience, tape_of, monotonic)
        self._connector = _AiohttpConnector(
            self.watch,
            Connector(guard, resolver, tls, proxy_of, limits.connect),
            resolver=_AllowedAddresses(resolver),
            use_dns_cache=False,
            limit=0,
            keepalive_timeout=2 * limits.longest_idle,  # ours ends before
        )
        self._session = aiohttp.ClientSession(
            connector=self._connector,
            timeout=aiohttp.ClientTimeout(total=None, connect=2 * limits.connect, sock_connect=limits.connect),
            response_class=_Response,
            headers=request_headers(user_agent, contact) if reads else {"User-Agent": user_agent},
            skip_auto_headers=("Accept", "Accept-Encoding"),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            read_bufsize=BUFFER,
            max_line_size=limits.line,
            max_field_size=limits.header,
            max_headers=limits.max_headers,
        )
        self._session._retry_connection = False  # else it sends a GET again, at once, after a disconnect

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> AiohttpReply:
        """Send GET `url` (canonical, without userinfo) and wait for the headers. TheirError with the failure class."""
        return await self._send("GET", url, headers)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> AiohttpReply:
        """Send POST `url` with a body, as `get`: notices to subscribers, requests to WebSub hubs."""
        if kind := self.guard.host_allowed(url):
            raise TheirError(kind, "refused before any contact")
        return await self._send("POST", url, headers, body)

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str] | None, body: bytes | None = None
    ) -> AiohttpReply:
        try:
            response = await self._session.request(
                method, URL(url, encoded=True), headers=headers, data=body, allow_redirects=False
            )
        except TheirError:
            raise
        except Exception as error:
            failure = kind(error, secure=url.startswith("https:"))
            raise TheirError(failure, detail_of(failure, error)) from error
        assert isinstance(response, _Response)
        reply = AiohttpReply(response)
        if reply.status == 101:
            reply.close()
            raise TheirError("upgrade", "101 without having been asked")
        return reply

    def follow(self, proxy_of: ProxyOf | None) -> None:
        self._connector.connections.proxy_of = proxy_of

    def expect(self, host: str, seconds: float) -> None:
        """The next request to `host` (authority) comes in so many seconds; infinite: nobody knows of one."""
        self._connector.idle.expect(host, seconds)

    async def close(self) -> None:
        """Close every connection; what is still being read ends as `disconnect`. The resolver is its owner's."""
        self.watch.close()
        self._connector.idle.close()
        await self._session.close()
