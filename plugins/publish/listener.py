"""The listener for other machines: sites that publish, and WebSub hubs. It tells nothing about the crawl.

    GET  /indexnow?url=&key=[&keyLocation=]     one URL (IndexNow)
    POST /indexnow   {"host", "key", "keyLocation", "urlList"}                     up to 10,000
    POST /publish    {"urls": [...], "claim": "changed|new", "every": "7d", "deadline": "1h"}
                     with `Authorization: Bearer TOKEN` of [publish] tokens: URLs of that host and of those below it
    GET  /websub/ID  POST /websub/ID            verification and content of a subscription of ours

It is off unless [publish] listen names an address. Everything is bounded: connections (service/node/admission.py),
heads, bodies, requests at once, URLs an hour; each head, and each request, has to be whole within PATIENCE. Bodies are
taken as they come: a content coding is not undone. Errors are {"error": "..."}.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import socket
from collections import Counter
from collections.abc import Awaitable, Callable
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, cast

import msgspec
from aiohttp import web

from xyro.configs.schema import Settings
from xyro.plugins.publish.indexnow import IndexNow, KeyVerdict
from xyro.plugins.publish.publishing import MOST_URLS, Publishing
from xyro.plugins.publish.websub import WebSub, callback_of
from xyro.service.node import http_json
from xyro.service.node.admission import CONNECTION_LIMIT, SENDER_LIMIT, Admission, sender_of
from xyro.service.node.endpoint import Endpoint
from xyro.wire.errors import InputError
from xyro.wire.urls import host_of

if TYPE_CHECKING:
    from xyro.service.node.node import Node
    from xyro.service.node.services import Services

BODY = 4 << 20
AT_ONCE, SENDER_AT_ONCE = 64, 8
"""requests that are answered at once, of all and of one sender; more get 429"""
PATIENCE = 20.0
"""seconds from a request's headers to its answer"""
HEAD, HEADS = 8_190, 64
"""bytes of a request line and of a header, headers"""
BACKLOG = 128
"""connections that the system holds until we take them"""
SHUTDOWN = 2.0
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_log = logging.getLogger("xyro")


class Keyed(msgspec.Struct):
    """The body of an IndexNow submission: URLs of a host, and the key that its owner knows."""

    host: str = ""
    key: str = ""
    keyLocation: str | None = None
    urlList: list[str] = []


class SiteNotice(msgspec.Struct):
    """The body of a publication by a site that has a token."""

    urls: list[str]
    claim: str | msgspec.UnsetType = msgspec.UNSET
    every: str | float | None = None
    deadline: str | float | msgspec.UnsetType = msgspec.UNSET


def listen(where: str, setting: str = "[publish] listen") -> socket.socket | None:
    """A socket for a setting, None where it is empty. InputError: no address of this machine, or taken."""
    if not where:
        return None
    host, _, port = where.rpartition(":")
    try:
        if int(port) > 65_535:
            raise OverflowError("a port is a number up to 65535")
        family, _, _, _, address = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{setting}: {where}: {reason}; name an address of this machine and a free port") from error


