"""Reader processes: what costs CPU (connections, decoding, links, signatures) is done beside the node, on other cores.

The pool stays in the node and decides what is read when. It asks `Readers` as it would ask a fetcher; the request goes
over a socket to the reader of its host, so that connections are kept alive and a name is looked up once, and the
finished answer comes back.

A reader that ends (a signal, a parser's crash, its memory limit) or does not answer a beat for HUNG seconds costs the
requests under way one attempt each (`reader-lost`) and is started again. It notes which request it works on: a page on
which STRIKES readers ended is `poison`, for good.
"""

from __future__ import annotations

import asyncio
import logging
import mmap
import socket
import struct
import subprocess
import tempfile
import weakref
import zlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from xyro import reader_frames as frames
from xyro.answer import Answer
from xyro.child_process import end_child, start_child
from xyro.guard import Guard
from xyro.site_entries import SiteOptions
from xyro.wire import codec
from xyro.wire.clock import Clock
from xyro.wire.errors import CodecError, TheirError
from xyro.wire.messages import FetchOrder
from xyro.wire.urls import authority

BEAT: Final = 0.5
"""seconds between two questions whether a reader still turns its event loop; deadlines are shortened as often"""
HUNG: Final = 20.0
"""seconds without any answer after which a reader is ended; a page of 8 MiB takes it less than 2"""
LOSSES: Final = 100
"""ends of a process whose moments are remembered"""
STRIKES: Final = 3
SUSPECTS: Final = 1000
"""pages whose strikes are remembered"""
SHORTEST, LONGEST = 0.2, 30.0
"""seconds before a reader that ended is started again; doubles while readers end before they answered anything"""
KNOWN: Final = 100_000
"""names of which it is remembered that their reader knows the address"""
_log = logging.getLogger("xyro")


class ReaderLost(Exception):
    """The reader ended before it answered. `at_hand`: it was working on this very request."""

    def __init__(self, at_hand: bool) -> None:
        super().__init__("the reader process ended")
        self.at_hand = at_hand


