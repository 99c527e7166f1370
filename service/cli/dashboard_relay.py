"""Passes connections on to the interface of a process, which is on loopback only: for a while, out of a container."""

from __future__ import annotations

import asyncio
import contextlib

from xyro.wire.errors import InputError
from xyro.wire.urls import host_and_port

AT_ONCE = 64
"""connections"""
CHUNK = 1 << 16


class Relay:
    """Listens at one address, and passes each connection on to another one as it is."""

    def __init__(self, host: str, port: int) -> None:
        """host, port: where connections are passed on to."""
        self._target = host, port
        self._open = 0

    async def listen(self, host: str, port: int) -> asyncio.Server:
        """Begin. InputError: nobody can listen there."""
        try:
            return await asyncio.start_server(self._pass_on, host, port)
        except OSError as error:
            raise InputError(
                f"--listen {host_and_port(host, port)}: {error.strerror or error}; name another address"
            ) from error

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open >= AT_ONCE:
            writer.close()
            return
        self._open += 1
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):  # Ctrl-C is no failure: asyncio would print one
                inner_reader, inner_writer = await asyncio.open_connection(*self._target)
                await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))
        finally:
            self._open -= 1
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until one side closes; then both do."""
    try:
        while part := await reader.read(CHUNK):
            writer.write(part)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


def serve_until_interrupted(relay: Relay, host: str, port: int) -> None:
    """Listen until Ctrl-C."""

    async def serve() -> None:
        server = await relay.listen(host, port)
        async with server:
            await server.serve_forever()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())