class Listener:
    """Serves the publishers of one Node."""

    def __init__(self, services: Services, publishing: Publishing, websub: WebSub | None) -> None:
        self.services = services
        self.publishing = publishing
        self.indexnow = IndexNow(services, publishing)
        self.websub = websub
        self._tokens = [(host, f"Bearer {token}".encode()) for host, token in services.settings.publish.tokens.items()]
        self._busy = 0
        self._busy_of: Counter[str] = Counter()
        """sender -> its requests that are being answered"""
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None
        self.admission: Admission | None = None
        self.patience = PATIENCE
        self._local = False
        """it listens on loopback only"""
        settings = services.settings.publish
        self._proxies = [ip_network(network, strict=False) for network in settings.proxies]
        self._sender_header = settings.sender_header

    async def start(self, listening: socket.socket) -> None:
        """Answer on a socket of `listen`, which is closed in the end."""
        app = web.Application(client_max_size=BODY, middlewares=[self._bounded])
        app.add_routes(
            [
                web.get("/indexnow", self._receive_one),
                web.post("/indexnow", self._receive_many),
                web.post("/publish", self._site),
                web.get("/websub/{path}", self._verify),
                web.post("/websub/{path}", self._content),
            ]
        )
        await self.indexnow.recover()
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=http_json.LOG,
            shutdown_timeout=SHUTDOWN,
            keepalive_timeout=self.patience,
            max_line_size=HEAD,
            max_field_size=HEAD,
            max_headers=HEADS,
            lingering_time=SHUTDOWN,
            auto_decompress=False,
        )
        await self._runner.setup()
        server = self._runner.server
        assert server is not None
        self._local = ip_address(listening.getsockname()[0]).is_loopback
        self.admission = Admission(
            cast(Callable[[], asyncio.Protocol], server), CONNECTION_LIMIT if self._local else SENDER_LIMIT
        )
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self.admission.enter, sock=listening, backlog=BACKLOG)

    async def close(self) -> None:
        await self.indexnow.close()
        if self._server is not None:
            self._server.close()
        if self._runner is not None:
            await self._runner.cleanup()

    @web.middleware
    async def _bounded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Bound the requests at once and the time of each; turn every failure into JSON."""
        sender = self._sender(request)
        if self._busy >= AT_ONCE or (sender and self._busy_of[sender] >= SENDER_AT_ONCE):
            return http_json.error(429, "busy", again=1.0)
        self._busy += 1
        self._busy_of[sender] += 1
        try:
            async with asyncio.timeout(self.patience):
                return await handler(request)
        except TimeoutError:
            slow = http_json.error(408, "too slow")
            slow.force_close()
            return slow
        except web.HTTPException as error:
            return http_json.error(error.status, error.reason)
        except InputError as error:
            return http_json.error(400, str(error))
        except Exception:
            _log.exception("%s %s failed (a bug)", request.method, request.path)
            return http_json.error(500, "internal error")
        finally:
            self._busy -= 1
            self._busy_of[sender] -= 1
            if not self._busy_of[sender]:
                del self._busy_of[sender]

    # -- IndexNow ------------------------------------------------------------------------------------------------

    async def _receive_one(self, request: web.Request) -> web.Response:
        url, key = request.query.get("url", ""), request.query.get("key")
        host = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
        location = request.query.get("keyLocation")
        return _answer(await self.indexnow.publish(host, key, location, [url], self._sender(request)))

    async def _receive_many(self, request: web.Request) -> web.Response:
        sent = await http_json.form_of(request, Keyed)
        verdict = self.indexnow.publish(sent.host, sent.key, sent.keyLocation, sent.urlList, self._sender(request))
        return _answer(await verdict)

    def _sender(self, request: web.Request) -> str:
        """Return the sender of a request, as a proxy that the settings name tells it; empty behind another one on this
        machine, whose address all requests have, and where a proxy tells none."""
        remote = ip_address(request.remote) if request.remote else None
        if remote is not None and any(remote in network for network in self._proxies):
            sender = request.headers.getall(self._sender_header, [""])[-1].rpartition(",")[2].strip()
            try:
                return sender_of(sender)
            except ValueError:
                return ""
        return sender_of(str(remote)) if remote is not None and not self._local else ""

    # -- sites with a token --------------------------------------------------------------------------------------

    async def _site(self, request: web.Request) -> web.Response:
        site = self._site_of(request.headers.get("Authorization", ""))
        if site is None:
            return http_json.error(401, "the token is missing or wrong")
        notice = await http_json.form_of(request, SiteNotice)
        urls = notice.urls
        if len(urls) > MOST_URLS:
            raise InputError(f"publish: urls is a list of at most {MOST_URLS:,} URLs")
        claim = self.publishing.claim_of(msgspec.to_builtins(notice))
        readable, refused = await self.publishing.sift(urls)
        own = [url for url in readable if _belongs(host_of(url), site)]
        others = (url for url in readable if not _belongs(host_of(url), site))
        refused += [(url, f"not of {site}, which the token is for") for url in others]
        if wait := self.publishing.allowance.take(site, len(own), self.services.clock.monotonic()):
            return http_json.error(429, "too many URLs", again=wait)
        refused += await self.publishing.publish(own, claim)
        reasons = [{"url": url, "why": why} for url, why in refused]
        return http_json.answer({"accepted": len(urls) - len(reasons), "refused": reasons})

    def _site_of(self, token: str) -> str | None:
        """Return the site whose token it is, None if nobody's. All are compared, each in constant time."""
        secret = token.encode("utf-8", "surrogateescape")
        found = [host for host, bearer in self._tokens if hmac.compare_digest(secret, bearer)]
        return found[0] if found else None

    # -- WebSub --------------------------------------------------------------------------------------------------

    async def _verify(self, request: web.Request) -> web.Response:
        challenge = None
        if self.websub is not None:
            challenge = await self.websub.verify(request.match_info["path"], request.query)
        if challenge is None:
            return http_json.error(404, "nothing of ours")
        return web.Response(text=challenge, content_type="text/plain", headers=http_json.HEADERS)

    async def _content(self, request: web.Request) -> web.Response:
        if self.websub is None or not self.websub.is_ours(request.match_info["path"]):
            return http_json.error(404, "nothing of ours")
        body = await http_json.received(request)
        signature = request.headers.get("X-Hub-Signature", "")
        await self.websub.content(request.match_info["path"], body, signature, request.content_type)
        # also of a wrong signature: it learns nothing from us
        return web.Response(status=202, headers=http_json.HEADERS)


def _belongs(host: str, site: str) -> bool:
    name = site.rpartition(":")[0] if site.rpartition(":")[2].isdigit() and ":" in site else site
    return host == name or host.endswith(f".{name}")


def _answer(verdict: KeyVerdict) -> web.Response:
    if verdict.status in (200, 202):
        return http_json.answer({"why": verdict.why} if verdict.why else {}, verdict.status)
    return http_json.error(verdict.status, verdict.why, verdict.again)


def _listen(settings: Settings) -> socket.socket | None:
    """The socket of [publish] listen, None where it is off. InputError: websub without what it needs."""
    if settings.publish.websub:
        callback_of(settings.publish.callback)
        if not settings.publish.listen:
            raise InputError("[publish] websub needs listen: where hubs reach this machine")
    return listen(settings.publish.listen)


def listener_of(node: Node) -> Listener:
    """The listener of a running crawl, in the process that has the home partition."""
    websub = node.plugin(WebSub)
    return Listener(node.services, Publishing(node.services) if websub is None else websub.publishing, websub)


PUBLISH_ENDPOINT = Endpoint(_listen, lambda node, _: listener_of(node))
"""for sites and hubs, if the settings let them tell us something"""
