"""Serves honest or hostile sites on every address of loopback, in a process of its own, and logs each request.

    python -m xyro.lab.hostile.loopback_server --log FILE --hostile JSON
        [--hosts N --pages N --hostile-port PORT --zoo TABLE]

Without --hosts it serves the hostile sites. One socket listens on all addresses, bound to the loopback device: nobody
else can reach it. It prints the URL of an entry when it listens, and runs until SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO, cast

from xyro.lab.hostile.hostile_rows import Hostile
from xyro.lab.hostile.hostile_sites import DRIP, HonestSites, HostileSites, ServedPage, Silence
from xyro.wire.clock import SystemClock

_END = b"\r\n\r\n"
_FLUSH = 0.2
"""seconds between two writes of the log"""
Answering = Callable[[str, str], ServedPage | Silence]


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--hostile", type=json.loads, required=True)
    parser.add_argument("--hosts", type=int, default=0)
    parser.add_argument("--pages", type=int, default=0)
    parser.add_argument("--hostile-port", type=int, default=0)
    parser.add_argument("--zoo", type=Path, help="of its cases, as `xyro lab zoo` writes it")
    asyncio.run(_serve(parser.parse_args(arguments)))
    return 0


async def _serve(options: argparse.Namespace) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    sock = listening()
    port, hostile = sock.getsockname()[1], Hostile(**options.hostile)
    answering: Answering = HostileSites(hostile, port).answer
    if options.hosts:
        zoo = _cases(options.zoo) if options.zoo else ()
        sites = HonestSites(options.hosts, options.pages, hostile, port, options.hostile_port, zoo)
        answering = sites.answer
    with options.log.open("w") as log:
        await loop.create_server(lambda: _Asked(answering, log), sock=sock, backlog=4_096)
        sys.stdout.write(f"http://127.1.0.1:{port}/\n")
        sys.stdout.flush()
        while not ended.is_set():
            await asyncio.sleep(_FLUSH)
            log.flush()


def _cases(table: Path) -> list[str]:
    return [case["url"] for case in json.loads(table.read_text())]


def listening() -> socket.socket:
    """A socket on a free port of all addresses of the loopback device."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
    sock.bind(("0.0.0.0", 0))  # noqa: S104  # of one device
    return sock


class _Asked(asyncio.Protocol):
    """One client."""

    def __init__(self, answering: Answering, log: TextIO) -> None:
        self._answering, self._log = answering, log
        self._input = b""
        self._clock = SystemClock()
        self._drips: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._address = str(transport.get_extra_info("sockname")[0])

    def connection_lost(self, exc: Exception | None) -> None:
        if self._drips is not None:
            self._drips.cancel()

    def data_received(self, data: bytes) -> None:
        self._input += data
        while (end := self._input.find(_END)) >= 0:
            head, self._input = self._input[:end], self._input[end + len(_END) :]
            path = head.split(b" ", 2)[1].decode("ascii")
            self._log.write(f"{self._clock.monotonic():.4f} {self._address} {path}\n")
            answer = self._answering(self._address, path)
            if isinstance(answer, ServedPage):
                self._transport.write(_packed(answer, path))
            elif answer.drips:
                self._drips = asyncio.get_running_loop().create_task(self._drip())

    async def _drip(self) -> None:
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9999999\r\n\r\n")
        while True:
            self._transport.write(b"<p>drip\n".ljust(DRIP // 2, b"."))
            await asyncio.sleep(0.5)


def _packed(page: ServedPage, path: str) -> bytes:
    if page.location:
        return f"HTTP/1.1 302 Found\r\nLocation: {page.location}\r\nContent-Length: 0\r\n\r\n".encode()
    if not page.found or (path == "/robots.txt" and not page.body):
        return b"HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n"
    links = page.body or "".join(f'<a href="{link}">{link}</a>\n' for link in page.links).encode()
    body = b"<!doctype html><title>" + path.encode() + b"</title>\n" + links if not path.endswith(".txt") else links
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body


if __name__ == "__main__":
    sys.exit(main())
