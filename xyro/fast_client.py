"""One HTTP/1.1 GET by a protocol of our own over httptools (llhttp): the client of `[fetch] client = "fast"`.

A connection is free for the next request as soon as an answer is whole, however long its page waits to be parsed: the
server's time-out runs. Between two answers nothing may arrive: what does belongs to no request and closes the
connection, so that it is never taken for the next answer. What a packet brings beyond its answer is dropped, and the
connection is not used again. The parser bounds nothing by itself: heads are bounded here, by bytes and headers, bodies
by the bytes of the wire.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple, cast

from httptools import HttpParserError, HttpParserInvalidStatusError, HttpResponseParser

from xyro.connector import ConnectedProtocol, Connector, TlsPlace
from xyro.exchange import (
    BUFFER,
    DEFAULT_LIMITS,
    MONOTONIC,
    ClientLimits,
    ConnectionWatch,
    FastReply,
    IdleConnections,
    keep_alive,
)
from xyro.guard import Guard, GuardRules, split_authority
from xyro.headers import READ_HEADERS, one_length
from xyro.page_client import connect_failure, request_headers
from xyro.proxy import ProxyOf
from xyro.resolver import Resolver
from xyro.tape import Tape
from xyro.wire.errors import TheirError
from xyro.wire.text import short

PACKETS = 512
"""A head that tells its length twice is put together from at most so many packets."""
_NAMES = {name.lower().encode(): name for name in READ_HEADERS}
_TARGET = re.compile(r"/[!-~]*").fullmatch
_HARMLESS = re.compile(r"[^\0\r\n]*").fullmatch


class _Origin(NamedTuple):
    """The part of a URL before its path."""

    host: str
    port: int
    secure: bool
    authority: str
    host_header: str


@lru_cache(maxsize=4096)
def _origin(text: str) -> _Origin:
    scheme, _, authority = text.partition("://")
    secure = scheme == "https"
    host, port = split_authority(authority, 443 if secure else 80)
    bare = host.rstrip(".")
    return _Origin(host, port, secure, authority, authority.replace(host, bare, 1))


class _RefusedHead(Exception):
    """Ends the parser's work out of a callback; the connection's `complaint` says why."""


class FastConnection(ConnectedProtocol):
    """One TCP connection. While `reply` is None it is idle."""

    def __init__(self, client: FastClient, origin: str) -> None:
        self.loop = client.loop
        self.origin = origin
        self.place: TlsPlace | None = None
        self.address = ""
        self.rules: GuardRules = client.guard.rules
        """the guard's, when the address was judged last"""
        self.reusable = False
        self.reply: FastReply | None = None
        self._client = client
        self._limits = client.limits
        self._transport: asyncio.Transport | None = None
        self._requests = 0
        self._paused = False
        self._complaint = ""
        self._parser = self._new_parser()

    def _new_parser(self) -> HttpResponseParser:
        """Lenient where servers are sloppy and no two readers would disagree on where an answer ends."""
        parser = HttpResponseParser(self)
        parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        return parser

    @property
    def is_open(self) -> bool:
        """Tell whether a request can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, request: bytes, body: bytes, host: str, tape: Tape | None) -> FastReply:
        """Send a request. TheirError if the server has hung up, or said something, before it."""
        if not self.is_open or self._transport is None:
            raise TheirError("disconnect", "closed before the request")
        reply = FastReply(self, self.loop.time(), self._limits.wire, host, tape, request)
        self.reply = reply
        self.reusable = False
        self._requests += 1
        self._client.watch.add(reply)
        self._transport.write(request + body)
        return reply

    def release(self, reply: FastReply) -> None:
        """The reply is whole, or nobody reads it any more: keep the connection for the next request, or close it."""
        if reply.whole and self.reusable and self.is_open:
            self.resume()
            self._client.keep(self)
        else:
            self._end(reply)
            self.abort()

    def resume(self) -> None:
        """Go on reading after a pause."""
        if self._paused:
            self._paused = False
            if self._transport is not None and self.is_open:
                self._transport.resume_reading()

    def abort(self) -> None:
        """Close it at once."""
        if self._transport is not None:
            self._transport.abort()

    def fail(self, reply: FastReply, kind: str, detail: str = "") -> None:
        """End the exchange with a failure class: whoever waits for its head or its body gets it."""
        if not reply.failure:
            reply.failure, reply.detail = kind, detail
        self._end(reply)
        self.abort()

    def _end(self, reply: FastReply) -> None:
        self._client.watch.remove(reply)
        if self.reply is reply:
            self.reply = None
        reply.wake()

    # -- asyncio's calls ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none by their type
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""

    def data_received(self, data: bytes) -> None:
        reply = self.reply
        if reply is None:
            self.abort()
            return
        if reply.tape is not None:
            reply.tape.take(data)
        if not reply.received:
            reply.first = self.loop.time()
        reply.received += len(data)
        if reply.headed:
            self._parse(reply, data)
        else:
            reply.head.append(data)
            if reply.refused_lengths:
                self._mend_lengths(reply)
            else:
                self._parse(reply, data)
        if self.reply is not reply:
            if reply.over:  # what came of it waits for its reader, the connection need not
                reply.close()
            return
        if not reply.headed:
            if reply.received > self._limits.head:
                self.fail(reply, "headers-too-large")
        elif reply.received > reply.wire:
            self.fail(reply, "too-large")
        else:
            reply.wake()
            if reply.buffered > BUFFER and self._transport is not None:
                self._paused = True
                self._transport.pause_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._client.idle.lose(self.origin, self)
        reply = self.reply
        if reply is None:
            return
        if reply.headed and error is None and not reply.framed:
            reply.over = True
        elif reply.headed:
            reply.failure = "truncated" if error is None else "disconnect"
        else:  # it was closing as our request left: no fault of either
            reply.failure = "closed-idle" if self._requests > 1 and not reply.received else "disconnect"
        if error is not None:
            reply.detail = short(error)
        self._end(reply)

    # -- the parser ----------------------------------------------------------------------------------------------

    def _parse(self, reply: FastReply, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except HttpParserError as error:
            if self.reply is not reply:  # the answer is over: this is what came behind it
                self.reusable = False
            elif not reply.headed and "Content-Length" in str(error) and not reply.refused_lengths:
                reply.refused_lengths = True
                self._mend_lengths(reply)
            else:
                self.fail(reply, self._complaint or _failure(error, reply), short(error))

    def _mend_lengths(self, reply: FastReply) -> None:
        """The parser refused the Content-Length of a head: where it is several times the same, read the head again with
        one, as soon as it is here."""
        head = b"".join(reply.head) if len(reply.head) <= PACKETS else b""
        if head and b"\r\n\r\n" not in head:
            return
        mended = one_length(head)
        if mended == head:
            self.fail(reply, "bad-framing", "Content-Length")
            return
        reply.begin_head()
        self._parser = self._new_parser()
        self._parse(reply, mended)

    def _refuse(self, kind: str) -> _RefusedHead:
        self._complaint = kind
        return _RefusedHead(kind)

    def on_message_begin(self) -> None:
        """The parser's calls begin here. Whatever follows an answer belongs to no request."""
        if self.reply is None:
            self.reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        reply = self.reply
        if reply is None:
            return
        reply.count += 1  # a trailer, too: megabytes of them come in one packet
        if reply.count > self._limits.max_headers or len(name) + len(value) > self._limits.header:
            raise self._refuse("headers-too-large")
        if reply.headed:
            return
        if b"\0" in value:
            raise self._refuse("bad-framing")
        used = _NAMES.get(name.lower())
        if used is not None:
            reply.note_header(used, value.decode("utf-8", "surrogateescape"))

    def on_headers_complete(self) -> None:
        reply = self.reply
        if reply is None:
            return
        status = self._parser.get_status_code()
        if status < 200:
            if status == 101:
                raise self._refuse("upgrade")
            reply.begin_head()
            return
        if not reply.head[0].startswith(b"HTTP/") and not b"".join(reply.head).lstrip().startswith(b"HTTP/"):
            raise self._refuse("bad-status")  # RTSP and ICE, which the parser knows too
        length = reply.headers.get("Content-Length", "").strip()
        coding = reply.values("Transfer-Encoding")
        reply.announced = int(length) if length.isdigit() else 0
        reply.framed = coding[-1].rpartition(",")[2].strip().lower() == "chunked" if coding else bool(length)
        self.reusable = self._parser.should_keep_alive()
        if self.place is not None and self._requests == 1 and self._transport is not None:
            self._client.connector.note_session(self.place, self._transport)
        if "Keep-Alive" in reply.headers and (seconds := keep_alive(reply.headers["Keep-Alive"])):
            self._client.idle.note_patience(self.origin, seconds)
        reply.status = status
        reply.headed = True
        reply.head = []
        reply.marked_at, reply.marked = self.loop.time(), reply.received

    def on_body(self, data: bytes) -> None:
        reply = self.reply
        if reply is not None:
            reply.pieces.append(data)
            reply.buffered += len(data)

    def on_message_complete(self) -> None:
        reply = self.reply
        if reply is not None and reply.headed:
            reply.over = True
            self._end(reply)


