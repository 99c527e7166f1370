"""A name server for the zoo's hosts with a name: UDP and TCP, on loopback, and as hostile as the case wants.

In: names (a star stands for any first labels) and how each is answered. Out: DNS messages (RFC 1035), no more of them
than a resolver needs to be fooled.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

A, CNAME, AAAA = 1, 5, 28
NXDOMAIN, SERVFAIL = 3, 2
NAMES = "127.2.255.53"
FORBIDDEN = "169.254.169.254"
"""a cloud's metadata service: nobody may be led there"""
_UDP_ROOM = 512
_ADDRESSES = 1_000

Record = tuple[int, int, str]
"""(type, TTL in seconds, address or name)"""
NameAnswer = tuple[int, list[Record]] | None
"""(response code, records); None: no answer at all"""
NameAct = Callable[[str, int, int], NameAnswer]
"""(address of the case, type asked for, number of the query) -> answer"""


def at_home(address: str, kind: int, nth: int) -> NameAnswer:
    """The case's own address."""
    return 0, [(A, 300, address)] if kind == A else []


def missing(address: str, kind: int, nth: int) -> NameAnswer:
    return NXDOMAIN, []


def broken(address: str, kind: int, nth: int) -> NameAnswer:
    return SERVFAIL, []


def silent(address: str, kind: int, nth: int) -> NameAnswer:
    return None


def looping(address: str, kind: int, nth: int) -> NameAnswer:
    """A name that is another name of itself, by way of a second one."""
    return 0, [(CNAME, 300, "b.loop.zoo.test"), (CNAME, 300, "loop.zoo.test")]


def crowded(address: str, kind: int, nth: int) -> NameAnswer:
    """A thousand addresses, of which one is there."""
    dead = [(A, 300, f"127.4.{number // 250}.{number % 250 + 1}") for number in range(_ADDRESSES - 1)]
    return 0, [(A, 300, address), *dead] if kind == A else []


def inside(address: str, kind: int, nth: int) -> NameAnswer:
    return 0, [(A, 300, FORBIDDEN)] if kind == A else []


def rebinding(address: str, kind: int, nth: int) -> NameAnswer:
    """An honest address the first time, a forbidden one from then on; nobody is to remember either."""
    return 0, [(A, 0, FORBIDDEN if nth > 2 else address)] if kind == A else []


def dead_ipv6(address: str, kind: int, nth: int) -> NameAnswer:
    return 0, [(A, 300, address)] if kind == A else [(AAAA, 300, "2001:db8::1")]


def only_ipv6(address: str, kind: int, nth: int) -> NameAnswer:
    return 0, [(AAAA, 300, "2001:db8::1")] if kind == AAAA else []


@dataclass(slots=True)
class ZooName:
    """How one name is answered, and where its case is."""

    address: str
    act: NameAct
    asked: int = 0


class NameServer(asyncio.DatagramProtocol):
    """Answers queries for `zone`; other names do not exist. `close` it."""

    def __init__(self, zone: Mapping[str, ZooName]) -> None:
        self._zone = zone
        self._transport: asyncio.DatagramTransport | None = None
        self._server: asyncio.Server | None = None

    async def start(self, address: str, port: int) -> None:
        """Listen on both. OSError if the port is taken."""
        self._server = await asyncio.start_server(self._connected, address, port)
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, local_addr=(address, port))

    async def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, peer: tuple[str, int]) -> None:
        reply = self.reply(data)
        if reply and self._transport is not None:
            if len(reply) > _UDP_ROOM:  # truncated: ask again over TCP
                reply = reply[:2] + struct.pack("!HHHHH", 0x8380, 1, 0, 0, 0) + _question(data)[2]
            self._transport.sendto(reply, peer)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            (size,) = struct.unpack("!H", await reader.readexactly(2))
            reply = self.reply(await reader.readexactly(size))
            writer.write(struct.pack("!H", len(reply)) + reply)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    def reply(self, data: bytes) -> bytes:
        """The answer to one query, empty where there is none to be."""
        name, kind, question = _question(data)
        found = self._found(name)
        if found is None:
            answer: NameAnswer = (NXDOMAIN, [])
        else:
            found.asked += 1
            answer = found.act(found.address, kind, found.asked)
        if answer is None:
            return b""
        code, records = answer
        head = data[:2] + struct.pack("!HHHHH", 0x8180 | code, 1, len(records), 0, 0) + question
        return head + b"".join(_packed(*record) for record in records)

    def _found(self, name: str) -> ZooName | None:
        labels = name.split(".")
        names = [name, *("*." + ".".join(labels[skip:]) for skip in range(1, len(labels)))]
        return next((self._zone[name] for name in names if name in self._zone), None)


def _question(data: bytes) -> tuple[str, int, bytes]:
    """(name, type, the question as it stands) of a query."""
    labels, place = [], 12
    while data[place]:
        labels.append(data[place + 1 : place + 1 + data[place]].decode("latin-1").lower())
        place += 1 + data[place]
    (kind,) = struct.unpack("!H", data[place + 1 : place + 3])
    return ".".join(labels), kind, data[12 : place + 5]


def _packed(kind: int, ttl: int, value: str) -> bytes:
    """One record, of the name asked for."""
    if kind == CNAME:
        data = b"".join(bytes([len(label)]) + label.encode() for label in value.split(".")) + b"\0"
    else:
        data = socket.inet_pton(socket.AF_INET if kind == A else socket.AF_INET6, value)
    return b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, ttl, len(data)) + data
