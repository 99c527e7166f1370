"""Servers that say exactly the bytes a test wants, on loopback, and what reads them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from xyro.answer import Answer
from xyro.decode import Caps
from xyro.exchange import ClientLimits
from xyro.fetcher import Fetcher
from xyro.guard import Guard
from xyro.politeness import Manners
from xyro.proxy import ProxyOf
from xyro.reader import ReaderOptions, client_class
from xyro.readers import Readers
from xyro.resolver import Resolver
from xyro.wire.clock import SystemClock
from xyro.wire.messages import FetchOrder, Priority

QUICK = ClientLimits(
    connect=2.0,
    first_byte=0.25,
    headers=0.5,
    total=1.2,
    slow_window=0.3,
    body=Caps(size=200_000, ratio=20, free=50_000),
    wire=400_000,
    head=64 * 1024,
)
"""Small limits, so that tests of them are over soon."""

Script = Callable[["Talk"], Awaitable[None]]
CLIENT: Literal["fast", "aiohttp"] = "fast"
"""the client that `reading` reads with: the fixture `client` sets it"""
IN_PROCESSES = bool(os.environ.get("TEST_READERS"))
"""whether `reading` reads in a process beside this one: test_readers.py runs the fetcher's tests so"""


@dataclass
class Talk:
    """One request to a raw server: its head, and the means to answer it."""

    head: str
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int
    """how many requests this connection brought before"""

    async def say(self, *pieces: bytes, pause: float = 0.0) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(pause)

    def reset(self) -> None:
        """Close the connection with an RST."""
        transport = self.writer.transport
        transport.abort()

    def header(self, name: str) -> str:
        for line in self.head.split("\r\n"):
            key, _, value = line.partition(":")
            if key.lower() == name.lower():
                return value.strip()
        return ""

    @property
    def path(self) -> str:
        return self.head.split(" ")[1]


@dataclass
class RawServer:
    """`url` + path reaches it. `heads`: every request seen; `connections`: how many there were."""

    port: int = 0
    scheme: str = "http"
    heads: list[str] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"


@asynccontextmanager
async def serving(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    """A server that runs `script` for each request; a connection ends when the script closes it or the client does."""
    found = RawServer(scheme="http" if tls is None else "https")
    tasks: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        found.connections += 1
        number = 0
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                found.heads.append(head.decode("latin-1"))
                await script(Talk(found.heads[-1], reader, writer, number))
                number += 1
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went, or the test is over
        finally:
            tasks.discard(task)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def reading(
    limits: ClientLimits = QUICK,
    *,
    guard: Guard | None = None,
    tls: ssl.SSLContext | None = None,
    proxy_of: ProxyOf | None = None,
    resolver: Resolver | None = None,
    **options: object,
) -> AsyncIterator[Fetcher]:
    """A fetcher that may read loopback only; `options` are the Fetcher's."""
    guard = guard or Guard(only_net=["127.0.0.0/8"])
    clock = SystemClock()
    if (
        IN_PROCESSES
        and tls is None
        and proxy_of is None
        and not set(options) - {"signature", "skip_suffixes", "fold_slashes", "words"}
    ):
        async with reading_in_processes(limits, guard, **options) as readers:
            yield readers  # type: ignore[misc]  # used as one
        return
    resolver = resolver or Resolver(guard, clock, timeout=0.2, tries=1)
    client = client_class(CLIENT)(
        guard, resolver, user_agent="xyro/0.1 (+http://x.test)", contact="a@x.test", limits=limits, tls=tls,
        proxy_of=proxy_of,
    )  # fmt: skip
    fetcher = Fetcher(client, clock, **options)  # type: ignore[arg-type]
    try:
        yield fetcher
    finally:
        await fetcher.close()
        await resolver.close()


@asynccontextmanager
async def reading_in_processes(
    limits: ClientLimits = QUICK,
    guard: Guard | None = None,
    processes: int = 1,
    patience: Callable[[str], float] = lambda host: 1.0,
    **options: object,
) -> AsyncIterator[Readers]:
    """The same in reader processes."""
    described = ReaderOptions(
        user_agent="xyro/0.1 (+http://x.test)",
        robots_token="xyro",
        contact="a@x.test",
        limits=limits,
        manners=Manners(),
        concurrency=8,
        client=CLIENT,
        **options,  # type: ignore[arg-type]
    )
    guard = guard or Guard(only_net=["127.0.0.0/8"])
    readers = Readers(processes, msgspec.msgpack.encode(described), guard, SystemClock(), patience)
    try:
        yield readers
    finally:
        await readers.close()


def order(url: str, **fields: object) -> FetchOrder:
    return FetchOrder(page=1, url=url, priority=Priority.SCOUT, epoch=1, **fields)  # type: ignore[arg-type]


async def fetched(script: Script, path: str = "/", limits: ClientLimits = QUICK, **fields: object) -> Answer:
    """What one fetch of `path` from a server that runs `script` comes to; `fields` are the order's."""
    async with serving(script) as server, reading(limits) as fetcher:
        return await fetcher.fetch(order(server.url + path, **fields))


def says(*pieces: bytes, pause: float = 0.0, close: bool = True) -> Script:
    """A script that says the same to everyone."""

    async def script(talk: Talk) -> None:
        await talk.say(*pieces, pause=pause)
        if close:
            talk.writer.close()

    return script


def page(body: bytes, *headers: bytes, status: bytes = b"200 OK", mime: bytes = b"text/html") -> bytes:
    """A whole, honest answer."""
    lines = [b"HTTP/1.1 " + status, b"Content-Type: " + mime, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
