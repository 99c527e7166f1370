"""The computed web over loopback: one process, one listening socket per host address, one port for all.

    async with WebServer(Web(pages=2_000, hosts=8)) as server:
        server.entry, server.port, server.truth()

    xyro lab web --pages 20000 --hosts 40 --port 8080 --truth truth.npz

Each host listens on its own address (127.1.x.y), so politeness per host and per IP can be seen; nothing ever listens
beyond loopback. Requests of a connection are answered one after the other, in order. Of a web over TLS each host has a
certificate of its own, and closes a connection that nothing was asked on for 5 to 15 seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import signal
import socket
import sys
from collections.abc import Callable
from email.utils import formatdate
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import uvloop

from xyro.lab.child import running
from xyro.lab.web.access_log import AccessLog, LogEntry
from xyro.lab.web.answers import CACHE_BYTES, Answers, Request, Response, refusal, status_line
from xyro.lab.web.certificates import Authority
from xyro.lab.web.chance import unit
from xyro.lab.web.padding import MEDIAN
from xyro.lab.web.places import address_of
from xyro.lab.web.shape import OPTION_HELP, SETTINGS, Shape
from xyro.lab.web.truth import Truth, truth
from xyro.lab.web.web import Web
from xyro.wire.clock import Clock, SystemClock
from xyro.wire.errors import InputError, MachineError

__all__ = ["WebServer", "running", "serve"]

MAX_HEAD = 65_536
"""bytes of a request head, as many as the client accepts of an answer's"""
LEAST_IDLE, MOST_IDLE = 5.0, 15.0
"""seconds after its last answer for which a host keeps a connection, over TLS"""
TLS_CACHE_BYTES = 4 << 30
"""of coded bodies: what is measured beside this server is not to wait for it"""
_IDLE = 901
"""key that keeps the draws of different purposes apart"""
_BACKLOG = 1_024
_PORT_TRIES = 20
_END = b"\r\n\r\n"


class WebServer:
    """Serves a Web while the `async with` block lasts. `web` has the port really used once it listens."""

    def __init__(
        self,
        web: Web,
        *,
        port: int = 0,
        clock: Clock | None = None,
        latency: float = 0.0,
        log: Path | None = None,
        cache_bytes: int = CACHE_BYTES,
        listener: Callable[[int, Request, float], None] | None = None,
    ) -> None:
        """port 0: the system chooses; latency: seconds before each answer; log: access log (see access_log.py).

        told: called with host, request and time of each answer.
        """
        self.web = web
        self.clock = clock or SystemClock()
        self.latency = latency
        self.connections: set[_Connection] = set()
        self.accepted = 0
        self._port = port
        self._log_path = log
        self._cache_bytes = cache_bytes
        self.listener = listener
        self._servers: list[asyncio.Server] = []
        self.authority = Authority(self.clock.time()) if web.shape.tls else None

    async def __aenter__(self) -> WebServer:
        """Raises MachineError where no port can be bound on all addresses."""
        sockets = _listen(self.web.shape.hosts, self._port)
        self.web = self.web.served_at(sockets[0].getsockname()[1])
        self.answers = Answers(self.web, self._cache_bytes)
        self.log = AccessLog(self._log_path) if self._log_path else None
        loop = asyncio.get_running_loop()
        for host, sock in enumerate(sockets):
            tls = self.authority.context(self.web.shape.seed, host, address_of(host)) if self.authority else None
            self._servers.append(await loop.create_server(partial(_Connection, self, host), sock=sock, ssl=tls))
        return self

    def idle_seconds(self, host: int) -> float:
        """Seconds for which a host keeps a connection that nothing is asked on; 0.0: for ever."""
        if self.authority is None:
            return 0.0
        return LEAST_IDLE + (MOST_IDLE - LEAST_IDLE) * unit(self.web.shape.seed, host, _IDLE)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.close()
        for connection in list(self.connections):
            connection.abort()
        for server in self._servers:
            await server.wait_closed()
        if self.log:
            self.log.close()

    @property
    def entry(self) -> str:
        """URL of the entry page."""
        return self.web.entry()

    @property
    def port(self) -> int:
        """The port of all hosts."""
        return self.web.shape.port

    def truth(self, t: float | None = None) -> Truth:
        """The truth at time t, now by default."""
        return truth(self.web, self.clock.time() if t is None else t)


