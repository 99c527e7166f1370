"""Serves a graph with folders and hosts, or a site with a trap, on loopback, and logs what is read.

One port, an address a host (127.1.x.y); a page's URL is /f<folder>/p<page>.html on its host, or
as its layout has it. The log is the server's:
each request for a page in its order, and whether it was answered with the page. Pages that fail answer 404.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from xyro.lab.order.laid_graphs import Layout, LinkGraph
from xyro.lab.order.traps import TrapSite
from xyro.lab.web.places import address_of
from xyro.wire.errors import MachineError

_TRIES = 20
_END = b"\r\n\r\n"
_MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n"


class ServedSite(Protocol):
    """The pages behind a server."""

    hosts: int

    def page(self, path: str, port: int) -> list[str] | None:
        """The links of the page at a path; None: it fails, or there is none. Reads are logged here."""
        ...


class ServedGraph:
    """A graph in a layout; `reads`: pages asked for, in their order."""

    def __init__(self, graph: LinkGraph, layout: Layout, failing: NDArray[np.bool_]) -> None:
        self.graph, self.layout, self.failing = graph, layout, failing
        self.hosts = int(layout.host.max()) + 1
        self.reads: list[int] = []
        self._folder, self._host = layout.folder.tolist(), layout.host.tolist()

    def url(self, page: int, port: int) -> str:
        """The URL of a page."""
        path = self.layout.form.format(self._folder[page], page)
        return f"http://{address_of(self._host[page])}:{port}/{path}"

    def page(self, path: str, port: int) -> list[str] | None:
        name = path.rpartition("?p=")[2] if "?" in path else path.rpartition("/p")[2].removesuffix(".html")
        if not name.isdigit():
            return None
        page = int(name)
        self.reads.append(page)
        if self.failing[page]:
            return None
        graph = self.graph
        return [self.url(child, port) for child in graph.indices[graph.indptr[page] : graph.indptr[page + 1]].tolist()]


class ServedTrap:
    """A site with a trap on one host; `reads`: paths asked for, in their order."""

    hosts = 1

    def __init__(self, site: TrapSite) -> None:
        self.site = site
        self.reads: list[str] = []
        self._shown = {"/"}

    def page(self, path: str, port: int) -> list[str] | None:
        if path == "/robots.txt":
            return None
        self.reads.append(path)
        if path not in self._shown:  # a crawler asks for what cannot exist, to know how the site says so
            return None
        links = self.site.links(path)
        self._shown.update(links)
        return links


class GraphServer:
    """Serves while the `async with` block lasts; `port` is known then."""

    def __init__(self, site: ServedSite) -> None:
        self.site = site
        self.port = 0
        self._servers: list[asyncio.Server] = []

    async def __aenter__(self) -> GraphServer:
        loop, sockets = asyncio.get_running_loop(), _listen(self.site.hosts)
        self.port = sockets[0].getsockname()[1]
        for sock in sockets:
            self._servers.append(await loop.create_server(lambda: _GraphConnection(self), sock=sock))
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()

    def answer(self, path: str) -> bytes:
        """The whole answer to a GET."""
        links = self.site.page(path, self.port)
        if links is None:
            return _MISSING
        body = "".join(f'<a href="{link}">{number}</a>\n' for number, link in enumerate(links)).encode()
        body = b"<!doctype html><title>" + path.encode() + b"</title>\n" + body
        return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body


class _GraphConnection(asyncio.Protocol):
    """One client; requests are answered in their order."""

    def __init__(self, server: GraphServer) -> None:
        self._server = server
        self._input = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._input += data
        while (end := self._input.find(_END)) >= 0:
            head, self._input = self._input[:end], self._input[end + len(_END) :]
            self._transport.write(self._server.answer(head.split(b" ", 2)[1].decode("ascii")))


def _listen(hosts: int) -> list[socket.socket]:
    """One socket an address, all on one port that is free on every address."""
    for _ in range(_TRIES):
        sockets: list[socket.socket] = []
        try:
            for host in range(hosts):
                chosen = sockets[0].getsockname()[1] if sockets else 0
                sockets.append(socket.create_server((address_of(host), chosen), backlog=1_024))
            return sockets
        except OSError as error:
            for sock in sockets:
                sock.close()
            if error.errno != errno.EADDRINUSE:
                raise MachineError(f"lab order: cannot listen on loopback: {error}") from error
    raise MachineError("lab order: no port is free on all addresses; try again")
