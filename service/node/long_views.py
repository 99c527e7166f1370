"""Runs views of a crawl that take long (export, audit, scans of all documents) while the crawl goes on.

Each works on a View of one commit boundary, whose columns are copied unless a scan reads the store alone. Rows are
streamed by the event loop, some at a time. An audit, and what has to scan all documents before its first row, runs in a
thread, which needs two cares. What the View shares with the living crawl (the fingerprint table) may be rebuilt
meanwhile, so that the thread misses a page which is there, never the reverse: scans do not ask for pages by their URL,
and an audit that is anything but "ok" is made once more while the crawl stands still. And when the process stops, the
store must not be closed under a thread that reads it: the thread is called back first.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from contextlib import asynccontextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

from aiohttp import web

from xyro.metadata.store import Pairs, StoreReader
from xyro.service.node.coverage import wanted_partitions
from xyro.service.views.views import Views
from xyro.wire.errors import InputError, XyroError

if TYPE_CHECKING:
    from xyro.service.node.node import Node

AT_ONCE = 4
"""most at a time: each holds a copy of the columns (some 50 bytes a page) and pins the store's old versions"""
ROWS_A_WRITE, BYTES_A_WRITE = 100, 1 << 18
"""some 4 ms of work between two turns of the event loop"""
CUT = 4.0
"""seconds that all partitions of a node stand still at most while those of others come to stand still"""
STALLED = 60.0
"""seconds that a client may take no byte before it is cut off, so that it cannot pin the store for ever"""
_log = logging.getLogger("xyro")
Row = dict[str, Any]
Found = TypeVar("Found")


class LongViews:
    """Serves at most AT_ONCE long views of one Node; a View never outlives its request, nor a request `close`."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._tasks: set[asyncio.Task[Any]] = set()
        self._none = asyncio.Event()
        self._none.set()
        self._closed = False

    async def close(self) -> None:
        """Break off what is under way; returns when nothing is pinned any more."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await self._none.wait()

    @asynccontextmanager
    async def _views(
        self, copied: bool = True, still: bool = False, only: Collection[int] | None = None
    ) -> AsyncIterator[Views]:
        """copied: all may be read, else only what is stored. still: the crawl stands still, and nothing is copied.

        only: of these partitions, None for all."""
        if self._closed or len(self._tasks) >= AT_ONCE:
            raise InputError("it is stopping" if self._closed else f"{AT_ONCE} exports or audits run: try again later")
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"
        self._tasks.add(task)
        self._none.clear()
        try:
            if still:
                async with self.node.glance() as views:
                    yield views
            else:
                with await self.node.views(copied, only) as views:
                    yield views
        finally:
            self._tasks.discard(task)
            if not self._tasks:
                self._none.set()

    async def audit(self, audit: Callable[[Views], dict[str, Any]]) -> dict[str, Any]:
        """The report of `audit` (xyro.service.views.audit), of one commit boundary."""
        async with self._views() as views:
            try:
                report = await _in_thread(views, audit)
            except Exception:  # the columns of hosts grew meanwhile: the second audit decides
                report = {"ok": False}
        if report["ok"]:
            return report
        async with self._views(still=True) as views:
            return await _in_thread(views, audit)

    async def part(self, find: Callable[[Views], Found]) -> Found | None:
        """The result of `find` in a thread; None: no partition is here."""
        return await self.run(find) if self.node.has_partitions else None

    async def cut(self, standing: Callable[[], None], released: asyncio.Event, find: Callable[[Views], Found]) -> Found:
        """The result of `find` of a commit boundary at which all partitions here stand still, from the call of
        `standing` until `released`, or CUT seconds at most: other nodes stand still then, too."""
        if self._closed:
            raise InputError("it is stopping")
        async with self.node.boundary():
            views = await self.node.copied_views()
            standing()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CUT):
                    await released.wait()
        with views:
            return await _in_thread(views, find)

    async def run(self, find: Callable[[Views], Found], copied: bool = True) -> Found:
        """The result of `find`, which runs in a thread (a scan of all documents); it must not find pages by URL, nor
        read what is not stored where columns are not `copied`."""
        async with self._views(copied) as views:
            return await _in_thread(views, find)

    async def export(
        self, table: str, request: web.Request, mean: Callable[[float], float] = lambda own: own
    ) -> web.StreamResponse:
        """All rows of a table as JSON lines. mean: the importance of a mean page, from that of those here."""
        async with self._views(only=wanted_partitions(request)) as views:
            views.mean = mean(views.mean)
            return await _stream(table, getattr(views, table)(), request)

    async def send(
        self, name: str, content_type: str, parts: Callable[[Views], Iterable[bytes]], request: web.Request
    ) -> web.StreamResponse:
        """The bytes that `parts` yields, streamed; `name` is for the log."""
        async with self._views(only=wanted_partitions(request)) as views:
            return await _send(name, content_type, parts(views), request)

    async def stream(
        self,
        table: str,
        choose: Callable[[Views], Found],
        rows: Callable[[Views, Found], Iterable[Row]],
        request: web.Request,
    ) -> web.StreamResponse:
        """`rows` of what `choose` finds in a thread, as JSON lines of one commit boundary."""
        async with self._views(only=wanted_partitions(request)) as views:
            found = await _in_thread(views, lambda views: _primed(rows(views, choose(views))))
            return await _stream(table, found, request)