def _listen(hosts: int, port: int) -> list[socket.socket]:
    """One socket per host address, all on one port; with port 0 a port that is free on every address."""
    for attempt in range(_PORT_TRIES):
        sockets: list[socket.socket] = []
        try:
            for host in range(hosts):
                chosen = sockets[0].getsockname()[1] if sockets else port
                sockets.append(socket.create_server((address_of(host), chosen), backlog=_BACKLOG))
        except OSError as error:
            for sock in sockets:
                sock.close()
            if port or error.errno != errno.EADDRINUSE or attempt == _PORT_TRIES - 1:
                where = f"{address_of(len(sockets))}:{port}"
                why = os.strerror(error.errno) if error.errno else str(error)
                raise MachineError(
                    f"lab web: cannot listen on {where}: {why}; leave --port out for any free one"
                ) from error
        else:
            return sockets
    raise AssertionError("unreachable: the last attempt returns or raises")


class _Connection(asyncio.Protocol):
    """One client. While a delayed answer is due, or the client does not read, input stays buffered."""

    def __init__(self, server: WebServer, host: int) -> None:
        self._server = server
        self._host = host
        self._input = b""
        self._served = 0
        self._full = False
        self._delayed: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._used_at = 0.0
        self._idle: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by name
        self._used_at = self._server.clock.monotonic()
        self._end_if_idle()
        self._server.accepted += 1
        self._number = self._server.accepted
        self._server.connections.add(self)
        secured = transport.get_extra_info("ssl_object")
        if secured is not None and self._server.log:
            kind = "resumed" if secured.session_reused else "new"
            entry = (self._server.clock.time(), address_of(self._host), "TLS", 0, kind, 0, self._number, 0, "", "")
            self._server.log.write(LogEntry(*entry))

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        for timer in (self._delayed, self._idle):
            if timer is not None:
                timer.cancel()

    def _end_if_idle(self) -> None:
        """Close the connection when nothing was asked on it for as long as its host waits."""
        if not (patience := self._server.idle_seconds(self._host)):
            return
        rest = patience if self._delayed is not None else self._used_at + patience - self._server.clock.monotonic()
        if rest > 0.0:
            self._idle = self._loop.call_later(rest, self._end_if_idle)
        else:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._input += data
        self._work()

    def pause_writing(self) -> None:
        self._full = True
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._full = False
        self._transport.resume_reading()
        self._work()

    def abort(self) -> None:
        """Drop the connection at once."""
        self._transport.abort()

    def _work(self) -> None:
        """Answer what is buffered, as long as nothing has to be waited for."""
        while self._input and not self._full and self._delayed is None and not self._transport.is_closing():
            end = self._input.find(_END)
            if end < 0:
                if len(self._input) > MAX_HEAD:
                    self._refuse(431, "request head too large")
                return
            head, self._input = self._input[:end], self._input[end + len(_END) :]
            request = parse(head)
            if request is None:
                self._refuse(400, "not a request that this server understands")
            elif (delay := self._server.latency + self._server.answers.delay(self._host, request)) > 0.0:
                self._delayed = self._loop.call_later(delay, self._later, request)
            else:
                self._answer(request)

    def _later(self, request: Request) -> None:
        self._delayed = None
        self._answer(request)
        self._work()

    def _answer(self, request: Request) -> None:
        now = self._server.clock.time()
        response = self._server.answers.answer(self._host, request, now)
        if self._server.listener is not None:
            self._server.listener(self._host, request, now)
        self._send(request, response, now)

    def _refuse(self, status: int, text: str) -> None:
        request = Request("-", "-", {"connection": "close"})
        self._send(request, refusal(status, text), self._server.clock.time())

    def _send(self, request: Request, response: Response, now: float) -> None:
        self._served += 1
        self._used_at = self._server.clock.monotonic()
        body = b"" if request.method == "HEAD" else response.body
        close = b"" if request.keep_alive else b"Connection: close\r\n"
        date = f"Server: xyro-lab\r\nDate: {formatdate(now, usegmt=True)}\r\n".encode()
        self._transport.write(b"".join((status_line(response.status), date, close, response.head, body)))
        if self._server.log:
            self._server.log.write(self._entry(request, response, now, len(body)))
        if close:
            self._transport.close()

    def _entry(self, request: Request, response: Response, now: float, sent: int) -> LogEntry:
        host = request.headers.get("host", "").rpartition(":")[0] or address_of(self._host)
        agent = request.headers.get("user-agent", "")
        entry = (now, host, request.method, response.status, response.mime, sent)
        return LogEntry(*entry, self._number, self._served, agent, request.target)


