"""Lists the endpoints of a crawling process: the HTTP interface, and the listeners of publications and of metrics.

What answers there takes a tenth of a second of CPU to import, which most crawls never need: it is imported by a daemon,
for an address in the settings, or when somebody comes.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from xyro.service.node.endpoint import Endpoint, Interface
from xyro.wire.errors import InputError

if TYPE_CHECKING:
    from xyro.configs.schema import Settings
    from xyro.service.node.node import Node


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on this machine alone. InputError: another address, or one that is taken."""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise InputError(f"[api] host: {host} is not an address; write 127.0.0.1") from None
    if not address.is_loopback:
        raise InputError(
            f"[api] host: {host} can be reached from other machines, and this interface has no TLS: "
            "write 127.0.0.1, and come from elsewhere through ssh"
        )
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        return socket.create_server((str(address), port), family=family)
    except OSError as error:
        raise InputError(
            f"[api] {host}:{port}: {error.strerror}; choose another port, or 0 for any that is free"
        ) from error


class ApiOnContact:
    """The HTTP interface of one Node: a daemon's at once, that of a crawl that ends when somebody connects."""

    def __init__(self, node: Node, token: str) -> None:
        self._node = node
        self._token = token
        self._interface: Interface | None = None
        self._coming: asyncio.Task[None] | None = None
        self._listening: socket.socket | None = None

    async def start(self, listening: socket.socket) -> None:
        """Answer on a socket of `listen`, which is closed in the end. Who comes first waits in its queue."""
        self._listening = listening
        if self._node.bounds.forever:
            await self._begin(listening)
        else:
            asyncio.get_running_loop().add_reader(listening, self._contacted, listening)

    def _contacted(self, listening: socket.socket) -> None:
        asyncio.get_running_loop().remove_reader(listening)
        self._coming = asyncio.create_task(self._begin(listening))

    async def _begin(self, listening: socket.socket) -> None:
        self._interface = interface = (await asyncio.to_thread(_http_api))(self._node, self._token)
        await interface.start(listening)

    async def close(self) -> None:
        """Requests under way are ended; nothing of the crawl is pinned any more."""
        if self._coming is not None:
            await self._coming
        if self._interface is not None:
            await self._interface.close()
        elif self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)


def _http_api() -> Callable[[Node, str], Interface]:
    from xyro.service.api.http_api import HttpApi

    return HttpApi


def _for_publishers(settings: Settings) -> socket.socket | None:
    publish = settings.publish
    return _publish_endpoint().listen(settings) if publish.listen or publish.websub else None


def _publish_endpoint() -> Endpoint:
    from xyro.plugins.publish.listener import PUBLISH_ENDPOINT

    return PUBLISH_ENDPOINT


def _for_prometheus(settings: Settings) -> socket.socket | None:
    return _metrics_endpoint().listen(settings) if settings.metrics.listen else None


def _metrics_endpoint() -> Endpoint:
    from xyro.service.api.metrics_listener import METRICS_ENDPOINT

    return METRICS_ENDPOINT


ENDPOINTS = (
    Endpoint(lambda settings: listen(settings.api.host, settings.api.port), ApiOnContact),
    Endpoint(_for_publishers, lambda node, token: _publish_endpoint().interface(node, token)),
    Endpoint(_for_prometheus, lambda node, token: _metrics_endpoint().interface(node, token)),
)
"""DIR/run has the address of the first one."""
