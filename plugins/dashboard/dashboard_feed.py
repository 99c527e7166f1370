"""The events of the dashboard: which crawl it is, at once; then its status, made once for all pages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from xyro.wire.clock import SystemClock
from xyro.wire.errors import InputError, XyroError

PAUSE = 2.0
"""seconds between two events"""
LEAST_REST = 50.0
"""times as long as an event took to be made passes before the next one: at most 2 % of the time goes into them"""
STALLED = 30.0
"""seconds that a browser may take no byte before it is let go"""
MOST_READERS = 16


class DashboardFeed:
    """`stream` to each browser until `close`. look: makes the fields of an event; crawl: fields of the first one."""

    def __init__(self, look: Callable[[], Awaitable[dict[str, Any]]], crawl: dict[str, Any]) -> None:
        self._look = look
        self._first = b"event: crawl\ndata: " + json.dumps(crawl).encode() + b"\n\n"
        self._clock = SystemClock()
        self._event = b""
        self._made_at = -1e9
        self._took = 0.0
        self._making = asyncio.Lock()
        self._readers: set[asyncio.Task[Any]] = set()

    async def close(self) -> None:
        """End every stream."""
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)

    async def stream(self, request: web.Request, headers: dict[str, str]) -> web.StreamResponse:
        """Server-sent events until the browser goes away. InputError: too many are open."""
        if len(self._readers) >= MOST_READERS:
            raise InputError(f"{MOST_READERS} dashboards are open: close one")
        response = web.StreamResponse(headers={**headers, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        writing = asyncio.create_task(self._write(response))
        self._readers.add(writing)
        try:
            await asyncio.wait([writing])
        finally:
            self._readers.discard(writing)
            writing.cancel()
            if request.transport is not None:
                request.transport.abort()  # it is never complete
        return response

    async def _write(self, response: web.StreamResponse) -> None:
        try:
            async with asyncio.timeout(STALLED):
                await response.write(self._first)
            while True:
                async with asyncio.timeout(STALLED):
                    await response.write(await self._current())
                await asyncio.sleep(self._rest)
        except (ConnectionError, TimeoutError):  # it has seen enough, or takes nothing
            pass

    @property
    def _rest(self) -> float:
        return max(PAUSE, LEAST_REST * self._took)

    async def _current(self) -> bytes:
        """The latest event, made anew where it is old."""
        async with self._making:
            began = self._clock.monotonic()
            if began - self._made_at >= self._rest / 2.0:
                try:
                    self._event = b"data: " + json.dumps(await self._look()).encode() + b"\n\n"
                except XyroError as error:
                    self._event = b"event: failure\ndata: " + json.dumps(str(error)).encode() + b"\n\n"
                self._made_at = self._clock.monotonic()
                self._took = self._made_at - began
        return self._event
