"""The routes by which `xyro rank` asks a running crawler for what it computes from (service/api says who may ask).

GET  /rank?links=0|1        MessagePack, streamed: the pieces of rank_input.py, of one commit boundary
"""

from __future__ import annotations

from aiohttp import web

from xyro.plugins.rank.rank_input import pieces
from xyro.service.node.long_views import LongViews

OF_ONE_PROCESS = (
    "rank: needs all links in one process, and each node of a cluster has a part of them; `xyro top` has the "
    "importance that the nodes compute, `xyro export links` all links for another program"
)


def rank_routes(long_views: LongViews) -> list[web.RouteDef]:
    """Routes for an interface that checks the token and turns errors into JSON."""

    async def rank(request: web.Request) -> web.StreamResponse:
        links = request.query.get("links") == "1"
        return await long_views.send("rank", "application/msgpack", lambda views: pieces(views, links), request)

    return [web.get("/rank", rank)]
