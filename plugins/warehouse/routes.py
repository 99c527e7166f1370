"""The repository of documents through the interface of a running crawler (service/api/http_api.py says who may ask).

GET  /xml/versions?what=URL|ID                  JSON
GET  /xml/body?what=URL|ID&version=&at=         the bytes as they were read; X-Xyro-Version, X-Xyro-Elements,
                                                X-Xyro-Charset tell more of them
GET  /xml/chosen?host=&root=&by=                JSON lines: ids and importances of the documents, in order, some a line
POST /xml/bodies {"pages": one such line}       JSON: the first of them with their bodies, packed, in base64
GET  /xml/dtds?most=                            JSON lines
GET  /xml/stats                                 JSON
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from aiohttp import web

from xyro.metadata.documents import unpacked
from xyro.plugins.warehouse.document_answers import DescribeDocument
from xyro.plugins.warehouse.documents_view import (
    LISTED,
    ORDERS,
    Chosen,
    chosen,
    dtds,
    grammars,
    merged_dtds,
    packed_body,
    ranked,
    versions,
)
from xyro.plugins.warehouse.warehouse_stats import merged_stats, stats, stats_part
from xyro.service.node import http_json
from xyro.service.node.long_views import LongViews
from xyro.service.views.views import Views
from xyro.wire.errors import InputError
from xyro.wire.ids import PageId, owner_of, split

if TYPE_CHECKING:
    from xyro.service.node.node import Node

MOST_PAGES = 64
ENOUGH = 4 << 20
"""characters of packed bodies in one answer: some 10 ms of the event loop"""


def xml_routes(node: Node, long_views: LongViews) -> list[web.RouteDef]:
    api = _XmlRoutes(node, long_views)
    return [
        web.get("/xml/versions", api.versions),
        web.get("/xml/body", api.body),
        web.get("/xml/chosen", api.chosen),
        web.post("/xml/bodies", api.bodies),
        web.get("/xml/dtds", api.dtds),
        web.get("/xml/stats", api.stats),
    ]


class _XmlRoutes:
    def __init__(self, node: Node, long_views: LongViews) -> None:
        self.node = node
        self._long_views = long_views

    async def versions(self, request: web.Request) -> web.Response:
        async with self.node.glance() as views:
            return http_json.answer(versions(views, _reference(request)))

    async def body(self, request: web.Request) -> web.Response:
        query = request.query
        async with self.node.glance() as views:
            number, row, packed = packed_body(views, _reference(request), query.get("version", ""), query.get("at", ""))
        found = await asyncio.to_thread(unpacked, packed, row.size)
        facts = {"Version": str(number), "Elements": str(row.elements), "Charset": quote(row.charset)}
        headers = {f"X-Xyro-{name}": value for name, value in facts.items()}
        headers |= http_json.HEADERS
        return web.Response(body=found, content_type="application/octet-stream", headers=headers)

    async def chosen(self, request: web.Request) -> web.StreamResponse:
        host, root, by = (request.query.get(name, "") for name in ("host", "root", "by"))
        if by not in ORDERS:
            raise InputError(f"chosen: by is one of {', '.join(ORDERS)}")
        if "mean" in request.query:
            mean = _mean(request.query["mean"])
            return http_json.answer(await self._long_views.part(partial(_ranked, mean, host, root, by)) or [])
        choose = partial(chosen, host=host, root=root, by=by)
        return await self._long_views.stream("documents", choose, _in_rows, request)

    async def bodies(self, request: web.Request) -> web.Response:
        """Some of the first of these documents: as many as fit in one answer."""
        commands = self.node.services.commands
        pages = await _pages(request, commands.partitions)
        documents: list[dict[str, Any]] = []
        count = size = 0
        while count < len(pages) and size < ENOUGH:
            number, worth = pages[count]
            owner, page = split(PageId(number))
            found = await commands.send(owner, partial(DescribeDocument, page=page, now=self.node.clock.time()))
            if found is not None:
                documents.append({"id": number, "importance": worth, **found})
                size += len(found["packed"])
            count += 1
        return http_json.answer({"taken": count, "documents": documents})

    async def dtds(self, request: web.Request) -> web.StreamResponse:
        limit = _limit(request.query)
        if "mean" in request.query:
            return await http_json.listing(await self._long_views.part(lambda views: [*grammars(views, limit)]) or [])
        choose = partial(dtds, limit=limit)
        return await self._long_views.stream("documents", choose, lambda _, rows: rows, request)

    async def stats(self, request: web.Request) -> web.Response:
        if "mean" in request.query:
            return http_json.answer(await self._long_views.part(stats_part))
        return http_json.answer(await self._long_views.run(stats))


def _limit(query: Mapping[str, str]) -> int:
    limit = query.get("most", str(LISTED))
    if not (limit.isascii() and limit.isdigit() and len(limit) < 10):
        raise InputError("dtds: most is a whole number")
    return int(limit)


def _mean(text: str) -> float:
    try:
        mean = float(text)
    except ValueError:
        mean = 0.0
    if not 0.0 < mean < math.inf:
        raise InputError("chosen: mean is a number above 0")
    return mean


def _ranked(mean: float, host: str, root: str, by: str, views: Views) -> list[Any]:
    """One node's part of the documents of a cluster, whose mean page has this importance."""
    views.mean = mean
    return ranked(views, host, root, by)


async def merged_documents(request: web.Request, parts: list[Any]) -> web.Response:
    """The answer to a request for documents of a whole crawl, out of the parts of all nodes."""
    if request.path == "/xml/stats":
        return http_json.answer(await asyncio.to_thread(merged_stats, parts))
    if request.path == "/xml/dtds":
        return await http_json.lines(await asyncio.to_thread(merged_dtds, parts, _limit(request.query)))
    return await http_json.lines(merged_chosen(parts))


def merged_chosen(parts: Iterable[list[list[Any]]]) -> list[dict[str, Any]]:
    """Rows of /xml/chosen out of the parts of all nodes."""
    pages = [(number, worth) for _, number, worth in heapq.merge(*parts)]
    return [{"pages": pages[first : first + MOST_PAGES]} for first in range(0, len(pages), MOST_PAGES)]


def _in_rows(_: Views, pages: list[Chosen]) -> Iterator[dict[str, Any]]:
    return ({"pages": pages[first : first + MOST_PAGES]} for first in range(0, len(pages), MOST_PAGES))


async def _pages(request: web.Request, partitions: int) -> list[Chosen]:
    try:
        body = await request.json()
        pages = [(number, worth) for number, worth in body["pages"]]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InputError("bodies: pages is a list of [id, importance]") from None
    good = all(
        type(number) is int and 0 <= owner_of(PageId(number)) < partitions and isinstance(worth, float | int)
        for number, worth in pages
    )
    if not good or len(pages) > MOST_PAGES:
        raise InputError(f"bodies: at most {MOST_PAGES} pages, each a known id and its importance")
    return pages


def _reference(request: web.Request) -> str:
    reference = request.query.get("what", "")
    if not reference:
        raise InputError("what: a URL or a page id")
    return reference
