"""The behaviour of a case of the zoo: small acts on a raw connection, and the sound answers that they spoil."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from xyro.lab.zoo.name_server import NameAct, at_home

PIECE = 16_384
"""bytes of one write of an endless body"""
DRIP_SECONDS = 0.05
HTML = "text/html; charset=utf-8"


@dataclass(slots=True)
class ZooClient:
    """One request of a client. An act writes what it likes; when it returns, the connection is closed."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    method: str
    path: str
    headers: dict[str, str]
    nth: int
    """how many requests this case has had, this one included"""
    origin: str
    """scheme, host and port of the case"""
    port: int

    async def send(self, data: bytes) -> None:
        """Write, and wait for the client to take most of it. ConnectionError when the client is gone."""
        self.writer.write(data)
        await self.writer.drain()

    async def gone(self) -> None:
        """Wait until the client gives up."""
        with suppress(ConnectionError):
            while await self.reader.read(PIECE):
                pass

    def reset(self) -> None:
        """Close with RST instead of FIN."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Act = Callable[[ZooClient], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Case:
    """One entry of the zoo.

    `kinds`: failure classes that are right for the page at `path` ("" = a sound read; several where the
    standards leave the choice). Classes that xyro/failures.py calls readable show as a report without error,
    `truncated` set.
    """

    number: int
    """of the case; tests name it by this"""
    name: str
    kinds: tuple[str, ...]
    act: Act
    path: str = "/"
    scheme: Literal["http", "https"] = "http"
    robots: Act | None = None
    """plays /robots.txt; None: everything is allowed"""
    socket: Literal["serve", "refuse", "blackhole"] = "serve"
    leads: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """URLs that the page names -> failure classes that are right for them"""
    links: int | None = None
    """distinct links that the page shows, where the case is about links"""
    endless: bool = False
    """mints new URLs as long as one asks"""
    host: str = ""
    """name of the case and of any name that ends in it; empty: its address"""
    names: NameAct = at_home
    """how the zoo's name server answers for `host`"""
    tls: str = ""
    """kind of certificate (tls_cases.py); empty with https: bytes instead of a handshake"""


def response(body: bytes | str, *headers: str, status: str = "200 OK", mime: str = HTML) -> bytes:
    """A sound response, connection closed after it."""
    data = body.encode() if isinstance(body, str) else body
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Type: {mime}",
        f"Content-Length: {len(data)}",
        "Connection: close",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + data


def page(*hrefs: str, head: str = "", text: str = "A page of the zoo.") -> str:
    """A sound HTML page with some links."""
    links = " ".join(f'<a href="{href}">{href}</a>' for href in hrefs)
    return (
        f"<!DOCTYPE html>\n<html><head><title>zoo</title>{head}</head>\n<body><p>{text}</p>\n{links}\n</body></html>\n"
    )


def says(data: bytes) -> Act:
    """Sends these bytes and closes in order."""

    async def act(client: ZooClient) -> None:
        await client.send(data)

    return act


def answers(make: Callable[[ZooClient], bytes]) -> Act:
    """Sends bytes that depend on the request, and closes in order."""

    async def act(client: ZooClient) -> None:
        await client.send(make(client))

    return act


def holds(data: bytes = b"") -> Act:
    """Sends these bytes, then nothing more, until the client gives up."""

    async def act(client: ZooClient) -> None:
        if data:
            await client.send(data)
        await client.gone()

    return act


def drips(head: bytes, drop: bytes) -> Act:
    """Sends `head` at once, then one byte of `drop` after the other, over and over."""

    async def act(client: ZooClient) -> None:
        await client.send(head)
        place = 0
        while True:
            await asyncio.sleep(DRIP_SECONDS)
            await client.send(drop[place : place + 1])
            place = (place + 1) % len(drop)

    return act


def floods(head: bytes, piece: bytes) -> Act:
    """Sends `head`, then `piece` over and over as fast as the client takes it."""
    block = piece * max(1, PIECE // len(piece))

    async def act(client: ZooClient) -> None:
        await client.send(head)
        while True:
            await client.send(block)

    return act


def breaks(data: bytes) -> Act:
    """Sends these bytes and resets the connection once the client has had time to read them."""

    async def act(client: ZooClient) -> None:
        await client.send(data)
        await asyncio.sleep(DRIP_SECONDS)
        client.reset()

    return act
