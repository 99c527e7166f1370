"""Hosts with pages that never change, each of which may begin to answer everything with an interstitial.

    async with WallServer(INTERSTITIALS, pages=23) as walls:
        walls.seeds            the front page of each host, 127.3.0.k of one port
        walls.up = True        from now on host k shows interstitial k at every URL
        walls.requests         (seconds since 1970, host number, path) of all requests

A page links to its neighbours and has a text of its own; what does not exist is not found.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
from collections.abc import Sequence
from types import TracebackType

from xyro.lab.zoo.interstitials import Interstitial
from xyro.wire.clock import SystemClock

_MAX_HEAD = 65_536


class WallServer:
    """Serves while the `async with` block lasts."""

    def __init__(self, interstitials: Sequence[Interstitial], pages: int, port: int = 0) -> None:
        self.interstitials = interstitials
        self.pages = pages
        self.port = port
        self.up = False
        self.requests: list[tuple[float, int, str]] = []
        self._clock = SystemClock()
        self._servers: list[asyncio.Server] = []
        self._tokens = itertools.count(0x5EED)

    @property
    def seeds(self) -> list[str]:
        """The front page of each host."""
        return [f"http://127.3.0.{number + 1}:{self.port}/" for number in range(len(self.interstitials))]

    async def __aenter__(self) -> WallServer:
        for number in range(len(self.interstitials)):
            sock = socket.create_server((f"127.3.0.{number + 1}", self.port), backlog=128)
            self.port = sock.getsockname()[1]

            async def connected(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int = number
            ) -> None:
                await self._connected(number, reader, writer)

            self._servers.append(await asyncio.start_server(connected, sock=sock, limit=_MAX_HEAD))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.close()
            await server.wait_closed()

    async def _connected(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            path = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1].decode("latin-1")
            self.requests.append((self._clock.time(), number, path))
            writer.write(self._answer(number, path))
            await writer.drain()
            writer.close()
            await writer.wait_closed()

    def _answer(self, number: int, path: str) -> bytes:
        if path == "/robots.txt":
            return _response(b"User-agent: *\nDisallow:\n", "text/plain")
        if self.up:
            return self.interstitials[number].answer(path, f"{next(self._tokens) * 2654435761 % 2**64:016x}")
        name = path.strip("/").removesuffix(".html").removeprefix("p") or "0"
        if not name.isdigit() or int(name) >= self.pages:
            return _response(b"<h1>Not found</h1>", status="404 Not Found")
        page = int(name)
        links = "".join(f'<li><a href="/p{(page + step) % self.pages}.html">on</a>' for step in (1, 2, 3, 5, 8, 13))
        text = " ".join(f"word{page * 31 + place * 7 + number}" for place in range(400))
        return _response(f"<html><title>Page {page}</title><ul>{links}</ul><p>{text}</html>".encode())


def _response(body: bytes, mime: str = "text/html", status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {mime}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body
