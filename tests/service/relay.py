"""A TCP relay between a node and its broker: slow, stalled or cut as a test wants, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

PIECE = 1 << 16


class Relay:
    """Listens on a loopback port until it is closed; `url` is the broker's, through it.

    `delay`: seconds that each byte takes, either way. `cut` closes all connections and refuses further ones, until
    `mend`.
    """

    def __init__(self, url: str) -> None:
        self.delay = 0.0
        self._refuses = False
        self._target = urlsplit(url)
        self._writers: set[asyncio.StreamWriter] = set()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    async def _serve(self) -> None:
        self._loop, self._stopped, self._flows = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        self._flows.set()
        async with await asyncio.start_server(self._pass_both_ways, "127.0.0.1", 0) as server:
            self.url = f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            self._ready.set()
            await self._stopped.wait()
            self._hang_up()

    def _call(self, action: Callable[[], object]) -> None:
        self._loop.call_soon_threadsafe(action)

    def cut(self) -> None:
        self._refuses = True
        self._call(self._hang_up)

    def stall(self) -> None:
        """Nothing passes, and nothing is closed, until `mend`."""
        self._call(self._flows.clear)

    def mend(self) -> None:
        self._refuses = False
        self.delay = 0.0
        self._call(self._flows.set)

    def close(self) -> None:
        self._refuses = True
        self._call(self._stopped.set)
        self._thread.join(10)

    def _hang_up(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _pass_both_ways(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            if not self._refuses:
                there, back = await asyncio.open_connection(self._target.hostname, self._target.port)
                self._writers |= {writer, back}
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._pass(reader, back, writer))
                    group.create_task(self._pass(there, writer, back))
                self._writers -= {writer, back}
        writer.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, other: asyncio.StreamWriter
    ) -> None:
        """Bytes in their order; those that wait are late by `delay`, not by a multiple of it."""
        line: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(256)
        out = asyncio.create_task(self._write(line, writer))
        with contextlib.suppress(OSError):
            while data := await reader.read(PIECE):
                await line.put((self._loop.time() + self.delay, data))
        out.cancel()
        await asyncio.gather(out, return_exceptions=True)
        writer.transport.abort()
        other.transport.abort()

    async def _write(self, line: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        while True:
            moment, data = await line.get()
            await asyncio.sleep(max(moment - self._loop.time(), 0.0))
            await self._flows.wait()
            writer.write(data)
            with contextlib.suppress(OSError):
                await writer.drain()
