"""The contents that this process keeps, through its interface (service/api/http_api.py says who may ask).

Each node of a cluster answers for itself; who wants the contents of all asks each (cluster_contents.py). A process by
itself need not be asked: commands read its directory.

GET  /contents/partitions              JSON: numbers of the partitions of whose pages something is kept here
GET  /contents/page?url=               JSON: the id of a page of which something is kept, or null
GET  /contents/versions?page=          JSON: [seconds, row of the index or null, bytes or null] of each
GET  /contents/stale?page=             JSON: [when it was read last (seconds), `stale` since then or null]
GET  /contents/text?page=&version=     JSON: {"text", "markdown"}
GET  /contents/answers?page=           JSON: {"all": [seconds], "bodies": [seconds]}, those in WARC files
GET  /contents/html?page=&time=        the body of the answer that was read then (seconds)
GET  /contents/latest?page=            JSON: [row of the index, packed text in base64], or null
GET  /contents/times?partition=        JSON lines: [page id, seconds], the latest text of each of its pages
GET  /contents/weights                 importances of now (page_weights.py) of all pages of partitions that are here, or
                                       of whose pages something is kept here
GET  /contents/weights?part=1&partition=&mean=   JSON: the same of one partition that is here, in base64
GET  /contents/texts?by=&since=&least=   /contents/warc?by=&since=&least=    JSON lines, by the importances of now
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
from aiohttp import web

from xyro.contents_index import FOLDER
from xyro.plugins.contents.contents_view import ORDERS, ContentsView
from xyro.plugins.contents.page_weights import Weights, packed_weights, unpacked_weights, weights_of
from xyro.service.node import http_json
from xyro.service.node.long_views import stream_parts
from xyro.wire.errors import InputError
from xyro.wire.ids import PageId

if TYPE_CHECKING:
    from xyro.service.node.node import Node

T = TypeVar("T")
AT_ONCE = 32
"""rows that a thread reads between two turns of the event loop"""


class OtherNodes(Protocol):
    """The nodes of a cluster, asked by one of them. MachineError: one does not answer."""

    async def mean(self) -> float: ...
    async def ask_partition(self, partition: int, path: str) -> Any: ...


def contents_routes(node: Node, others: Callable[[], OtherNodes | None]) -> list[web.RouteDef]:
    """others: those of the cluster, where there is one."""
    keep = node.settings.keep
    api = _ContentsRoutes(Path(keep.directory) if keep.directory else node.data.path / FOLDER, node, others)
    return [web.get("/contents/{question}", api.answer)]


class _ContentsRoutes:
    def __init__(self, directory: Path, node: Node, others: Callable[[], OtherNodes | None]) -> None:
        self._directory, self._clock, self._node, self._others = directory, node.clock, node, others

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer the question that the path names. InputError: there is none of this name."""
        answers: dict[str, Callable[[web.Request], Awaitable[web.StreamResponse]]] = {
            "partitions": self.partitions, "page": self.page, "versions": self.versions, "text": self.text,
            "answers": self.answers, "html": self.html, "latest": self.latest, "times": self.times,
            "texts": self.texts, "warc": self.warc, "stale": self.stale, "weights": self.weights,
        }  # fmt: skip
        if (question := request.match_info["question"]) not in answers:
            raise InputError(f"contents: one of {', '.join(answers)}")
        return await answers[question](request)

    async def _found(self, find: Callable[[ContentsView], T]) -> T:
        def look() -> T:
            with ContentsView(self._directory, self._clock.time()) as view:
                return find(view)

        return await asyncio.to_thread(look)

    async def _streamed(
        self, request: web.Request, find: Callable[[ContentsView], Iterable[object]], weighed: bool = False
    ) -> web.StreamResponse:
        with await asyncio.to_thread(ContentsView, self._directory, self._clock.time()) as view:
            if weighed:
                await asyncio.to_thread(view.weigh, await self._weights(view.partitions()))
            return await stream_parts(request.path, _json_lines(iter(find(view))), request)

    async def partitions(self, _: web.Request) -> web.Response:
        return http_json.answer(await self._stored_partitions())

    async def _stored_partitions(self) -> list[int]:
        """The partitions of whose pages something is kept."""
        try:
            return await self._found(ContentsView.partitions)
        except InputError:  # nothing is kept yet
            return []

    async def page(self, request: web.Request) -> web.Response:
        url = request.query.get("url", "")
        return http_json.answer(await self._found(lambda view: view.find(url)))

    async def versions(self, request: web.Request) -> web.Response:
        page = PageId(_whole(request.query, "page"))

        def find(view: ContentsView) -> list[Any]:
            return [
                (version.time, msgspec.to_builtins(version.text), view.size(version.text) if version.text else None)
                for version in view.versions(page)
            ]

        return http_json.answer(await self._found(find))

    async def answers(self, request: web.Request) -> web.Response:
        page = PageId(_whole(request.query, "page"))
        return http_json.answer(await self._found(lambda view: view.answers(page)))

    async def stale(self, request: web.Request) -> web.Response:
        page = PageId(_whole(request.query, "page"))
        return http_json.answer(await self._found(lambda view: view.stale(page)))

    async def weights(self, request: web.Request) -> web.Response:
        if "partition" in request.query:
            try:
                mean = float(request.query.get("mean", ""))
            except ValueError:
                raise InputError("contents: mean is a number") from None
            own = await self._own_weights({_whole(request.query, "partition")}, mean)
            return http_json.answer(b64encode(packed_weights(own)).decode())
        partitions = {*await self._stored_partitions(), *self._node.partitions_here}
        packed = packed_weights(await self._weights(partitions))
        return web.Response(body=packed, headers={**http_json.HEADERS, "Content-Type": "application/octet-stream"})

    async def _weights(self, partitions: Collection[int]) -> Weights:
        """Importances of now of the pages of some partitions, whichever nodes have them."""
        others = self._others()
        if others is None:
            return await self._own_weights(partitions, None)
        mean = await others.mean()
        here = {q for q in partitions if q in self._node.partitions_here}
        found = await self._own_weights(here, mean)
        for partition in {*partitions} - here:
            path = f"/contents/weights?part=1&partition={partition}&mean={mean!r}"
            found += unpacked_weights(b64decode(await others.ask_partition(partition, path)))
        return found

    async def _own_weights(self, partitions: Collection[int], mean: float | None) -> Weights:
        """The same of partitions that are here alone."""
        if not (here := {q for q in partitions if q in self._node.partitions_here}):
            return []
        with await self._node.views(only=here if mean is not None else None) as views:
            return await asyncio.to_thread(weights_of, views, mean)

    async def text(self, request: web.Request) -> web.Response:
        page, number = PageId(_whole(request.query, "page")), _whole(request.query, "version")
        return http_json.answer(await self._found(lambda view: view.text(view.version(page, number))))

    async def html(self, request: web.Request) -> web.Response:
        page = PageId(_whole(request.query, "page"))
        try:
            time = float(request.query.get("time", ""))
        except ValueError:
            raise InputError("contents: time is a number of seconds") from None
        body = await self._found(lambda view: view.html(page, time))
        return web.Response(body=body, headers={**http_json.HEADERS, "Content-Type": "application/octet-stream"})

    async def latest(self, request: web.Request) -> web.Response:
        page = PageId(_whole(request.query, "page"))
        found = await self._found(lambda view: view.latest(page))
        return http_json.answer(found and (msgspec.to_builtins(found[0]), b64encode(found[1]).decode()))

    async def times(self, request: web.Request) -> web.StreamResponse:
        partition = _whole(request.query, "partition")
        return await self._streamed(request, lambda view: view.times(partition))

    async def texts(self, request: web.Request) -> web.StreamResponse:
        chosen = _chosen(request.query)
        return await self._streamed(request, lambda view: view.texts(*chosen), weighed=True)

    async def warc(self, request: web.Request) -> web.StreamResponse:
        chosen = _chosen(request.query)
        return await self._streamed(request, lambda view: view.warc(*chosen), weighed=True)


async def _json_lines(rows: Iterator[object]) -> AsyncIterator[bytes]:
    def some() -> bytes:
        return b"".join(json.dumps(row).encode() + b"\n" for row in islice(rows, AT_ONCE))

    while part := await asyncio.to_thread(some):
        yield part


def _chosen(query: Mapping[str, str]) -> tuple[str, float, float]:
    by = query.get("by", "url")
    try:
        since, least = float(query.get("since", 0)), float(query.get("least", 0))
    except ValueError:
        raise InputError("contents: since and least are numbers") from None
    if by not in ORDERS:
        raise InputError(f"contents: by is one of {', '.join(ORDERS)}")
    return by, since, least


def _whole(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InputError(f"contents: {name} is a whole number")
    return int(text)
