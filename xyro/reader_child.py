"""A reader process (readers.py starts it): connects, decodes, finds links, and gives back finished answers.

It decides nothing: the pool of its node says what may be read, and when. The guard, the limits of the client and
--only-net hold here, at the socket. It ends when the node's end of the socket closes, whatever the node died of.

    python -P -m xyro.reader_child SOCKET MARK      descriptors that it inherits

MARK is a file of eight bytes in which it notes the number of the request that it works on, each time that one goes on:
after a parser crashed or hung, the node knows which page did it.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import socket
import struct
import sys
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar, cast

import msgspec
import uvloop

from xyro import process_memory
from xyro import reader_frames as frames
from xyro.answer import Answer
from xyro.child_process import confine, ignore_signals
from xyro.fetcher import Fetcher
from xyro.guard import Guard, GuardRules
from xyro.mistakes import INTERNAL, traced
from xyro.reader import ReaderOptions, fetcher_of
from xyro.site_entries import SiteEntries, SiteOptions
from xyro.wire import codec
from xyro.wire.clock import SystemClock
from xyro.wire.errors import TheirError
from xyro.wire.log_setup import set_up
from xyro.wire.messages import FetchOrder

T = TypeVar("T")
_NUMBER = struct.Struct("=Q")


class Marked(Coroutine[Any, Any, T]):
    """A coroutine that notes the number of its request each time that it goes on."""

    def __init__(self, mark: mmap.mmap, number: int, inner: Coroutine[Any, Any, T]) -> None:
        self._mark = mark
        self._number = _NUMBER.pack(number)
        self._inner = inner

    def send(self, value: Any) -> Any:
        self._mark[:8] = self._number
        return self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        self._mark[:8] = self._number
        return self._inner.throw(*error)

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, T]:
        return self._inner.__await__()


class ReaderChild(asyncio.Protocol):
    """The reader's end of the socket: one task for each request."""

    def __init__(self, mark: mmap.mmap, ended: asyncio.Event) -> None:
        self._mark = mark
        self._ended = ended
        self._buffer = frames.FrameBuffer()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._writer: frames.FrameWriter | None = None
        self._fetcher: Fetcher | None = None
        self._guard = Guard()
        self._patience: dict[str, float] = {}
        """hosts that are allowed less than all of a deadline, and the share"""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._writer = frames.FrameWriter(cast(asyncio.WriteTransport, transport))  # uvloop's is of no common class

    def connection_lost(self, error: Exception | None) -> None:
        self._ended.set()

    def data_received(self, data: bytes) -> None:
        for number, verb, *values in self._buffer.feed(data):
            self._take(number, verb, values)

    def _take(self, number: int, verb: int, values: list[Any]) -> None:
        if verb == frames.CANCEL:
            if (task := self._tasks.get(number)) is not None:
                task.cancel()
        elif verb == frames.BEAT:
            self._write(number, frames.ECHO)
        elif verb == frames.DENY:
            self._guard.deny(*values)
        elif verb == frames.SIGN:
            if self._fetcher is not None:
                self._fetcher.sign(*values)
        elif verb == frames.EXPECT:
            if self._fetcher is not None:
                self._fetcher.expect(*values)
        elif verb == frames.SITES:
            if self._fetcher is not None:
                self._fetcher.follow(msgspec.msgpack.decode(values[0], type=SiteOptions))
        elif verb == frames.PATIENCE:
            self._patience = values[0]
        elif verb == frames.OPTIONS:
            self._begin(*values)
        else:
            work = Marked(self._mark, number, self._work(number, verb, values))
            task = self._tasks[number] = asyncio.get_running_loop().create_task(work)
            task.add_done_callback(lambda _: self._tasks.pop(number, None))

    def _begin(self, options: bytes, rules: bytes) -> None:
        self._guard = msgspec.msgpack.decode(rules, type=GuardRules).guard()
        described = msgspec.msgpack.decode(options, type=ReaderOptions)
        set_up(described.log_level, described.log_form)
        sites = SiteEntries(described.sites)
        self._fetcher = fetcher_of(described, self._guard, SystemClock(), self._allowed, sites)

    def _allowed(self, host: str) -> float:
        return self._patience.get(host, 1.0)

    async def _work(self, number: int, verb: int, values: list[Any]) -> None:
        fetcher = self._fetcher
        assert fetcher is not None
        try:
            if verb == frames.FETCH:
                order = codec.decode(values[0])
                assert isinstance(order, FetchOrder)
                self._tell(number, await fetcher.fetch(order))
            elif verb == frames.ROBOTS:
                self._tell(number, await fetcher.fetch_robots(*values))
            elif verb == frames.ADDRESS:
                address = await fetcher.address(*values)
                self._write(number, frames.VALUE, address, fetcher.known_for(*values))
            else:
                self._tell(number, await fetcher.post(*values))
        except TheirError as error:
            self._write(number, frames.FAILED, error.kind, error.detail)
        except MemoryError:
            os._exit(1)  # what else failed for want of memory is not known
        except Exception as error:
            self._write(number, frames.FAILED, INTERNAL, traced(error))

    def _tell(self, number: int, answer: Answer) -> None:
        if self._writer is not None:
            for data in frames.answer_frames(number, answer):
                self._writer.send(data)

    def _write(self, *values: Any) -> None:
        if self._writer is not None:
            self._writer.write(*values)


async def _serve(sock: socket.socket, mark: mmap.mmap) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    make: Callable[[], ReaderChild] = lambda: ReaderChild(mark, ended)  # noqa: E731
    await loop.create_unix_connection(make, sock=sock)
    await ended.wait()
    os._exit(0)  # the node is gone, or has all that it wants: connections need no farewell


def main() -> None:
    """Serve the node until it closes the socket."""
    ignore_signals()
    sock, mark = socket.socket(fileno=int(sys.argv[1])), mmap.mmap(int(sys.argv[2]), 8)
    confine()
    process_memory.tune()
    uvloop.run(_serve(sock, mark))


if __name__ == "__main__":
    main()
