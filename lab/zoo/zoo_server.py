"""The hostile zoo: a raw-socket server that plays the cases, one host a case.

    async with Zoo() as zoo:
        for case in zoo.cases:
            zoo.url(case), case.kinds          # what to read there, and the failure classes that are right

    xyro lab zoo --port 8081 --table zoo.json       prints the URL of the hub, which links to all cases

Case k listens on 127.2.x.y of one common port (127.2.255.1 is the hub, 127.2.255.53 the name server of zoo.test: give
it to the crawler as `[fetch] name_servers`); /robots.txt is sound unless the case plays it, and so is /ok*, where cases
lead to.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import socket
import ssl
import sys
import tempfile
from functools import partial
from pathlib import Path
from types import TracebackType

from xyro.lab.zoo import body_cases, connection, framing, link_cases, name_cases, robots_cases, tls_cases, xml_cases
from xyro.lab.zoo.acts import Case, ZooClient, page, response
from xyro.lab.zoo.name_server import NAMES, NameServer, ZooName
from xyro.lab.zoo.tls_cases import context_of
from xyro.wire.clock import SystemClock
from xyro.wire.errors import MachineError

CASES: tuple[Case, ...] = (
    *connection.CASES,
    *framing.CASES,
    *body_cases.CASES,
    *link_cases.CASES,
    *robots_cases.CASES,
    *name_cases.CASES,
    *tls_cases.CASES,
    *xml_cases.CASES,
)
HUB = "127.2.255.1"
_MAX_HEAD = 65_536
_ALLOW = response("User-agent: *\nDisallow:\n", mime="text/plain")


def address_of(number: int) -> str:
    """Address of the case at this place in the table."""
    return f"127.2.{number // 250}.{number % 250 + 1}"


class Zoo:
    """Plays its cases while the `async with` block lasts. `requests`: (case, method, path) of all."""

    def __init__(self, cases: tuple[Case, ...] = CASES, port: int = 0, log: Path | None = None) -> None:
        """port 0: the system chooses. log: see `serve`."""
        self.cases = cases
        self._log = log
        self.port = port
        self.requests: list[tuple[str, str, str]] = []
        self._counts: dict[str, int] = {}
        self._servers: list[asyncio.Server] = []
        self._plugs: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._names = NameServer(_zone(cases))

    async def __aenter__(self) -> Zoo:
        hub = self._bound(HUB)
        self.port = hub.getsockname()[1]
        try:
            await self._serve(hub, None)
            await self._names.start(NAMES, self.port)
            with tempfile.TemporaryDirectory() as folder:
                for number, case in enumerate(self.cases):
                    await self._open(case, address_of(number), Path(folder))
        except BaseException:
            await self._close()
            raise
        return self

    async def _open(self, case: Case, address: str, folder: Path) -> None:
        if case.socket == "blackhole":
            self._plugs += _black_hole(self._bound(address))
        elif case.socket == "serve":
            tls = context_of(case.tls, address, folder) if case.tls else None
            await self._serve(self._bound(address), case, tls)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    @property
    def hub(self) -> str:
        """URL of a page with a link to every case."""
        return f"http://{HUB}:{self.port}/"

    def origin(self, case: Case) -> str:
        """Scheme, host and port of a case."""
        return f"{case.scheme}://{case.host or address_of(self.cases.index(case))}:{self.port}"

    @property
    def name_server(self) -> str:
        """address:port of the name server that knows the hosts of the zoo."""
        return f"{NAMES}:{self.port}"

    def url(self, case: Case) -> str:
        """Return the URL at which a crawler reads a case."""
        return self.origin(case) + case.path

    def table(self) -> list[dict[str, object]]:
        """All cases as plain data: number, name, url, kinds, leads, links, endless."""
        names = ("number", "name", "kinds", "leads", "links", "endless")
        return [{"url": self.url(case)} | {name: getattr(case, name) for name in names} for case in self.cases]

    def _bound(self, address: str) -> socket.socket:
        try:
            return socket.create_server((address, self.port), backlog=128)
        except OSError as error:
            raise MachineError(f"lab zoo: cannot listen on {address}:{self.port}: {error}") from error

    async def _serve(self, sock: socket.socket, case: Case | None, tls: ssl.SSLContext | None = None) -> None:
        act = partial(self._connected, case)
        self._servers.append(await asyncio.start_server(act, sock=sock, ssl=tls, limit=_MAX_HEAD))

    async def _connected(self, case: Case | None, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, one request; whatever the client does to it is no error of ours."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a stream server runs its handler in a task")
        self._tasks.add(task)
        closed = False
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await self._play(case, reader, writer)
                writer.close()
                await writer.wait_closed()
                closed = True
        except asyncio.CancelledError:  # only _close cancels, and it wants nothing but the end
            return
        finally:
            if not closed:
                writer.transport.abort()
            self._tasks.discard(task)

    async def _play(self, case: Case | None, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tls = (
            case is not None and case.scheme == "https" and not case.tls
        )  # the client begins a handshake, not a request
        head = (await (reader.read(1) if tls else reader.readuntil(b"\r\n\r\n"))).decode("latin-1")
        method, path, headers = _parsed(head)
        name = case.name if case else "hub"
        self.requests.append((name, method, path))
        if self._log:
            address = writer.get_extra_info("sockname")[0]
            with self._log.open("a") as log:
                log.write(f"{SystemClock().monotonic():.4f} {address} {path or '?'}\n")
        self._counts[name] = self._counts.get(name, 0) + 1
        origin = self.origin(case) if case else ""
        client = ZooClient(reader, writer, method, path, headers, self._counts[name], origin, self.port)
        if path == "/robots.txt" and not (case and case.robots):
            await client.send(_ALLOW)
        elif case is None:
            await client.send(response(page(*map(self.url, self.cases))))
        elif case.robots and path == "/robots.txt":
            await case.robots(client)
        elif path.startswith("/ok"):
            await client.send(response(page(text="All is well.")))
        else:
            await case.act(client)

    async def _close(self) -> None:
        await self._names.close()
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # lets aborted transports close their sockets
        for server in self._servers:
            await server.wait_closed()
        for plug in self._plugs:
            plug.close()


def _zone(cases: tuple[Case, ...]) -> dict[str, ZooName]:
    """The names for the name server: each host of a case, and all that end in it."""
    zone: dict[str, ZooName] = {}
    for number, case in enumerate(cases):
        if case.host:
            zone[case.host] = zone[f"*.{case.host}"] = ZooName(address_of(number), case.names)
    return zone


def _parsed(head: str) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.strip().split("\r\n")
    method, path = (*first.split(" "), "", "")[:2]
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return method, path, headers


def _black_hole(sock: socket.socket) -> list[socket.socket]:
    """A listener whose queue is full: the kernel drops every further SYN. All sockets have to stay open."""
    sock.listen(0)
    plugs = [sock]
    for _ in range(4):
        plug = socket.socket()
        plug.setblocking(False)
        plug.connect_ex(sock.getsockname())
        plugs.append(plug)
    return plugs


async def serve(port: int = 0, table: Path | None = None, log: Path | None = None) -> None:
    """Play all cases until SIGINT or SIGTERM; the hub's URL is the first line on stdout. log: moment (monotonic
    seconds), address and path of each request, a line each."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with Zoo(port=port, log=log) as zoo:
        if table is not None:
            _write(table, zoo)
        sys.stdout.write(zoo.hub + "\n")
        sys.stdout.flush()
        await stop.wait()


def _write(path: Path, zoo: Zoo) -> None:
    path.write_text(json.dumps(zoo.table(), indent=1))


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Exit code: 0 after SIGINT or SIGTERM, 2 where the port is not free."""
    parser = argparse.ArgumentParser(
        prog="xyro lab zoo",
        description=f"Play the hostile zoo on loopback; its names: name_servers = ['{NAMES}:PORT'].",
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--table", type=Path, help="write all cases to this JSON file")
    parser.add_argument("--log", type=Path, help="write moment, address and path of each request to this file")
    options = parser.parse_args(arguments)
    try:
        asyncio.run(serve(options.port, options.table, options.log))
    except MachineError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