def _failure(error: HttpParserError, reply: FastReply) -> str:
    """The failure class of a complaint of the parser: it was no HTTP at all, or became wrong later."""
    if isinstance(error, HttpParserInvalidStatusError):
        return "bad-status"
    text = str(error).lower()
    named = reply.headed or reply.count or any(word in text for word in ("header", "content-length", "transfer-enc"))
    return "bad-framing" if named else "bad-status"


class FastClient:
    """The arguments are those of AiohttpClient; `page_client.PageClient` says what its methods do."""

    def __init__(
        self,
        guard: Guard,
        resolver: Resolver,
        *,
        user_agent: str,
        contact: str = "",
        limits: ClientLimits = DEFAULT_LIMITS,
        tls: ssl.SSLContext | None = None,
        patience: Callable[[str], float] = lambda host: 1.0,
        tape_of: Callable[[], Tape] | None = None,
        proxy_of: ProxyOf | None = None,
        monotonic: Callable[[], float] = MONOTONIC,
    ) -> None:
        self.guard = guard
        self.resolver = resolver
        self.limits = limits
        self.loop = asyncio.get_running_loop()
        self.watch = ConnectionWatch(limits, patience, monotonic=monotonic)
        self._tape_of = tape_of
        self.connector = Connector(guard, resolver, tls, proxy_of, limits.connect)
        every = request_headers(user_agent, contact)
        self._lines = _lines(every)
        self._lines_but_accept = _lines({name: value for name, value in every.items() if name != "Accept"})
        self.idle = IdleConnections(limits, FastConnection.abort, self.loop)
        self._closed = False

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> FastReply:
        if not headers:
            return await self._send("GET", url, self._lines)
        every = self._lines_but_accept if "Accept" in headers else self._lines
        return await self._send("GET", url, every + _lines(headers))

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> FastReply:
        if kind := self.guard.host_allowed(url):
            raise TheirError(kind, "refused before any contact")
        return await self._send("POST", url, self._lines + _lines({**headers, "Content-Length": str(len(body))}), body)

    def follow(self, proxy_of: ProxyOf | None) -> None:
        self.connector.proxy_of = proxy_of

    def expect(self, host: str, seconds: float) -> None:
        self.idle.expect(host, seconds)

    async def close(self) -> None:
        self._closed = True
        self.idle.close()
        self.watch.fail_all("disconnect")
        self.watch.close()
        await asyncio.sleep(0)  # lets them close their sockets

    async def _send(self, method: str, url: str, lines: str, body: bytes = b"") -> FastReply:
        slash = url.index("/", 8)
        name, target = url[:slash], url[slash:].partition("#")[0]
        if not _TARGET(target):
            raise TheirError("internal", "a URL that is not canonical")
        origin = _origin(name)
        request = f"{method} {target} HTTP/1.1\r\nHost: {origin.host_header}\r\n{lines}\r\n"
        connection = self._idle_connection(name, origin) or await self._connect(name, origin)
        tape = self._tape_of() if self._tape_of is not None else None
        reply = connection.send(request.encode("utf-8", "surrogateescape"), body, origin.authority, tape)
        try:
            await reply.headed_or_failed()
        except BaseException:
            reply.close()
            raise
        return reply

    # -- idle connections ----------------------------------------------------------------------------------------

    def keep(self, connection: FastConnection) -> None:
        """A connection becomes idle, or is closed."""
        if self._closed:
            connection.abort()
        else:
            self.idle.add(connection.origin, connection)

    def _idle_connection(self, name: str, origin: _Origin) -> FastConnection | None:
        connection = self.idle.take(name)
        if connection is None or not connection.is_open:
            return None
        proxy_of = self.connector.proxy_of
        if connection.proxy != (proxy_of and proxy_of(origin.authority)):  # since then other settings came
            connection.abort()
            return None
        if connection.rules is not self.guard.rules:
            connection.rules = self.guard.rules
            if connection.address and self.guard.verdict(connection.address, origin.port):
                connection.abort()
                return None
        return connection

    # -- new connections -----------------------------------------------------------------------------------------

    async def _connect(self, name: str, origin: _Origin) -> FastConnection:
        """A connection to one of the addresses that the guard allows. TheirError with the failure class."""
        limits = self.limits
        try:
            async with asyncio.timeout(2 * limits.connect):
                addresses = await self.resolver.allowed(origin.host, origin.port)
                connection = await self.connector.connect(
                    lambda: FastConnection(self, name),
                    origin.authority,
                    origin.port,
                    addresses,
                    origin.host.strip("[]") if origin.secure else "",
                )
        except TimeoutError as error:
            raise TheirError("connect-timeout") from error
        except (OSError, RuntimeError, ValueError) as error:  # of uvloop the second, of a name for TLS the third
            raise TheirError(connect_failure(error, secure=origin.secure), short(error)) from error
        if self._closed:
            connection.abort()
            raise TheirError("disconnect", "the client was closed")
        return connection


def _lines(headers: Mapping[str, str]) -> str:
    """Headers as they are sent; ValueError for one that would be two."""
    for name, value in headers.items():
        if not _HARMLESS(name) or not _HARMLESS(value):
            raise ValueError(f"a line break in the header {name!r}")
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())