class ReaderProcess(asyncio.Protocol):
    """One reader and the requests that wait for it. Make it on the running loop."""

    def __init__(
        self, number: int, options: bytes, guard: Guard, clock: Clock, patience: Callable[[str], float]
    ) -> None:
        self.losses: deque[float] = deque(maxlen=LOSSES)
        """moments (monotonic) at which it ended although nobody asked it to"""
        self._number = number
        self._options = options
        self._sites = b""
        """entries that came after these options"""
        self._guard = guard
        self._rules = guard.rules
        self._clock = clock
        self._patience = patience
        self._impatient: dict[str, float] = {}
        self._hosts: dict[int, str] = {}
        """request -> its host"""
        self._writer: frames.FrameWriter | None = None
        self._buffer = frames.FrameBuffer()
        self._waiting: dict[int, asyncio.Future[list[Any]]] = {}
        self._pieces: dict[int, list[bytes]] = {}
        self._requests = 0
        self._answered = 0.0
        self._mark: mmap.mmap | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._connected = asyncio.Event()
        self._ended = asyncio.Event()
        self._life = asyncio.get_running_loop().create_task(self._live())

    @property
    def pid(self) -> int:
        """The process's id, 0 while there is none."""
        return 0 if self._process is None else self._process.pid

    async def request(self, verb: int, host: str, *values: Any) -> tuple[list[Any], list[bytes]]:
        """Ask on behalf of a host; (what follows `ANSWER` or `VALUE` in the answer, pieces of a body). ReaderLost: it
        ended instead."""
        if self._writer is None:
            await self._connected.wait()
        self._requests += 1
        number = self._requests
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._hosts[number] = host
        if self._guard.rules is not self._rules:
            self._tell_denied()
        self._write(number, verb, *values)
        try:
            kind, *answer = await future
            pieces = self._pieces.pop(number, [])
        except asyncio.CancelledError:
            self._write(number, frames.CANCEL)
            raise
        finally:
            for table in (self._waiting, self._hosts, self._pieces):
                table.pop(number, None)
        if kind == frames.FAILED:
            raise TheirError(*answer)
        return answer, pieces

    def sign(self, host: str) -> None:
        """`Fetcher.sign`; a process that just starts is told with the next challenge."""
        self._write(0, frames.SIGN, host)

    def expect(self, host: str, seconds: float) -> None:
        """`Fetcher.expect`."""
        self._write(0, frames.EXPECT, host, seconds)

    def follow(self, sites: bytes) -> None:
        """`Fetcher.follow`, with packed options; a process that starts later is told, too."""
        self._sites = sites
        self._write(0, frames.SITES, sites)

    async def close(self) -> None:
        """End the process; nobody asks any more."""
        self._life.cancel()
        await asyncio.gather(self._life, return_exceptions=True)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._writer = frames.FrameWriter(cast(asyncio.WriteTransport, transport))  # uvloop's is of no common class

    def connection_lost(self, error: Exception | None) -> None:
        self._writer = None
        self._ended.set()

    def data_received(self, data: bytes) -> None:
        try:
            for number, kind, *values in self._buffer.feed(data):
                self._answered = self._clock.monotonic()
                if kind == frames.BODY:
                    self._pieces.setdefault(number, []).append(values[0])
                elif (future := self._waiting.get(number)) is not None and not future.done():
                    future.set_result([kind, *values])
        except (CodecError, IndexError, TypeError) as error:
            _log.error("reader %d: %s", self._number, error)
            self._kill()

    # The process

    async def _live(self) -> None:
        """Start it, watch it, start it again."""
        wait = SHORTEST
        try:
            while True:
                self._answered = began = self._clock.monotonic()
                await self._start()
                self._connected.set()
                await self._watch()
                self._connected.clear()
                self._lose()
                wait = SHORTEST if self._answered > began else min(2.0 * wait, LONGEST)
                await self._clock.sleep(wait)
        finally:
            self._kill()

    async def _start(self) -> None:
        """Start the process, connect to it, and tell it how to read."""
        ours = self._spawn()
        self._buffer = frames.FrameBuffer()
        self._ended.clear()
        await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=ours)
        self._rules = self._guard.rules
        self._write(0, frames.OPTIONS, self._options, msgspec.msgpack.encode(self._rules))
        if self._sites:
            self._write(0, frames.SITES, self._sites)

    def _spawn(self) -> socket.socket:
        """Start the process with one end of a socket pair; the other end is returned."""
        with tempfile.TemporaryFile() as file:
            file.truncate(8)
            self._mark = mmap.mmap(file.fileno(), 8)
            self._process, ours = start_child("xyro.reader_child", file.fileno())
        self._end = weakref.finalize(self, end_child, self._process)
        return ours

    async def _watch(self) -> None:
        """Until it ended, or hung and was ended."""
        while not self._ended.is_set():
            self._write(0, frames.BEAT)
            try:
                async with asyncio.timeout(BEAT):
                    await self._ended.wait()
            except TimeoutError:
                self._tell_patience()
                if self._clock.monotonic() - self._answered > HUNG:
                    _log.error("reader %d: no sign of life for %.0f s, ended", self._number, HUNG)
                    self._kill()
                    return

    def _lose(self) -> None:
        """It ended: so did all requests that wait for it."""
        self.losses.append(self._clock.monotonic())
        self._kill()
        assert self._mark is not None
        (at_hand,) = struct.unpack("=Q", self._mark[:8])
        _log.warning("reader %d ended; %d reads are tried again", self._number, len(self._waiting))
        for number, future in self._waiting.items():
            if not future.done():
                future.set_exception(ReaderLost(number == at_hand))
        self._pieces.clear()

    def _kill(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None
        if self._process is not None:
            self._process = None
            self._end()

    def _tell_denied(self) -> None:
        """Endpoints of our own that the guard has learned of."""
        for endpoint in self._guard.rules.denied_endpoints[len(self._rules.denied_endpoints) :]:
            self._write(0, frames.DENY, *endpoint)
        self._rules = self._guard.rules

    def _tell_patience(self) -> None:
        """Hosts under way that are allowed less than all of their deadlines now."""
        allowed = {host: self._patience(host) for host in set(self._hosts.values())}
        impatient = {host: share for host, share in allowed.items() if share < 1.0}
        if impatient != self._impatient:
            self._impatient = impatient
            self._write(0, frames.PATIENCE, impatient)

    def _write(self, *values: Any) -> None:
        if self._writer is not None:
            self._writer.write(*values)


class Readers:
    """Several reader processes, used as one fetcher (xyro/page_fetcher.py)."""

    def __init__(
        self,
        processes: int,
        options: bytes,
        guard: Guard,
        clock: Clock,
        patience: Callable[[str], float] = lambda host: 1.0,
    ) -> None:
        """`options`: of each reader, as `ReaderChild` unpacks them; `patience`: see `Client`. Make it on the running
        loop."""
        self.processes: Sequence[ReaderProcess] = [
            ReaderProcess(number, options, guard, clock, patience) for number in range(processes)
        ]
        self._clock = clock
        self._known: dict[str, float] = {}
        """authority -> moment (monotonic) until which its reader has its address"""
        self._strikes: dict[str, int] = {}

    async def fetch(self, order: FetchOrder) -> Answer:
        """`Fetcher.fetch`, in the reader of its host; `reader-lost` or `poison` if that ended instead."""
        return await self._answer(frames.FETCH, order.url, codec.encode(order))

    async def fetch_robots(self, url: str) -> Answer:
        """`Fetcher.fetch_robots`, in the reader of its host."""
        return await self._answer(frames.ROBOTS, url, url)

    def sign(self, host: str) -> None:
        """`Fetcher.sign`, in the reader of the host."""
        self._process_of(f"http://{host}/").sign(host)

    def expect(self, host: str, seconds: float) -> None:
        """`Fetcher.expect`, in the reader of the host."""
        self._process_of(f"http://{host}/").expect(host, seconds)

    def follow(self, sites: SiteOptions) -> None:
        """`Fetcher.follow`, in all readers."""
        packed = msgspec.msgpack.encode(sites)
        for process in self.processes:
            process.follow(packed)

    def knows(self, url: str) -> bool:
        """Tell whether `address` has its answer without asking a name server, as far as was heard here."""
        return self._known.get(authority(url), 0.0) > self._clock.monotonic()

    async def address(self, url: str) -> str:
        """The address that the URL's host resolves to (cached there), empty where it has none."""
        try:
            (address, seconds), _ = await self._process_of(url).request(frames.ADDRESS, authority(url), url)
        except ReaderLost:
            return ""
        host = authority(url)
        self._known.pop(host, None)
        self._known[host] = self._clock.monotonic() + seconds
        if len(self._known) > KNOWN:
            del self._known[next(iter(self._known))]
        return str(address)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """`Fetcher.post`, in the reader of its host."""
        return await self._answer(frames.POST, url, url, body, dict(headers))

    async def close(self) -> None:
        """End all readers; what they read is cut off."""
        await asyncio.gather(*(process.close() for process in self.processes))

    def lost(self, seconds: float) -> int:
        """Count processes that ended within the last seconds although nobody asked them to."""
        since = self._clock.monotonic() - seconds
        return sum(moment >= since for process in self.processes for moment in process.losses)

    def _process_of(self, url: str) -> ReaderProcess:
        """The reader of a URL's host: one for each host, so that it is asked for its address once."""
        return self.processes[zlib.crc32(authority(url).encode()) % len(self.processes)]

    async def _answer(self, verb: int, url: str, *values: Any) -> Answer:
        started, began = self._clock.time(), self._clock.monotonic()
        try:
            answer, pieces = await self._process_of(url).request(verb, authority(url), *values)
            return frames.answer_of(answer, pieces)
        except ReaderLost as error:
            failure = "poison" if error.at_hand and self._strike(url) >= STRIKES else "reader-lost"
            duration = self._clock.monotonic() - began
            return Answer(started, self._clock.time(), duration, error=failure, detail=str(error))

    def _strike(self, url: str) -> int:
        strikes = self._strikes.pop(url, 0) + 1
        self._strikes[url] = strikes
        if len(self._strikes) > SUSPECTS:
            del self._strikes[next(iter(self._strikes))]
        return strikes
