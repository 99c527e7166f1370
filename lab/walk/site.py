"""A site of three pages on a loopback address: the first links to the second, which is what the walk follows.

The second links back to the first and on to the third: of its links one is known, the other becomes a page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

FIRST, LINKED, LAST = "/first.html", "/linked.html", "/last.html"
_PAGES = {
    FIRST: f'<!doctype html><title>first</title><p>A page with <a href="{LINKED}">a link</a>.',
    LINKED: f'<!doctype html><title>linked</title><p><a href="{FIRST}">Back</a> or <a href="{LAST}">on</a>.',
    LAST: "<!doctype html><title>last</title><p>The end.",
}
_END = b"\r\n\r\n"


class WalkSite:
    """Serves the pages while the `async with` block lasts; robots.txt and all else is 404.

    asked: called with the path of each request, before its answer leaves.
    """

    def __init__(self, asked: Callable[[str], None]) -> None:
        self._asked = asked
        self._port = 0

    def url(self, path: str) -> str:
        """URL of a page, once it listens."""
        return f"http://127.0.0.1:{self._port}{path}"

    async def __aenter__(self) -> WalkSite:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection's requests until the client closes it."""
        try:
            while True:
                head = await reader.readuntil(_END)
                path = head.split(b" ", 2)[1].decode("ascii")
                self._asked(path)
                writer.write(_answer(_PAGES.get(path)))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def _answer(text: str | None) -> bytes:
    body = (text or "").encode()
    status, kind = ("200 OK", "text/html; charset=utf-8") if text else ("404 Not Found", "text/plain")
    return f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