async def stream_parts(name: str, parts: AsyncIterator[bytes], request: web.Request) -> web.StreamResponse:
    """Send parts as they come, as JSON lines. A client gets the whole, or a connection that breaks off."""
    first = await anext(parts, b"")
    response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    await response.prepare(request)
    try:
        await response.write(first)
        async for part in parts:
            async with asyncio.timeout(STALLED):
                await response.write(part)
        await response.write_eof()
    except (OSError, XyroError) as error:
        _log.warning("%s broke off: %s", name, error or "the client took nothing")
        if request.transport is not None:
            request.transport.abort()
    return response


async def _stream(name: str, rows: Iterable[Row], request: web.Request) -> web.StreamResponse:
    return await _send(name, "application/x-ndjson", _parts(rows), request)


async def _send(name: str, kind: str, parts: Iterable[bytes], request: web.Request) -> web.StreamResponse:
    """A client that went away or takes nothing is let go of."""
    response = web.StreamResponse(headers={"Content-Type": kind})
    await response.prepare(request)
    try:
        for part in parts:
            async with asyncio.timeout(STALLED):
                await response.write(part)
            await asyncio.sleep(0)
        await response.write_eof()
    except (ConnectionError, TimeoutError, XyroError) as error:
        gone = isinstance(error, ConnectionError)  # it has seen enough
        _log.log(
            logging.INFO if gone else logging.WARNING, "%s broke off: %s", name, error or "the client took nothing"
        )
        if request.transport is not None:
            request.transport.abort()  # so that nobody takes a part for the whole
    return response


def _primed(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows; the first one is made now, with what is added up before it."""
    found = iter(rows)
    return chain(list(islice(found, 1)), found)


async def _in_thread(views: Views, find: Callable[[Views], Found]) -> Found:
    """Run `find` in a thread, which is called back when the process stops."""
    leashes = [_Leash(view.store) for view in views.views]
    for view, leash in zip(views.views, leashes, strict=True):
        view.store = leash
    work = asyncio.create_task(asyncio.to_thread(find, views))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        for leash in leashes:
            leash.cut = True
        await asyncio.wait([work])
        raise
    finally:
        if work.done() and not work.cancelled():
            work.exception()  # seen: a thread called back ends with one


class _CalledBack(Exception):
    """Nobody wants the result any more: the thread is to end."""


class _Leash:
    """A Reader for a thread: once `cut`, its next read ends the thread's work."""

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader
        self.cut = False

    def get(self, key: bytes) -> bytes | None:
        if self.cut:
            raise _CalledBack
        return self._reader.get(key)

    def scan(self, prefix: bytes, start: bytes = b"", reverse: bool = False) -> Pairs:
        for pair in self._reader.scan(prefix, start, reverse):
            if self.cut:
                raise _CalledBack
            yield pair

    def close(self) -> None:
        self._reader.close()


def _parts(rows: Iterable[Row]) -> Iterator[bytes]:
    lines: list[str] = []
    size = 0
    for row in rows:
        lines.append(json.dumps(row))
        size += len(lines[-1])
        if len(lines) == ROWS_A_WRITE or size >= BYTES_A_WRITE:
            yield ("\n".join(lines) + "\n").encode()
            lines, size = [], 0
    if lines:
        yield ("\n".join(lines) + "\n").encode()
