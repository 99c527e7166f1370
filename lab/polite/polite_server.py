"""Serves the hosts of `xyro lab politeness`, and their names, in a process of its own; logs when each request came and
ended.

    python -m xyro.lab.polite.polite_server --log FILE --names N --addresses N

A line of the log is a `ServedExchange` as JSON, written when it has ended, or when the client has gone. It prints the
URL of an entry when it listens, and runs until SIGTERM. The name server has the next port.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path
from typing import NamedTuple, TextIO

import msgspec

from xyro.lab.hostile.loopback_server import listening
from xyro.lab.polite.polite_sites import PoliteAnswer, address_of, answer, name_of, number_of
from xyro.lab.zoo.name_server import NAMES, NameServer, ZooName, at_home
from xyro.wire.clock import SystemClock


class ServedExchange(NamedTuple):
    """A request as the server saw it; moments are monotonic seconds."""

    began: float
    ended: float
    address: str
    host: int
    path: str
    status: int
    """0: it was left without an answer"""
    retry_after: float
    rules_of: int
    """the host whose rules the answer holds; -1: none's"""
    cut: bool
    """the client went away before it had ended"""


class PoliteServer:
    """One port of all addresses."""

    def __init__(self, log: TextIO, names: int, port: int) -> None:
        self._log, self._names, self._port = log, names, port
        self._clock = SystemClock()
        self._asked: set[tuple[int, str]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        address = writer.get_extra_info("sockname")[0]
        try:
            while await self._exchange(address, reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _exchange(self, address: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        began = self._clock.monotonic()
        path = head.split(" ", 2)[1]
        if length := head.lower().partition("\r\ncontent-length:")[2]:  # a hub is asked
            await reader.readexactly(int(length.partition("\r\n")[0]))
        host = number_of(head.lower().partition("\r\nhost:")[2].strip())
        first = (host, path) not in self._asked
        self._asked.add((host, path))
        reply = answer(host, path, first, self._names, self._port)
        gone = asyncio.create_task(reader.read(1))
        if reply.wait:
            await asyncio.wait([gone], timeout=reply.wait)
        cut = gone.done()
        ended = self._clock.monotonic()  # what is written next may be read, and answered, before this process goes on
        if not cut:
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
            if reply.status:
                writer.write(_packed(reply))
                await writer.drain()
        line = ServedExchange(began, ended, address, host, path, reply.status, reply.retry_after, reply.rules_of, cut)
        self._log.write(msgspec.json.encode(line).decode() + "\n")
        return not cut and reply.status > 0


def _packed(reply: PoliteAnswer) -> bytes:
    body = reply.body.encode()
    lines = [f"HTTP/1.1 {reply.status} -", "Content-Type: text/html", f"Content-Length: {len(body)}"]
    if reply.location:
        lines.append(f"Location: {reply.location}")
    if reply.hub:
        lines.append(f'Link: <{reply.hub}>; rel="hub"')
    if reply.retry_after:
        lines.append(f"Retry-After: {reply.retry_after}")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def _serve(options: argparse.Namespace) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    sock = listening()
    port = sock.getsockname()[1]
    zone = {name_of(host): ZooName(address_of(host, options.addresses), at_home) for host in range(options.names)}
    names = NameServer(zone)
    with options.log.open("w", buffering=1) as log:
        server = await asyncio.start_server(PoliteServer(log, options.names, port).serve, sock=sock, backlog=1024)
        await names.start(NAMES, port + 1)
        sys.stdout.write(f"http://{name_of(0)}:{port}/\n")
        sys.stdout.flush()
        await ended.wait()
        await names.close()
        server.close()


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--names", type=int, required=True)
    parser.add_argument("--addresses", type=int, required=True)
    asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
