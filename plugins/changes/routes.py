"""The stream of changes through the interface of a running crawler (service/api/http_api.py says who may ask).

GET  /changes?since=&where=&follow=0|1     JSON lines; follow: the answer does not end, more lines come as changes do
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

from xyro.plugins.changes.change_filter import change_filter
from xyro.plugins.changes.change_stream import ChangeSource, ChangeStream
from xyro.plugins.changes.changed_texts import ChangedTexts
from xyro.plugins.changes.sink_targets import json_lines
from xyro.plugins.changes.stored_changes import KEY
from xyro.wire.errors import InputError, MachineError

if TYPE_CHECKING:
    from xyro.service.node.node import Node

HEARTBEAT = 15.0
"""seconds without a change after which an empty line says that the process lives"""
TICK = 0.25
"""seconds between two looks at a stream that had nothing more"""
STALLED = 60.0
"""seconds that a client may take no byte before it is cut off"""
PATIENCE = 15.0
"""seconds that a partition is waited for, unless the changes are followed: then it may come back"""
AT_ONCE = 16
"""readers at a time"""
NOT_RECORDED = (
    "this crawl records no changes. From now on it does if you start it with --changes (`xyro serve --changes`, `xyro "
    "crawl --changes`; it is remembered), set `[changes] record = true`, or name a sink in [[sinks]]; what was read "
    "before can be told only by `xyro export pages`: `last_change`"
)


def change_routes(node: Node) -> list[web.RouteDef]:
    api = _ChangeRoutes(node)
    return [web.get("/changes", api.changes)]


class _ChangeRoutes:
    def __init__(self, node: Node) -> None:
        self.node = node
        self._readers = 0

    async def changes(self, request: web.Request) -> web.StreamResponse:
        """Until the client goes away, or without `follow` until nothing more is stored."""
        parts = self.node.crawl_views.statuses(self.node.clock.time())
        if not all(KEY in part.extensions for part in parts):
            raise InputError(NOT_RECORDED)
        if self._readers >= AT_ONCE:
            raise InputError(f"{AT_ONCE} readers follow the changes: try again later")
        where = change_filter(request.query.get("where", ""))
        texts = ChangedTexts.of_crawl(self.node.settings, self.node.data.path)
        patience = None if request.query.get("follow") == "1" else PATIENCE
        source = ChangeSource.of_commands(self.node.services.commands, self.node.clock, texts, patience)
        start = await source.position(request.query.get("since", ""), self.node.clock.time())
        stream = ChangeStream(source, start, where)
        lines = await stream.read()  # a cursor of another crawl is refused before anything is answered
        self._readers += 1
        try:
            response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson", "Cache-Control": "no-store"})
            await response.prepare(request)
            quiet = 0.0
            while lines or stream.advanced or request.query.get("follow") == "1":
                if lines:
                    async with asyncio.timeout(STALLED):
                        await response.write(json_lines(lines))
                elif not stream.advanced:
                    await asyncio.sleep(TICK)
                    if request.transport is None or request.transport.is_closing():
                        break
                    if (quiet := quiet + TICK) >= HEARTBEAT:
                        quiet = 0.0
                        await response.write(b"\n")
                lines = await stream.read()
            await response.write_eof()
        except (ConnectionError, TimeoutError, MachineError):  # it has seen enough, takes nothing, or cannot have all
            if request.transport is not None:
                request.transport.abort()
        finally:
            self._readers -= 1
        return response
