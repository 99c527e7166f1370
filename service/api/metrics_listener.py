"""`GET /metrics` on an address of its own (`[metrics] listen`), for a Prometheus on another machine: no token, and
nothing but counts of ours. The interface on loopback serves the same behind its token."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from xyro.plugins.metrics.metric_families import CrawlMetrics
from xyro.plugins.publish.listener import listen
from xyro.plugins.view_extensions import VIEW_EXTENSIONS
from xyro.service.api.health import Health
from xyro.service.node import http_json
from xyro.service.node.admission import Admission
from xyro.service.node.endpoint import Endpoint
from xyro.service.node.status import running
from xyro.wire.errors import InputError

if TYPE_CHECKING:
    from xyro.service.node.node import Node

SHUTDOWN = 0.5
"""seconds that requests under way have to end when the process stops"""
PATIENCE = 20.0
"""seconds that a connection may wait for its next whole head"""
HEADERS = {"Content-Type": CONTENT_TYPE_LATEST, "Cache-Control": "no-store"}


def metrics_of(node: Node, health: Health) -> Callable[[], web.Response]:
    """The answer to `GET /metrics` of a crawl, made anew each time."""
    metrics = CrawlMetrics(node, partial(running, node, VIEW_EXTENSIONS), health.lag)

    def answer() -> web.Response:
        settings = node.settings.metrics
        if not (settings.serve or settings.listen):
            raise InputError("this crawl counts nothing for Prometheus: set `[metrics] serve = true`")
        return web.Response(body=metrics.text(), headers=HEADERS)

    return answer


class MetricsListener:
    """Serves the metrics of one Node."""

    def __init__(self, node: Node) -> None:
        self._health = Health(node)
        self._answer = metrics_of(node, self._health)
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None

    async def start(self, listening: socket.socket) -> None:
        """Answer on a socket, which is closed in the end."""
        app = web.Application()
        app.add_routes([web.get("/metrics", self._metrics)])
        self._health.start()
        self._runner = web.AppRunner(
            app, access_log=None, logger=http_json.LOG, shutdown_timeout=SHUTDOWN, keepalive_timeout=PATIENCE
        )
        await self._runner.setup()
        admission = Admission(cast("Callable[[], asyncio.Protocol]", self._runner.server))
        self._server = await asyncio.get_running_loop().create_server(admission.enter, sock=listening)

    async def close(self) -> None:
        """End the requests under way."""
        await self._health.close()
        if self._server is not None:
            self._server.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _metrics(self, _: web.Request) -> web.Response:
        return self._answer()


METRICS_ENDPOINT = Endpoint(
    lambda settings: listen(settings.metrics.listen, "[metrics] listen"), lambda node, _: MetricsListener(node)
)
"""for Prometheus, if the settings name an address"""