def parse(head: bytes) -> Request | None:
    """A request head without its empty line; None where it is malformed or announces a body."""
    first, *lines = head.decode("latin-1").lstrip("\r\n").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or not parts[1].startswith("/") or not parts[2].startswith("HTTP/1."):
        return None
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            return None
        headers[name.lower()] = value.strip()
    if "transfer-encoding" in headers or headers.get("content-length", "0") != "0":
        return None
    return Request(parts[0], parts[1], headers, parts[2])


async def serve(
    web: Web,
    *,
    port: int = 0,
    latency: float = 0.0,
    log: Path | None = None,
    truth_file: Path | None = None,
    authority_file: Path | None = None,
    prepared: bool = False,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until `stop` is set, or SIGINT or SIGTERM comes; the entry URL is the first line on stdout.

    The files are written before that line: the truth, for the moment at which serving begins, and, of a web over TLS,
    the certificate to trust. prepared: all answers are made before it, too.
    """
    stop = stop or asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        room = TLS_CACHE_BYTES if web.shape.tls else CACHE_BYTES
        async with WebServer(web, port=port, latency=latency, log=log, cache_bytes=room) as server:
            if truth_file is not None:
                server.truth().save(truth_file)
            if authority_file is not None and server.authority is not None:
                server.authority.save(authority_file)
            if prepared:
                server.answers.prepare(server.clock.time())
            sys.stdout.write(server.entry + "\n")
            sys.stdout.flush()
            await stop.wait()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="xyro lab web",
        usage="%(prog)s [--pages N] [--hosts N] [--truth FILE] [OPTIONS]",
        description="Serve a computed web on loopback until Ctrl-C. Prints the URL of its entry page.",
        epilog="Each host has an address of its own, so crawl it with --scope any --only-net 127.0.0.0/8. Shares lie "
        "in 0..1. With --tls hosts speak TLS 1.3, one in seven 1.2; pages are as large as real ones (--median 138000), "
        "in br, gzip, zstd or none as the host prefers; a connection that nothing is asked on is closed after 5 to 15 "
        "seconds. The certificate to trust is written to the file of --ca: crawl it with "
        "XYRO_FETCH__CA_FILE=xyro-lab-ca.pem.",
    )
    for name in SETTINGS:
        default = Shape.__dataclass_fields__[name].default
        if default is False:
            parser.add_argument(f"--{name}", action="store_true", help=OPTION_HELP[name])
            continue
        help_text = OPTION_HELP[name] if name in ("port", "origin") else f"{OPTION_HELP[name]} [{default:.5g}]"
        option = "--" + name.replace("_", "-")
        parser.add_argument(option, type=type(default), default=default, metavar="N", help=help_text)
    parser.set_defaults(port=0, origin=0.0)
    parser.add_argument(
        "--ca", type=Path, metavar="FILE", help="with --tls: the certificate to trust [xyro-lab-ca.pem]"
    )
    parser.add_argument("--prepare", action="store_true", help="make all answers before the first is asked for")
    parser.add_argument("--latency", type=float, default=0.0, metavar="N", help="seconds before each answer [0]")
    parser.add_argument("--log", type=Path, metavar="FILE", help="write an access log here (lab/web/access_log.py)")
    parser.add_argument("--truth", type=Path, metavar="FILE", help="write what is true of each page: .npz or .json")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Command line of `xyro lab web`: every setting of Shape is an option. Exit code 2 for bad input."""
    options = vars(_parser().parse_args(arguments))
    extra: dict[str, Any] = {name: options.pop(name) for name in ("latency", "log", "truth", "ca", "prepare")}
    options["origin"] = options["origin"] or SystemClock().time()
    if options["tls"]:
        options["median"] = options["median"] or MEDIAN
    try:
        web = Web(**options)
        served = serve(
            web,
            port=options["port"],
            latency=extra["latency"],
            log=extra["log"],
            truth_file=extra["truth"],
            authority_file=extra["ca"] or Path("xyro-lab-ca.pem"),
            prepared=extra["prepare"],
        )
        (uvloop if options["tls"] else asyncio).run(served)
    except (InputError, MachineError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
