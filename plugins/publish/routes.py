"""The routes for publications and subscriptions in the interface on loopback, for the owner of the crawl.

    POST   /publish          {"urls": [...], "claim", "every", "deadline"}      -> {"accepted", "refused"}
    GET    /subscriptions                                                       -> {"subscriptions": [...]}
    POST   /subscriptions    {"target", "every", "notify"}                      -> {"id"}
    POST   /unsubscribe      {"id"}                                             -> {"known"}

Only who can read DIR/run has the token: a subscription may name a command that is run here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from xyro.plugins.publish.publishing import MOST_URLS, Publishing
from xyro.plugins.publish.subscribing import Subscribing
from xyro.service.node.http_json import answer, body_of, listing
from xyro.wire.durations import seconds
from xyro.wire.errors import InputError

if TYPE_CHECKING:
    from xyro.service.node.node import Node


def promise_routes(node: Node) -> list[web.RouteDef]:
    """Routes of an Api, which checks the token and turns errors into JSON."""

    publishing, subscribing = Publishing(node.services), Subscribing(node.services)

    async def publish(request: web.Request) -> web.Response:
        body = await body_of(request)
        urls = body.get("urls")
        if not isinstance(urls, list) or not all(isinstance(url, str) for url in urls) or len(urls) > MOST_URLS:
            raise InputError(f"publish: urls is a list of at most {MOST_URLS:,} URLs")
        claim = publishing.claim_of(body, sure=True)
        readable, refused = await publishing.sift(urls)
        refused += await publishing.publish(readable, claim)
        reasons = [{"url": url, "why": why} for url, why in refused]
        return answer({"accepted": len(urls) - len(reasons), "refused": reasons})

    async def subscriptions(_: web.Request) -> web.Response:
        return await listing(await subscribing.listed(), "subscriptions")

    async def subscribe(request: web.Request) -> web.Response:
        body = await body_of(request)
        target, notify = body.get("target"), body.get("notify")
        if not isinstance(target, str) or not isinstance(notify, str):
            raise InputError("subscribe: target is a URL or a pattern, notify a URL or a command")
        every = seconds(body.get("every"), "--every")
        return answer({"id": await subscribing.subscribe(target, every, notify)})

    async def unsubscribe(request: web.Request) -> web.Response:
        number = (await body_of(request)).get("id")
        if type(number) is not int:
            raise InputError("unsubscribe: id is a number of `xyro subscriptions`")
        return answer({"known": await subscribing.unsubscribe(number)})

    return [
        web.post("/publish", publish),
        web.get("/subscriptions", subscriptions),
        web.post("/subscriptions", subscribe),
        web.post("/unsubscribe", unsubscribe),
    ]
