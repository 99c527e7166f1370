"""Real servers on loopback that a crawl has to do with: a site that publishes, its WebSub hub, a subscriber."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter

import msgspec
from aiohttp import ClientSession, web

from xyro.configs.load import load
from xyro.plugins import PLUGINS
from xyro.plugins.publish import listener as publish
from xyro.plugins.publish.promises import promises_of
from xyro.plugins.publish.subscribed import Subscribed
from xyro.plugins.publish.subscribing import Subscribing
from xyro.plugins.publish.websub import WebSub
from xyro.plugins.view_extensions import VIEW_EXTENSIONS
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.service.node.node import Bounds, Node
from xyro.service.node.status import running as status
from xyro.wire.bus import EncodingBus

KEY = "0123456789abcdef"
TOKEN = "a-token-of-the-site"
OPTIONS = {
    "crawl.scope": "host",
    "politeness.delay": 0.0,
    "fetch.only_net": ("127.0.0.0/8",),
    "publish.tokens": {"127.0.0.1": TOKEN},
    "refresh.max_interval": 1e9,
    "refresh.min_interval": 1e8,
}


class Neighbours:
    """`pages`: path -> text; `gone`: paths that answer 404; `notices`, `asked`: what a subscriber and a hub got."""

    def __init__(self) -> None:
        self.pages = {f"/p{i}.html": f"<p>{i}</p>" for i in range(5)}
        self.files: dict[str, tuple[str, str]] = {f"/{KEY}.txt": (KEY, "text/plain")}
        self.gone: set[str] = set()
        self.headers: dict[str, dict[str, str]] = {}
        """path -> headers of its answers"""
        self.reads: Counter[str] = Counter()
        self.notices: list[dict] = []
        self.refuse = 0
        """so many notices are answered with 503"""
        self.asked: list[dict] = []
        self.host = ""

    def url(self, path: str) -> str:
        return f"http://{self.host}{path}"

    async def _get(self, request: web.Request) -> web.Response:
        path = request.path
        self.reads[path] += 1
        if path == "/":
            links = "".join(f'<a href="{one}">x</a>' for one in (*self.pages, *self.files) if not one.endswith(".txt"))
            return web.Response(text=links, content_type="text/html")
        if path in self.gone:
            return web.Response(status=404)
        if path in self.files:
            text, kind = self.files[path]
            return web.Response(text=text, content_type=kind)
        if path in self.pages:
            return web.Response(text=self.pages[path], content_type="text/html", headers=self.headers.get(path))
        return web.Response(status=404)

    async def _notice(self, request: web.Request) -> web.Response:
        if self.refuse:
            self.refuse -= 1
            return web.Response(status=503)
        self.notices.append(json.loads(await request.read()))
        return web.Response()

    async def _hub(self, request: web.Request) -> web.Response:
        self.asked.append(dict(await request.post()))
        return web.Response(status=202)

    @contextlib.asynccontextmanager
    async def serving(self):
        app = web.Application()
        app.add_routes(
            [web.post("/notice", self._notice), web.post("/hub", self._hub), web.get("/{path:.*}", self._get)]
        )
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.host = f"127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
        try:
            yield self
        finally:
            await runner.cleanup()


class Running:
    """A crawl of the neighbours in this process, its listener, and somebody who asks it."""

    def __init__(self, single: Node, listener: publish.Listener, base: str, http: ClientSession) -> None:
        self.single, self.listener, self.base, self.http = single, listener, base, http

    async def ask(self, method: str, path: str, **options) -> tuple[int, str]:
        async with self.http.request(method, self.base + path, **options) as response:
            return response.status, await response.text()

    async def until(self, done, seconds: float = 60.0) -> None:
        async with asyncio.timeout(seconds):
            while not done():
                self.single.check()
                await asyncio.sleep(0.02)

    @property
    def publishing(self):
        return self.listener.publishing

    @property
    def subscribed(self):
        return self.single.plugin(Subscribed)

    @property
    def subscribing(self):
        return Subscribing(self.single.services)

    async def subscribe(self, *what) -> int:
        """Subscribe, and wait until the target's pages are found."""
        number = await self.subscribing.subscribe(*what)
        await self.until(lambda: not self.subscribed._new)
        return number

    @property
    def websub(self):
        return self.single.plugin(WebSub)

    @property
    def status(self) -> dict:
        return status(self.single, VIEW_EXTENSIONS)

    @property
    def published(self) -> dict:
        return self.status["published"]

    def overdue(self) -> int:
        return self.status["subscribed"]["overdue_pages"]

    def trust(self, host: str) -> float:
        from xyro.refresh.trust import Source

        return promises_of(self.single.frontiers[0]).trust_of(host).weight(Source.PUBLISHED)


@contextlib.asynccontextmanager
async def crawling(data, neighbours: Neighbours, clock=None, partitions=None, clusters=(), **options):
    """Everything that `/` links to was read."""
    listening = publish.listen("127.0.0.1:0")
    base = {"publish.callback": f"http://127.0.0.1:{listening.getsockname()[1]}"}
    chosen = {name.replace("__", "."): value for name, value in options.items()}
    settings = msgspec.structs.replace(load(overrides={**OPTIONS, **base, **chosen}), clusters=clusters)
    guard = guard_of(settings.fetch)
    guard.deny(*listening.getsockname()[:2])
    single = Node(
        DataDir.open(data, partitions=partitions, make=True),
        settings,
        guard,
        Bounds(forever=True),
        clock,
        EncodingBus(),
        plugins=PLUGINS,
    )
    listener = publish.listener_of(single)
    async with ClientSession() as http:
        try:
            single.start()
            await listener.start(listening)
            running = Running(single, listener, f"http://127.0.0.1:{listening.getsockname()[1]}", http)
            await single.sow([neighbours.url("/")])
            await running.until(lambda: not running.subscribed._new)
            await running.until(
                lambda: single._settled() and not any(frontier.scheduler.unread for frontier in single.frontiers)
            )
            yield running
        finally:
            await listener.close()
            await single.stop()
