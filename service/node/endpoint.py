"""The seam through which the rooms above answer other programs while a crawl runs: HTTP, and what plug-ins listen to.

The life cycle opens the sockets of all endpoints before the data directory is made, so that whatever can be refused is
refused first, and closes every interface before the crawl stops. Its fetchers never read an endpoint of their own.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from xyro.configs.schema import Settings
    from xyro.service.node.node import Node


class Interface(Protocol):
    """Answers on one socket."""

    async def start(self, listening: socket.socket) -> None:
        """Answer from now on; the socket is closed in the end."""

    async def close(self) -> None:
        """End the requests under way; nothing of the crawl is pinned any more."""


class Endpoint(Struct, frozen=True):
    """One kind of interface."""

    listen: Callable[[Settings], socket.socket | None]
    """opens the socket; None where the settings leave it off; InputError where they are wrong or the port is taken"""
    interface: Callable[[Node, str], Interface]
    """(crawl, token of DIR/run) -> what answers there"""
