"""TCP in memory: what a client writes reaches a peer at once, what the peer answers comes in pieces, in its time.

Every connection begins with a real socket that the guard made; it is never connected. Who is contacted, and when a
request begins and ends, is noted at the wire, by nobody of the crawler's.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections import deque
from typing import Protocol

from xyro.lab.simulate.exchanges import CLOSE, HANG, KEEP, RESET, AnswerPiece, PeerReply, PeerRequest
from xyro.lab.simulate.faults import Faults
from xyro.lab.simulate.virtual_loop import VirtualLoop
from xyro.lab.simulate.witness import CrawlWitness


class Peers(Protocol):
    """The servers of the world."""

    def accept(self, address: tuple[str, int], now: float) -> tuple[str, float]:
        """'accept' | 'refuse' | 'silent', and seconds until then."""

    def answer(self, request: PeerRequest, now: float) -> PeerReply: ...


class Wires:
    """All connections of one life; `attach` it to the life's loop."""

    def __init__(
        self,
        loop: VirtualLoop,
        peers: Peers,
        draw: random.Random,
        faults: Faults,
        witness: CrawlWitness,
    ) -> None:
        self.loop = loop
        self.peers = peers
        self.draw = draw
        self.faults = faults
        self.witness = witness
        self._addresses: dict[int, tuple[str, int]] = {}
        """descriptor -> where it is connected to"""
        self._open: dict[Wire, None] = {}

    async def connect(self, sock: socket.socket, address: tuple[str, int]) -> None:
        self.witness.note_contact(address)
        kind, delay = self.peers.accept(address[:2], self.loop.now)
        await asyncio.sleep(1e6 if kind == "silent" else delay)
        if kind == "refuse":
            raise ConnectionRefusedError(111, f"Connect call failed {address}")
        self._addresses[sock.fileno()] = address[:2]

    def open(self, sock: socket.socket, protocol: asyncio.Protocol) -> asyncio.Transport:
        wire = Wire(self, sock, self._addresses.pop(sock.fileno()), protocol)
        self._open[wire] = None
        return wire

    def closed(self, wire: Wire) -> None:
        """A connection is gone."""
        self._open.pop(wire, None)

    def break_all(self) -> None:
        """The process is gone, and its connections with it."""
        for wire in list(self._open):
            wire.break_off()


class Wire(asyncio.Transport):
    """One connection."""

    def __init__(
        self, wires: Wires, sock: socket.socket, address: tuple[str, int], protocol: asyncio.BaseProtocol
    ) -> None:
        super().__init__({"socket": sock, "peername": address, "sockname": ("127.0.0.1", 40_000)})
        self._wires = wires
        self._sock = sock
        self.address = address
        self._protocol = protocol
        self._inbox = b""
        self._pieces: deque[AnswerPiece] = deque()
        self._reply: PeerReply | None = None
        self._request = 0
        """number of the request under way; 0: none is"""
        self._timer: asyncio.TimerHandle | None = None
        self._is_paused = False
        self._is_closing = False

    # -- the client's side ---------------------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_closing or self._wires.faults.is_dead:
            return
        self._inbox += bytes(data)
        while (end := self._inbox.find(b"\r\n\r\n")) >= 0:
            head, self._inbox = self._inbox[:end], self._inbox[end + 4 :]
            self._serve(_parsed(head))

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is ever kept."""

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return not self._is_paused

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._next_piece()

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def close(self) -> None:
        self._lose(None)

    def abort(self) -> None:
        self._lose(None)

    # -- the peer's side -----------------------------------------------------------------------------------------

    def _serve(self, request: PeerRequest) -> None:
        wires = self._wires
        self._reply = reply = wires.peers.answer(request, wires.loop.now)
        self._request = wires.witness.note_request(request, self.address)
        for piece in reply.pieces:
            self._pieces += _cut(piece, wires.draw)
        self._next_piece()

    def _next_piece(self) -> None:
        if self._timer is None and not self._is_paused and not self._is_closing and self._reply is not None:
            delay = self._pieces[0].delay if self._pieces else 0.0
            self._timer = self._wires.loop.call_later(delay, self._deliver)

    def _deliver(self) -> None:
        self._timer = None
        reply = self._reply
        if self._is_closing or reply is None:
            return
        if self._pieces:
            piece = self._pieces.popleft()
            if not self._pieces and reply.end in (KEEP, CLOSE):
                self._note_end(reply)
                self._reply = reply if reply.end == CLOSE else None
            assert isinstance(self._protocol, asyncio.Protocol)
            self._protocol.data_received(piece.data)
            self._next_piece()
            return
        self._reply = None
        if reply.end == HANG:
            return
        self._note_end(reply)
        if reply.end == RESET:
            self._lose(ConnectionResetError(104, "Connection reset by peer"))
        elif reply.end == CLOSE:
            assert isinstance(self._protocol, asyncio.Protocol)
            self._protocol.eof_received()
            self._lose(None)

    def _note_end(self, reply: PeerReply | None) -> None:
        if self._request:
            self._wires.witness.note_end(self._request, reply)
            self._request = 0

    def _lose(self, error: Exception | None) -> None:
        if not self._is_closing:
            self.break_off()
            self._wires.loop.call_soon(self._protocol.connection_lost, error)

    def break_off(self) -> None:
        """End it on this side."""
        self._is_closing = True
        self._note_end(None)
        if self._timer is not None:
            self._timer.cancel()
        self._sock.close()
        self._wires.closed(self)


def _parsed(head: bytes) -> PeerRequest:
    line, *fields = head.decode("latin-1").split("\r\n")
    method, path, _ = line.split(" ")
    if method != "GET":
        raise ValueError(f"simulation: nobody here answers {method}")
    headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    return PeerRequest(headers["host"], path, headers)


def _cut(piece: AnswerPiece, draw: random.Random) -> list[AnswerPiece]:
    """Packets end anywhere."""
    data = piece.data
    if len(data) < 2 or draw.random() < 0.7:
        return [piece]
    place = draw.randrange(1, len(data))
    return [AnswerPiece(piece.delay, data[:place]), AnswerPiece(draw.random() * 0.01, data[place:])]
