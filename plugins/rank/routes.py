"""The routes by which `xyro rank` asks a running crawler for what it computes from (service/api says who may ask).

GET  /rank?links=0|1        MessagePack, streamed: the pieces of rank_input.py, of one commit boundary of each node
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from aiohttp import web

from xyro.plugins.rank.rank_input import packed_piece, pieces
from xyro.service.node.long_views import LongViews, stream_parts
from xyro.wire.errors import XyroError

AllNodes = Callable[[web.Request], AsyncIterator[bytes] | None]
MeanOf = Callable[[web.Request, float], float]


def rank_routes(long_views: LongViews, all_nodes: AllNodes, mean_of: MeanOf) -> list[web.RouteDef]:
    """Routes for an interface that checks the token and turns errors into JSON.

    all_nodes: the answers of all nodes to a request, None where it is for this process. mean_of: the importance of a
    mean page of the whole crawl, as a request names it, else that of this process.
    """

    async def rank(request: web.Request) -> web.StreamResponse:
        if (parts := all_nodes(request)) is not None:
            return await stream_parts("rank", _with_fault(parts), request)
        links = request.query.get("links") == "1"
        return await long_views.send(
            "rank", "application/msgpack", lambda views: pieces(views, links, mean_of(request, views.mean)), request
        )

    return [web.get("/rank", rank)]


async def _with_fault(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The parts; a node that goes away in the middle is named at their end, for those sent are not to be taken back."""
    begun = False
    try:
        async for part in parts:
            begun = True
            yield part
    except XyroError as error:
        if not begun:
            raise
        yield packed_piece(["fault", str(error)])
